//! A core dump: memory, registers and files of a process, as the kernel or gdb's `gcore` wrote them.
//!
//! | what                         | where it is                                                                |
//! |------------------------------|----------------------------------------------------------------------------|
//! | threads and their registers  | a note `NT_PRSTATUS` each                                                   |
//! | the process' number and name | `NT_PRPSINFO`                                                               |
//! | files that were mapped       | `NT_FILE`; what is code, in the segments, or in the head of the mapped file |
//! | their build ids              | in their heads, which are in memory                                         |
//! | memory                       | the segments; what they leave out, in the mapped files                       |
//!
//! All threads are at one moment.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectKind, ReadCache};

use super::access::Refused;
use super::registers::Registers;
use super::task::Task;
use crate::machine;
use crate::maps::{Mapping, Maps};
use crate::symbols::{Blocked, hexadecimal};
use crate::watch::Stat;

/// More notes are none: those of ten thousand threads take a tenth of it.
const MOST_NOTES: u64 = 1 << 30;
/// Of a mapped file, that is in the core.
const HEAD: usize = 4096;
/// What a file begins with that has been compressed, and by what.
const PACKED: [(&[u8], &str); 4] =
    [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ", "xz"), (b"\x04\x22\x4d\x18", "lz4"), (b"\x1f\x8b", "gzip")];

/// A core dump.
#[derive(Debug)]
pub(super) struct Core {
    path: PathBuf,
    file: File,
    pub(super) pid: u32,
    /// By address.
    segments: Vec<Segment>,
    threads: Vec<Thread>,
    /// By address.
    files: Vec<Mapped>,
    /// By their types.
    vector: Vec<(u64, u64)>,
    name: String,
    /// The thread and the signal that ended the process; none if `gcore` wrote it.
    pub(super) signal: Option<(u32, i32)>,
    /// When it was written, ns since 1970.
    pub(super) written: u64,
    /// Files of which memory was read.
    read: RefCell<HashMap<PathBuf, Option<File>>>,
}

/// Memory, of which the first `bytes` are in the file, at `offset`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    bytes: u64,
    offset: u64,
    is_executable: bool,
}

#[derive(Debug)]
struct Thread {
    id: u32,
    registers: Registers,
}

/// A part of a file that was mapped.
#[derive(Debug)]
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    path: PathBuf,
}

/// What the head of an ELF file says.
#[derive(Debug, Default)]
struct Head {
    build_id: Option<String>,
    /// Where code is, in its own addresses.
    code: Vec<(u64, u64)>,
    /// Where it begins, likewise.
    first: u64,
}

/// Whether a file is a core dump: what else it may be, other readers say.
#[must_use]
pub fn is_core(path: &Path) -> bool {
    const TYPE: usize = 16;
    let mut head = [0; TYPE + 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && head[TYPE..].contains(&(elf::ET_CORE.0 as u8))
}

impl Core {
    /// Opens a core dump, and reads its notes.
    ///
    /// # Errors
    /// If it is none, or damaged.
    pub(super) fn open(path: &Path) -> Result<Self, Refused> {
        let refused = |why: &str, advice: &str| Refused::Core {
            path: path.display().to_string(),
            why: why.to_owned(),
            advice: advice.to_owned(),
        };
        let unreadable =
            |error: std::io::Error| refused(&format!("cannot be read: {error}"), "Check its path and rights");
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => refused("is no file, and no process id", OTHERS),
            _ => unreadable(error),
        })?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(refused("is no file", OTHERS));
        }
        if metadata.len() == 0 {
            return Err(refused("is empty: there was no space for a core, or no permission", AGAIN));
        }
        let mut first = [0; 64];
        let read = file.read_at(&mut first, 0).map_err(unreadable)?;
        let first = &first[..read];
        check(first).map_err(|(why, advice)| refused(&why, &advice))?;
        let damaged = || refused("is damaged: its head makes no sense", AGAIN);
        let cache = ReadCache::new(file.try_clone().map_err(unreadable)?);
        let header = FileHeader64::<Endianness>::parse(&cache).map_err(|_| damaged())?;
        let endian = header.endian().map_err(|_| damaged())?;
        let headers = header.program_headers(endian, &cache).map_err(|_| damaged())?;
        let needed = headers.iter().map(|header| {
            let (offset, bytes) = header.file_range(endian);
            if bytes == 0 { 0 } else { offset.saturating_add(bytes) }
        });
        let needed = needed.max().unwrap_or(0);
        if needed > metadata.len() {
            let why = format!("is cut short: it has {} of {needed} bytes", metadata.len());
            return Err(refused(&why, AGAIN));
        }
        let mut core = Self {
            path: path.to_owned(),
            pid: 0,
            segments: segments(headers, endian),
            threads: Vec::new(),
            files: Vec::new(),
            vector: Vec::new(),
            name: String::new(),
            signal: None,
            written: ns(metadata.mtime(), metadata.mtime_nsec()),
            read: RefCell::default(),
            file,
        };
        for header in headers {
            if header.p_filesz(endian) > MOST_NOTES {
                continue;
            }
            let Ok(Some(mut notes)) = header.notes(endian, &cache) else { continue };
            while let Ok(Some(note)) = notes.next() {
                if note.name() == b"CORE" {
                    core.note(note.n_type(endian), note.desc());
                }
            }
        }
        core.files.sort_by_key(|file| file.start);
        match core.threads.first() {
            None => return Err(refused("has no threads in it: it is damaged, or of no program", AGAIN)),
            Some(_) if core.files.is_empty() => {
                return Err(refused(
                    "does not say which files were mapped: it is damaged, or of no program",
                    AGAIN,
                ));
            }
            Some(first) if core.pid == 0 => core.pid = first.id,
            Some(_) => {}
        }
        core.threads.sort_by_key(|thread| thread.id);
        core.threads.dedup_by_key(|thread| thread.id);
        Ok(core)
    }

    fn note(&mut self, kind: elf::NoteType, bytes: &[u8]) {
        const PRPSINFO_PID: usize = 24;
        const PRPSINFO_NAME: std::ops::Range<usize> = 40..56;
        match kind {
            elf::NT_PRSTATUS => {
                let Some((thread, signal)) = thread(bytes) else { return };
                // The first one is the thread that the signal was for.
                if self.threads.is_empty() && signal != 0 {
                    self.signal = Some((thread.id, signal));
                }
                self.threads.push(thread);
            }
            elf::NT_PRPSINFO => {
                self.pid = number(bytes, PRPSINFO_PID).unwrap_or(0);
                let name = bytes.get(PRPSINFO_NAME).unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                self.name = String::from_utf8_lossy(name).into_owned();
            }
            elf::NT_AUXV => {
                let words: Vec<u64> = words(bytes).collect();
                self.vector = words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            }
            elf::NT_FILE => self.files = files(bytes).unwrap_or_default(),
            _ => {}
        }
    }

    /// The program, with its path if that is known.
    pub(super) fn program(&self) -> String {
        self.own().map_or_else(|| self.name.clone(), |path| shown(path).to_string_lossy().into_owned())
    }

    /// The path of the program's file: of the one whose head the kernel found its program headers in.
    fn own(&self) -> Option<&Path> {
        let headers = self.of_vector(libc::AT_PHDR)?;
        self.files.iter().find(|file| (file.start..file.end).contains(&headers)).map(|file| &*file.path)
    }

    fn of_vector(&self, kind: u64) -> Option<u64> {
        self.vector.iter().find(|(known, _)| *known == kind).map(|(_, value)| *value)
    }

    /// Takes `executable` for the program's file.
    ///
    /// # Errors
    /// If it is another build, or no program.
    pub(super) fn set_program(&mut self, executable: &Path) -> Result<(), Refused> {
        let refused = |why: String, advice: &str| Refused::Core {
            path: executable.display().to_string(),
            why,
            advice: advice.to_owned(),
        };
        let path = fs::canonicalize(executable)
            .map_err(|error| refused(format!("cannot be read: {error}"), "Check its path and rights"))?;
        let advice = "Give the very file that ran, or a copy of it";
        let build_id = build_id(&path).ok_or_else(|| refused(String::from("is no program"), advice))?;
        let Some(own) = self.own().map(Path::to_owned) else {
            let why =
                format!("cannot be matched: {} does not say where its program was", self.path.display());
            return Err(refused(why, "Leave it out"));
        };
        let head = self.files.iter().find(|file| file.path == own).map(|file| self.head(file.start));
        let wanted = head.and_then(|head| head.build_id);
        if wanted.is_some() && build_id.is_some() && wanted != build_id {
            let why = format!("is not the program of {}: its build id is another one", self.path.display());
            return Err(refused(why, advice));
        }
        for file in self.files.iter_mut().filter(|file| file.path == own) {
            file.path.clone_from(&path);
        }
        Ok(())
    }

    /// The files as `/proc/PID/maps` would have them, with the build ids that are in memory.
    pub(super) fn maps(&self) -> Maps {
        let mut text: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut numbers: HashMap<&Path, usize> = HashMap::new();
        let mut head = (None, 0, Head::default());
        for file in &self.files {
            // Nothing has its inode: any number that no other file has will do.
            let next = numbers.len() + 1;
            let inode = *numbers.entry(&file.path).or_insert(next);
            let mut line = Vec::new();
            if head.0 != Some(&file.path) {
                head = (Some(&file.path), file.start, self.head(file.start));
                if let Some(id) = &head.2.build_id {
                    line.extend(format!("= {:x} {inode} {id}\n", file.start).bytes());
                }
            }
            let is_executable = self.segment(file.start).map_or_else(
                || head.2.is_code(file.start.wrapping_sub(head.1).wrapping_add(head.2.first)),
                |segment| segment.is_executable,
            );
            let x = if is_executable { 'x' } else { '-' };
            let (start, end, offset) = (file.start, file.end, file.offset);
            line.extend(format!("{start:x}-{end:x} r-{x}p {offset:08x} 00:00 {inode} ").bytes());
            for byte in file.path.as_os_str().as_bytes() {
                match byte {
                    b'\n' => line.extend(b"\\012"),
                    byte => line.push(*byte),
                }
            }
            line.push(b'\n');
            text.push((start, line));
        }
        let vdso = self.of_vector(libc::AT_SYSINFO_EHDR);
        for segment in &self.segments {
            let is_files = |file: &Mapped| file.start < segment.end && segment.start < file.end;
            let near = self.files.partition_point(|file| file.end <= segment.start);
            if self.files.get(near).is_some_and(is_files) {
                continue;
            }
            let x = if segment.is_executable { 'x' } else { '-' };
            let name = if vdso == Some(segment.start) { "[vdso]" } else { "" };
            let line = format!("{:x}-{:x} r-{x}p 00000000 00:00 0 {name}\n", segment.start, segment.end);
            text.push((segment.start, line.into_bytes()));
        }
        text.sort_by_key(|(start, _)| *start);
        let lines: Vec<u8> = text.into_iter().flat_map(|(_, line)| line).collect();
        Maps::new(&[b"@ 0 0\n", &lines[..]].concat())
    }

    /// The segment that has `address`.
    fn segment(&self, address: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.start <= address);
        self.segments[..after].last().filter(|segment| address < segment.end)
    }

    /// The head of the ELF file that was mapped at `start`.
    fn head(&self, start: u64) -> Head {
        let mut bytes = vec![0; HEAD];
        let count = self.read_dumped(&mut bytes, start);
        Head::parse(&bytes[..count]).unwrap_or_default()
    }

    /// Reads memory that is in the core; how much of it is there.
    fn read_dumped(&self, bytes: &mut [u8], address: u64) -> usize {
        let mut count = 0;
        while count < bytes.len() {
            let Some(at) = address.checked_add(count as u64) else { break };
            let Some(segment) = self.segment(at) else { break };
            let Some(left) = segment.bytes.checked_sub(at - segment.start).filter(|left| *left > 0) else {
                break;
            };
            let end = bytes.len().min(count.saturating_add(usize::try_from(left).unwrap_or(usize::MAX)));
            if self.file.read_exact_at(&mut bytes[count..end], segment.offset + (at - segment.start)).is_err()
            {
                break;
            }
            count = end;
        }
        count
    }

    /// Reads memory; whether all of it is known. What nobody wrote to is not in the core, but in its file.
    pub(super) fn read(&self, maps: &Maps, bytes: &mut [u8], address: u64) -> bool {
        if self.read_dumped(bytes, address) == bytes.len() {
            return true;
        }
        let Some(mapping) = maps.find(0, address).filter(|mapping| mapping.is_file()) else { return false };
        if address.checked_add(bytes.len() as u64).is_none_or(|end| end > mapping.end) {
            return false;
        }
        let mut files = self.read.borrow_mut();
        let file = files.entry(mapping.path.clone()).or_insert_with(|| same_build(mapping));
        let offset = mapping.offset + (address - mapping.start);
        file.as_ref().is_some_and(|file| file.read_exact_at(bytes, offset).is_ok())
    }

    /// Its threads. `bytes`: so much of a stack is copied.
    pub(super) fn tasks(&self, maps: &Maps, bytes: usize) -> Vec<Task> {
        let mut buffer = vec![0; bytes];
        let task = |thread: &Thread| {
            let registers = &thread.registers;
            let stack = registers.stack();
            let count = self.read_dumped(&mut buffer, stack);
            let words = words(&buffer[..count]).collect();
            let (call, code) = registers.now(|address| {
                let mut bytes = [0; 4];
                self.read(maps, &mut bytes, address).then_some(bytes)
            });
            let stack = Some(Blocked { code, stack, words, kept: registers.kept() });
            // Of names there is only the process', which is that of its first thread.
            let stat = Stat { state: b'S', ..Stat::default() };
            Task { id: thread.id, stat, sched: None, call, stack, near: None }
        };
        self.threads.iter().map(task).collect()
    }

    /// Numbers of threads as their process has them, if whoever wrote the core has others: each has its own
    /// behind its thread pointer.
    pub(super) fn foreign_numbers(&self) -> Option<HashMap<u32, u32>> {
        let word = |address: u64| {
            let mut bytes = [0; 8];
            (self.read_dumped(&mut bytes, address) == bytes.len()).then(|| u64::from_ne_bytes(bytes))
        };
        let both = self.threads.iter().filter_map(|thread| {
            // glibc's `struct pthread`, whose first and third words have its own address.
            let block = thread.registers.thread_pointer()?;
            if word(block)? != block || word(block.checked_add(16)?)? != block {
                return None;
            }
            let number = (word(block.checked_add(machine::THREAD_ID)?)? & u64::from(u32::MAX)) as u32;
            Some((number, thread.id))
        });
        let both: HashMap<u32, u32> = both.collect();
        both.iter().any(|(inside, outside)| inside != outside).then_some(both)
    }
}

/// What to do about a core that is none, or not all there.
const OTHERS: &str = "Write a whole number, as in 4711, or the path of what the kernel or `gcore 4711` wrote";
const AGAIN: &str =
    "Have another one written, with `ulimit -c unlimited` and space for it, or by `gcore PID`";

/// Whether a file with this head can be a core; else why not, and what to do.
fn check(first: &[u8]) -> Result<(), (String, String)> {
    const CLASS: usize = 4;
    const NARROW: u8 = 1;
    const ORDER: usize = 5;
    const LITTLE: u8 = 1;
    let short = |at: usize| Some(u16::from_le_bytes(first.get(at..at + 2)?.try_into().ok()?));
    if let Some((_, by)) = PACKED.iter().find(|(start, _)| first.starts_with(start)) {
        let advice =
            "Unpack it first; `coredumpctl dump --output=core PID` does so with those that systemd keeps";
        return Err((format!("is compressed by {by}"), advice.to_owned()));
    }
    if !first.starts_with(b"\x7fELF") {
        return Err((String::from("is no core dump"), OTHERS.to_owned()));
    }
    let advice = "Try: gdb -c CORE -ex 'thread apply all backtrace'";
    if first.get(CLASS) == Some(&NARROW) {
        return Err((
            String::from("is of a 32-bit program: only 64-bit ones can be read"),
            advice.to_owned(),
        ));
    }
    if first.len() < 64 {
        return Err((String::from("is cut short: it has not even its head"), AGAIN.to_owned()));
    }
    if first[ORDER] != LITTLE || short(18) != Some(machine::ELF.0) {
        return Err((
            format!("is of another kind of CPU: only {}'s can be read", machine::NAME),
            advice.to_owned(),
        ));
    }
    if short(16) != Some(elf::ET_CORE.0) {
        let why = "is a program or a library, and no core dump";
        return Err((why.to_owned(), String::from("Put the core first: CORE EXECUTABLE")));
    }
    Ok(())
}

fn ns(seconds: i64, rest: i64) -> u64 {
    seconds.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(rest.unsigned_abs())
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn segments(headers: &[ProgramHeader64<Endianness>], endian: Endianness) -> Vec<Segment> {
    let loaded = headers.iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
    let mut segments: Vec<Segment> = loaded
        .filter_map(|header| {
            let (offset, bytes) = header.file_range(endian);
            let start = header.p_vaddr(endian);
            let end = start.checked_add(header.p_memsz(endian).max(bytes))?;
            let is_executable = header.p_flags(endian).0 & elf::PF_X.0 != 0;
            Some(Segment { start, end, bytes, offset, is_executable })
        })
        .collect();
    segments.sort_by_key(|segment| segment.start);
    segments
}

/// A thread, and the signal that it got.
fn thread(bytes: &[u8]) -> Option<(Thread, i32)> {
    const SIGNAL: usize = 12;
    const ID: usize = 32;
    const FIRST: usize = 112;
    let id = number(bytes, ID)?;
    let signal = i16::from_ne_bytes(bytes.get(SIGNAL..SIGNAL + 2)?.try_into().ok()?);
    let registers: Vec<u64> = words(bytes.get(FIRST..FIRST + 8 * Registers::NUMBER)?).collect();
    Some((Thread { id, registers: Registers(registers.try_into().ok()?) }, signal.into()))
}

/// Of `NT_FILE`: how many there are, the unit of offsets, their places, and then their names.
fn files(bytes: &[u8]) -> Option<Vec<Mapped>> {
    const PLACE: usize = 24;
    /// Of addresses, and of offsets.
    const MOST: u64 = 1 << 56;
    let [number, unit] = [0, 8].map(|at| words(bytes.get(at..).unwrap_or_default()).next());
    let (number, unit) = (usize::try_from(number?).ok()?, unit?);
    let end = 16_usize.checked_add(number.checked_mul(PLACE)?)?;
    let places = bytes.get(16..end)?.chunks_exact(PLACE);
    let names = bytes.get(end..)?.split(|byte| *byte == 0);
    let file = |(place, name): (&[u8], &[u8])| {
        let [start, end, pages]: [u64; 3] = words(place).collect::<Vec<_>>().try_into().ok()?;
        let offset = pages.checked_mul(unit)?;
        let file = Mapped { start, end, offset, path: PathBuf::from(OsStr::from_bytes(name)) };
        (start < end && end <= MOST && offset <= MOST).then_some(file)
    };
    Some(places.zip(names).filter_map(file).collect())
}

impl Head {
    /// Of the first bytes of a file.
    fn parse(bytes: &[u8]) -> Option<Self> {
        const PAGE: u64 = 4096;
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let headers = header.program_headers(endian, bytes).ok()?;
        let mut head = Self::default();
        let loaded = headers.iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
        head.first = loaded.clone().map(|header| header.p_vaddr(endian)).min()? / PAGE * PAGE;
        for header in loaded.filter(|header| header.p_flags(endian).0 & elf::PF_X.0 != 0) {
            let start = header.p_vaddr(endian);
            head.code.push((start / PAGE * PAGE, start.checked_add(header.p_memsz(endian))?));
        }
        for header in headers {
            let Ok(Some(mut notes)) = header.notes(endian, bytes) else { continue };
            while let Ok(Some(note)) = notes.next() {
                if note.n_type(endian) == elf::NT_GNU_BUILD_ID && note.name() == elf::ELF_NOTE_GNU {
                    head.build_id = Some(hexadecimal(note.desc()));
                }
            }
        }
        Some(head)
    }

    fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|(start, end)| (*start..*end).contains(&address))
    }
}

/// The build id of an ELF file, if it has one; none if it is no such file.
fn build_id(path: &Path) -> Option<Option<String>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok().filter(|file| file.kind() != ObjectKind::Core)?;
    Some(file.build_id().ok().flatten().map(hexadecimal))
}

/// The file of a mapping, if it is sure to be the one that was mapped.
fn same_build(mapping: &Mapping) -> Option<File> {
    let known = mapping.build_id.as_ref()?;
    let found = build_id(&mapping.path)??;
    (found == *known).then(|| File::open(&mapping.path).ok()).flatten()
}

/// A path without the kernel's remark that the file is gone.
fn shown(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    Path::new(OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_files() {
        let note = |numbers: &[u64], names: &[u8]| {
            let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            files(&[&numbers[..], names].concat())
        };
        let found = note(&[2, 4096, 0x1000, 0x2000, 0, 0x2000, 0x3000, 3], b"/a b\0/c\nd (deleted)\0");
        let found: Vec<_> =
            found.expect("two").into_iter().map(|it| (it.start, it.offset, it.path)).collect();
        let [a, c] = ["/a b", "/c\nd (deleted)"].map(PathBuf::from);
        assert_eq!(found, [(0x1000, 0, a), (0x2000, 3 * 4096, c.clone())]);
        assert_eq!(shown(&c), Path::new("/c\nd"));
        // More than there are, backwards, and too far.
        assert!(note(&[u64::MAX, 4096], b"").is_none() && note(&[2, 4096, 1, 2, 3], b"/a\0").is_none());
        let senseless = [[2, 1, 0], [1, u64::MAX, 0], [1, 2, u64::MAX]];
        for [start, end, pages] in senseless {
            assert!(note(&[1, 4096, start, end, pages], b"/a\0").is_none_or(|found| found.is_empty()));
        }
        assert!(files(b"").is_none() && thread(&[0; 300]).is_none());
    }
}
