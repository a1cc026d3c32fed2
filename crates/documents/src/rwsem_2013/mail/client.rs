//! A client: connects, sends some messages, says goodbye, and again.

use std::io::{self, BufReader};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;

use super::wire::{Line, read_line, say};

/// How many messages go over one connection: as in MOSBENCH, and the most that exim delivers at once by
/// default.
pub const MESSAGES_PER_CONNECTION: usize = 10;

/// A server that says nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// The conversation failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No answer.
    #[error("cannot connect to the mail server at {0}: {1}")]
    Connect(SocketAddr, io::Error),
    /// The connection broke, or the server is stuck.
    #[error("the connection to the mail server broke after `{sent}`: {error}")]
    Broken {
        /// The last line that the client sent.
        sent: String,
        /// What happened.
        error: io::Error,
    },
    /// The server does not want it.
    #[error("the mail server answered `{answer}` to `{sent}`, and not with {expected}")]
    Refused {
        /// The last line that the client sent.
        sent: String,
        /// The first line of the answer.
        answer: String,
        /// The code that was expected.
        expected: &'static str,
    },
}

/// The name of client `number`'s mailbox.
#[must_use]
pub(super) fn mailbox(number: usize) -> String {
    format!("user{number}")
}

/// What stands in the message with this number, and in no other.
#[must_use]
pub(super) fn message_id(run: u64, client: usize, message: u64) -> String {
    format!("<{message}.{client}.{run:x}@localhost>")
}

/// One client.
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

    /// Sends one message, over a new connection if the last one has had its messages.
    pub(super) fn send(&mut self) -> Result<(), ClientError> {
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
        if self.messages_left == 0 { self.goodbye() } else { Ok(()) }
    }

    /// Hangs up, if it is connected.
    pub(super) fn goodbye(&mut self) -> Result<(), ClientError> {
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
    fn connect(server: SocketAddr) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(server).map_err(|error| ClientError::Connect(server, error))?;
        let mut dialogue = Self { reader: BufReader::new(stream), sent: String::from("(connect)") };
        let stream = dialogue.reader.get_ref();
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        set.map_err(|error| dialogue.broken(error))?;
        dialogue.expect("220")?;
        Ok(dialogue)
    }

    fn ask(&mut self, line: &str, expected: &'static str) -> Result<(), ClientError> {
        self.say(line)?;
        self.expect(expected)
    }

    fn say(&mut self, line: &str) -> Result<(), ClientError> {
        line.clone_into(&mut self.sent);
        say(self.reader.get_ref(), line).map_err(|error| self.broken(error))
    }

    /// Says goodbye, and that nothing else will come: exim answers after 200 ms otherwise, since it waits for
    /// the client to hang up first.
    fn quit(&mut self) -> Result<(), ClientError> {
        self.say("QUIT")?;
        self.reader.get_ref().shutdown(Shutdown::Write).map_err(|error| self.broken(error))?;
        self.expect("221")
    }

    /// Reads an answer; `250-` goes on with the next line.
    fn expect(&mut self, expected: &'static str) -> Result<(), ClientError> {
        loop {
            let answer = match read_line(&mut self.reader).map_err(|error| self.broken(error))? {
                Line::Text(answer) => answer,
                Line::TooLong => return Err(self.broken(io::ErrorKind::InvalidData.into())),
                Line::End => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
            };
            if !answer.starts_with(expected) {
                return Err(ClientError::Refused { sent: self.last_line(), answer, expected });
            }
            if answer.as_bytes().get(3) != Some(&b'-') {
                return Ok(());
            }
        }
    }

    fn broken(&self, error: io::Error) -> ClientError {
        ClientError::Broken { sent: self.last_line(), error }
    }

    fn last_line(&self) -> String {
        self.sent.lines().last().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A dialogue with a server that says `answers`, whatever it hears.
    fn with(answers: &'static str, then: impl FnOnce(Result<Dialogue, ClientError>)) {
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
            assert!(matches!(dialogue.err(), Some(ClientError::Refused { .. })));
        });
    }
}
