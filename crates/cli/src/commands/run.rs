//! `spinpark run`: become the program, with the drop-in in front of glibc.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, anyhow};
use spinpark_measure::process::as_inherited;
use spinpark_measure::process::executable::preload_list::{prepend, without_drop_in};
use spinpark_measure::process::executable::{Executable, Library};
use spinpark_measure::rounds::configuration::POLICY;

use crate::cli::Run;
use crate::libraries;
use crate::policy::PolicyFile;
use crate::say::Say;

/// Does not come back, unless the program cannot be run.
pub(crate) fn run(run: &Run) -> anyhow::Result<ExitCode> {
    let (name, args) = run.program.split_first().ok_or_else(|| anyhow!("name a program to run"))?;
    let executable = Executable::find_with(name, args)?;
    let drop_in = libraries::find(Library::DropIn)?;
    drop_in.check_machine(executable.machine)?;
    let inherited = without_drop_in(&env::var_os("LD_PRELOAD").unwrap_or_default());
    let table = run.policy.as_deref().map(|file| table(file, &executable.path)).transpose()?;
    if let Some(table) = table.as_ref().filter(|_| run.print_table) {
        Say { on_stderr: false }.line(table.replace(';', "\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = Command::new(&executable.path);
    if let Some(table) = table {
        command.env(POLICY, table);
    }
    command.args(args).arg0(name).env("LD_PRELOAD", prepend(&drop_in.path, &inherited));
    as_inherited(&mut command);
    let error = command.exec();
    Err(error).with_context(|| format!("cannot execute {}", executable.path.display()))
}

/// The table of `file` for the program `executable`.
fn table(file: &Path, executable: &Path) -> anyhow::Result<String> {
    let policies = PolicyFile::read(file)?;
    policies.table(executable).with_context(|| format!("--policy: {} cannot be used", file.display()))
}
