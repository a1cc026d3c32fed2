//! `spinpark documents mail`: document 002's exim benchmark, in a form of our own.
//!
//! Clients, in threads of the worker, hand over mail, ten messages per connection, as fast as they can; a
//! server that starts a process for each connection, each delivery and each write to a mailbox puts it into
//! one directory and delivers it to others. The load is MOSBENCH's; nothing of exim is in it. See [`server`]
//! for what the kernel has to do.

mod client;
pub mod server;
mod smtp;
mod spool;

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use spinpark_measure::failure::in_words;
use spinpark_measure::machine::cpu_of_children;
use spinpark_measure::process::with_parent;

use self::client::{Client, MESSAGES_PER_CONNECTION};
use self::server::LISTENING;
use self::spool::{Spool, check};
use crate::workloads::experiment::{Cell, Configuration};
use crate::workloads::job::{Figure, Job, JobError, Report};
use crate::workloads::resources::Requirements;
use crate::workloads::workers::{self, Done};
use crate::workloads::workload::{Column, Kind, Workload};

/// The command's hidden subcommand that is a server.
pub const SERVER: &str = "__mail-server";

pub static WORKLOAD: Workload = Workload {
    name: "mail",
    about: "clients hand over mail; a process per connection, delivery, mailbox",
    source: "002: exim, with MOSBENCH's load",
    variants: "--server: a mail server of yours",
    tasks: "clients",
    thread_counts: &[1, 2, 4, 8],
    figure: Figure::PerSecond("messages"),
    uses_directory: true,
    columns: &[Column { key: PER_CPU, header: "per CPU/s", kind: Kind::Number }],
    table: None,
    run,
};

const PER_CPU: &str = "per_cpu";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// A server that is there already.
    pub server: Option<SocketAddr>,
}

pub fn cells(server: Option<SocketAddr>, thread_counts: &[usize], millis: u64) -> Vec<Cell> {
    let name = if server.is_some() { "yours" } else { "ours" };
    let cell = |&tasks: &usize| Cell {
        variant: String::new(),
        tasks,
        configurations: vec![Configuration::new(name, &Parameters { server })],
        needs: if server.is_some() { needs_of_clients(tasks as u64) } else { needs(tasks as u64, millis) },
    };
    thread_counts.iter().map(cell).collect()
}

fn needs_of_clients(clients: u64) -> Requirements {
    Requirements { descriptors: clients, processes: clients, threads: clients, ..Requirements::default() }
}

fn needs(clients: u64, millis: u64) -> Requirements {
    /// Of a client's connection: the process for it, deliveries, the writers that they start; and once more,
    /// while the connection before it ends.
    const PROCESSES: u64 = 2 * (1 + 2 * MESSAGES_PER_CONNECTION as u64);
    /// A process shares most of its memory with its parent.
    const MEMORY: u64 = 256 << 10;
    /// No machine delivers more than that from one directory, and a message has this many bytes in a mailbox.
    const MESSAGES_PER_MILLISECOND: u64 = 100;
    const MESSAGE: u64 = 128;
    let mut needs = needs_of_clients(clients);
    needs.processes += clients * PROCESSES;
    needs.memory += needs.processes * MEMORY;
    needs.space += millis * MESSAGES_PER_MILLISECOND * MESSAGE;
    // The spool's, twice, and the mailboxes.
    needs.files += clients * (2 * 3 * MESSAGES_PER_CONNECTION as u64 + 1) + 2;
    needs
}

fn run(job: &Job) -> Result<Report, JobError> {
    let Parameters { server } = job.parameters()?;
    let Done { all, mut report } = match server {
        // It is not checked whether a server of the user's delivers what it accepts.
        Some(server) => drive(job, server, run_number())?.0,
        None => with_own_server(job)?,
    };
    if server.is_none() {
        // There was no other child, and it has waited for all of its own. It is counted from its start to its
        // end: this is the share of the messages that count.
        let (user, system) = cpu_of_children();
        let share = report.operations as f64 / all.max(1) as f64;
        report.user_s += user.as_secs_f64() * share;
        report.system_s += system.as_secs_f64() * share;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let per_cpu = report.operations as f64 / report.elapsed_s / cpus as f64;
    report.columns.insert(PER_CPU.to_owned(), per_cpu);
    Ok(report)
}

fn with_own_server(job: &Job) -> Result<Done, JobError> {
    let (run, directory) = (run_number(), job.directory()?);
    // Twice as many connections as clients: the end of one and the next of the same client overlap.
    let server = Server::start(directory, 2 * job.tasks)?;
    let driven = drive(job, server.address, run);
    let status = server.stop().map_err(JobError::failed(CANNOT_START))?;
    let (done, accepted) = driven?;
    if !status.success() {
        return Err(JobError::Refused(format!("the mail server {}", in_words(status))));
    }
    check(&Spool::at(directory), run, &accepted)?;
    Ok(done)
}

/// Runs the clients. Also returns how many messages were accepted per client. `run` is in all messages.
fn drive(job: &Job, server: SocketAddr, run: u64) -> Result<(Done, Vec<u64>), JobError> {
    let accepted: Vec<Padded> = (0..job.tasks).map(|_| Padded::default()).collect();
    let done = workers::run(workers::Kind::Threads, job.tasks, job.duration, |number| {
        Ok(Client::new(server, number, run, &accepted[number].0))
    })?;
    Ok((done, accepted.iter().map(|accepted| accepted.0.load(Ordering::Relaxed)).collect()))
}

/// A number that no other run has, also of another process of another time.
fn run_number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ((now.as_micros() as u64) << 16) ^ u64::from(std::process::id())
}

const CANNOT_START: &str = "cannot start the mail server";

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
    fn start(directory: &Path, limit: usize) -> Result<Self, JobError> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(SERVER).arg(directory).arg(limit.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        with_parent(&mut command);
        let mut child = command.spawn().map_err(JobError::failed(CANNOT_START))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(JobError::failed(CANNOT_START))?;
        }
        let port = line.trim().strip_prefix(LISTENING).and_then(|port| port.trim().parse::<u16>().ok());
        match port {
            Some(port) => Ok(Self { child, address: SocketAddr::from(([127, 0, 0, 1], port)) }),
            // It has said why on standard error, which is ours.
            None => {
                let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(0));
                let status = in_words(status);
                Err(JobError::Refused(format!("the mail server {status} before it was ready")))
            }
        }
    }

    /// Ends its input, which makes it finish its work and end.
    fn stop(mut self) -> io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        self.child.wait()
    }
}
