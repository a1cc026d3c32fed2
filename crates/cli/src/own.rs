//! This command itself: its file, and its command line to be repeated.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;

/// Its file, which is also that of its workers.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    env::current_exe().context("cannot find out where this command itself is")
}

/// The command line with which it was started.
pub(crate) fn command_line() -> String {
    command(env::args_os().skip(1))
}

/// `spinpark …` with these arguments, as a shell reads them.
pub(crate) fn command(args: impl Iterator<Item = OsString>) -> String {
    let words: Vec<String> = std::iter::once(OsString::from("spinpark"))
        .chain(args)
        .map(|arg| arg.to_string_lossy().into())
        .collect();
    line(&words)
}

/// A command line of these words, as a shell reads it.
pub(crate) fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+,./:%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted() {
        let args = ["bench", "locks", "--workload", "a b", "--locks", "drop-in+A=1", "", "it's"];
        let command = command(args.into_iter().map(OsString::from));
        assert_eq!(command, "spinpark bench locks --workload 'a b' --locks drop-in+A=1 '' 'it'\\''s'");
    }
}
