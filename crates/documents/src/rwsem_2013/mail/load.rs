//! One run: a server of ours, or another one, and clients in threads of this process.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use spinpark_measure::machine::cpu_of_children;
use thiserror::Error;

use super::check::{Mismatch, check};
use super::client::Client;
use super::server::LISTENING;
use super::spool::Spool;
use crate::workloads::job::JobError;
use crate::workloads::workers::{self, Done, Kind, Task};

/// The command's hidden subcommand that is a server.
pub const SERVER: &str = "__mail-server";

/// What a run does.
#[derive(Debug)]
pub struct Load<'a> {
    /// How many clients.
    pub clients: usize,
    /// While messages count; a warm-up comes before.
    pub duration: Duration,
    /// A number that no other run has: it is in all messages.
    pub run: u64,
    /// An empty directory for our server; unused with a server that is there.
    pub directory: &'a Path,
    /// A server that is there. It is not checked whether it delivers what it accepts.
    pub server: Option<SocketAddr>,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// Of the clients.
    pub done: Done,
    /// What our server and its processes used for all messages: user and system time.
    pub server: Option<(Duration, Duration)>,
}

/// A run without a result.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Our server does not start.
    #[error("cannot start the mail server: {0}")]
    Start(io::Error),
    /// Our server ended badly.
    #[error("the mail server {0}")]
    Server(String),
    /// A conversation failed.
    #[error(transparent)]
    Client(#[from] JobError),
    /// What was delivered is not what was accepted.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

impl From<LoadError> for JobError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Client(trouble) => trouble,
            LoadError::Mismatch(wrong) => Self::Mismatch(wrong.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}

impl Load<'_> {
    /// Makes the run.
    ///
    /// # Errors
    ///
    /// If a message was refused, lost or doubled.
    pub fn run(&self) -> Result<Outcome, LoadError> {
        match self.server {
            Some(server) => Ok(Outcome { done: self.drive(server)?.0, server: None }),
            None => self.run_with_own_server(),
        }
    }

    fn run_with_own_server(&self) -> Result<Outcome, LoadError> {
        // Twice as many connections as clients: the end of one and the next of the same client overlap.
        let server = Server::start(self.directory, 2 * self.clients)?;
        let driven = self.drive(server.address);
        let status = server.stop().map_err(LoadError::Start)?;
        let (done, accepted) = driven?;
        if !status.success() {
            return Err(LoadError::Server(spinpark_measure::failure::in_words(status)));
        }
        check(&Spool::at(self.directory), self.run, &accepted)?;
        // There was no other child, and it has waited for all of its own.
        Ok(Outcome { done, server: Some(cpu_of_children()) })
    }

    /// Lets the clients loose. Also returns how many messages were accepted per client.
    fn drive(&self, server: SocketAddr) -> Result<(Done, Vec<u64>), JobError> {
        let accepted: Vec<Padded> = (0..self.clients).map(|_| Padded::default()).collect();
        let done = workers::run(Kind::Threads, self.clients, self.duration, |number| {
            Ok(Sender(Client::new(server, number, self.run, &accepted[number].0)))
        })?;
        Ok((done, accepted.iter().map(|accepted| accepted.0.load(Ordering::Relaxed)).collect()))
    }
}

/// A client as a task: a step is a message.
struct Sender<'a>(Client<'a>);

impl Task for Sender<'_> {
    fn step(&mut self) -> Result<u64, JobError> {
        self.0.send().map(|()| 1).map_err(|error| JobError::Refused(error.to_string()))
    }

    fn end(&mut self) -> Result<(), JobError> {
        self.0.goodbye().map_err(|error| JobError::Refused(error.to_string()))
    }
}

/// A client's counter on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

/// Our server, as a child that ends with us.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(directory: &Path, limit: usize) -> Result<Self, LoadError> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(SERVER).arg(directory).arg(limit.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: the closure runs between fork and exec and only makes a system call: no allocation, no
        // lock.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
            })
        };
        let mut child = command.spawn().map_err(LoadError::Start)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(LoadError::Start)?;
        }
        let port = line.trim().strip_prefix(LISTENING).and_then(|port| port.trim().parse::<u16>().ok());
        match port {
            Some(port) => Ok(Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) }),
            // It has said why on standard error, which is ours.
            None => {
                let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(0));
                Err(LoadError::Server(format!(
                    "{} before it was ready",
                    spinpark_measure::failure::in_words(status)
                )))
            }
        }
    }

    /// Ends its input, which makes it finish its work and end.
    fn stop(mut self) -> io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        self.child.wait()
    }
}
