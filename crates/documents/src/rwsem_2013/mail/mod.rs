//! `spinpark documents mail`: document 002's exim benchmark, in a form of our own.
//!
//! Clients hand over mail, ten messages per connection, as fast as they can; a server that starts a process
//! for each connection, each delivery and each write to a mailbox puts it into one directory and delivers it
//! to others. The load is MOSBENCH's; nothing of exim is in it. See [`server`] for what the kernel has to do.

mod check;
mod client;
mod fork;
mod load;
pub mod server;
mod session;
mod spool;
mod wire;

pub use self::check::Mismatch;
pub use self::client::{ClientError, MESSAGES_PER_CONNECTION};
pub use self::load::{Load, LoadError, Outcome, SERVER};

use std::net::SocketAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::workloads::experiment::{Cell, Configuration};
use crate::workloads::figure::Figure;
use crate::workloads::job::{Job, JobError, Report};
use crate::workloads::resources::Requirements;
use crate::workloads::workload::{Column, Kind, Workload};

/// The description.
pub static WORKLOAD: Workload = Workload {
    name: "mail",
    about: "clients hand over mail; a process per connection, delivery, mailbox",
    source: "002: exim, with MOSBENCH's load",
    variants: "--server: a mail server of yours",
    tasks: "clients",
    thread_counts: &[1, 2, 4, 8],
    figure: Figure::PerSecond("messages"),
    uses_locks: false,
    uses_directory: true,
    columns: &[Column { key: PER_CPU, header: "per CPU/s", kind: Kind::Number }],
    table: None,
    run,
};

const PER_CPU: &str = "per_cpu";

/// What a configuration does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// A server that is there already.
    pub server: Option<SocketAddr>,
}

/// The cells for a request.
#[must_use]
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
    let directory = if server.is_some() { Path::new("") } else { job.directory()? };
    let load = Load { clients: job.tasks, duration: job.duration, run: run_number(), directory, server };
    let Outcome { done, server } = load.run()?;
    let mut report = done.report();
    if let Some((user, system)) = server {
        // The server is counted from its start to its end: this is the share of the messages that count.
        let share = report.operations as f64 / done.all.max(1) as f64;
        report.user_s += user.as_secs_f64() * share;
        report.system_s += system.as_secs_f64() * share;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let per_cpu = report.operations as f64 / report.elapsed_s / cpus as f64;
    report.columns.insert(PER_CPU.to_owned(), per_cpu);
    Ok(report)
}

/// A number that no other run has, also of another process of another time.
fn run_number() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    ((now.as_micros() as u64) << 16) ^ u64::from(std::process::id())
}
