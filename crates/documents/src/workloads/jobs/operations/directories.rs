//! Names: created, linked, listed, looked up, removed.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;

use rustix::fs::{Dir, Mode, OFlags};

use super::Context;
use crate::workloads::job::{JobError, expect};

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
