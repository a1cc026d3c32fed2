//! `run`, `profile` and `compare` as wrappers: what a program inherits, and which signals reach it.

use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::profile::recording;
use spinpark_fixtures::command::{compiled, flat, said};

/// The program that shows its signals.
fn program() -> PathBuf {
    compiled("signals.c", "signals", &["-pthread"])
}

/// Starts `command` with these signals ignored and those blocked, and no others: whatever the tests run under
/// (`nohup` ignores one).
fn with_signals(command: &mut Command, ignored: &'static [i32], blocked: &'static [i32]) {
    let prepare = move || {
        for signal in 1..=libc::SIGRTMAX() {
            let disposition = if ignored.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL };
            // SAFETY: both are valid dispositions; for a signal that has no choice the call fails.
            unsafe { libc::signal(signal, disposition) };
        }
        // SAFETY: plain bits; all zero is the empty set.
        let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
        for signal in blocked {
            // SAFETY: the set is initialised.
            unsafe { libc::sigaddset(&raw mut mask, *signal) };
        }
        // SAFETY: the set is initialised; no old mask is wanted.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut()) };
        Ok(())
    };
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(prepare) };
}

/// `run` behaves as `env`, `nice` and `nohup` do.
#[test]
fn dispositions_and_mask_are_inherited() {
    let directory = tempfile::tempdir().unwrap();
    for options in [&["run"][..], &["profile"], &["profile", "--overhead"], &["compare", "--rounds", "6"]] {
        // Started by a service manager, and by a shell.
        for (ignored, blocked, expected) in [
            (
                &[libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGCHLD][..],
                &[libc::SIGUSR1, 40][..],
                "ignored: 1 2 13 17; blocked: 10 40\n",
            ),
            (&[], &[], "ignored:; blocked:\n"),
        ] {
            let log = directory.path().join("log");
            let mut command = recording(directory.path(), []);
            command.args(options).arg("--").arg(program()).arg("show").arg(&log);
            with_signals(&mut command, ignored, blocked);
            let result = said(&mut command);
            assert_eq!(result.code, Some(0), "{options:?}: {result:#?}");
            let text = fs::read_to_string(&log).unwrap();
            assert!(
                text.lines().count() > 0 && text.lines().all(|line| line == expected.trim_end()),
                "{options:?}: {text}"
            );
            fs::remove_file(&log).unwrap();
        }
    }
}

/// Starts the server under `profile`; it is ready.
fn served(directory: &Path, log: &Path) -> Child {
    let mut command = recording(directory, ["profile", "--"]);
    command
        .arg(program())
        .arg("serve")
        .arg(log)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = command.spawn().unwrap();
    wait_for(log, "ready");
    child
}

/// Waits until `log` has a line that is `words`.
#[track_caller]
fn wait_for(log: &Path, words: &str) {
    for _ in 0..6000 {
        if fs::read_to_string(log).is_ok_and(|text| text.lines().any(|line| line == words)) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("no `{words}` in {}", fs::read_to_string(log).unwrap_or_default());
}

fn send(signal: i32, child: &Child) {
    // SAFETY: the child is not waited for yet, so its number is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// A supervisor knows the command's process only.
#[test]
fn each_signal_reaches_the_program_as_itself() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut child = served(directory.path(), &log);
    use libc::{
        SIGABRT, SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGSEGV, SIGTERM, SIGTSTP,
        SIGUSR1, SIGUSR2, SIGWINCH,
    };
    let plain = [
        SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGALRM, SIGWINCH, SIGTSTP, SIGCONT, SIGABRT, SIGSEGV, SIGPIPE,
        SIGCHLD, 34, 64,
    ];
    for signal in plain {
        send(signal, &child);
        wait_for(&log, &signal.to_string());
    }
    // SAFETY: a union of plain values.
    let mut value: libc::sigval = unsafe { std::mem::zeroed() };
    value.sival_ptr = std::ptr::without_provenance_mut(4711);
    // SAFETY: the child is not waited for yet.
    assert_eq!(unsafe { libc::sigqueue(child.id() as i32, 35, value) }, 0);
    wait_for(&log, "35 with 4711");
    // It takes its time to end; SIGTERM stays the program's own affair, and is not sent twice.
    send(SIGTERM, &child);
    wait_for(&log, &SIGTERM.to_string());
    send(SIGUSR2, &child);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(!text.contains("SIGKILL") && !text.contains("SIGTERM"), "{text}");
    let lines: Vec<String> = fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), plain.len() + 4, "each once: {lines:?}");
}

/// A shell and a service manager see what they would see without the command.
#[test]
fn it_ends_by_the_programs_signal() {
    let directory = tempfile::tempdir().unwrap();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGABRT, libc::SIGKILL] {
        let script = format!("kill -s {signal} $$");
        let mut command = recording(directory.path(), ["profile", "--", "sh", "-c", &script]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(signal), "{status}");
    }
}

/// What a program sends to its own process group has reached it.
#[test]
fn a_signal_to_the_own_group_is_not_doubled() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap 'echo got' USR1; trap 'exit 3' TERM; kill -s USR1 0; i=0; while [ $i -lt 20 ]; do sleep 0.01; i=$((i+1)); done; exit 3";
    let mut command = recording(directory.path(), ["profile", "--", "sh", "-c", script]);
    let result = said(command.process_group(0));
    assert_eq!((result.code, result.stdout.as_str()), (Some(3), "got\n"), "{result:#?}");
}

/// The command's own SIGKILL is told as its own.
#[test]
fn a_kill_of_ours_is_told_as_ours() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut command = recording(directory.path(), ["profile", "--duration", "500ms", "--"]);
    let result = said(command.arg(program()).arg("serve").arg(&log));
    let text = flat(&result.stderr);
    assert_eq!(result.code, Some(128 + libc::SIGKILL), "{text}");
    assert!(
        text.contains("ended after 500 ms, as asked: by SIGKILL from spinpark, 10 s after SIGTERM"),
        "{text}"
    );
    assert!(!text.contains("out of memory"), "{text}");
    assert!(fs::read_to_string(&log).unwrap().contains("15\n"), "it was asked first");
}

/// A killed command leaves no program behind.
#[test]
fn a_kill_reaches_the_program_too() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let mut child = served(directory.path(), &log);
    child.kill().unwrap();
    child.wait().unwrap();
    let is_there = || {
        fs::read_dir("/proc").unwrap().flatten().any(|process| {
            fs::read(process.path().join("cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&*log.to_string_lossy()))
        })
    };
    while is_there() {
        sleep(Duration::from_millis(10));
    }
}
