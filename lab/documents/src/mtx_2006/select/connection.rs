//! A client of MySQL's protocol, as far as one needs it that has no password, encrypts nothing and asks in
//! text: one login, one command.
//!
//! From <https://mariadb.com/kb/en/clientserver-protocol/>. A packet is three bytes of length, one of
//! sequence number, and the payload; numbers are little-endian. The `mysql` crate (28.0) would bring 51
//! crates that are not in the tree yet, and the C client would have to be installed.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::workloads::job::JobError;

/// A server that does not answer within this time is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest payload of one packet; longer ones would be split, and nothing here is that long.
const LONGEST: usize = (1 << 24) - 1;

/// The kind of authentication in which no password is an empty answer.
const PLUGIN: &str = "mysql_native_password";

/// `LONG_PASSWORD`, `PROTOCOL_41`, `TRANSACTIONS`, `SECURE_CONNECTION` and `PLUGIN_AUTH`.
const CAPABILITIES: u32 = 1 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;

const UTF8: u8 = 33;
const QUERY: u8 = 3;
const GREETING: u8 = 10;
const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
const NULL: u8 = 0xfb;

/// The values of a row in the order of the columns; none for NULL.
pub(super) type Row = Vec<Option<Vec<u8>>>;

/// What a query yields: rows, or the number of rows that it changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) changed: u64,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: BufReader<UnixStream>,
    /// Numbers the packets of one command and its answer.
    sequence: u8,
    payload: Vec<u8>,
}

impl Connection {
    /// Connects to `socket` as `user`, without a password.
    pub(super) fn open(socket: &Path, user: &str) -> Result<Self, JobError> {
        let stream = UnixStream::connect(socket).map_err(broken)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
        let mut connection = Self { stream: BufReader::new(stream), sequence: 0, payload: Vec::new() };
        match connection.read()?.split_first() {
            Some((&GREETING, rest)) if rest.contains(&0) => {}
            Some((&ERROR, rest)) => return Err(refusal(rest)),
            _ => return Err(malformed("greeting")),
        }
        connection.write(&introduction(user))?;
        let mut is_switched = false;
        loop {
            match connection.read()?.split_first() {
                Some((&OK, _)) => return Ok(connection),
                Some((&ERROR, rest)) => return Err(refusal(rest)),
                Some((&END, rest)) => {
                    let plugin = rest.split(|&byte| byte == 0).next().unwrap_or_default();
                    if is_switched || plugin != PLUGIN.as_bytes() {
                        return Err(JobError::Refused(format!(
                            "the database wants authentication by `{}`, and not by {PLUGIN} without a password",
                            String::from_utf8_lossy(plugin)
                        )));
                    }
                }
                _ => return Err(malformed("answer to the login")),
            }
            connection.write(&[])?;
            is_switched = true;
        }
    }

    pub(super) fn query(&mut self, sql: &str) -> Result<Answer, JobError> {
        const WHAT: &str = "answer";
        self.sequence = 0;
        self.write(&[&[QUERY], sql.as_bytes()].concat())?;
        let mut payload = self.read()?;
        let columns = match payload.split_first() {
            Some((&OK, mut rest)) => {
                let changed = number(&mut rest).ok_or_else(|| malformed(WHAT))?;
                return Ok(Answer { changed, rows: Vec::new() });
            }
            Some((&ERROR, rest)) => return Err(refusal(rest)),
            _ => number(&mut payload).filter(|_| payload.is_empty()).ok_or_else(|| malformed(WHAT))?,
        };
        // What the columns are called, and a packet that ends that.
        for _ in 0..=columns {
            self.read()?;
        }
        let mut rows = Vec::new();
        loop {
            match self.read()? {
                // A value of 16 MiB would start with this byte, too.
                [END, rest @ ..] if rest.len() < 8 => return Ok(Answer { changed: 0, rows }),
                [ERROR, rest @ ..] => return Err(refusal(rest)),
                payload => rows.push(row(payload, columns).ok_or_else(|| malformed("row"))?),
            }
        }
    }

    fn read(&mut self) -> Result<&[u8], JobError> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).map_err(broken)?;
        let [low, middle, high, sequence] = header;
        let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
        if sequence != self.sequence || length == LONGEST {
            return Err(malformed("packet"));
        }
        self.sequence = sequence.wrapping_add(1);
        self.payload.resize(length, 0);
        self.stream.read_exact(&mut self.payload).map_err(broken)?;
        Ok(&self.payload)
    }

    fn write(&mut self, payload: &[u8]) -> Result<(), JobError> {
        if payload.len() >= LONGEST {
            return Err(broken(io::ErrorKind::InvalidInput.into()));
        }
        let packet = packet(self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.get_ref().write_all(&packet).map_err(broken)
    }
}

fn broken(error: io::Error) -> JobError {
    JobError::Refused(format!("the connection to the database broke: {error}"))
}

fn malformed(what: &str) -> JobError {
    JobError::Refused(format!("the server's {what} cannot be understood"))
}

/// An error, without its first byte: two bytes of code, `#` and five of SQL state, the message.
fn refusal(rest: &[u8]) -> JobError {
    let Some((code, message)) = rest.split_first_chunk() else { return malformed("error") };
    let message = match message {
        [b'#', state_and_message @ ..] => state_and_message.get(5..).unwrap_or_default(),
        message => message,
    };
    let (code, message) = (u16::from_le_bytes(*code), String::from_utf8_lossy(message));
    JobError::Refused(format!("the database refuses: error {code}: {message}"))
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [low, middle, high, _] = (payload.len() as u32).to_le_bytes();
    [&[low, middle, high, sequence], payload].concat()
}

/// The client introduces itself as `user`: the name ends with a zero, the answer of no bytes is another one.
fn introduction(user: &str) -> Vec<u8> {
    let (capabilities, longest) = (CAPABILITIES.to_le_bytes(), (LONGEST as u32).to_le_bytes());
    [&capabilities[..], &longest, &[UTF8], &[0; 23], user.as_bytes(), &[0, 0], PLUGIN.as_bytes(), &[0]]
        .concat()
}

/// Reads a row of `columns` values; none if it is no such row.
fn row(mut rest: &[u8], columns: u64) -> Option<Row> {
    let mut values = Vec::new();
    for _ in 0..columns {
        if let Some((&NULL, after)) = rest.split_first() {
            rest = after;
            values.push(None);
            continue;
        }
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let (value, after) = rest.split_at_checked(length)?;
        rest = after;
        values.push(Some(value.to_vec()));
    }
    rest.is_empty().then_some(values)
}

/// Reads a number whose first byte says how long it is.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let (&first, after) = rest.split_first()?;
    let length = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => {
            *rest = after;
            return Some(small.into());
        }
    };
    let (bytes, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const HELLO: &[u8] = b"\x0atest 1\0rest";
    const DONE: &[u8] = &[0, 0, 0, 2, 0];
    const LAST: &[u8] = &[0xfe, 0, 0, 2, 0];

    fn value(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    /// A connection to a server that says `packets`, whatever it hears.
    fn with(packets: &[Vec<u8>], then: impl FnOnce(Result<Connection, JobError>)) {
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

    /// What becomes of a login that the server answers with `packets`.
    fn login(packets: &[Vec<u8>]) -> Option<String> {
        let mut said = None;
        with(packets, |connection| said = connection.err().map(|error| error.to_string()));
        said
    }

    /// What becomes of a query that the server answers with `payloads`.
    fn answer(payloads: &[&[u8]]) -> Result<Answer, String> {
        let mut packets = vec![packet(0, HELLO), packet(2, DONE)];
        packets.extend(payloads.iter().zip(1..).map(|(payload, sequence)| packet(sequence, payload)));
        let mut answer = Err(String::new());
        with(&packets, |connection| {
            answer = connection.unwrap().query("select").map_err(|error| error.to_string());
        });
        answer
    }

    #[test]
    fn a_table_of_two_rows_then_a_change() {
        let rows = [&[2][..], b"first", b"second", LAST, b"\x01a\x011", b"\x01b\xfb", LAST];
        let mut packets = vec![packet(0, HELLO), packet(2, DONE)];
        packets.extend(rows.iter().zip(1..).map(|(payload, sequence)| packet(sequence, payload)));
        packets.push(packet(1, &[0, 7, 0, 2, 0]));
        with(&packets, |connection| {
            let mut connection = connection.unwrap();
            let rows = connection.query("select").unwrap().rows;
            assert_eq!(rows, [[value("a"), value("1")], [value("b"), None]]);
            assert_eq!(connection.query("update").unwrap().changed, 7);
            assert!(connection.query("more").unwrap_err().to_string().contains("broke"));
        });
    }

    #[test]
    fn logins() {
        let denied = b"\xff\x15\x04#28000Access denied";
        let said = login(&[packet(0, HELLO), packet(2, denied)]).unwrap();
        assert_eq!(said, "the database refuses: error 1045: Access denied");
        assert!(login(&[packet(0, HELLO), packet(2, b"\xfesha\0salt")]).unwrap().contains("`sha`"));
        let switch = [&b"\xfe"[..], PLUGIN.as_bytes(), b"\0salt"].concat();
        assert_eq!(login(&[packet(0, HELLO), packet(2, &switch), packet(4, DONE)]), None);
        let again = login(&[packet(0, HELLO), packet(2, &switch), packet(4, &switch)]);
        assert!(again.unwrap().contains("authentication"));
        for bad in [&b""[..], b"\xff\x15"] {
            assert!(login(&[packet(0, HELLO), packet(2, bad)]).unwrap().contains("cannot be understood"));
        }
    }

    #[test]
    fn greetings() {
        let refused = login(&[packet(0, b"\xff\x10\x04Too many connections")]).unwrap();
        assert!(refused.ends_with("error 1040: Too many connections"), "{refused}");
        for (sequence, bad) in [(0, &b"\x09old\0"[..]), (0, b""), (0, b"\x0aendless"), (1, HELLO)] {
            assert!(login(&[packet(sequence, bad)]).unwrap().contains("cannot be understood"), "{bad:?}");
        }
        assert_eq!(introduction("root")[..4], 0x0008_a201u32.to_le_bytes());
        assert_eq!(introduction("root")[32..], *b"root\0\0mysql_native_password\0");
    }

    #[test]
    fn answers() {
        assert_eq!(answer(&[&[0, 3, 0, 2, 0, 0, 0]]).unwrap().changed, 3);
        assert!(answer(&[b"\xff\x28\x04#42000You have an error"]).unwrap_err().ends_with("have an error"));
        for bad in [&[][..], &[0], &[4, 4], &[0xfb, b'x']] {
            assert!(answer(&[bad]).unwrap_err().contains("server's answer"), "{bad:?}");
        }
        let interrupted = answer(&[&[1], b"a", LAST, b"\xff\x25\x05#70100Query was interrupted"]);
        assert!(interrupted.unwrap_err().ends_with("Query was interrupted"));
        assert!(answer(&[&[1], b"a", LAST, b"\x03ab"]).unwrap_err().contains("server's row"));
    }

    #[test]
    fn rows() {
        let payload = b"\x03abc\xfb\x00\x0212";
        assert_eq!(row(payload, 4), Some(vec![value("abc"), None, value(""), value("12")]));
        for (bad, columns) in [(&b"\x03ab"[..], 1), (b"\x01ab", 1), (b"\x01a", 2), (b"", 1)] {
            assert!(row(bad, columns).is_none(), "{bad:?}");
        }
        let text = "x".repeat(300);
        let payload = [&[0xfc, 0x2c, 0x01], text.as_bytes()].concat();
        assert_eq!(row(&payload, 1), Some(vec![value(&text)]));
    }

    #[test]
    fn numbers_of_all_lengths() {
        let cases: [(&[u8], Option<u64>); 8] = [
            (&[0], Some(0)),
            (&[250], Some(250)),
            (&[0xfc, 0x34, 0x12], Some(0x1234)),
            (&[0xfd, 1, 0, 1], Some(0x01_0001)),
            (&[0xfe, 0, 0, 0, 0, 0, 0, 0, 1], Some(1 << 56)),
            (&[0xfc, 1], None),
            (&[0xfb], None),
            (&[], None),
        ];
        for (bytes, expected) in cases {
            let mut rest = bytes;
            assert_eq!(number(&mut rest), expected, "{bytes:?}");
            assert!(expected.is_none() || rest.is_empty());
        }
    }
}
