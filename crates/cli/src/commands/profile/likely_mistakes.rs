//! Likely mistakes: options of spinpark after the program, where they belong to the program, and a process ID
//! in place of a program.

use std::env;
use std::ffi::OsString;

use anyhow::anyhow;
use clap::Args;
use spinpark_measure::process::executable::Blocker;

/// The error for a program that cannot be run; for a number, it names the commands for processes.
pub(crate) fn process(program: &[OsString], error: anyhow::Error) -> anyhow::Error {
    let number = program.first().and_then(|name| name.to_str()?.parse::<u32>().ok());
    match (number, error.downcast_ref()) {
        (Some(pid), Some(Blocker::NotFound { .. })) => anyhow!(
            "there is no program `{pid}`, and a process that runs already cannot be profiled: the recorder must be there from its \
             start\nStart it with `spinpark profile -- PROGRAM`; if that was done with process {pid}, `spinpark top {pid}` watches it"
        ),
        _ => error,
    }
}

/// A note about `program`, which ends the command line of `command`; none after a `--`, or without such an
/// option. Options of one letter are too common to be noted.
pub(crate) fn note<A: Args>(command: &str, program: &[OsString]) -> Option<String> {
    let given: Vec<OsString> = env::args_os().collect();
    let before = given.len().checked_sub(program.len() + 1).and_then(|at| given.get(at));
    if before.is_some_and(|before| before == "--") {
        return None;
    }
    said::<A>(command, program)
}

fn said<A: Args>(command: &str, program: &[OsString]) -> Option<String> {
    let known = A::augment_args(clap::Command::new("spinpark"));
    let is_ours = |word: &str| {
        let option = word.split_once('=').map_or(word, |(option, _)| option);
        let name = option.strip_prefix("--")?;
        known.get_arguments().any(|argument| argument.get_long() == Some(name)).then(|| option.to_owned())
    };
    let (name, arguments) = program.split_first()?;
    // After a `--`, all arguments are the program's.
    let words = arguments.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let mut ours: Vec<String> = Vec::new();
    for option in words.filter_map(is_ours) {
        if !ours.contains(&option) {
            ours.push(option);
        }
    }
    if ours.is_empty() {
        return None;
    }
    let name = name.to_string_lossy();
    let (was, one) = if ours.len() == 1 { ("was", "an option") } else { ("were", "options") };
    Some(format!(
        "Note: {} {was} passed to {name}, because arguments after the program belong to the program. For {one} of `spinpark \
         {command}`, write: spinpark {command} {} … -- {name}. To omit this note, put `--` before the program.",
        ours.join(" and "),
        ours.join(" … ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Profile;

    #[test]
    fn options_after_the_program() {
        let said = |words: &[&str]| {
            let program: Vec<OsString> = words.iter().map(OsString::from).collect();
            super::said::<Profile>("profile", &program)
        };
        let one = said(&["./job", "--html", "x.html"]).expect("it is ours");
        assert!(one.starts_with("Note: --html was passed to ./job"), "{one}");
        assert!(one.contains("spinpark profile --html … -- ./job"), "{one}");
        let two = said(&["./job", "--json=x", "--detail", "full", "--json"]).expect("they are ours");
        assert!(two.starts_with("Note: --json and --detail were passed to ./job"), "{two}");
        for theirs in [
            &["./job"][..],
            &["./job", "-n", "5", "-o", "x", "html"],
            &["./job", "--port", "80", "--htm"],
            &["sh", "-c", "./job --html"],
            &["./job", "--", "--html"],
        ] {
            assert_eq!(said(theirs), None, "{theirs:?}");
        }
    }
}
