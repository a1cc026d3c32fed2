//! `spinpark completions` and `spinpark man`: generated from the definitions of the command line.

use std::fs;
use std::process::ExitCode;

use anyhow::anyhow;

use crate::cli::{Completions, Man, public};
use crate::say::Say;

const NAME: &str = "spinpark";

/// Prints the completions of a shell.
pub(crate) fn completions(completions: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut public(), NAME, &mut script);
    Say { on_stderr: false }.line(String::from_utf8(script)?.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages.
pub(crate) fn man(man: &Man) -> anyhow::Result<ExitCode> {
    let directory = man.directory.display();
    fs::create_dir_all(&man.directory)
        .and_then(|()| clap_mangen::generate_to(public(), &man.directory))
        .map_err(|error| {
            anyhow!(
                "cannot write manual pages to {directory}: {error}\nName a directory in which you may write"
            )
        })?;
    note!("Manual pages are in {directory}: man -l {directory}/{NAME}.1 shows the first one.");
    Ok(ExitCode::SUCCESS)
}
