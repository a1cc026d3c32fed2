//! What may be read of a process, and, where it may not, what opens it.
//!
//! System calls and memory are for readers that could also debug the process: those of its user, if it may be
//! dumped, and if Yama does not forbid it; and those with `CAP_SYS_PTRACE`. What threads sleep in, by the names
//! of the kernel's functions, is for all.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use thiserror::Error;

/// Why a process cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// There is none.
    #[error("there is no process {0}\n`ps -e` lists those that run; `spinpark report DIR` shows a recording")]
    Missing(u32),
    /// It has ended, and its parent has not read how.
    #[error("process {0} has ended: only its exit status is left, for its parent")]
    Ended(u32),
    /// It is none of a program.
    #[error("process {0} is a thread of the kernel: it has no locks of a program")]
    Kernel(u32),
    /// It is another thread than the first of its process.
    #[error("{0} is a thread of process {1}\nTry: {2} {1}")]
    Thread(u32, u32, &'static str),
    /// Its memory has another layout.
    #[error("process {0} is a 32-bit program: only 64-bit ones can be read")]
    Narrow(u32),
    /// Another process traces it.
    #[error("process {0} cannot be stopped: process {1} debugs it\nTry it without --stop")]
    Traced(u32, u32),
    /// Not permitted.
    #[error("process {pid} cannot be read: {why}\n{known}{advice}")]
    Forbidden {
        /// The process.
        pid: u32,
        /// By what.
        why: String,
        /// What could be read, a line; or nothing.
        known: String,
        /// What opens it.
        advice: String,
    },
    /// A file that is no core dump, or none that can be read; or that is not its program.
    #[error("{path} {why}\n{advice}")]
    Core {
        /// The file.
        path: String,
        /// Why, behind that.
        why: String,
        /// What to do.
        advice: String,
    },
    /// Anything else.
    #[error("process {0} cannot be read: {1}")]
    Other(u32, String),
}

/// Fields of `/proc/PID/status`.
pub(super) struct Status {
    text: String,
}

impl Status {
    pub(super) fn read(directory: &Path) -> io::Result<Self> {
        Ok(Self { text: String::from_utf8_lossy(&fs::read(directory.join("status"))?).into_owned() })
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    }

    /// The numbers of a field: `Uid`, `NSpid`.
    pub(super) fn numbers(&self, name: &str) -> Vec<u32> {
        let words = self.field(name).unwrap_or("").split_ascii_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    }
}

/// Whether this process may debug any other.
fn may_debug_all() -> bool {
    const SYS_PTRACE: u64 = 1 << 19;
    let status = Status::read(Path::new("/proc/self")).ok();
    let effective = status.and_then(|status| u64::from_str_radix(status.field("CapEff")?, 16).ok());
    effective.is_some_and(|effective| effective & SYS_PTRACE != 0)
}

/// Why the kernel has refused to show what the threads of `pid` do. `command`: how this was called, such as
/// `spinpark why`.
pub(super) fn forbidden(pid: u32, directory: &Path, command: &'static str) -> Refused {
    let (why, advice) = reason(pid, directory, command);
    Refused::Forbidden { pid, why, known: asleep(directory), advice }
}

fn reason(pid: u32, directory: &Path, command: &'static str) -> (String, String) {
    let again = format!("sudo {command} {pid}");
    let user = rustix::process::geteuid().as_raw();
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let yama: u32 = yama.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    if may_debug_all() {
        return match yama {
            3 => (
                String::from(
                    "kernel.yama.ptrace_scope is 3, which forbids it to all until the machine restarts",
                ),
                String::from("Start the program with `spinpark profile -- PROGRAM` instead"),
            ),
            _ => (
                String::from("not permitted, though this user may debug others' processes"),
                String::from(
                    "It may be in another user namespace, or a security module forbids it: run this on the host",
                ),
            ),
        };
    }
    if user == 0 {
        return (
            String::from("this user is root without the capability SYS_PTRACE, as in a container"),
            String::from("Start the container with `--cap-add SYS_PTRACE`, or run this on the host"),
        );
    }
    let owner = Status::read(directory).ok().and_then(|status| status.numbers("Uid").first().copied());
    if owner.is_some_and(|owner| owner != user) {
        let owner = owner.unwrap_or(0);
        return (format!("it is another user's (uid {owner})"), format!("Try: {again}"));
    }
    // The kernel gives the files of a process that may not be dumped to root, but not their directory.
    let is_hidden = fs::metadata(directory.join("stat")).is_ok_and(|metadata| metadata.uid() != user);
    if is_hidden {
        let why = "it may not be dumped: it has changed its user, has capabilities, or asked for that";
        return (String::from(why), format!("Try: {again}"));
    }
    match yama {
        1 => (
            String::from("kernel.yama.ptrace_scope is 1, so that only parents may"),
            format!(
                "Try: {again}\nOr, until the machine restarts: sudo sysctl kernel.yama.ptrace_scope=0\nOr start the program so \
                 that others may read it: `SPINPARK_ALLOW_ATTACH=1 spinpark run -- PROGRAM`"
            ),
        ),
        2.. => (
            format!("kernel.yama.ptrace_scope is {yama}: only administrators may"),
            match yama {
                2 => format!("Try: {again}"),
                _ => String::from("Start the program with `spinpark profile -- PROGRAM` instead"),
            },
        ),
        0 => (String::from("the kernel or a security module does not permit it"), format!("Try: {again}")),
    }
}

/// What all may read: `12 of 40 threads sleep in a futex: they wait for a lock or for work.`
fn asleep(directory: &Path) -> String {
    let tasks = fs::read_dir(directory.join("task")).into_iter().flatten().flatten();
    let sleeps = |path: &Path| fs::read_to_string(path.join("wchan")).unwrap_or_default();
    let sleeps: Vec<String> = tasks.map(|task| sleeps(&task.path())).collect();
    let in_futex = sleeps.iter().filter(|name| name.contains("futex")).count();
    match (in_futex, sleeps.len()) {
        (0, _) => String::new(),
        (some, all) => format!("{some} of its {all} threads sleep in a futex: for a lock, or for work\n"),
    }
}
