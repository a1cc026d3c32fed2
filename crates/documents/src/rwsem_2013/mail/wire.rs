//! Lines on a connection.

use std::io::{self, BufRead, Read, Write};

/// The longest line, as RFC 5321 has it for text.
const LONGEST: u64 = 1000;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end.
    Text(String),
    /// A line that a peer must not send; it was skipped.
    TooLong,
    /// The other side hung up.
    End,
}

/// Reads a line.
pub(super) fn read_line(reader: &mut impl BufRead) -> io::Result<Line> {
    let mut bytes = Vec::with_capacity(80);
    reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes)?;
    match bytes.last() {
        None => Ok(Line::End),
        Some(b'\n') => {
            let text = String::from_utf8_lossy(&bytes);
            Ok(Line::Text(text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        Some(_) if (bytes.len() as u64) < LONGEST => Ok(Line::End),
        Some(_) => reader.skip_until(b'\n').map(|_| Line::TooLong),
    }
}

/// Reads lines up to a single dot, and undoes the doubling of dots at their beginnings. `None`: the other
/// side hung up.
pub(super) fn read_message(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::with_capacity(256);
    loop {
        match read_line(reader)? {
            Line::End => return Ok(None),
            // Too long for us, but not for the client, who would not know what to do about it.
            Line::TooLong => text.extend_from_slice(b"[a line too long]\n"),
            Line::Text(line) if line == "." => return Ok(Some(text)),
            Line::Text(line) => {
                text.extend_from_slice(line.strip_prefix('.').unwrap_or(&line).as_bytes());
                text.push(b'\n');
            }
        }
    }
}

/// Sends a line in one piece.
pub(super) fn say(mut stream: impl Write, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mut text = [&b"one\r\ntwo\n\n"[..], &[b'x'; 1500], b"\nhalf"].concat();
        text.push(0xff);
        let mut reader = &text[..];
        let mut next = || read_line(&mut reader).unwrap();
        let line = |text: &str| Line::Text(text.to_owned());
        assert_eq!([next(), next(), next()], [line("one"), line("two"), line("")]);
        assert_eq!([next(), next(), next()], [Line::TooLong, Line::End, Line::End]);
    }

    #[test]
    fn messages() {
        let mut reader = &b"a\r\n..b\r\n.\r\nrest"[..];
        assert_eq!(read_message(&mut reader).unwrap().as_deref(), Some(&b"a\n.b\n"[..]));
        assert_eq!(reader, b"rest");
        assert_eq!(read_message(&mut &b"never ends\r\n"[..]).unwrap(), None);
    }
}
