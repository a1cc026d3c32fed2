//! A client: connects, sends some messages, says goodbye, and again.

use std::io::{self, BufReader};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::smtp::{Line, read_line, say};
use crate::workloads::job::JobError;
use crate::workloads::workers::Task;

/// How many messages go over one connection: as in MOSBENCH, and the most that exim delivers at once by
/// default.
pub(super) const MESSAGES_PER_CONNECTION: usize = 10;

/// A server that does not answer within this time is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of client `number`'s mailbox.
pub(super) fn mailbox(number: usize) -> String {
    format!("user{number}")
}

/// What stands in the message with this number, and in no other.
pub(super) fn message_id(run: u64, client: usize, message: u64) -> String {
    format!("<{message}.{client}.{run:x}@localhost>")
}

#[derive(Debug)]
pub(super) struct Client<'a> {
    server: SocketAddr,
    number: usize,
    run: u64,
    /// Messages that the server has accepted from this client.
    accepted: &'a AtomicU64,
    connection: Option<Dialogue>,
    messages_left: usize,
}

impl<'a> Client<'a> {
    /// Client `number` of `server`. `run` tells its messages from those of other runs.
    pub(super) fn new(server: SocketAddr, number: usize, run: u64, accepted: &'a AtomicU64) -> Self {
        Self { server, number, run, accepted, connection: None, messages_left: 0 }
    }
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
