//! What a mail server says: one connection's state, without any input or output; and the lines on it.
//!
//! The part of SMTP (RFC 5321) that mail clients need to hand over a message. Nothing is relayed and there is
//! no authentication.

use std::io::{self, BufRead, Read, Write};

/// Longest name of a mailbox.
const LONGEST_NAME: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The sender's address; empty for a message about a failure.
    pub(super) sender: String,
    /// Names of the mailboxes it goes to.
    pub(super) mailboxes: Vec<String>,
}

/// What the server does about a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Reply(&'static str),
    /// Says [`GO_AHEAD`] and reads lines up to a single dot, which are a message for this envelope.
    Data(Envelope),
    /// Says [`GOODBYE`] and hangs up.
    Quit,
}

/// The first line of a connection.
pub(super) const GREETING: &str = "220 spinpark ready";
/// Before a message.
pub(super) const GO_AHEAD: &str = "354 end with a dot";
/// The last line of a connection.
pub(super) const GOODBYE: &str = "221 goodbye";

const OK: Step = Step::Reply("250 ok");
const UNKNOWN: Step = Step::Reply("500 unknown command");
const BAD_ORDER: Step = Step::Reply("503 not now");
const BAD_ADDRESS: Step = Step::Reply("501 no such address");
const BAD_MAILBOX: Step = Step::Reply("550 no such mailbox");

#[derive(Debug, Default)]
pub(super) struct Session {
    is_greeted: bool,
    envelope: Option<Envelope>,
}

impl Session {
    /// Takes a line without its end.
    pub(super) fn line(&mut self, line: &str) -> Step {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb.to_ascii_uppercase().as_str() {
            "HELO" | "EHLO" => {
                *self = Self { is_greeted: true, envelope: None };
                OK
            }
            "MAIL" => self.mail(rest),
            "RCPT" => self.recipient(rest),
            "DATA" => match self.envelope.take() {
                Some(envelope) if !envelope.mailboxes.is_empty() => Step::Data(envelope),
                envelope => {
                    self.envelope = envelope;
                    BAD_ORDER
                }
            },
            "RSET" => {
                self.envelope = None;
                OK
            }
            "NOOP" => OK,
            "QUIT" => Step::Quit,
            _ => UNKNOWN,
        }
    }

    fn mail(&mut self, rest: &str) -> Step {
        if !self.is_greeted || self.envelope.is_some() {
            return BAD_ORDER;
        }
        let Some(sender) = address(rest, "FROM:") else { return BAD_ADDRESS };
        self.envelope = Some(Envelope { sender: sender.to_owned(), mailboxes: Vec::new() });
        OK
    }

    fn recipient(&mut self, rest: &str) -> Step {
        let Some(envelope) = &mut self.envelope else { return BAD_ORDER };
        let Some(address) = address(rest, "TO:") else { return BAD_ADDRESS };
        let name = address.split_once('@').map_or(address, |(name, _)| name);
        if !is_mailbox(name) {
            return BAD_MAILBOX;
        }
        envelope.mailboxes.push(name.to_owned());
        OK
    }
}

/// The address in `FROM:<address> parameters`.
fn address<'a>(rest: &'a str, keyword: &str) -> Option<&'a str> {
    let (found, rest) = rest.split_at_checked(keyword.len())?;
    let inner = rest.trim_start().strip_prefix('<')?;
    let (address, _) = inner.split_once('>')?;
    (found.eq_ignore_ascii_case(keyword) && !address.contains(char::is_whitespace)).then_some(address)
}

/// Whether a file may be called so: it is the mailbox.
fn is_mailbox(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_allowed)
}

/// The longest line, as RFC 5321 has it for text.
const LONGEST: u64 = 1000;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end.
    Text(String),
    /// A line that a peer must not send; it was skipped.
    TooLong,
    /// The other side hung up.
    End,
}

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
            // Too long for us: the client is not told, since it could do nothing about it.
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

    /// What a session answers to lines, with `|` between them.
    fn codes(lines: &str) -> String {
        let mut session = Session::default();
        let code = |line| match session.line(line) {
            Step::Reply(text) => text[..3].to_owned(),
            Step::Data(envelope) => format!("{}>{}", envelope.sender, envelope.mailboxes.join(",")),
            Step::Quit => "quit".to_owned(),
        };
        lines.split('|').map(code).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn sessions() {
        let cases = [
            // Two messages in a connection.
            (
                "HELO x|MAIL FROM:<a@b>|RCPT TO:<u1@h>|DATA|mail from: <> SIZE=9|rcpt to:<u1>|RCPT TO:<u2@x>|data|QUIT",
                "250 250 250 a@b>u1 250 250 250 >u1,u2 quit",
            ),
            // In the wrong order.
            ("MAIL FROM:<a@b>", "503"),
            ("HELO x|RCPT TO:<a>|DATA", "250 503 503"),
            ("HELO x|MAIL FROM:<a>|DATA|MAIL FROM:<a>", "250 250 503 503"),
            ("HELO x|MAIL FROM:<a>|RSET|RCPT TO:<b>", "250 250 250 503"),
            // Bad lines.
            ("|VRFY x", "500 500"),
            ("HELO x|MAIL <a>|MAIL FROM:a|MAIL|MAIL FR\u{e4}:<a>", "250 501 501 501 501"),
            ("HELO x|MAIL FROM:<a>|RCPT TO:<../../etc/passwd@localhost>", "250 250 550"),
        ];
        for (lines, expected) in cases {
            assert_eq!(codes(lines), expected, "{lines}");
        }
    }

    #[test]
    fn a_mailbox_is_a_harmless_file_name() {
        for name in ["", ".", "..", "../x", "a/b", ".lock", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(!is_mailbox(name), "{name}");
        }
        assert!(is_mailbox("user-1.x_2"));
    }

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
