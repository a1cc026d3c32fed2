//! This command itself: its file, and its command line to be repeated.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::Context;

/// What it is called.
static NAME: OnceLock<&str> = OnceLock::new();

/// Gives this process' command its name: the first thing that it does.
pub fn is(name: &'static str) {
    // A second name would be a mistake of ours; the first one stays.
    let _ = NAME.set(name);
}

/// What this process' command is called.
#[must_use]
pub fn name() -> &'static str {
    NAME.get().copied().unwrap_or("spinpark")
}

/// Its file, which is also that of its workers.
pub fn path() -> anyhow::Result<PathBuf> {
    env::current_exe().context("cannot find out where this command itself is")
}

/// The command line with which it was started.
pub fn command_line() -> String {
    command(env::args_os().skip(1))
}

/// The command with these arguments, as a shell reads them.
pub fn command(args: impl Iterator<Item = OsString>) -> String {
    let words: Vec<String> =
        std::iter::once(OsString::from(name())).chain(args).map(|arg| arg.to_string_lossy().into()).collect();
    line(&words)
}

/// A command line of these words, as a shell reads it.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it.
pub fn quoted(word: &str) -> String {
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
        let args = ["compare", "--unit", "a b", "--against", "x+A=1", "", "it's"];
        let command = command(args.into_iter().map(OsString::from));
        assert_eq!(command, "spinpark compare --unit 'a b' --against x+A=1 '' 'it'\\''s'");
    }
}
