//! A running server: a child of this process, and gone with it.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use spinpark_measure::failure::{Tail, in_words};
use thiserror::Error;

use super::connection::Connection;
use crate::mariadb::Files;

/// How long a server may take to come up, or to go down.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a server is started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The program.
    pub program: PathBuf,
    /// Options after ours.
    #[serde(default)]
    pub options: Vec<String>,
    /// `LD_PRELOAD` of the server, and only of it.
    #[serde(default)]
    pub preload: Option<String>,
    /// More variables of its environment.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
}

/// The server does not do its work.
#[derive(Debug, Error)]
pub enum ServerError {
    /// It cannot be started.
    #[error("cannot start the database {}: {}", .0.display(), .1)]
    Start(PathBuf, io::Error),
    /// No client could connect.
    #[error("the path of the database's socket, {}, is too long; name a directory with a shorter path with --dir", .0.display())]
    Socket(PathBuf),
    /// It ended by itself.
    #[error("the database {0}{1}")]
    Ended(String, Tail),
    /// It hangs.
    #[error("the database {what} after {} s{log}", PATIENCE.as_secs())]
    Stuck {
        /// What it does not do.
        what: &'static str,
        /// The end of its log.
        log: Tail,
    },
    /// It cannot be waited for.
    #[error("cannot wait for the database: {0}")]
    Wait(#[from] io::Error),
}

/// What the kernel has counted for a running server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// User time, in seconds, in ticks of 10 ms.
    pub user_s: f64,
    /// System time, the same.
    pub system_s: f64,
    /// Times that one of its threads gave up a CPU.
    pub voluntary_switches: u64,
    /// Times that a CPU was taken from one of them.
    pub involuntary_switches: u64,
}

/// A server that accepts connections. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    files: Files,
    is_over: bool,
}

impl Server {
    /// Starts it on `files`, for `clients`, and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn start(start: &Start, files: &Files, clients: usize) -> Result<Self, ServerError> {
        if !files.can_have_socket() {
            return Err(ServerError::Socket(files.socket()));
        }
        let mut command = Command::new(&start.program);
        command.args(files.server_args()).arg(format!("--max-connections={}", clients + 10));
        command.args(OPTIONS).args(&start.options).current_dir(files.directory());
        match &start.preload {
            Some(preload) => command.env("LD_PRELOAD", preload),
            None => command.env_remove("LD_PRELOAD"),
        };
        command.envs(start.variables.iter().map(|(name, value)| (name, value)));
        let failed = |error| ServerError::Start(start.program.clone(), error);
        let log = File::create(log(files)).map_err(failed)?;
        let both = log.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(log).stderr(both);
        // SAFETY: the closure runs between fork and exec and only makes a system call: no allocation, no
        // lock.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
            })
        };
        let child = command.spawn().map_err(failed)?;
        let mut server = Self { child, files: files.clone(), is_over: false };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + PATIENCE;
        while Connection::open(&self.files.socket(), "root").is_err() {
            if let Some(status) = self.child.try_wait()? {
                self.is_over = true;
                return Err(self.ended(status));
            }
            if Instant::now() > deadline {
                return Err(ServerError::Stuck { what: "is not ready", log: self.log() });
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// What the kernel has counted so far.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn usage(&self) -> io::Result<Usage> {
        Usage::of(self.child.id())
    }

    /// Asks it to end, and waits.
    ///
    /// # Errors
    ///
    /// If it does not, or not well.
    pub fn stop(mut self) -> Result<(), ServerError> {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait()? {
                Some(status) => {
                    self.is_over = true;
                    return if status.success() { Ok(()) } else { Err(self.ended(status)) };
                }
                None if Instant::now() > deadline => {
                    return Err(ServerError::Stuck { what: "does not end", log: self.log() });
                }
                None => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    fn ended(&self, status: ExitStatus) -> ServerError {
        ServerError::Ended(in_words(status), self.log())
    }

    /// What it has said about errors; the end of all that it has said, if it did not see any.
    #[must_use]
    pub fn log(&self) -> Tail {
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

/// Room for the table; and each run starts with nothing in memory, whatever the run before had there.
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
            usage.add_switches(&task.path());
        }
        Ok(usage)
    }

    /// Adds those of a thread; it may have ended meanwhile.
    fn add_switches(&mut self, task: &Path) {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        self.voluntary_switches += field(&status, "voluntary_ctxt_switches:");
        self.involuntary_switches += field(&status, "nonvoluntary_ctxt_switches:");
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
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
        assert!(matches!(Server::start(&start, &files, 1), Err(ServerError::Socket(_))));
    }
}
