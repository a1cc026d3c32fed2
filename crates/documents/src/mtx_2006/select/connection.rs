//! A connection to a MySQL or MariaDB server over its socket.
//!
//! A client of our own, since the crates that speak this protocol bring eighty others along (addresses, time
//! zones, encryption), and the C client would have to be installed: what the benchmark needs is one login and
//! one command.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use super::packet::{self, Answer, LONGEST, Login, Malformed, PLUGIN, Refusal, Row};

/// A server that says nothing for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// A query without an answer.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The connection broke, or the server is stuck.
    #[error("the connection to the database broke: {0}")]
    Broken(#[from] io::Error),
    /// The server speaks another language.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The server wants something that we cannot give.
    #[error("the database wants authentication by `{0}`, and not by {PLUGIN} without a password")]
    Authentication(String),
    /// The server refuses.
    #[error("the database refuses: {0}")]
    Refused(#[from] Refusal),
}

/// What a query yields.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Result {
    /// Rows that were changed, by a command that changes any.
    pub changed: u64,
    /// Rows of a command that asks for any; NULL is none.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    /// Numbers the packets of one command and its answer.
    sequence: u8,
    payload: Vec<u8>,
    version: String,
}

impl Connection {
    /// Connects to `socket` as `user`, who has no password.
    ///
    /// # Errors
    ///
    /// If there is no server, or it refuses.
    pub fn open(socket: &Path, user: &str) -> std::result::Result<Self, QueryError> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let stream = BufReader::new(stream);
        let mut connection = Self { stream, sequence: 0, payload: Vec::new(), version: String::new() };
        connection.version = packet::greeting(connection.read()?)??;
        connection.write(&packet::introduction(user))?;
        let mut login = packet::login(connection.read()?)?;
        if matches!(&login, Login::Switch(plugin) if plugin == PLUGIN) {
            connection.write(&[])?;
            login = packet::login(connection.read()?)?;
        }
        match login {
            Login::Done => Ok(connection),
            Login::Switch(plugin) => Err(QueryError::Authentication(plugin)),
            Login::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// The server's version, as it says.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Asks the server.
    ///
    /// # Errors
    ///
    /// If it does not answer, or refuses.
    pub fn query(&mut self, sql: &str) -> std::result::Result<Result, QueryError> {
        self.sequence = 0;
        self.write(&packet::query(sql))?;
        let columns = match packet::answer(self.read()?)? {
            Answer::Done { changed } => return Ok(Result { changed, rows: Vec::new() }),
            Answer::Refused(refusal) => return Err(refusal.into()),
            Answer::Rows { columns } => columns,
        };
        // What the columns are called, and a packet that ends that.
        for _ in 0..=columns {
            self.read()?;
        }
        let mut rows = Vec::new();
        loop {
            match packet::row(self.read()?, columns)? {
                Row::Values(values) => rows.push(values),
                Row::End => return Ok(Result { changed: 0, rows }),
                Row::Refused(refusal) => return Err(refusal.into()),
            }
        }
    }

    fn read(&mut self) -> std::result::Result<&[u8], QueryError> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        let [low, middle, high, sequence] = header;
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        if sequence != self.sequence || length == LONGEST {
            return Err(Malformed("packet").into());
        }
        self.sequence = sequence.wrapping_add(1);
        self.payload.resize(length, 0);
        self.stream.read_exact(&mut self.payload)?;
        Ok(&self.payload)
    }

    fn write(&mut self, payload: &[u8]) -> std::result::Result<(), QueryError> {
        let length = payload.len();
        if length >= LONGEST {
            return Err(QueryError::Broken(io::ErrorKind::InvalidInput.into()));
        }
        let mut packet = Vec::with_capacity(length + 4);
        packet.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        packet.push(self.sequence);
        packet.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.get_ref().write_all(&packet)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        packet.push(sequence);
        packet.extend_from_slice(payload);
        packet
    }

    const GREETING: &[u8] = b"\x0atest 1\0rest";
    const OK: &[u8] = &[0, 0, 0, 2, 0];
    const END: &[u8] = &[0xfe, 0, 0, 2, 0];

    /// A connection to a server that says `packets`, whatever it hears.
    fn with(packets: &[Vec<u8>], then: impl FnOnce(std::result::Result<Connection, QueryError>)) {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(&packets.concat()).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                stream.read_to_end(&mut Vec::new()).unwrap();
            });
            then(Connection::open(&socket, "root"));
        });
    }

    #[test]
    fn a_table_of_two_rows() {
        let answer = [&[2][..], b"first", b"second", END, b"\x01a\x011", b"\x01b\xfb", END];
        let mut packets = vec![packet(0, GREETING), packet(2, OK)];
        packets.extend(answer.iter().zip(1..).map(|(payload, sequence)| packet(sequence, payload)));
        packets.push(packet(1, &[0, 7, 0, 2, 0]));
        with(&packets, |connection| {
            let mut connection = connection.unwrap();
            assert_eq!(connection.version(), "test 1");
            let rows = connection.query("select").unwrap().rows;
            let value = |text: &str| Some(text.as_bytes().to_vec());
            assert_eq!(rows, [[value("a"), value("1")], [value("b"), None]]);
            assert_eq!(connection.query("update").unwrap().changed, 7);
            assert!(matches!(connection.query("more"), Err(QueryError::Broken(_))));
        });
    }

    #[test]
    fn refusals() {
        let denied = b"\xff\x15\x04#28000Access denied";
        with(&[packet(0, GREETING), packet(2, denied)], |connection| {
            let message = connection.unwrap_err().to_string();
            assert_eq!(message, "the database refuses: error 1045: Access denied");
        });
        with(&[packet(0, GREETING), packet(2, b"\xfesha\0salt")], |connection| {
            assert!(connection.unwrap_err().to_string().contains("`sha`"));
        });
        let switch = [&b"\xfe"[..], PLUGIN.as_bytes(), b"\0salt"].concat();
        with(&[packet(0, GREETING), packet(2, &switch), packet(4, OK)], |connection| {
            assert!(connection.is_ok());
        });
    }

    #[test]
    fn packets_out_of_order() {
        with(&[packet(1, GREETING)], |connection| {
            assert!(matches!(connection, Err(QueryError::Malformed(_))));
        });
    }
}
