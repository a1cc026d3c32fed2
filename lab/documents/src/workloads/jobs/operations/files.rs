//! Files: their contents, in blocks of several sizes, synchronous or direct; and their names.
//!
//! An operation makes its own file, and removes it. A block begins with its number, and a read checks it.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rand::RngExt;
use rustix::fs::{Dir, Mode, OFlags};

use super::Context;
use crate::workloads::job::{JobError, expect};

/// How a file is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The size of a block, in bytes.
    block: usize,
    /// Flags of open(2).
    flags: i32,
    /// One random access for this many blocks.
    share: u64,
}

/// Blocks of 1 KB.
pub(super) const PLAIN: Shape = Shape { block: 1 << 10, flags: 0, share: 1 };

/// Blocks of 8 KB.
pub(super) const BLOCKS: Shape = Shape { block: 8 << 10, flags: 0, share: 1 };

/// Blocks of 1 KB, each on the disk before the next; half as many random ones.
pub(super) const SYNC: Shape = Shape { block: 1 << 10, flags: libc::O_SYNC, share: 2 };

/// Blocks of 4 KB past the page cache.
pub(super) const DIRECT: Shape = Shape { block: 4 << 10, flags: libc::O_DIRECT, share: 1 };

impl Context {
    /// How a file of this shape is opened.
    fn options(&self, shape: Shape) -> OpenOptions {
        let flags = if self.sync { shape.flags } else { shape.flags & !libc::O_SYNC };
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags);
        options
    }
}

/// The largest block, aligned as direct I/O needs it.
#[repr(align(4096))]
struct Buffer([u8; 8 << 10]);

impl Buffer {
    fn new() -> Box<Self> {
        Box::new(Self([0; 8 << 10]))
    }

    /// Block number `number`.
    fn fill(&mut self, number: u64) {
        self.0[..8].copy_from_slice(&number.to_le_bytes());
    }

    fn check(&self, number: u64) -> Result<(), JobError> {
        let found = self.0.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        expect(found == Some(number), || format!("block {number} has the number {found:?}"))
    }
}

/// A file of `blocks` blocks, removed when it is dropped.
struct Scratch<'a> {
    file: File,
    path: PathBuf,
    shape: Shape,
    blocks: u64,
    context: &'a mut Context,
}

impl<'a> Scratch<'a> {
    fn create(context: &'a mut Context, name: &str, shape: Shape) -> Result<Self, JobError> {
        let path = context.path(name);
        let file = context.options(shape).create_new(true).open(&path);
        let file = file.map_err(JobError::failed("cannot create a file"))?;
        let blocks = (context.file_bytes / shape.block as u64).max(1);
        Ok(Self { file, path, shape, blocks, context })
    }

    /// With all blocks in it, and on the disk.
    fn full(context: &'a mut Context, name: &str, shape: Shape) -> Result<Self, JobError> {
        // How it came to be is not what is measured: without waiting for each block.
        let quick = Shape { flags: shape.flags & !libc::O_SYNC, ..shape };
        let mut scratch = Self::create(context, name, quick)?;
        scratch.write_all()?;
        scratch.flush()?;
        scratch.shape = shape;
        Ok(scratch)
    }

    /// Opens the file again with all flags of its shape.
    fn reopen(&mut self) -> Result<(), JobError> {
        let file = self.context.options(self.shape).open(&self.path);
        self.file = file.map_err(JobError::failed("cannot open a file"))?;
        Ok(())
    }

    fn flush(&self) -> Result<(), JobError> {
        match self.context.sync {
            true => self.file.sync_data().map_err(JobError::failed("cannot flush a file")),
            false => Ok(()),
        }
    }

    fn offset(&self, number: u64) -> u64 {
        number * self.shape.block as u64
    }

    fn write(&self, buffer: &mut Buffer, number: u64) -> Result<(), JobError> {
        buffer.fill(number);
        let written = self.file.write_all_at(&buffer.0[..self.shape.block], self.offset(number));
        written.map_err(JobError::failed(format!("cannot write block {number}")))
    }

    fn read(&self, buffer: &mut Buffer, number: u64) -> Result<(), JobError> {
        buffer.fill(u64::MAX);
        let read = self.file.read_exact_at(&mut buffer.0[..self.shape.block], self.offset(number));
        read.map_err(JobError::failed(format!("cannot read block {number}")))?;
        buffer.check(number)
    }

    fn write_all(&mut self) -> Result<(), JobError> {
        let mut buffer = Buffer::new();
        (0..self.blocks).try_for_each(|number| self.write(&mut buffer, number))
    }

    /// Numbers of blocks at random, as many as the shape says.
    fn random(&mut self) -> Vec<u64> {
        let blocks = self.blocks;
        let count = (blocks / self.shape.share).max(1);
        (0..count).map(|_| self.context.rng.random_range(0..blocks)).collect()
    }

    /// Checks that the file has its whole size.
    fn check_size(&self) -> Result<(), JobError> {
        let (found, expected) = (self.file.metadata().map_or(0, |data| data.len()), self.offset(self.blocks));
        expect(found == expected, || format!("a file has {found} bytes, not {expected}"))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // If it fails, the directory goes anyway.
        let _ = fs::remove_file(&self.path);
    }
}

/// All blocks written in order.
pub(super) fn writes(context: &mut Context, shape: Shape) -> Result<(), JobError> {
    let mut scratch = Scratch::create(context, "written", shape)?;
    scratch.write_all()?;
    scratch.check_size()
}

/// All blocks read in order.
pub(super) fn reads(context: &mut Context, shape: Shape) -> Result<(), JobError> {
    let scratch = Scratch::full(context, "read", shape)?;
    let mut buffer = Buffer::new();
    (0..scratch.blocks).try_for_each(|number| scratch.read(&mut buffer, number))
}

/// As many blocks read at random as the file has.
pub(super) fn random_reads(context: &mut Context, shape: Shape) -> Result<(), JobError> {
    let mut scratch = Scratch::full(context, "random-read", shape)?;
    let mut buffer = Buffer::new();
    scratch.random().into_iter().try_for_each(|number| scratch.read(&mut buffer, number))
}

/// As many blocks written at random as the file has; half of them if each is synchronous.
pub(super) fn random_writes(context: &mut Context, shape: Shape) -> Result<(), JobError> {
    let mut scratch = Scratch::full(context, "random-written", shape)?;
    scratch.reopen()?;
    let mut buffer = Buffer::new();
    scratch.random().into_iter().try_for_each(|number| scratch.write(&mut buffer, number))?;
    let last = scratch.blocks - 1;
    scratch.read(&mut buffer, last)?;
    scratch.check_size()
}

/// A file copied, block by block.
pub(super) fn copies(context: &mut Context, shape: Shape) -> Result<(), JobError> {
    let path = context.path("copy");
    let mut options = context.options(shape);
    let scratch = Scratch::full(context, "copied", shape)?;
    let mut copied = || -> io::Result<u64> {
        let copy = options.create_new(true).open(&path)?;
        let mut buffer = Buffer::new();
        let block = &mut buffer.0[..shape.block];
        for number in 0..scratch.blocks {
            scratch.file.read_exact_at(block, scratch.offset(number))?;
            copy.write_all_at(block, scratch.offset(number))?;
        }
        let length = copy.metadata()?.len();
        fs::remove_file(&path)?;
        Ok(length)
    };
    let length = copied().map_err(JobError::failed("cannot copy a file"))?;
    expect(length == scratch.offset(scratch.blocks), || format!("the copy has {length} bytes"))
}

/// Blocks read, changed and written back at random, and flushed at once.
pub(super) fn updates(context: &mut Context) -> Result<(), JobError> {
    let mut scratch = Scratch::full(context, "updated", Shape { flags: 0, ..SYNC })?;
    let mut buffer = Buffer::new();
    for number in scratch.random() {
        scratch.read(&mut buffer, number)?;
        buffer.0[8] = buffer.0[8].wrapping_add(1);
        scratch.write(&mut buffer, number)?;
        scratch.flush()?;
    }
    scratch.check_size()
}

/// Checks that files in `directory` can be used past the page cache.
pub(super) fn check_direct(directory: &Path) -> Result<(), JobError> {
    let path = directory.join("direct");
    let made = File::options().write(true).create_new(true).custom_flags(libc::O_DIRECT).open(&path);
    let written = made.and_then(|file| file.write_all_at(&Buffer::new().0[..DIRECT.block], 0));
    let _ = fs::remove_file(&path);
    written.map_err(|error| {
        JobError::Refused(format!(
            "this mix needs direct I/O (O_DIRECT), which the file system of {} does not have: {error}\n\
             tmpfs has it since Linux 6.6; name a directory on a disk with --dir, or use a mix without disk_dio",
            directory.display()
        ))
    })
}

/// A file of one's own created and closed 1000 times, and removed.
pub(super) fn creat_close(context: &mut Context) -> Result<(), JobError> {
    let path = context.path("creat");
    for _ in 0..1000 {
        drop(File::create(&path).map_err(JobError::failed("cannot create a file"))?);
    }
    fs::remove_file(&path).map_err(JobError::failed("cannot remove a file"))?;
    expect(!path.exists(), || String::from("a file that was removed is there"))
}

/// A file with seven more names, each removed and made again nine times.
pub(super) fn links(context: &mut Context) -> Result<(), JobError> {
    use std::os::unix::fs::MetadataExt;
    let file = context.path("link");
    let names: Vec<_> = (1..=7).map(|number| context.path(&format!("link-{number}"))).collect();
    let made = || -> io::Result<u64> {
        drop(File::create(&file)?);
        names.iter().try_for_each(|name| fs::hard_link(&file, name))?;
        for name in names.iter().cycle().take(9 * names.len()) {
            fs::remove_file(name)?;
            fs::hard_link(&file, name)?;
        }
        let names_of_file = fs::metadata(&file)?.nlink();
        names.iter().chain([&file]).try_for_each(fs::remove_file)?;
        Ok(names_of_file)
    };
    let found = made().map_err(JobError::failed("links"))?;
    expect(found == 8, || format!("a file has {found} names, not 8"))
}

/// 10,000 entries of `/bin`, from the start again and again.
pub(super) fn listing(_: &mut Context) -> Result<(), JobError> {
    const ENTRIES: usize = 10_000;
    let open = |path: &CStr| rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    // A machine without it has this directory at least.
    let directory =
        open(c"/bin").or_else(|_| open(c".")).map_err(JobError::failed("cannot open a directory"))?;
    let failed = || JobError::failed("cannot read a directory");
    let mut entries = Dir::read_from(&directory).map_err(failed())?;
    let mut seen = 0;
    while seen < ENTRIES {
        let mut in_pass = 0;
        for entry in entries.by_ref() {
            entry.map_err(failed())?;
            in_pass += 1;
        }
        // There are `.` and `..` always.
        expect(in_pass >= 2, || format!("a directory has {in_pass} entries"))?;
        seen += in_pass;
        entries.rewind();
    }
    Ok(())
}

/// 75 names looked up in a tree, half of which are not there; files with the process' number made and
/// removed.
pub(super) fn search(context: &mut Context) -> Result<(), JobError> {
    let tree = context.path("src");
    let searched = || -> io::Result<usize> {
        let inner = tree.join("a/b/c");
        fs::create_dir_all(&inner)?;
        let own = std::process::id();
        let mut found = 0;
        for number in 0..75 {
            let path = inner.join(format!("name-{number}-{own}"));
            if number % 2 == 0 {
                drop(File::create_new(&path)?);
            }
            match fs::metadata(&path) {
                Ok(_) => {
                    found += 1;
                    fs::remove_file(&path)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        fs::remove_dir_all(&tree)?;
        Ok(found)
    };
    let found = searched().map_err(JobError::failed("cannot search a tree"))?;
    expect(found == 38, || format!("{found} names of 38 were found"))
}
