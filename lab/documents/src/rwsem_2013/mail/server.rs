//! The server: one process accepts connections, one serves each connection, one delivers each message, and
//! one more writes it to each mailbox.
//!
//! That is how exim works when it is told to deliver at once. All that these processes share is the kernel:
//! the tables of processes, address spaces that are copied and dropped, and two directories.
//!
//! A connection's process says goodbye only when its messages are delivered. So what clients have counted is
//! done, and no backlog grows behind the measurement.

use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{WaitOptions, WaitStatus};

use super::smtp::{Envelope, GO_AHEAD, GOODBYE, GREETING, Line, Session, Step, read_line, read_message, say};
use super::spool::Spool;
use crate::workloads::workers::fork;

/// What the server prints when it listens, before the port.
pub(super) const LISTENING: &str = "listening on port";

const CHILDREN: &str = "child processes";

/// Serves on a port of the loopback interface that the kernel chooses, with files in `directory`, until
/// standard input ends. Connections beyond `limit` wait.
pub fn serve(directory: &Path, limit: usize) -> io::Result<()> {
    require_one_thread()?;
    // An orphan becomes our child: none is overlooked at the end.
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
    let spool = Spool::create(directory)?;
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{LISTENING} {}", listener.local_addr()?.port());
    let mut children = Children::default();
    while is_connection_next(&listener)? {
        let (stream, _) = listener.accept()?;
        children.reap_ended()?;
        while children.alive >= limit {
            children.reap_one()?;
        }
        children.start(|| as_status("a connection", receive(&stream, &spool)))?;
    }
    drop(listener);
    children.reap_all("processes of the server")
}

/// Refuses to go on in a process with several threads: its children could not do anything.
fn require_one_thread() -> io::Result<()> {
    match std::fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!("a server that forks has {threads} threads"))),
    }
}

/// Waits for a connection; not if standard input has ended.
fn is_connection_next(listener: &TcpListener) -> io::Result<bool> {
    let stdin = io::stdin();
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) if !fds[1].revents().is_empty() => return Ok(false),
            Ok(_) if !fds[0].revents().is_empty() => return Ok(true),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Serves one connection, in a process of its own.
fn receive(stream: &TcpStream, spool: &Spool) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut session = Session::default();
    let mut deliveries = Children::default();
    let mut messages = 0;
    say(stream, GREETING)?;
    loop {
        // Not at the end only: a connection may carry any number of messages.
        deliveries.reap_ended()?;
        let line = match read_line(&mut reader)? {
            Line::Text(line) => line,
            Line::TooLong => {
                say(stream, "500 line too long")?;
                continue;
            }
            Line::End => break,
        };
        match session.line(&line) {
            Step::Reply(reply) => say(stream, reply)?,
            Step::Data(envelope) => {
                say(stream, GO_AHEAD)?;
                let Some(text) = read_message(&mut reader)? else { break };
                messages += 1;
                accept(spool, &envelope, &text, messages, &mut deliveries)?;
                say(stream, "250 accepted")?;
            }
            Step::Quit => {
                deliveries.reap_all(CHILDREN)?;
                return say(stream, GOODBYE);
            }
        }
    }
    deliveries.reap_all(CHILDREN)
}

/// Puts a message into the spool, and starts its delivery.
fn accept(
    spool: &Spool,
    envelope: &Envelope,
    text: &[u8],
    number: u64,
    deliveries: &mut Children,
) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let id = format!("{:x}-{:x}-{number}", now.as_micros(), process::id());
    spool.accept(&id, envelope, text)?;
    deliveries.start(|| as_status("a delivery", deliver(spool, &id)))
}

/// Delivers one message, in a process of its own.
fn deliver(spool: &Spool, id: &str) -> io::Result<()> {
    let (envelope, text) = spool.load(id)?;
    let mut writers = Children::default();
    for name in &envelope.mailboxes {
        writers.start(|| as_status("a mailbox", spool.append(name, &envelope.sender, &text)))?;
    }
    writers.reap_all(CHILDREN)?;
    spool.remove(id)
}

/// The exit status of a process; what went wrong is said on standard error.
fn as_status(what: &str, result: io::Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "mail server: {what}: {error}");
            1
        }
    }
}

/// Children that were started and not yet waited for.
#[derive(Debug, Default)]
struct Children {
    alive: usize,
    failed: usize,
}

impl Children {
    fn start(&mut self, work: impl FnOnce() -> i32) -> io::Result<()> {
        fork(work)?;
        self.alive += 1;
        Ok(())
    }

    /// Waits for those that have ended already.
    fn reap_ended(&mut self) -> io::Result<()> {
        while self.wait(WaitOptions::NOHANG)? {}
        Ok(())
    }

    fn reap_one(&mut self) -> io::Result<()> {
        self.wait(WaitOptions::empty()).map(drop)
    }

    /// Waits for all; an error if some of `whose` did not end well.
    fn reap_all(mut self, whose: &str) -> io::Result<()> {
        while self.wait(WaitOptions::empty())? {}
        match self.failed + self.alive {
            0 => Ok(()),
            failed => Err(io::Error::other(format!("{failed} {whose} failed"))),
        }
    }

    /// Whether one was waited for.
    fn wait(&mut self, options: WaitOptions) -> io::Result<bool> {
        loop {
            match rustix::process::wait(options) {
                Ok(Some((_, status))) => {
                    self.count(status);
                    return Ok(true);
                }
                Ok(None) | Err(Errno::CHILD) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An orphan that we inherited was not started here: its parent did not wait for it, which is a failure,
    /// too.
    fn count(&mut self, status: WaitStatus) {
        let is_ours = self.alive > 0;
        self.alive = self.alive.saturating_sub(1);
        self.failed += usize::from(!is_ours || status.exit_status() != Some(0));
    }
}
