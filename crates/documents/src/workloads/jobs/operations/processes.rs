//! Processes: forked, replaced by a program, or a shell that starts more of them.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::WaitOptions;

use super::Context;
use crate::workloads::job::{JobError, expect};
use crate::workloads::workers::{ended, fork_task, wait};

/// The program that is executed.
pub(super) const TRUE: &str = "/bin/true";

/// The shell.
pub(super) const SHELL: &str = "/bin/sh";

/// Checks that `program` is there.
pub(super) fn check(program: &str) -> Result<(), JobError> {
    match Path::new(program).exists() {
        true => Ok(()),
        false => Err(JobError::Refused(format!(
            "this mix needs {program}, which is not there; use a mix without exec_test and shell_rtns, such as fserver"
        ))),
    }
}

/// 100 processes that end at once.
pub(super) fn forks(_: &mut Context) -> Result<(), JobError> {
    for number in 0..100 {
        let child = fork_task(number, || Ok(()))?;
        let status = wait(child, WaitOptions::empty())?;
        status.map_or(Ok(()), ended)?;
    }
    Ok(())
}

/// A program started five times.
pub(super) fn execs(_: &mut Context) -> Result<(), JobError> {
    for _ in 0..5 {
        let mut command = Command::new(TRUE);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: the closure does nothing. With one, the child is forked in full, and not started by a short
        // cut.
        unsafe { command.pre_exec(|| Ok(())) };
        let status = command.status().map_err(JobError::failed("cannot start `true`"))?;
        expect(status.success(), || format!("`true` {status}"))?;
    }
    Ok(())
}

/// Arithmetic and a loop.
pub(super) fn shell_1(context: &mut Context) -> Result<(), JobError> {
    script(context, "n=0; for i in 1 2 3 4 5 6 7 8 9 10; do n=$((n + i)); done; echo $n", "55")
}

/// Files, made and removed.
pub(super) fn shell_2(context: &mut Context) -> Result<(), JobError> {
    let text = "for i in a b c; do echo $i > shell-$i; done; \
                n=0; for f in shell-*; do read x < $f; n=$n$x; done; rm shell-a shell-b shell-c; echo $n";
    script(context, text, "0abc")
}

/// A pipe between two shells.
pub(super) fn shell_3(context: &mut Context) -> Result<(), JobError> {
    script(context, "(echo one; echo two) | (read a; read b; echo $b $a)", "two one")
}

fn script(context: &Context, text: &str, expected: &str) -> Result<(), JobError> {
    let mut command = Command::new(SHELL);
    command.args(["-c", text]).current_dir(&context.directory).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(JobError::failed("cannot start the shell"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let is_right = output.status.success() && said.trim() == expected;
    expect(is_right, || format!("the shell says {said:?}, not {expected:?}"))
}
