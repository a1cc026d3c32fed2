//! Whether every message that was accepted is in exactly one mailbox, and nothing else is anywhere.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use thiserror::Error;

use super::client::{mailbox, message_id};
use super::spool::Spool;

/// The server lost, doubled or kept something.
#[derive(Debug, Error)]
pub enum Mismatch {
    /// The files cannot be read.
    #[error("cannot read the server's files: {0}")]
    Unreadable(#[from] io::Error),
    /// Messages that were not delivered.
    #[error("the server left {} files in its spool, the first is {}", .0.len(), .0[0])]
    Leftovers(Vec<String>),
    /// A mailbox to which no mail was sent.
    #[error("the server made a mailbox `{0}`, but no mail was sent to it")]
    Mailbox(String),
    /// Too much or too little in a mailbox.
    #[error(
        "{mailbox} should hold {accepted} messages; {missing} are missing, {doubled} are there twice, {foreign} should not be there"
    )]
    Messages {
        /// Its name.
        mailbox: String,
        /// What the server accepted for it.
        accepted: u64,
        /// Accepted and not there.
        missing: usize,
        /// There more than once.
        doubled: usize,
        /// There although never accepted.
        foreign: usize,
    },
}

/// Checks the files of a server that has ended. `accepted` is the number of messages per client in run `run`.
///
/// # Errors
///
/// The first thing that is wrong.
pub(super) fn check(spool: &Spool, run: u64, accepted: &[u64]) -> Result<(), Mismatch> {
    let leftovers = spool.leftovers()?;
    if !leftovers.is_empty() {
        return Err(Mismatch::Leftovers(leftovers));
    }
    let known: BTreeSet<String> = (0..accepted.len()).map(mailbox).collect();
    if let Some(unknown) = spool.mailboxes()?.into_iter().find(|name| !known.contains(name)) {
        return Err(Mismatch::Mailbox(unknown));
    }
    for (client, &accepted) in accepted.iter().enumerate() {
        let name = mailbox(client);
        let text = match fs::read_to_string(spool.mailbox(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        check_mailbox(name, &text, (0..accepted).map(|message| message_id(run, client, message)).collect())?;
    }
    Ok(())
}

fn check_mailbox(mailbox: String, text: &str, expected: BTreeSet<String>) -> Result<(), Mismatch> {
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
    if (missing.len(), doubled, foreign) == (0, 0, 0) {
        return Ok(());
    }
    Err(Mismatch::Messages {
        mailbox,
        accepted: expected.len() as u64,
        missing: missing.len(),
        doubled,
        foreign,
    })
}

#[cfg(test)]
mod tests {
    use super::super::session::Envelope;
    use super::*;

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
    fn all_there() {
        let (_directory, spool) = spool(&[(0, 1), (1, 0), (0, 0)]);
        check(&spool, 7, &[2, 1, 0]).unwrap();
    }

    #[test]
    fn lost_doubled_foreign() {
        let (_directory, spool) = spool(&[(0, 0), (0, 0), (0, 5)]);
        let wrong = check(&spool, 7, &[2]).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "user0 should hold 2 messages; 1 are missing, 1 are there twice, 1 should not be there"
        );
        assert!(matches!(check(&spool, 8, &[3]), Err(Mismatch::Messages { missing: 3, foreign: 3, .. })));
        assert!(matches!(check(&spool, 7, &[]), Err(Mismatch::Mailbox(name)) if name == "user0"));
    }

    #[test]
    fn left_in_the_spool() {
        let (_directory, spool) = spool(&[]);
        spool.accept("1", &Envelope::default(), b"").unwrap();
        assert!(matches!(check(&spool, 7, &[]), Err(Mismatch::Leftovers(files)) if files.len() == 2));
    }
}
