//! Where messages are between acceptance and delivery, and where they go: files in one private directory.
//!
//! | file | what it is |
//! |---|---|
//! | `spool/ID-D` | the text of an accepted message |
//! | `spool/ID-T` | its envelope while it is written |
//! | `spool/ID-H` | its envelope: from the moment that it has this name, the message is accepted |
//! | `mail/NAME` | a mailbox: messages one after the other, each behind a line that starts with `From ` |
//!
//! So each message costs three names, a rename and two removals in one directory that all processes share,
//! which is what the benchmark is about.
//!
//! In the end, every message that was accepted is in exactly one mailbox, and nothing else is anywhere.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::smtp::Envelope;
use super::{mailbox, message_id};
use crate::workloads::{JobError, expect};

/// The files of a server.
#[derive(Debug, Clone)]
pub(super) struct Spool {
    spool: PathBuf,
    mail: PathBuf,
}

impl Spool {
    /// In `directory`, where both subdirectories are made.
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        let spool = Self::at(directory);
        fs::create_dir_all(&spool.spool)?;
        fs::create_dir_all(&spool.mail)?;
        Ok(spool)
    }

    /// In `directory`, made before.
    pub(super) fn at(directory: &Path) -> Self {
        Self { spool: directory.join("spool"), mail: directory.join("mail") }
    }

    /// The mailbox of `name`.
    pub(super) fn mailbox(&self, name: &str) -> PathBuf {
        self.mail.join(name)
    }

    /// Names of all mailboxes.
    pub(super) fn mailboxes(&self) -> io::Result<Vec<String>> {
        names(&self.mail)
    }

    /// Files of messages that were not delivered.
    pub(super) fn leftovers(&self) -> io::Result<Vec<String>> {
        names(&self.spool)
    }

    pub(super) fn accept(&self, id: &str, envelope: &Envelope, text: &[u8]) -> io::Result<()> {
        create_new(&self.file(id, 'D'))?.write_all(text)?;
        let temporary = self.file(id, 'T');
        let lines = format!("{}\n{}\n", envelope.sender, envelope.mailboxes.join("\n"));
        create_new(&temporary)?.write_all(lines.as_bytes())?;
        fs::rename(temporary, self.file(id, 'H'))
    }

    pub(super) fn load(&self, id: &str) -> io::Result<(Envelope, Vec<u8>)> {
        let envelope = fs::read_to_string(self.file(id, 'H'))?;
        let mut lines = envelope.lines().map(str::to_owned);
        let sender = lines.next().unwrap_or_default();
        Ok((Envelope { sender, mailboxes: lines.collect() }, fs::read(self.file(id, 'D'))?))
    }

    /// Appends a message to the mailbox of `name`, which no other process does at the same time.
    pub(super) fn append(&self, name: &str, sender: &str, text: &[u8]) -> io::Result<()> {
        let mut message = format!("From {sender}\n").into_bytes();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b"From ") {
                message.push(b'>');
            }
            message.extend_from_slice(line);
        }
        message.push(b'\n');
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(self.mailbox(name))?;
        // Given back when the file is closed. The kernel queues waiters: no lock file is polled.
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        (&file).write_all(&message)
    }

    /// Forgets a delivered message.
    pub(super) fn remove(&self, id: &str) -> io::Result<()> {
        fs::remove_file(self.file(id, 'D'))?;
        fs::remove_file(self.file(id, 'H'))
    }

    fn file(&self, id: &str, kind: char) -> PathBuf {
        self.spool.join(format!("{id}-{kind}"))
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    fs::read_dir(directory)?.map(name).collect()
}

/// Checks the files of a server that has ended. `accepted` is the number of messages per client in run `run`.
pub(super) fn check(spool: &Spool, run: u64, accepted: &[u64]) -> Result<(), JobError> {
    let unreadable = || JobError::failed("cannot read the server's files");
    let leftovers = spool.leftovers().map_err(unreadable())?;
    expect(leftovers.is_empty(), || {
        format!("the server left {} files in its spool, the first is {}", leftovers.len(), leftovers[0])
    })?;
    let known: BTreeSet<String> = (0..accepted.len()).map(mailbox).collect();
    for name in spool.mailboxes().map_err(unreadable())? {
        expect(known.contains(&name), || {
            format!("the server made a mailbox `{name}`, but no mail was sent to it")
        })?;
    }
    for (client, &accepted) in accepted.iter().enumerate() {
        let name = mailbox(client);
        let text = match fs::read_to_string(spool.mailbox(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(unreadable())?,
        };
        check_mailbox(name, &text, (0..accepted).map(|message| message_id(run, client, message)).collect())?;
    }
    Ok(())
}

fn check_mailbox(mailbox: String, text: &str, expected: BTreeSet<String>) -> Result<(), JobError> {
    let mut missing: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
    let (mut doubled, mut foreign) = (0, 0);
    for id in text.lines().filter_map(|line| line.strip_prefix("Message-ID: ")) {
        if !missing.remove(id) {
            *(if expected.contains(id) { &mut doubled } else { &mut foreign }) += 1;
        }
    }
    // Each message is one line of envelope; two texts mixed up would show here.
    let messages = text.lines().filter(|line| line.starts_with("From ")).count();
    foreign += messages.saturating_sub(expected.len() + doubled + foreign);
    let (accepted, missing) = (expected.len(), missing.len());
    expect((missing, doubled, foreign) == (0, 0, 0), || {
        format!(
            "{mailbox} should hold {accepted} messages; {missing} are missing, {doubled} are there twice, {foreign} should not be there"
        )
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_message_from_acceptance_to_the_mailbox() {
        let (_directory, spool) = spool(&[]);
        let envelope = Envelope { sender: "a@b".into(), mailboxes: vec!["one".into(), "two".into()] };
        spool.accept("7", &envelope, b"text\nFrom me\n").unwrap();
        assert!(spool.accept("7", &envelope, b"").is_err(), "an identifier is used once");
        let mut files = spool.leftovers().unwrap();
        files.sort();
        assert_eq!(files, ["7-D", "7-H"]);
        let (read, text) = spool.load("7").unwrap();
        assert_eq!((&read, &text[..]), (&envelope, &b"text\nFrom me\n"[..]));
        spool.append("one", &read.sender, &text).unwrap();
        spool.append("one", "", b"more\n").unwrap();
        spool.remove("7").unwrap();
        assert_eq!(spool.leftovers().unwrap(), [""; 0]);
        assert_eq!(spool.mailboxes().unwrap(), ["one"]);
        let mailbox = fs::read_to_string(spool.mailbox("one")).unwrap();
        assert_eq!(mailbox, "From a@b\ntext\n>From me\n\nFrom \nmore\n\n");
    }

    fn spool(messages: &[(usize, u64)]) -> (tempfile::TempDir, Spool) {
        let directory = tempfile::tempdir().unwrap();
        let spool = Spool::create(directory.path()).unwrap();
        for &(client, message) in messages {
            let text = format!("Message-ID: {}\n\ntext\n", message_id(7, client, message));
            spool.append(&mailbox(client), "a@b", text.as_bytes()).unwrap();
        }
        (directory, spool)
    }

    #[test]
    fn lost_doubled_foreign_left() {
        let (_directory, all_there) = spool(&[(0, 1), (1, 0), (0, 0)]);
        check(&all_there, 7, &[2, 1, 0]).unwrap();
        all_there.accept("1", &Envelope::default(), b"").unwrap();
        let wrong = check(&all_there, 7, &[2, 1, 0]).unwrap_err().to_string();
        assert!(wrong.contains("left 2 files"), "{wrong}");
        let (_directory, spool) = spool(&[(0, 0), (0, 0), (0, 5)]);
        let wrong = check(&spool, 7, &[2]).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "wrong result: user0 should hold 2 messages; 1 are missing, 1 are there twice, 1 should not be there"
        );
        let said = |run, accepted: &[u64]| check(&spool, run, accepted).unwrap_err().to_string();
        assert!(said(8, &[3]).contains("3 are missing") && said(8, &[3]).contains("3 should not be"));
        assert!(said(7, &[]).contains("a mailbox `user0`"));
    }
}
