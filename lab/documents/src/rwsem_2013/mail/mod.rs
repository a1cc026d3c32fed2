//! `spinpark-lab documents mail`: document 002's exim benchmark, in a form of our own.
//!
//! Clients, in threads of the worker, hand over mail, ten messages per connection, as fast as they can; a
//! server that starts a process for each connection, each delivery and each write to a mailbox puts it into
//! one directory and delivers it to others. The load is MOSBENCH's; nothing of exim is in it. See [`server`]
//! for what the kernel has to do.

pub mod server;
mod smtp;
mod spool;

use std::io::{self, BufRead, BufReader};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use spinpark_measure::process::ended::in_words;
use spinpark_measure::process::with_parent;
use spinpark_measure::rounds::machine::cpu_of_children;

use self::server::LISTENING;
use self::smtp::{Line, read_line, say};
use self::spool::{Spool, check};
use crate::workloads::workers::{self, Done, Task};
use crate::workloads::workload::Kind;
use crate::workloads::{Cell, Column, Configuration, Figure, Job, JobError, Report, Requirements, Workload};

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
        Ok(Client { server, number, run, accepted: &accepted[number].0, connection: None, messages_left: 0 })
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

/// How many messages go over one connection: as in MOSBENCH, and the most that exim delivers at once by
/// default.
const MESSAGES_PER_CONNECTION: usize = 10;

/// A server that does not answer within this time is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of client `number`'s mailbox.
fn mailbox(number: usize) -> String {
    format!("user{number}")
}

/// What stands in the message with this number, and in no other.
fn message_id(run: u64, client: usize, message: u64) -> String {
    format!("<{message}.{client}.{run:x}@localhost>")
}

#[derive(Debug)]
struct Client<'a> {
    server: SocketAddr,
    number: usize,
    /// Tells its messages from those of other runs.
    run: u64,
    /// Messages that the server has accepted from this client.
    accepted: &'a AtomicU64,
    connection: Option<Dialogue>,
    messages_left: usize,
}

impl Task for Client<'_> {
    /// Sends one message, over a new connection if the last one has had its messages.
    fn step(&mut self) -> Result<u64, JobError> {
        let mut dialogue = match self.connection.take() {
            Some(dialogue) => dialogue,
            None => {
                self.messages_left = MESSAGES_PER_CONNECTION;
                let mut dialogue = Dialogue::connect(self.server)?;
                dialogue.ask("HELO localhost", "250")?;
                dialogue
            }
        };
        dialogue.ask("MAIL FROM:<sender@localhost>", "250")?;
        dialogue.ask(&format!("RCPT TO:<{}@localhost>", mailbox(self.number)), "250")?;
        dialogue.ask("DATA", "354")?;
        // No other thread writes it.
        let number = self.accepted.load(Ordering::Relaxed);
        let id = message_id(self.run, self.number, number);
        dialogue.ask(&format!("Message-ID: {id}\r\nSubject: load\r\n\r\nNothing to say.\r\n."), "250")?;
        self.accepted.store(number + 1, Ordering::Relaxed);
        self.messages_left -= 1;
        self.connection = Some(dialogue);
        if self.messages_left == 0 {
            self.end()?;
        }
        Ok(1)
    }

    /// Hangs up, if it is connected.
    fn end(&mut self) -> Result<(), JobError> {
        self.connection.take().map_or(Ok(()), |mut dialogue| dialogue.quit())
    }
}

/// A connection on which one side speaks at a time.
#[derive(Debug)]
struct Dialogue {
    reader: BufReader<TcpStream>,
    sent: String,
}

impl Dialogue {
    fn connect(server: SocketAddr) -> Result<Self, JobError> {
        let stream = TcpStream::connect(server)
            .map_err(JobError::failed(format!("cannot connect to the mail server at {server}")))?;
        let mut dialogue = Self { reader: BufReader::new(stream), sent: String::from("(connect)") };
        let stream = dialogue.reader.get_ref();
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        set.map_err(|error| dialogue.broken(error))?;
        dialogue.expect("220")?;
        Ok(dialogue)
    }

    fn ask(&mut self, line: &str, expected: &'static str) -> Result<(), JobError> {
        self.say(line)?;
        self.expect(expected)
    }

    fn say(&mut self, line: &str) -> Result<(), JobError> {
        line.clone_into(&mut self.sent);
        say(self.reader.get_ref(), line).map_err(|error| self.broken(error))
    }

    /// Says goodbye, and that nothing else will come: exim answers after 200 ms otherwise, since it waits for
    /// the client to hang up first.
    fn quit(&mut self) -> Result<(), JobError> {
        self.say("QUIT")?;
        self.reader.get_ref().shutdown(Shutdown::Write).map_err(|error| self.broken(error))?;
        self.expect("221")
    }

    /// Reads an answer; `250-` goes on with the next line.
    fn expect(&mut self, expected: &'static str) -> Result<(), JobError> {
        loop {
            let answer = match read_line(&mut self.reader).map_err(|error| self.broken(error))? {
                Line::Text(answer) => answer,
                Line::TooLong => return Err(self.broken(io::ErrorKind::InvalidData.into())),
                Line::End => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
            };
            if !answer.starts_with(expected) {
                let sent = self.last_line();
                return Err(JobError::Refused(format!(
                    "the mail server answered `{answer}` to `{sent}`, and not with {expected}"
                )));
            }
            if answer.as_bytes().get(3) != Some(&b'-') {
                return Ok(());
            }
        }
    }

    fn broken(&self, error: io::Error) -> JobError {
        let sent = self.last_line();
        JobError::Refused(format!("the connection to the mail server broke after `{sent}`: {error}"))
    }

    fn last_line(&self) -> &str {
        self.sent.lines().last().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A dialogue with a server that says `answers`, whatever it hears.
    fn with(answers: &'static str, then: impl FnOnce(Result<Dialogue, JobError>)) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (stream, _) = listener.accept().unwrap();
                io::Write::write_all(&mut &stream, answers.as_bytes()).unwrap();
                io::Read::read_to_end(&mut &stream, &mut Vec::new()).unwrap();
            });
            then(Dialogue::connect(address));
        });
    }

    #[test]
    fn answers_of_several_lines() {
        with("220-welcome\r\n220 ready\r\n250-one\r\n250 two\r\n354 go\r\n", |dialogue| {
            let mut dialogue = dialogue.unwrap();
            dialogue.ask("EHLO x", "250").unwrap();
            dialogue.ask("DATA", "354").unwrap();
        });
    }

    #[test]
    fn a_refusal_names_both_sides() {
        with("220 ready\r\n550 go away\r\n", |dialogue| {
            let error = dialogue.unwrap().ask("a\r\nHELO x", "250").unwrap_err();
            assert_eq!(
                error.to_string(),
                "the mail server answered `550 go away` to `HELO x`, and not with 250"
            );
        });
        with("554 no service\r\n", |dialogue| {
            assert!(dialogue.err().unwrap().to_string().contains("`554 no service`"));
        });
    }
}
