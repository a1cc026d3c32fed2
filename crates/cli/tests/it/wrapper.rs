//! The command as a wrapper: a program sees what it would see if it had been started by itself, and a service
//! manager finds the process that it started.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;

use crate::profile::recording;
use spinpark_fixtures::command::{Said, compiled, said};

fn service() -> PathBuf {
    compiled("service.c", "service", &["-pthread"])
}

/// The command as a service manager executes it: the variables name its process, and descriptor 3 is a socket.
fn managed(directory: &Path, options: &[&str]) -> Command {
    let listener = UnixListener::bind(directory.join("socket")).unwrap();
    let plain = recording(directory, []);
    let mut command = Command::new("sh");
    command
        .args(["-c", "LISTEN_PID=$$ LISTEN_FDS=1 WATCHDOG_PID=$$ WATCHDOG_USEC=3000000 exec \"$@\"", "sh"])
        .arg(cargo_bin!("spinpark"))
        .args(options)
        .arg("--")
        .arg(service())
        .current_dir(directory);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    as_third(&mut command, listener.into());
    command
}

/// Passes `descriptor` on as number 3.
fn as_third(command: &mut Command, descriptor: OwnedFd) {
    let pass = move || {
        // Not the number itself, or it would still be closed on exec.
        // SAFETY: makes a descriptor of the child.
        let copy = unsafe { libc::dup(descriptor.as_raw_fd()) };
        // It is the third at once where that was free.
        if copy != 3 {
            // SAFETY: likewise.
            unsafe { libc::dup2(copy, 3) };
            // SAFETY: nothing else uses the copy.
            unsafe { libc::close(copy) };
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(pass) };
}

/// What the service saw, one line a run.
fn seen(log: &Path) -> Vec<String> {
    fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn wait_for(is: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("it does not come");
}

#[test]
fn a_service_has_the_process_id_that_its_manager_knows() {
    for options in [&["run"][..], &["profile"], &["profile", "--detail", "full", "--html", "page.html"]] {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut command = managed(directory.path(), options);
        command.arg("show").arg(&log).arg("3").stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().unwrap();
        let (id, own) = (child.id(), std::process::id());
        // SAFETY: asks for numbers.
        let session = unsafe { libc::getsid(0) };
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(3), "{options:?}: {said:#?}");
        let expected = format!(
            "id {id} parent {own} group {id} session {session} listen 1 socket 1 watchdog 3000000 children 0 reaper 0"
        );
        assert_eq!(seen(&log), [expected], "{options:?}: {said:#?}");
        if options[0] == "profile" {
            // It ends when its standard error does, after the program.
            for words in ["exited with status 3; this is what was recorded", "Kept in "] {
                assert!(said.stderr.contains(words), "{options:?}: {said:#?}");
            }
        }
    }
}

/// Several runs cannot have one process id: each finds its own.
#[test]
fn each_of_several_runs_finds_its_own_process_id() {
    let several =
        [&["compare", "--rounds", "6"][..], &["profile", "--overhead"], &["top", "--locks", "glibc"]];
    for options in several {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let said = said(managed(directory.path(), options).arg("show").arg(&log));
        assert!(matches!(said.code, Some(0 | 2)), "{options:?}: {said:#?}");
        let lines = seen(&log);
        assert!(!lines.is_empty() && (options[0] == "top" || lines.len() >= 20), "{options:?}: {said:#?}");
        for line in lines {
            assert!(
                line.contains(" listen 1 socket 1 watchdog 3000000 children 0 reaper 0"),
                "{options:?}: {line}"
            );
        }
    }
}

/// `NotifyAccess=main`: messages are taken from the main process only.
#[test]
fn notifications_come_from_the_process_that_was_started() {
    for options in [&["run"][..], &["profile"]] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut command = recording(directory.path(), []);
        command.args(options).arg("--").arg(service()).arg("notify").env("NOTIFY_SOCKET", &path);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        let mut message = [0; 32];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(String::from_utf8_lossy(&message[..length]), id.to_string(), "{options:?}");
        let said = Said::from(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(0), "{options:?}: {said:#?}");
    }
}

/// Without a service manager the command stays the parent, so that its report is there before the prompt.
#[test]
fn a_program_does_not_see_the_command_as_its_parent() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let own = std::process::id();
    for options in [&["profile"][..], &["profile", "--keep-pid"]] {
        let mut command = recording(directory.path(), []);
        let said = said(command.args(options).arg("--").arg(service()).arg("show").arg(&log));
        assert_eq!(said.code, Some(0), "{said:#?}");
        let line = seen(&log).pop().unwrap();
        assert!(
            line.contains(&format!(" parent {own} ")) && line.contains("children 0"),
            "{options:?}: {line}"
        );
    }
    let mut shell = recording(directory.path(), ["profile", "--", "sh", "-c", "echo $PPID"]);
    assert_eq!(said(&mut shell).stdout.trim(), own.to_string());
    // A daemon, which waits until its parent has gone: the command has adopted it.
    let log = directory.path().join("orphan");
    let mut command = recording(directory.path(), ["profile", "--"]);
    let child = command.arg(service()).arg("orphan").arg(&log).stderr(Stdio::null()).spawn().unwrap();
    let id = child.id();
    child.wait_with_output().unwrap();
    wait_for(|| !seen(&log).is_empty());
    assert!(!seen(&log)[0].contains(&format!(" parent {id} ")), "{id}: {:?}", seen(&log));
}

/// The other end of a pipe sees that the program has closed it, and a port that it has closed is free.
#[test]
fn the_command_keeps_nothing_of_the_programs_open() {
    for options in [&["profile"][..], &["profile", "--keep-pid"]] {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let (mut third, inherited) = std::io::pipe().unwrap();
        let mut command = recording(directory.path(), []);
        command.args(options).arg("--").arg(service()).arg("close").arg(&log);
        as_third(&mut command, inherited.into());
        let mut child =
            command.stdin(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn().unwrap();
        drop(command);
        wait_for(|| seen(&log) == ["closed"]);
        let input = child.stdin.take().unwrap();
        wait_for(|| (&input).write_all(b"x").is_err());
        assert_eq!(third.read(&mut [0]).unwrap(), 0, "{options:?}");
        // The whole group: the observer of a program that keeps its id is not in it.
        // SAFETY: the child is not waited for yet.
        assert_eq!(unsafe { libc::kill(-(child.id() as i32), libc::SIGTERM) }, 0);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGTERM), "{options:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("was ended by SIGTERM; this is what was recorded"), "{options:?}: {text}");
    }
}

/// SIGKILL to all that the manager knows: the report is made all the same.
#[test]
fn a_killed_group_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut command = recording(directory.path(), ["profile", "--keep-pid", "--"]);
    command.arg(service()).arg("close").arg(&log).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().unwrap();
    wait_for(|| seen(&log) == ["closed"]);
    // SAFETY: the child is not waited for yet.
    assert_eq!(unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) }, 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("SIGKILL") && text.contains("Kept in "), "{text}");
}
