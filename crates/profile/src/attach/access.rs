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

use crate::live_process;

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
pub(crate) struct Status {
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

/// The status of a process of a program. `command`: as for [`forbidden`].
///
/// # Errors
/// If there is none of this number.
pub(crate) fn of_program(pid: u32, command: &'static str) -> Result<Status, Refused> {
    let process = Path::new("/proc").join(pid.to_string());
    let status = Status::read(&process).map_err(|_| Refused::Missing(pid))?;
    // The kernel shows the directory of each thread, and lists those of processes.
    if let Some(group) = status.numbers("Tgid").first().filter(|group| **group != pid) {
        return Err(Refused::Thread(pid, *group, command));
    }
    if live_process::is_dead(pid) {
        return Err(Refused::Ended(pid));
    }
    // It has no memory of its own.
    if status.field("VmSize").is_none() && status.field("Kthread") != Some("0") {
        return Err(Refused::Kernel(pid));
    }
    Ok(status)
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
    let (why, advice) = Circumstances::of(directory).reason(&as_root(command, pid));
    Refused::Forbidden { pid, why, known: asleep(directory), advice }
}

/// The same of what the process has mapped, which Yama does not hide.
pub(crate) fn hidden(pid: u32, directory: &Path, command: &'static str) -> Refused {
    let circumstances = Circumstances { yama: 0, ..Circumstances::of(directory) };
    let (why, advice) = circumstances.reason(&as_root(command, pid));
    Refused::Forbidden { pid, why, known: String::new(), advice }
}

/// This call as root: with the path of this program, where `sudo` would not find it.
pub(crate) fn as_root(command: &str, pid: u32) -> String {
    /// `secure_path` of Debian, Ubuntu and Fedora.
    const FOUND: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let path = std::env::current_exe().ok();
    let path = path.filter(|path| !FOUND.iter().any(|found| path.parent() == Some(Path::new(found))));
    match (path, command.split_once(' ')) {
        (Some(path), Some((_, rest))) => format!("sudo {} {rest} {pid}", path.display()),
        _ => format!("sudo {command} {pid}"),
    }
}

/// What decides who may read a process.
struct Circumstances {
    /// This user.
    user: u32,
    /// It may debug others' processes.
    may_debug_all: bool,
    /// The process'.
    owner: Option<u32>,
    /// It may not be dumped.
    is_hidden: bool,
    /// `kernel.yama.ptrace_scope`, or 0.
    yama: u32,
}

impl Circumstances {
    fn of(directory: &Path) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        Self {
            user,
            may_debug_all: may_debug_all(),
            owner: Status::read(directory).ok().and_then(|status| status.numbers("Uid").first().copied()),
            // The kernel gives the files of such a process to root, but not their directory.
            is_hidden: fs::metadata(directory.join("stat")).is_ok_and(|metadata| metadata.uid() != user),
            yama: yama.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        }
    }

    /// Why it is forbidden, and what opens it. `again`: this call as root.
    fn reason(&self, again: &str) -> (String, String) {
        const START: &str = "Start the program with `spinpark profile -- PROGRAM` instead";
        let said = |why: &str, advice: String| (why.to_owned(), advice);
        let try_it = || format!("Try: {again}");
        if self.yama == 3 {
            let why = "kernel.yama.ptrace_scope is 3, which forbids it to all until the machine restarts";
            return said(why, START.to_owned());
        }
        if self.may_debug_all {
            let advice =
                "It may be in another user namespace, or a security module forbids it: run this on the host";
            return said("not permitted, though this user may debug others' processes", advice.to_owned());
        }
        if self.user == 0 {
            let advice = "Start the container with `--cap-add SYS_PTRACE`, or run this on the host";
            return said(
                "this user is root without the capability SYS_PTRACE, as in a container",
                advice.to_owned(),
            );
        }
        if let Some(owner) = self.owner.filter(|owner| *owner != self.user) {
            return said(&format!("it is another user's (uid {owner})"), try_it());
        }
        if self.is_hidden {
            let why = "it may not be dumped: it has changed its user, has capabilities, or asked for that";
            return said(why, try_it());
        }
        match self.yama {
            0 => said("the kernel or a security module does not permit it", try_it()),
            1 => said(
                "kernel.yama.ptrace_scope is 1, so that only parents may",
                format!(
                    "Try: {again}\nOr, until the machine restarts: sudo sysctl kernel.yama.ptrace_scope=0\nOr start the program so that \
                     others may read it: `SPINPARK_ALLOW_ATTACH=1 spinpark run -- PROGRAM`"
                ),
            ),
            _ => {
                said(&format!("kernel.yama.ptrace_scope is {}: only administrators may", self.yama), try_it())
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_says_what_opens_it() {
        let own =
            || Circumstances { user: 7, may_debug_all: false, owner: Some(7), is_hidden: false, yama: 0 };
        let rows = [
            (own(), "security module", "Try: sudo x"),
            (Circumstances { yama: 1, ..own() }, "is 1", "SPINPARK_ALLOW_ATTACH=1"),
            (Circumstances { yama: 2, ..own() }, "is 2", "Try: sudo x"),
            (Circumstances { yama: 3, ..own() }, "is 3", "spinpark profile"),
            (Circumstances { yama: 3, user: 0, may_debug_all: true, ..own() }, "is 3", "spinpark profile"),
            (Circumstances { owner: Some(8), ..own() }, "uid 8", "Try: sudo x"),
            (Circumstances { owner: Some(8), yama: 1, ..own() }, "uid 8", "Try: sudo x"),
            (Circumstances { is_hidden: true, yama: 1, ..own() }, "dumped", "Try: sudo x"),
            (Circumstances { user: 0, ..own() }, "SYS_PTRACE", "--cap-add"),
            (
                Circumstances { user: 0, may_debug_all: true, yama: 1, ..own() },
                "not permitted",
                "on the host",
            ),
        ];
        for (circumstances, why, advice) in rows {
            let (said, opens) = circumstances.reason("sudo x");
            assert!(said.contains(why) && opens.contains(advice), "{said} / {opens}");
        }
    }
}
