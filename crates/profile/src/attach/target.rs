//! The process that is read: its memory, its files, and snapshots of its threads. It runs, or a core dump of it
//! was written.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ReadCache};
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::access::{Refused, Status, forbidden, of_program};
use super::core::Core;
use super::task::{Call, Near, Task};
use crate::glibc_locks;
use crate::live_process;
use crate::maps::{Mapping, Maps};
use crate::symbols::{Blocked, Kept};
use crate::watch::{Sched, Stat};

/// So much of a stack is copied. Frames beyond it are not seen.
pub(super) const STACK: usize = 16 << 10;
/// What is copied at least, and more than the last time: the same code may use more of the stack.
const SLACK: usize = 512;
/// Files that this process opens besides those of threads: of programs and libraries, and its own.
const OTHER_FILES: u64 = 1024;
/// A thread that does not keep still while its stack is copied, so often in a row, runs.
const TRIES: u32 = 3;

/// Where what is read comes from.
#[derive(Debug)]
enum Source {
    Process(Process),
    Core(Box<Core>),
}

/// A process that runs.
#[derive(Debug)]
pub(super) struct Process {
    pid: u32,
    directory: PathBuf,
    /// Of its threads. That of one thread, which `directory` may be, has none.
    tasks: PathBuf,
    /// The same, open: names below it are found sooner.
    tasks_directory: File,
    /// Of the program that it was when this was opened: `exec` replaces it.
    memory: File,
    /// So many threads' files may stay open.
    most_open: usize,
}

/// A thread that is read again and again, and what it was in when it was read last.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// They stay this thread's when it has ended, and its number is another one's. None: not opened.
    files: Option<(File, File)>,
    /// What they had, and the thread then.
    sched: Text<64>,
    /// Nine numbers.
    call: Text<192>,
    pub(super) task: Option<Task>,
    /// What it was in first, if it has gone on from there while its stack was copied; with the end of its stack, and
    /// the next instruction.
    pub(super) first: Option<(Call, (u64, u64))>,
    /// So much of its stack was needed.
    pub(super) needed: Option<usize>,
}

/// What has become of a thread since it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// It has not run.
    Same,
    /// It has run, or runs.
    Changed,
    /// It has ended.
    Ended,
    /// It may no longer be read.
    Forbidden,
}

/// How much of a thread is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// Only whether it has run: it has slept for long.
    pub(super) is_idle: bool,
    /// Also its state and name, of which calls and times tell nothing.
    pub(super) has_state: bool,
    /// The same, if it has run.
    pub(super) is_stopped: bool,
}

/// A short file of `/proc`. It lies with what else is known of its thread: what is read seldom is in no cache.
#[derive(Clone, Copy, Debug)]
struct Text<const BYTES: usize> {
    length: usize,
    bytes: [u8; BYTES],
}

impl<const BYTES: usize> Default for Text<BYTES> {
    fn default() -> Self {
        Self { length: 0, bytes: [0; BYTES] }
    }
}

impl<const BYTES: usize> Text<BYTES> {
    /// Reads it again; whether it is as it was.
    fn read(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<bool> {
        let mut buffer = [0; BYTES];
        let length = read(&mut buffer)?;
        let is_same = self.text() == &buffer[..length];
        (self.length, self.bytes) = (length, buffer);
        Ok(is_same)
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A process that runs, or a core dump of one.
#[derive(Debug)]
pub struct Target {
    pub(super) pid: u32,
    program: String,
    source: Source,
    pub(super) maps: Maps,
    pub(super) kept: Kept,
    /// Threads by their numbers in the namespace of the process, if that is not ours.
    numbers: Option<HashMap<u32, u32>>,
}

impl Target {
    /// Opens a process. `command`: how this was called, for messages.
    ///
    /// # Errors
    /// [`Refused`], with what opens it.
    pub fn open(pid: u32, command: &'static str) -> Result<Self, Refused> {
        let process = Path::new("/proc").join(pid.to_string());
        let status = of_program(pid, command)?;
        let directory = live_process::directory(pid);
        let denied = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => forbidden(pid, &directory, command),
            io::ErrorKind::NotFound => Refused::Missing(pid),
            _ => Refused::Other(pid, error.to_string()),
        };
        let memory = File::open(directory.join("mem")).map_err(denied)?;
        fs::read(directory.join("syscall")).map_err(denied)?;
        let text = fs::read(directory.join("maps")).map_err(denied)?;
        if is_narrow(&directory) {
            return Err(Refused::Narrow(pid));
        }
        let program = fs::read_link(directory.join("exe"));
        let program = program.map_or_else(|_| String::from("?"), |path| path.to_string_lossy().into_owned());
        let tasks = process.join("task");
        let tasks_directory = File::open(&tasks).map_err(denied)?;
        let process = Process { pid, directory, tasks, tasks_directory, memory, most_open: 0 };
        let numbers = process.foreign_numbers(&status);
        let source = Source::Process(process);
        let (maps, kept) = (Maps::default(), Kept::default());
        let mut target = Self { pid, program, source, maps, kept, numbers };
        target.note_files(&text);
        Ok(target)
    }

    /// Opens a core dump. `executable`: the program's file, if it is not where it was.
    ///
    /// # Errors
    /// [`Refused`], with what to do.
    pub fn open_core(path: &Path, executable: Option<&Path>) -> Result<Self, Refused> {
        let mut core = Core::open(path)?;
        if let Some(executable) = executable {
            core.set_program(executable)?;
        }
        let (pid, program) = (core.pid, core.program());
        let (maps, numbers) = (core.maps(), core.foreign_numbers());
        Ok(Self { pid, program, source: Source::Core(Box::new(core)), maps, kept: Kept::default(), numbers })
    }

    /// The core dump, if it is one.
    pub(super) fn core(&self) -> Option<&Core> {
        match &self.source {
            Source::Process(_) => None,
            Source::Core(core) => Some(core),
        }
    }

    /// The process that runs, if it is one.
    pub(super) fn process(&self) -> Option<&Process> {
        match &self.source {
            Source::Process(process) => Some(process),
            Source::Core(_) => None,
        }
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it runs: its program's path.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Whether its program has the C library in itself, as none is loaded.
    pub(super) fn is_static(&self) -> bool {
        let is_libc = |mapping: &Mapping| {
            glibc_locks::is_libc(&mapping.path.file_name().unwrap_or_default().to_string_lossy())
        };
        !self.maps.snapshot(0).iter().any(is_libc)
    }

    /// Whether it has become another program: nobody has the memory any more that it had.
    pub(super) fn is_replaced(&self) -> bool {
        let first = self.maps.snapshot(0).iter().find(|mapping| mapping.is_file());
        first.is_some_and(|mapping| self.read::<1>(mapping.start).is_none())
    }

    /// Whether it has memory with files in it, now.
    pub(super) fn has_files(&self) -> bool {
        self.process().is_some_and(|process| {
            fs::read(process.directory.join("maps")).is_ok_and(|text| !text.is_empty())
        })
    }

    /// Whether it has loaded a file of this name.
    pub(super) fn has_loaded(&self, name: &str) -> bool {
        self.maps.snapshot(0).iter().any(|mapping| mapping.path.file_name().is_some_and(|it| it == name))
    }

    /// Whether Go's linker has made it: its goroutines are no threads, and wait without one.
    pub(super) fn is_of_go(&self) -> bool {
        let path = match &self.source {
            Source::Process(process) => process.directory.join("exe"),
            Source::Core(core) => PathBuf::from(core.program()),
        };
        let Ok(file) = File::open(path) else { return false };
        let read = ReadCache::new(file);
        let elf = ElfFile64::<Endianness, _>::parse(&read);
        elf.is_ok_and(|elf| elf.section_by_name(".go.buildinfo").is_some())
    }

    /// Its files now: libraries are loaded later, too. Whether they are others.
    pub(super) fn read_maps(&mut self) -> bool {
        let text = self.process().and_then(|process| fs::read(process.directory.join("maps")).ok());
        text.is_some_and(|text| self.note_files(&text))
    }

    fn note_files(&mut self, text: &[u8]) -> bool {
        let maps = Maps::new(&[b"@ 0 0\n", text].concat());
        let files = |maps: &Maps| -> Vec<Mapping> {
            maps.snapshot(0).iter().filter(|mapping| mapping.is_file()).cloned().collect()
        };
        let is_changed = files(&maps) != files(&self.maps);
        self.maps = maps;
        for mapping in self.maps.snapshot(0).iter().filter(|it| it.is_file() && it.is_executable) {
            self.kept.keep(self.pid, mapping);
        }
        is_changed
    }

    /// Its threads.
    ///
    /// # Errors
    /// If it has ended, or may no longer be read.
    pub(super) fn snapshot(&self) -> Result<Vec<Task>, Refused> {
        let process = match &self.source {
            Source::Process(process) => process,
            Source::Core(core) => {
                let mut tasks = core.tasks(&self.maps, STACK);
                tasks.iter_mut().for_each(|task| self.resume(task));
                return Ok(tasks);
            }
        };
        let depth = Depth { is_idle: false, has_state: true, is_stopped: false };
        let one = |id: u32| {
            let mut followed = Followed::default();
            self.follow_in(process, id, &mut followed, depth);
            followed.task
        };
        let tasks: Vec<Task> = process.numbers()?.into_iter().filter_map(one).collect();
        if tasks.is_empty() { Err(process.has_ended()) } else { Ok(tasks) }
    }

    /// What a thread is in now, with the end of its stack and its next instruction, and its times.
    pub(super) fn call_of(
        &self,
        process: &Process,
        task: &Task,
    ) -> (Call, Option<(u64, u64)>, Option<Sched>) {
        let mut buffer = [0; 256];
        let mut read = |name: &str| -> Vec<u8> {
            let count = process.open(task.id, name).and_then(|mut file| file.read(&mut buffer));
            count.map_or_else(|_| Vec::new(), |count| buffer[..count].to_vec())
        };
        let (call, registers) = Call::parse(&read("syscall"));
        let call = call.resumed(|| self.read(registers?.1.checked_sub(8)?));
        (call, registers, sched(&read("schedstat")))
    }

    /// What its threads are in, and their times, by their numbers: whether they have run since is told by these.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub(super) fn calls(&self) -> Result<HashMap<u32, (Call, Option<Sched>)>, Refused> {
        let Some(process) = self.process() else { return Ok(HashMap::new()) };
        let one = |id: u32| {
            let mut buffer = [0; 256];
            let mut read = |name: &str| -> Option<Vec<u8>> {
                let count = process.open(id, name).ok()?.read(&mut buffer).ok()?;
                Some(buffer[..count].to_vec())
            };
            let sched = sched(&read("schedstat")?);
            let (call, registers) = Call::parse(&read("syscall")?);
            let call = call.resumed(|| self.read(registers?.1.checked_sub(8)?));
            Some((id, (call, sched)))
        };
        Ok(process.numbers()?.into_iter().filter_map(one).collect())
    }

    /// Prepares for many threads to be read again and again.
    pub(super) fn keep_files(&mut self) {
        if let Source::Process(process) = &mut self.source {
            process.most_open = most_open();
        }
    }

    /// The numbers of its threads, in order.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub(super) fn numbers(&self) -> Result<Vec<u32>, Refused> {
        self.process().map_or(Ok(Vec::new()), Process::numbers)
    }

    /// How many threads it has.
    pub(super) fn number(&self) -> Option<u64> {
        // Links of the directory are itself, the one above, and those below it.
        self.process()?.tasks_directory.metadata().ok().map(|metadata| metadata.nlink().saturating_sub(2))
    }

    /// Whether its first thread is stopped: usually all are, then.
    pub(super) fn is_stopped(&self) -> bool {
        let stat = self.process().and_then(|process| {
            let mut text = Vec::new();
            process.open(self.pid, "stat").ok()?.read_to_end(&mut text).ok()?;
            Stat::parse(&text)
        });
        stat.is_some_and(|stat| stat.is_stopped())
    }

    /// Reads a thread again. `number`: of threads of which files are open.
    pub(super) fn follow(&self, id: u32, number: usize, followed: &mut Followed, depth: Depth) -> Since {
        let Some(process) = self.process() else { return Since::Ended };
        if followed.files.is_none()
            && number < process.most_open
            && let (Ok(sched), Ok(call)) = (process.open(id, "schedstat"), process.open(id, "syscall"))
        {
            followed.files = Some((sched, call));
        }
        self.follow_in(process, id, followed, depth)
    }

    fn follow_in(&self, process: &Process, id: u32, followed: &mut Followed, depth: Depth) -> Since {
        let Followed { files, sched: sched_text, call: call_text, task, needed, first } = followed;
        let files = files.as_ref();
        let read_sched = |buffer: &mut [u8]| match files {
            Some((sched, _)) => sched.read_at(buffer, 0),
            None => process.open(id, "schedstat")?.read(buffer),
        };
        let read_call = |buffer: &mut [u8]| match files {
            Some((_, call)) => call.read_at(buffer, 0),
            None => process.open(id, "syscall")?.read(buffer),
        };
        let gone = |error: io::Error| match error.kind() {
            ErrorKind::PermissionDenied => Since::Forbidden,
            _ => Since::Ended,
        };
        let has_not_run = match sched_text.read(read_sched) {
            Ok(is_same) => is_same && task.as_ref().is_some_and(|task| task.sched.is_some()),
            Err(error) => return gone(error),
        };
        if has_not_run && depth.is_idle && !depth.has_state {
            return Since::Same;
        }
        let is_same_call = match call_text.read(read_call) {
            Ok(is_same) => is_same,
            Err(error) => return gone(error),
        };
        if has_not_run && is_same_call && task.as_ref().is_some_and(|task| task.stack.is_some()) {
            if depth.has_state
                && let Some(task) = task
            {
                match process.stat(id) {
                    Some(stat) if stat.has_ended() => return Since::Ended,
                    Some(stat)
                        if (&stat.name, stat.is_stopped()) != (&task.stat.name, task.stat.is_stopped()) =>
                    {
                        task.stat = stat;
                        return Since::Changed;
                    }
                    _ => {}
                }
            }
            return Since::Same;
        }
        let stat = match task
            .take()
            .map(|task| task.stat)
            .filter(|stat| !depth.has_state && !depth.is_stopped && !stat.is_stopped())
        {
            Some(stat) => stat,
            None => match process.stat(id) {
                Some(stat) if !stat.has_ended() => stat,
                _ => return Since::Ended,
            },
        };
        let sched = sched(sched_text.text());
        let size = needed.map_or(STACK, |needed| (needed + SLACK).next_multiple_of(SLACK).min(STACK));
        *first = None;
        let mut tries = TRIES;
        let (call, stack, near) = loop {
            let (call, registers) = Call::parse(call_text.text());
            let Some((stack, code)) = registers else { break (call, None, None) };
            let words = process.words(stack, size);
            let near = call.futex().and_then(|futex| process.near(futex.address));
            // What was copied of a thread that has gone on meanwhile is of its past, or future.
            match call_text.read(read_call) {
                Ok(true) => break (call, Some(Blocked { code, stack, words, kept: Vec::new() }), near),
                Ok(false) => {
                    first.get_or_insert((call, (stack, code)));
                }
                Err(error) => return gone(error),
            }
            tries -= 1;
            if tries == 0 {
                break (Call::Running, None, None);
            }
        };
        let mut found = Task { id, stat, sched, call, stack, near };
        self.resume(&mut found);
        *task = Some(found);
        Since::Changed
    }

    /// A longer copy of the stack of a thread that was just read: as long as it ever is, if the thread has not
    /// gone on meanwhile.
    pub(super) fn whole_stack(&self, followed: &mut Followed) {
        let (Some(process), Some(task)) = (self.process(), followed.task.as_mut()) else { return };
        let (id, Some(stack)) = (task.id, task.stack.as_mut()) else { return };
        let words = process.words(stack.stack, STACK);
        let files = followed.files.as_ref();
        let again = followed.call.read(|buffer| match files {
            Some((_, call)) => call.read_at(buffer, 0),
            None => process.open(id, "syscall")?.read(buffer),
        });
        if again.is_ok_and(|is_same| is_same) {
            stack.words = words;
        }
    }

    /// Whether a thread that is not blocked may wait for a CPU, and has done nothing else since it was read: it has given
    /// up each CPU that it got. On Linux 6.18 that count was seen to be too low by up to ten, so that of a few threads that
    /// are on a CPU this is not noticed.
    pub(super) fn is_ready(&self, followed: &Followed) -> bool {
        let (Some(process), Some(task)) = (self.process(), &followed.task) else { return false };
        let (id, Some(sched)) = (task.id, task.sched) else { return false };
        let mut text = [0; 4096];
        let Ok(count) = process.open(id, "status").and_then(|mut file| file.read(&mut text)) else {
            return false;
        };
        if switches(&text[..count]).is_none_or(|switches| switches < sched.slices) {
            return false;
        }
        // What was read before is of this moment, too, if it has not run since.
        let mut now = followed.sched;
        let files = followed.files.as_ref();
        let read = now.read(|buffer| match files {
            Some((sched, _)) => sched.read_at(buffer, 0),
            None => process.open(id, "schedstat")?.read(buffer),
        });
        read.is_ok_and(|is_same| is_same)
    }

    /// Names the call that was interrupted, and goes on.
    pub(super) fn resume(&self, task: &mut Task) {
        let code = task.stack.as_ref().map(|stack| stack.code);
        task.call = task.call.resumed(|| self.read(code?.checked_sub(8)?));
    }

    /// The memory on both sides of an address of a process that runs.
    pub(super) fn near(&self, address: u64) -> Option<Near> {
        self.process()?.near(address)
    }

    /// Whether a thread is where it was in a snapshot, and has not run since.
    pub(super) fn stays(&self, task: &Task) -> bool {
        // All threads of a core are at one moment.
        let Some(process) = self.process() else { return matches!(task.call, Call::Blocked { .. }) };
        let (call, _, sched) = self.call_of(process, task);
        call == task.call && task.sched.is_some() && sched == task.sched
    }

    /// Whether the process has this thread now.
    pub(super) fn has(&self, thread: u32) -> bool {
        self.process().is_some_and(|process| process.tasks.join(thread.to_string()).exists())
    }

    /// A part of its memory; none if it is not all there.
    pub(super) fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read_to(&mut bytes, address).then_some(bytes)
    }

    /// The same, to a place; whether it is all there.
    pub(super) fn read_to(&self, bytes: &mut [u8], address: u64) -> bool {
        match &self.source {
            Source::Process(process) => process.memory.read_exact_at(bytes, address).is_ok(),
            Source::Core(core) => core.read(&self.maps, bytes, address),
        }
    }

    /// Whether a thread is now in the call that it was in, or in the same one again.
    pub(super) fn is_in(&self, task: &Task) -> bool {
        let Some(process) = self.process() else { return true };
        let now = fs::read(process.tasks.join(task.id.to_string()).join("syscall")).unwrap_or_default();
        let code = task.stack.as_ref().map(|stack| stack.code);
        let now = Call::parse(&now).0.resumed(|| self.read(code?.checked_sub(8)?));
        match (now, task.call) {
            // The time that is left, or the value that is expected, may be another one.
            (Call::Blocked { number, arguments }, Call::Blocked { number: other, arguments: others }) => {
                (number, arguments[0]) == (other, others[0])
            }
            (now, before) => now == before,
        }
    }

    pub(super) fn word(&self, address: u64) -> Option<u32> {
        self.read(address).map(u32::from_ne_bytes)
    }

    pub(super) fn pointer(&self, address: u64) -> Option<u64> {
        self.read(address).map(u64::from_ne_bytes)
    }

    /// The thread that its own process calls `number`.
    pub(super) fn thread(&self, number: u32) -> u32 {
        match &self.numbers {
            Some(numbers) => numbers.get(&number).copied().unwrap_or(number),
            None => number,
        }
    }

    /// Whether it handles signals other than those of its own faults, and those of libc.
    pub(super) fn has_handlers(&self) -> bool {
        const OWN: [i32; 10] = [
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGSEGV,
            libc::SIGPIPE,
            libc::SIGSYS,
            // Cancels threads, and changes the user of all.
            32,
            33,
        ];
        let status = self.process().and_then(|process| Status::read(&process.directory).ok());
        let caught = status.and_then(|status| u64::from_str_radix(status.field("SigCgt")?, 16).ok());
        let own = OWN.iter().fold(0_u64, |own, signal| own | 1 << (signal - 1));
        caught.unwrap_or(0) & !own != 0
    }

    /// After new threads.
    pub(super) fn renew_numbers(&mut self) {
        if self.numbers.is_some()
            && let Some(process) = self.process()
            && let Ok(status) = Status::read(&process.directory)
            && let Some(numbers) = process.foreign_numbers(&status)
        {
            self.numbers = Some(numbers);
        }
    }

    /// Whether the thread `number` is of another process.
    pub(super) fn is_elsewhere(&self, number: u32) -> bool {
        self.process().is_some() && Path::new("/proc").join(number.to_string()).exists()
    }
}

impl Process {
    /// A file of a thread.
    fn open(&self, id: u32, name: &str) -> io::Result<File> {
        let path = format!("{id}/{name}");
        Ok(File::from(openat(&self.tasks_directory, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// The numbers of its threads, in order.
    pub(super) fn numbers(&self) -> Result<Vec<u32>, Refused> {
        // Of a process that is gone there is no directory, or none in it.
        let entries = fs::read_dir(&self.tasks).map_err(|_| Refused::Missing(self.pid))?;
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub(super) fn stat(&self, id: u32) -> Option<Stat> {
        let mut text = Vec::with_capacity(512);
        self.open(id, "stat").ok()?.read_to_end(&mut text).ok()?;
        Stat::parse(&text)
    }

    /// The words from an address on, up to `bytes` bytes: fewer, where memory ends.
    pub(super) fn words(&self, address: u64, bytes: usize) -> Vec<u64> {
        let mut buffer = [0; STACK];
        let buffer = &mut buffer[..bytes.min(STACK)];
        let count = self.memory.read_at(buffer, address).unwrap_or(0);
        let words = buffer[..count].chunks_exact(8);
        words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect()
    }

    /// The memory on both sides of an address.
    pub(super) fn near(&self, address: u64) -> Option<Near> {
        let mut bytes = [0; Near::BYTES];
        // What is before it may be no memory.
        let starts = [address.checked_sub(Near::BYTES as u64 / 2)?, address];
        let start = starts.into_iter().find(|start| self.memory.read_exact_at(&mut bytes, *start).is_ok())?;
        Some(Near { start, bytes })
    }

    /// Why it could not be stopped.
    pub(super) fn not_stopped(&self, error: &io::Error) -> Refused {
        let status = Status::read(&self.directory).ok();
        let tracer = status.and_then(|status| status.numbers("TracerPid").first().copied());
        match tracer.filter(|tracer| *tracer != 0) {
            Some(tracer) => Refused::Traced(self.pid, tracer),
            None => Refused::Other(self.pid, format!("it cannot be stopped: {error}\nTry it without --stop")),
        }
    }

    pub(super) fn has_ended(&self) -> Refused {
        // Of a process that is gone there is no directory, or none in it.
        if self.tasks.exists() { Refused::Ended(self.pid) } else { Refused::Missing(self.pid) }
    }

    /// By the numbers in its namespace: those that are ours; none if it has ours.
    fn foreign_numbers(&self, status: &Status) -> Option<HashMap<u32, u32>> {
        if status.numbers("NSpid").len() < 2 {
            return None;
        }
        let tasks = fs::read_dir(&self.tasks).ok()?.flatten();
        let both = tasks.filter_map(|task| {
            let numbers = Status::read(&task.path()).ok()?.numbers("NSpid");
            Some((*numbers.last()?, *numbers.first()?))
        });
        Some(both.collect())
    }
}

/// A thread's times. One that has never run has none; where the kernel does not count, it shows zeros.
fn sched(text: &[u8]) -> Option<Sched> {
    Sched::parse(text).filter(|sched| sched.slices > 0)
}

/// How often a thread has given up a CPU, by its `status`: to wait, or for another thread.
fn switches(status: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(status).ok()?;
    let (_, rest) = text.split_once("\nvoluntary_ctxt_switches:")?;
    let (voluntary, rest) = rest.split_once("\nnonvoluntary_ctxt_switches:")?;
    let involuntary: u64 = rest.lines().next()?.trim().parse().ok()?;
    Some(voluntary.trim().parse::<u64>().ok()? + involuntary)
}

/// Of how many threads two files can stay open: the limit of open files is raised as far as this process may.
fn most_open() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        limit = raised;
    }
    let files = limit.current.unwrap_or(1 << 20).saturating_sub(OTHER_FILES);
    usize::try_from(files / 2).unwrap_or(0)
}

/// Whether its program has addresses of 32 bits, as the head of its file says.
fn is_narrow(directory: &Path) -> bool {
    const NARROW: u8 = 1;
    let mut head = [0; 5];
    let read = File::open(directory.join("exe")).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && head[4] == NARROW
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn how_often_a_cpu_was_given_up() {
        let status = b"Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches(status), Some(157));
        assert_eq!(switches(&status[..40]), None);
        assert_eq!(switches(b""), None);
    }

    #[test]
    fn a_thread_that_does_not_run_is_the_same() {
        let (go_on, waits) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            say.send(id).expect("it is asked");
            let _ = waits.recv();
        });
        let id = said.recv().expect("it answers");
        let mut target = Target::open(std::process::id(), "spinpark why").expect("its own process");
        target.keep_files();
        assert!(target.numbers().is_ok_and(|numbers| numbers.contains(&id)));
        assert!(target.number() >= Some(2) && !target.is_stopped() && !target.is_replaced());
        let depth = Depth { is_idle: false, has_state: false, is_stopped: false };
        let mut followed = Followed::default();
        // Until it sleeps there; before, it may wait for a page, or to run.
        let sleeps =
            |followed: &Followed| followed.task.as_ref().is_some_and(|task| task.call.futex().is_some());
        while target.follow(id, 0, &mut followed, depth) != Since::Same || !sleeps(&followed) {
            std::thread::yield_now();
        }
        let task = followed.task.clone().expect("it was read");
        assert!(target.stays(&task), "{task:?}");
        for depth in [Depth { is_idle: true, ..depth }, Depth { has_state: true, ..depth }] {
            assert_eq!(target.follow(id, 0, &mut followed, depth), Since::Same);
        }
        // A part of the stack, and the same part as of all.
        let all = task.stack.expect("it sleeps").words;
        let mut part = Followed { needed: Some(0), ..Followed::default() };
        target.follow(id, usize::MAX, &mut part, depth);
        let words = |followed: &Followed| followed.task.as_ref()?.stack.clone().map(|stack| stack.words);
        assert_eq!(words(&part).as_deref(), all.get(..SLACK / 8));
        target.whole_stack(&mut part);
        // Behind a short stack is what all threads change, as the list of them.
        let whole = words(&part).unwrap_or_default();
        assert!(
            whole.len() == all.len() && whole.starts_with(&all[..SLACK / 8]),
            "{} of {}",
            whole.len(),
            all.len()
        );
        drop(go_on);
        thread.join().expect("it ends");
        while target.follow(id, 0, &mut followed, depth) != Since::Ended {
            std::thread::yield_now();
        }
    }
}
