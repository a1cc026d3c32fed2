//! The packets of MySQL's protocol, as far as a client needs them that has no password, encrypts nothing, and
//! asks in text.
//!
//! From the description at <https://mariadb.com/kb/en/clientserver-protocol/>. A packet is three bytes of
//! length, one of sequence number, and the payload; numbers are little-endian.

use thiserror::Error;

/// The longest payload of one packet; longer ones would be split, and nothing here is that long.
pub(super) const LONGEST: usize = (1 << 24) - 1;

/// Capabilities that the client claims.
mod capability {
    pub(super) const LONG_PASSWORD: u32 = 1;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const TRANSACTIONS: u32 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
}

/// The kind of authentication in which no password is an empty answer.
pub(super) const PLUGIN: &str = "mysql_native_password";

const UTF8: u8 = 33;
const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
const NULL: u8 = 0xfb;

/// A packet that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the server's {0} cannot be understood")]
pub struct Malformed(pub &'static str);

/// What a server says to a command, in the first packet of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Done; so many rows were changed.
    Done { changed: u64 },
    /// Rows follow, with so many columns.
    Rows { columns: u64 },
    /// It refuses.
    Refused(Refusal),
}

/// Why a server refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("error {code}: {message}")]
pub struct Refusal {
    /// MySQL's number for it.
    pub code: u16,
    /// In words.
    pub message: String,
}

/// What a server says to a client that introduced itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Login {
    Done,
    /// It wants this kind of authentication instead.
    Switch(String),
    Refused(Refusal),
}

/// A row, or what comes after the last one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// Values in the order of the columns; none for NULL.
    Values(Vec<Option<Vec<u8>>>),
    End,
    Refused(Refusal),
}

/// Reads the server's greeting: its version.
pub(super) fn greeting(payload: &[u8]) -> Result<Result<String, Refusal>, Malformed> {
    const WHAT: Malformed = Malformed("greeting");
    match payload.split_first() {
        Some((10, rest)) => {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(WHAT)?;
            Ok(Ok(String::from_utf8_lossy(&rest[..end]).into_owned()))
        }
        Some((&ERROR, rest)) => Ok(Err(refusal(rest)?)),
        _ => Err(WHAT),
    }
}

/// The client introduces itself as `user`.
pub(super) fn introduction(user: &str) -> Vec<u8> {
    use capability::{LONG_PASSWORD, PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION, TRANSACTIONS};
    let capabilities = LONG_PASSWORD | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | PLUGIN_AUTH;
    let mut payload = capabilities.to_le_bytes().to_vec();
    payload.extend_from_slice(&(LONGEST as u32).to_le_bytes());
    payload.push(UTF8);
    payload.extend_from_slice(&[0; 23]);
    payload.extend_from_slice(user.as_bytes());
    // The end of the name, and an answer of no bytes.
    payload.extend_from_slice(&[0, 0]);
    payload.extend_from_slice(PLUGIN.as_bytes());
    payload.push(0);
    payload
}

/// Reads what the server says to it.
pub(super) fn login(payload: &[u8]) -> Result<Login, Malformed> {
    match payload.split_first() {
        Some((&OK, _)) => Ok(Login::Done),
        Some((&ERROR, rest)) => Ok(Login::Refused(refusal(rest)?)),
        Some((&END, rest)) => {
            let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            Ok(Login::Switch(String::from_utf8_lossy(&rest[..end]).into_owned()))
        }
        _ => Err(Malformed("answer to the login")),
    }
}

/// A command in SQL.
pub(super) fn query(sql: &str) -> Vec<u8> {
    const QUERY: u8 = 3;
    let mut payload = Vec::with_capacity(sql.len() + 1);
    payload.push(QUERY);
    payload.extend_from_slice(sql.as_bytes());
    payload
}

/// Reads the first packet of an answer.
pub(super) fn answer(payload: &[u8]) -> Result<Answer, Malformed> {
    const WHAT: Malformed = Malformed("answer");
    match payload.split_first() {
        Some((&OK, mut rest)) => Ok(Answer::Done { changed: number(&mut rest).ok_or(WHAT)? }),
        Some((&ERROR, rest)) => Ok(Answer::Refused(refusal(rest)?)),
        _ => {
            let mut rest = payload;
            let columns = number(&mut rest).filter(|_| rest.is_empty()).ok_or(WHAT)?;
            Ok(Answer::Rows { columns })
        }
    }
}

/// Reads a row of `columns` values.
pub(super) fn row(payload: &[u8], columns: u64) -> Result<Row, Malformed> {
    const WHAT: Malformed = Malformed("row");
    match payload.split_first() {
        // A value of 16 MiB would start with this byte, too.
        Some((&END, rest)) if rest.len() < 8 => return Ok(Row::End),
        Some((&ERROR, rest)) => return Ok(Row::Refused(refusal(rest)?)),
        _ => {}
    }
    let mut rest = payload;
    let mut values = Vec::new();
    for _ in 0..columns {
        if let Some((&NULL, after)) = rest.split_first() {
            rest = after;
            values.push(None);
            continue;
        }
        let length = usize::try_from(number(&mut rest).ok_or(WHAT)?).map_err(|_| WHAT)?;
        let (value, after) = rest.split_at_checked(length).ok_or(WHAT)?;
        rest = after;
        values.push(Some(value.to_vec()));
    }
    if rest.is_empty() { Ok(Row::Values(values)) } else { Err(WHAT) }
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

/// Reads an error, without its first byte: two bytes of code, `#` and five of SQL state, the message.
fn refusal(rest: &[u8]) -> Result<Refusal, Malformed> {
    let (code, message) = rest.split_first_chunk().ok_or(Malformed("error"))?;
    let message = match message {
        [b'#', state_and_message @ ..] => state_and_message.get(5..).unwrap_or_default(),
        message => message,
    };
    let message = String::from_utf8_lossy(message).into_owned();
    Ok(Refusal { code: u16::from_le_bytes(*code), message })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn greetings() {
        let payload = b"\x0a10.11.6-MariaDB\0\x01\0\0\0abcdefgh\0";
        assert_eq!(greeting(payload).unwrap().unwrap(), "10.11.6-MariaDB");
        let refused = greeting(b"\xff\x10\x04Too many connections").unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "error 1040: Too many connections");
        assert!(
            greeting(b"\x09old\0").is_err() && greeting(b"").is_err() && greeting(b"\x0aendless").is_err()
        );
    }

    #[test]
    fn the_introduction() {
        let payload = introduction("root");
        assert_eq!(&payload[..4], &0x0008_a201u32.to_le_bytes());
        assert_eq!(&payload[32..], b"root\0\0mysql_native_password\0");
    }

    #[test]
    fn logins() {
        assert_eq!(login(&[0, 0, 0, 2, 0, 0, 0]), Ok(Login::Done));
        assert_eq!(login(b"\xfeed25519\0salt"), Ok(Login::Switch("ed25519".into())));
        let Ok(Login::Refused(refused)) = login(b"\xff\x15\x04#28000Access denied") else { panic!() };
        assert_eq!((refused.code, &refused.message[..]), (1045, "Access denied"));
        assert!(login(b"").is_err() && login(b"\xff\x15").is_err());
    }

    #[test]
    fn answers() {
        assert_eq!(answer(&[0, 3, 0, 2, 0, 0, 0]), Ok(Answer::Done { changed: 3 }));
        assert_eq!(answer(&[4]), Ok(Answer::Rows { columns: 4 }));
        assert!(matches!(answer(b"\xff\x28\x04#42000You have an error"), Ok(Answer::Refused(_))));
        for bad in [&[][..], &[0], &[4, 4], &[0xfb, b'x']] {
            assert!(answer(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn rows() {
        let value = |text: &str| Some(text.as_bytes().to_vec());
        let payload = b"\x03abc\xfb\x00\x0212";
        assert_eq!(row(payload, 4), Ok(Row::Values(vec![value("abc"), None, value(""), value("12")])));
        assert_eq!(row(&[0xfe, 0, 0, 2, 0], 4), Ok(Row::End));
        assert!(matches!(row(b"\xff\x25\x05#70100Query was interrupted", 4), Ok(Row::Refused(_))));
        for (bad, columns) in [(&b"\x03ab"[..], 1), (b"\x01ab", 1), (b"\x01a", 2), (b"", 1)] {
            assert!(row(bad, columns).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn long_values() {
        let text = "x".repeat(300);
        let mut payload = vec![0xfc, 0x2c, 0x01];
        payload.extend_from_slice(text.as_bytes());
        assert_eq!(row(&payload, 1), Ok(Row::Values(vec![Some(text.into_bytes())])));
    }

    #[test]
    fn a_query() {
        assert_eq!(query("select 1"), b"\x03select 1");
    }
}
