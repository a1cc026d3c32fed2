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

use super::fork::{Children, require_one_thread};
use super::session::{Envelope, GO_AHEAD, GOODBYE, GREETING, Session, Step};
use super::spool::Spool;
use super::wire::{Line, read_line, read_message, say};

/// What the server prints when it listens, before the port.
pub(super) const LISTENING: &str = "listening on port";

/// Serves on a port of the loopback interface that the kernel chooses, with files in `directory`, until
/// standard input ends. Connections beyond `limit` wait.
///
/// # Errors
///
/// If the server cannot do its work, or a process of it failed.
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
        while children.alive() >= limit {
            children.reap_one()?;
        }
        children.start(|| as_status("a connection", receive(&stream, &spool)))?;
    }
    drop(listener);
    match children.reap_all()? {
        0 => Ok(()),
        failed => Err(io::Error::other(format!("{failed} processes of the server failed"))),
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
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
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
                finish(deliveries)?;
                return say(stream, GOODBYE);
            }
        }
    }
    finish(deliveries)
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
    finish(writers)?;
    spool.remove(id)
}

fn finish(children: Children) -> io::Result<()> {
    match children.reap_all()? {
        0 => Ok(()),
        failed => Err(io::Error::other(format!("{failed} child processes failed"))),
    }
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
