//! A server: made empty, copied, started as a child of this process, and gone with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use spinpark_measure::process::ended::{Tail, in_words};
use spinpark_measure::process::with_parent;

use super::connection::Connection;
use crate::mariadb::Files;
use crate::workloads::job::JobError;

/// How long a server may take to come up, or to go down.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a server is started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    pub(super) program: PathBuf,
    /// After ours.
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// `LD_PRELOAD` of the server, and only of it.
    #[serde(default)]
    pub(super) preload: Option<String>,
    /// More variables of its environment.
    #[serde(default)]
    pub(super) variables: Vec<(String, String)>,
}

/// Makes an empty database by `mariadb-install-db`; what that says is shown only if it fails.
pub(super) fn make_empty(files: &Files, install: &Path) -> Result<(), JobError> {
    let failed = || JobError::failed(format!("cannot run {}", install.display()));
    let log = files.directory().join("install.log");
    let mut command = Command::new(install);
    command.args(files.install_args()).env_remove("LD_PRELOAD");
    let_write(&mut command, files, &log).map_err(failed())?;
    let status = command.status().map_err(failed())?;
    if status.success() {
        return Ok(());
    }
    let said = Tail::of(&fs::read_to_string(log).unwrap_or_default());
    Err(JobError::Refused(format!("{} {}{said}", install.display(), in_words(status))))
}

/// Lets a program that ends with us run in the database's directory, and write to `log`.
fn let_write(command: &mut Command, files: &Files, log: &Path) -> io::Result<()> {
    let log = File::create(log)?;
    command.current_dir(files.directory()).stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
    with_parent(command);
    Ok(())
}

/// Copies a directory with all files in it.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &to)?,
            kind if kind.is_file() => fs::copy(entry.path(), &to).map(drop)?,
            // Nothing else belongs to a database.
            _ => {}
        }
    }
    Ok(())
}

/// A server that accepts connections. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    files: Files,
    is_over: bool,
}

impl Server {
    /// Starts it on `files`, for `clients`, and waits until it accepts connections.
    pub(super) fn start(start: &Start, files: &Files, clients: usize) -> Result<Self, JobError> {
        files.check_socket()?;
        let mut command = Command::new(&start.program);
        command.args(files.server_args()).arg(format!("--max-connections={}", clients + 10));
        command.args(OPTIONS).args(&start.options);
        match &start.preload {
            Some(preload) => command.env("LD_PRELOAD", preload),
            None => command.env_remove("LD_PRELOAD"),
        };
        command.envs(start.variables.iter().map(|(name, value)| (name, value)));
        let spawned = let_write(&mut command, files, &log(files)).and_then(|()| command.spawn());
        let failed = format!("cannot start the database {}", start.program.display());
        let child = spawned.map_err(JobError::failed(failed))?;
        let mut server = Self { child, files: files.clone(), is_over: false };
        let deadline = Instant::now() + PATIENCE;
        while Connection::open(&server.files.socket(), "root").is_err() {
            if let Some(status) = server.end_within(deadline, "is not ready")? {
                return Err(server.ended(status));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// What the kernel has counted so far.
    pub(super) fn usage(&self) -> Result<Usage, JobError> {
        Usage::of(self.child.id()).map_err(JobError::failed("cannot read what the database used"))
    }

    /// Asks it to end, and waits.
    pub(super) fn stop(mut self) -> Result<(), JobError> {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.end_within(deadline, "does not end")? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(self.ended(status)),
                None => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Its status if it has ended; an error that says `what` after the deadline.
    fn end_within(&mut self, deadline: Instant, what: &str) -> Result<Option<ExitStatus>, JobError> {
        let status = self.child.try_wait().map_err(JobError::failed("cannot wait for the database"))?;
        self.is_over = status.is_some();
        if status.is_none() && Instant::now() > deadline {
            let (seconds, log) = (PATIENCE.as_secs(), self.log());
            return Err(JobError::Refused(format!("the database {what} after {seconds} s{log}")));
        }
        Ok(status)
    }

    fn ended(&self, status: ExitStatus) -> JobError {
        JobError::Refused(format!("the database {}{}", in_words(status), self.log()))
    }

    /// What it has said about errors; the end of all that it has said, if it did not see any.
    pub(super) fn log(&self) -> Tail {
        let text = fs::read_to_string(log(&self.files)).unwrap_or_default();
        Tail::of(&important(&text, 4))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Memory for the table; and each run starts with nothing there, whatever the run before had.
const OPTIONS: [&str; 3] = [
    "--innodb-buffer-pool-size=64M",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
];

/// The last `most` lines with errors, or of all. Few, since a worker's end is shown in ten lines itself.
fn important(log: &str, most: usize) -> String {
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("[ERROR]")).collect();
    let lines = if errors.is_empty() { log.lines().collect() } else { errors };
    lines[lines.len().saturating_sub(most)..].join("\n")
}

fn log(files: &Files) -> PathBuf {
    files.directory().join("log")
}

/// What the kernel has counted for a running server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Usage {
    /// In ticks of 10 ms, as system time.
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    /// Of all its threads.
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

impl Usage {
    fn of(pid: u32) -> io::Result<Self> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let stat = fs::read_to_string(process.join("stat"))?;
        let (user, system) = times(&stat).ok_or(io::ErrorKind::InvalidData)?;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let mut usage = Self {
            user_s: user as f64 / per_second,
            system_s: system as f64 / per_second,
            ..Self::default()
        };
        for task in fs::read_dir(process.join("task"))?.flatten() {
            // A thread may have ended meanwhile.
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            usage.voluntary_switches += field(&status, "voluntary_ctxt_switches:");
            usage.involuntary_switches += field(&status, "nonvoluntary_ctxt_switches:");
        }
        Ok(usage)
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            user_s: self.user_s - before.user_s,
            system_s: self.system_s - before.system_s,
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
        }
    }
}

/// User and system time in `/proc/PID/stat`, where a name in parentheses may hold anything: fields 14 and 15.
fn times(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn field(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_counts() {
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194560 5 0 0 0 31 7 0 0 20 0 1 0 100";
        assert_eq!(times(stat), Some((31, 7)));
        assert_eq!(times("12"), None);
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), 5);
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), 2);
        let own = Usage::of(std::process::id()).unwrap();
        assert_eq!(own.since(&own), Usage::default());
    }

    #[test]
    fn errors_are_what_matters_in_a_log() {
        assert_eq!(important("a\nb\nc", 2), "b\nc");
        assert_eq!(important("a\n1 [ERROR] x\nb\n2 [ERROR] y\nc", 4), "1 [ERROR] x\n2 [ERROR] y");
        assert_eq!(important("", 4), "");
    }

    #[test]
    fn a_server_that_ends_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::at(directory.path());
        let start = Start { program: "/bin/false".into(), ..Start::default() };
        let message = Server::start(&start, &files, 1).unwrap_err().to_string();
        assert!(message.contains("exited with status 1"), "{message}");
        let start = Start { program: "/no/such/mariadbd".into(), ..Start::default() };
        let message = Server::start(&start, &files, 1).unwrap_err().to_string();
        assert!(message.contains("/no/such/mariadbd"), "{message}");
        let files = Files::at(&directory.path().join("x".repeat(100)));
        let message = Server::start(&start, &files, 1).unwrap_err().to_string();
        assert!(message.contains("is too long"), "{message}");
    }
    #[test]
    fn a_copy_has_everything() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a"), directory.path().join("b"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("one"), "1").unwrap();
        fs::write(from.join("inner/two"), "2").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("one")).unwrap(), "1");
        assert_eq!(fs::read_to_string(to.join("inner/two")).unwrap(), "2");
        assert!(copy(&from, &to).is_err(), "it is there already");
    }

    #[test]
    fn what_the_installer_says_is_in_the_error() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::at(directory.path());
        let error = make_empty(&files, Path::new("/bin/false")).unwrap_err().to_string();
        assert!(error.contains("/bin/false exited with status 1") && error.contains("nothing"), "{error}");
    }
}
