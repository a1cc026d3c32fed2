//! The process that is read: its memory, its files, and snapshots of its threads. It runs, or a core dump of it
//! was written.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ReadCache};

use super::access::{Refused, Status, forbidden};
use super::core::Core;
use super::task::{Call, Near, Task};
use crate::live_process;
use crate::maps::Maps;
use crate::symbols::{Blocked, Kept};
use crate::watch::{Sched, Stat};

/// So much of a stack is copied. Frames beyond it are not seen.
pub(super) const STACK: usize = 16 << 10;
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
    /// Of the program that it was when this was opened: `exec` replaces it.
    memory: File,
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
        let status = Status::read(&process).map_err(|_| Refused::Missing(pid))?;
        // The kernel shows the directory of each thread, and lists those of processes.
        if let Some(group) = status.numbers("Tgid").first().filter(|group| **group != pid) {
            return Err(Refused::Thread(pid, *group, command));
        }
        let directory = live_process::directory(pid);
        if live_process::is_dead(pid) {
            return Err(Refused::Ended(pid));
        }
        // It has no memory of its own.
        if status.field("VmSize").is_none() && status.field("Kthread") != Some("0") {
            return Err(Refused::Kernel(pid));
        }
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
        let process = Process { pid, directory, tasks: process.join("task"), memory };
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

    /// Its files now: libraries are loaded later, too.
    pub(super) fn read_maps(&mut self) {
        let text = self.process().and_then(|process| fs::read(process.directory.join("maps")).ok());
        if let Some(text) = text {
            self.note_files(&text);
        }
    }

    fn note_files(&mut self, text: &[u8]) {
        self.maps = Maps::new(&[b"@ 0 0\n", text].concat());
        for mapping in self.maps.snapshot(0).iter().filter(|it| it.is_file() && it.is_executable) {
            self.kept.keep(self.pid, mapping);
        }
    }

    /// Its threads. `before`: of an earlier snapshot; of one that has not run since, that is taken.
    ///
    /// # Errors
    /// If it has ended, or may no longer be read.
    pub(super) fn snapshot(&self, before: &mut HashMap<u32, Task>) -> Result<Vec<Task>, Refused> {
        let mut tasks = match &self.source {
            Source::Process(process) => self.tasks(process, before)?,
            Source::Core(core) => core.tasks(STACK),
        };
        for task in &mut tasks {
            self.resume(task);
        }
        Ok(tasks)
    }

    /// Tells what a call is that goes on after an interruption.
    pub(super) fn resume(&self, task: &mut Task) {
        let code = task.stack.as_ref().map(|stack| stack.code);
        task.call = task.call.resumed(|| self.read(code?.checked_sub(7)?));
    }

    /// What a thread is in now, with the end of its stack and its next instruction, and its times.
    pub(super) fn call_of(
        &self,
        process: &Process,
        task: &Task,
    ) -> (Call, Option<(u64, u64)>, Option<Sched>) {
        let directory = process.tasks.join(task.id.to_string());
        let read = |name: &str| fs::read(directory.join(name)).unwrap_or_default();
        let (call, registers) = Call::parse(&read("syscall"));
        let call = call.resumed(|| self.read(registers?.1.checked_sub(7)?));
        (call, registers, Sched::parse(&read("schedstat")))
    }

    fn tasks(&self, process: &Process, before: &mut HashMap<u32, Task>) -> Result<Vec<Task>, Refused> {
        let mut buffer = Vec::new();
        let mut tasks: Vec<Task> = process
            .threads()
            .filter_map(|id| self.task(process, id, before.remove(&id), &mut buffer))
            .collect();
        tasks.sort_by_key(|task| task.id);
        if tasks.is_empty() { Err(process.has_ended()) } else { Ok(tasks) }
    }

    /// A thread; none if it has ended meanwhile.
    fn task(&self, process: &Process, id: u32, before: Option<Task>, buffer: &mut Vec<u8>) -> Option<Task> {
        let directory = process.tasks.join(id.to_string());
        let mut read = |name: &str| -> Option<Vec<u8>> {
            buffer.clear();
            File::open(directory.join(name)).ok()?.read_to_end(buffer).ok()?;
            Some(buffer.clone())
        };
        let sched = read("schedstat").and_then(|text| Sched::parse(&text));
        let mut text = read("syscall").unwrap_or_default();
        if let Some(before) = before
            && before.is_as((sched, &text))
        {
            let near = before.call.futex().and_then(|futex| process.near(futex.address));
            return Some(Task { near, ..before });
        }
        let stat = Stat::parse(&read("stat")?)?;
        if stat.has_ended() {
            return None;
        }
        let mut tries = TRIES;
        let (call, stack, near) = loop {
            let (call, registers) = Call::parse(&text);
            let Some((stack, code)) = registers else { break (call, None, None) };
            let mut bytes = vec![0; STACK];
            let count = process.read_some(&mut bytes, stack);
            let near = call.futex().and_then(|futex| process.near(futex.address));
            // What was copied of a thread that has gone on meanwhile is of its past, or future.
            let again = read("syscall").unwrap_or_default();
            if again == text {
                let words = bytes[..count].chunks_exact(8);
                let words =
                    words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
                break (call, Some(Blocked { code, stack, words, kept: Vec::new() }), near);
            }
            tries -= 1;
            if tries == 0 {
                break (Call::Running, None, None);
            }
            text = again;
        };
        Some(Task { id, stat, sched, call, stack, near })
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
        let is_read = match &self.source {
            Source::Process(process) => process.memory.read_exact_at(&mut bytes, address).is_ok(),
            Source::Core(core) => core.read(&self.maps, &mut bytes, address),
        };
        is_read.then_some(bytes)
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
    /// The numbers of its threads; none if it is gone.
    pub(super) fn threads(&self) -> impl Iterator<Item = u32> {
        let entries = fs::read_dir(&self.tasks).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    pub(super) fn stat(&self, thread: u32) -> Option<Stat> {
        Stat::parse(&fs::read(self.tasks.join(thread.to_string()).join("stat")).ok()?)
    }

    /// Reads memory from there on; returns how many bytes there are.
    pub(super) fn read_some(&self, bytes: &mut [u8], address: u64) -> usize {
        self.memory.read_at(bytes, address).unwrap_or(0)
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

/// Whether its program has addresses of 32 bits, as the head of its file says.
fn is_narrow(directory: &Path) -> bool {
    const NARROW: u8 = 1;
    let mut head = [0; 5];
    let read = File::open(directory.join("exe")).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && head[4] == NARROW
}
