//! Whether the machine can do what is asked, before anything starts.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit};
use spinpark_lockbench::locks::workloads::allowed_cpus;
use spinpark_measure::text::units;
use thiserror::Error;

/// What a run needs, at most, besides what the machine uses anyway.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requirements {
    /// File descriptors in one process.
    pub descriptors: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Threads of one process, which share its address space.
    pub threads: u64,
    /// Memory, in bytes, without files.
    pub memory: u64,
    /// Files, in bytes.
    pub space: u64,
    /// Files, directories and links.
    pub files: u64,
}

/// Something that there is not enough of.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("this needs {needed} {what}, and {available} are available\n{advice}")]
pub struct Shortage {
    what: &'static str,
    needed: String,
    available: String,
    advice: &'static str,
}

/// A little for the process itself: its streams, its libraries, its report.
const OWN_DESCRIPTORS: u64 = 16;
const OWN_PROCESSES: u64 = 8;

/// Of address space: a thread's stack with its guard page, and what a worker maps besides: itself, libraries,
/// heaps.
const STACK: u64 = (2 << 20) + (8 << 10);
const OWN_ADDRESSES: u64 = 64 << 20;

/// glibc's `malloc` reserves as much for each of the first threads, eight per CPU.
const ARENA: u64 = 64 << 20;
const ARENAS_PER_CPU: u64 = 8;

/// Of memory, of each thread: the touched part of its stack, with the kernel's own.
const TOUCHED: u64 = 64 << 10;

impl Requirements {
    pub fn max(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.max(other.descriptors),
            processes: self.processes.max(other.processes),
            threads: self.threads.max(other.threads),
            memory: self.memory.max(other.memory),
            space: self.space.max(other.space),
            files: self.files.max(other.files),
        }
    }

    /// Checks that all of it is there. `directory` is where files will be. Raises the limit of file
    /// descriptors, which children inherit, as far as that is allowed.
    pub fn check(&self, directory: Option<&Path>) -> Result<(), Shortage> {
        raise_descriptors(self.descriptors + OWN_DESCRIPTORS);
        let in_files = if directory.is_some_and(is_in_memory) { self.space } else { 0 };
        let descriptors = rustix::process::getrlimit(Resource::Nofile).current;
        let (space, files) = directory.map(left).unwrap_or_default();
        let fewer = "Use fewer tasks, or another directory with --dir";
        let smaller = "Use smaller files, or another directory with --dir";
        let memory_advice = "Use fewer tasks, smaller files, or a machine with more memory";
        let allow_descriptors = "Allow more with `ulimit -n`, or use fewer tasks";
        let allow_processes = "Allow more with `ulimit -u`, or use fewer tasks";
        let allow_addresses = "Allow more with `ulimit -v` and `ulimit -d`, or use fewer tasks";
        let with_memory = self.memory + self.threads * TOUCHED + in_files;
        let checks = [
            (self.descriptors + OWN_DESCRIPTORS, "file descriptors", descriptors, allow_descriptors),
            (self.processes + OWN_PROCESSES, "processes and threads", processes(), allow_processes),
            (self.addresses(), "of address space", addresses(), allow_addresses),
            (with_memory, "of memory", memory(), memory_advice),
            (self.space, "of space for files", space, smaller),
            (self.files, "files", files, fewer),
        ];
        for (needed, what, available, advice) in checks {
            if let Some(available) = available.filter(|&available| available < needed) {
                let is_size = what.starts_with("of ");
                let shown = |n: u64| if is_size { units::bytes(n as f64) } else { n.to_string() };
                return Err(Shortage { what, needed: shown(needed), available: shown(available), advice });
            }
        }
        Ok(())
    }

    /// Address space of a process, in bytes.
    fn addresses(&self) -> u64 {
        let arenas = self.threads.min(ARENAS_PER_CPU * allowed_cpus() as u64);
        self.threads * STACK + arenas * ARENA + self.memory + OWN_ADDRESSES
    }
}

/// Whether what is written there takes memory.
fn is_in_memory(directory: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(directory).is_ok_and(|numbers| numbers.f_type == TMPFS)
}

/// Bytes and files that are left in `directory`; none where they are not limited, or not known.
fn left(directory: &Path) -> (Option<u64>, Option<u64>) {
    let Ok(numbers) = rustix::fs::statvfs(directory) else { return (None, None) };
    // File systems without a limit say 0.
    let files = Some(numbers.f_favail).filter(|_| numbers.f_files > 0);
    (Some(numbers.f_bavail * numbers.f_frsize), files)
}

/// The space that is left in `directory`, in bytes; no limit if that is not known. On a tmpfs no more than
/// the memory that is left.
pub fn space(directory: &Path) -> u64 {
    let memory = memory().filter(|_| is_in_memory(directory));
    left(directory).0.into_iter().chain(memory).min().unwrap_or(u64::MAX)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// More processes and threads that this user may start: the smallest of the user's, the system's and the
/// cgroup's limit.
fn processes() -> Option<u64> {
    let user = if rustix::process::geteuid().is_root() {
        None
    } else {
        let limit = rustix::process::getrlimit(Resource::Nproc).current;
        limit.map(|limit| limit.saturating_sub(tasks_of_user()))
    };
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    // The fourth field of loadavg: running/all.
    let all = read("/proc/loadavg")
        .and_then(|text| text.split_whitespace().nth(3)?.split_once('/')?.1.parse::<u64>().ok());
    let system =
        ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"].into_iter().filter_map(number).min();
    let system = system.map(|limit| limit.saturating_sub(all.unwrap_or_default()));
    [user, system, cgroups("pids")].into_iter().flatten().min()
}

/// Threads of all processes of this user.
fn tasks_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::getuid().as_raw();
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let processes = entries.flatten().filter(|entry| {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        is_process && entry.metadata().is_ok_and(|metadata| metadata.uid() == me)
    });
    processes
        .map(|process| fs::read_dir(process.path().join("task")).map_or(1, |tasks| tasks.count() as u64))
        .sum()
}

/// The address space that a process may have: the smaller of the limits of all of it and of its data.
fn addresses() -> Option<u64> {
    [Resource::As, Resource::Data]
        .into_iter()
        .filter_map(|which| rustix::process::getrlimit(which).current)
        .min()
}

/// The memory that is left: of the machine, or of a control group.
fn memory() -> Option<u64> {
    let machine = meminfo(&read("/proc/meminfo").unwrap_or_default());
    machine.into_iter().chain(cgroups("memory")).min()
}

/// What the control groups (version 2) leave of "pids" or "memory": each group's limit holds for those inside
/// it, too.
fn cgroups(what: &str) -> Option<u64> {
    let own = read("/proc/self/cgroup")?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
    let root = Path::new("/sys/fs/cgroup");
    let left = |group: &Path| {
        let number =
            |name: &str| read(root.join(group).join(format!("{what}.{name}")))?.trim().parse::<u64>().ok();
        // What is cached of files counts, too, and goes as soon as the memory is needed.
        let cached = read(root.join(group).join("memory.stat")).filter(|_| what == "memory");
        let cached = cached.and_then(|text| {
            text.lines().find_map(|line| line.strip_prefix("inactive_file "))?.parse::<u64>().ok()
        });
        let used = number("current")?.saturating_sub(cached.unwrap_or_default());
        Some(number("max")?.saturating_sub(used))
    };
    Path::new(&path).ancestors().filter_map(left).min()
}

/// `MemAvailable`, in bytes.
fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Raises the soft limit to `needed`, or to the hard one.
fn raise_descriptors(needed: u64) {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
        // If it fails, the check says so.
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_named() {
        let too_much = u64::MAX / 4;
        let said = |needs: Requirements| needs.check(Some(&std::env::temp_dir())).unwrap_err().to_string();
        assert!(said(Requirements { memory: too_much, ..Requirements::default() }).contains("of memory"));
        assert!(said(Requirements { space: too_much, ..Requirements::default() }).contains("available"));
        assert!(
            said(Requirements { descriptors: too_much, ..Requirements::default() }).contains("ulimit -n")
        );
        assert!(said(Requirements { processes: too_much, ..Requirements::default() }).contains("ulimit -u"));
        assert!(said(Requirements { threads: 1 << 40, ..Requirements::default() }).contains("this needs"));
        assert_eq!(Requirements::default().check(None), Ok(()));
    }

    #[test]
    fn memory_as_the_kernel_says() {
        assert_eq!(meminfo("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 << 10));
        assert_eq!(meminfo(""), None);
    }

    #[test]
    fn the_larger_of_each() {
        let (a, b) = (
            Requirements { memory: 2, files: 1, ..Requirements::default() },
            Requirements { memory: 1, files: 3, ..Requirements::default() },
        );
        assert_eq!(a.max(b), Requirements { memory: 2, files: 3, ..Requirements::default() });
    }
}
