//! `spinpark top`: where a running program waits.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::pty::{self, OpenptFlags};

use crate::profile::recording;
use spinpark_fixtures::command::{Said, said, waits};

/// A program that waits until it is dropped.
struct Waiting(Child);

impl Waiting {
    fn start(mut command: Command) -> Self {
        let mut child =
            command.arg(waits()).arg("forever").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What runs it passes this on.
        let _ = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

/// What it says with short intervals, and with longer ones if these words are not in that: on a busy machine no thread may
/// have waited meanwhile.
fn has_waits(words: &[&str], top: impl Fn(&str) -> Command) -> Said {
    let mut result = said(&mut top("400ms"));
    for interval in ["3s", "20s"] {
        if words.iter().all(|words| result.stdout.contains(words)) {
            break;
        }
        result = said(&mut top(interval));
    }
    result
}

/// The program that `command` started.
fn child_of(command: u32) -> String {
    let output = Command::new("ps").args(["-o", "pid=", "--ppid", &command.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_process_that_is_profiled() {
    let directory = tempfile::tempdir().unwrap();
    let running = Waiting::start(recording(directory.path(), ["profile", "--"]));
    let pid = child_of(running.0.id());
    let once = said(&mut recording(directory.path(), ["top", "--once", &pid]));
    once.succeeds(&[&format!("process {pid}"), "`cache_lock`"]);
    // The process that the user started, and knows.
    let command = running.0.id().to_string();
    said(&mut recording(directory.path(), ["top", "--once", &command])).succeeds(&["cache_lock"]);
    let words = ["In the last ", "waits for locks a second", "`cache_lock`"];
    let top =
        |interval: &str| recording(directory.path(), ["top", "--updates", "2", "--interval", interval, &pid]);
    has_waits(&words, top).succeeds(&words);
    // A recording of a program that runs is a report, too.
    said(&mut recording(directory.path(), ["report", "spinpark-profile"])).succeeds(&["`cache_lock`"]);
}

/// Reads a terminal until it has shown this.
fn until(terminal: &mut File, words: &str) {
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    while !shown.contains(words) {
        let count = terminal.read(&mut bytes).unwrap();
        assert!(count > 0, "no `{words}` in {shown}");
        shown += &String::from_utf8_lossy(&bytes[..count]);
    }
}

#[test]
fn keys() {
    let directory = tempfile::tempdir().unwrap();
    let running = Waiting::start(recording(directory.path(), ["profile", "--"]));
    let pid = child_of(running.0.id());
    let mut terminal = File::from(pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    pty::unlockpt(&terminal).unwrap();
    let name = pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let user = || File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(&name).unwrap();
    let top = recording(directory.path(), ["top", "--interval", "20s", &pid]);
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(top.get_program()).args(top.get_args());
    let mut top = command.stdin(user()).stdout(user()).stderr(user()).spawn().unwrap();
    drop(command);
    until(&mut terminal, "t totals");
    terminal.write_all(b" ").unwrap();
    until(&mut terminal, "In the last ");
    terminal.write_all(b"t").unwrap();
    until(&mut terminal, "t rates");
    terminal.write_all(b"q").unwrap();
    assert!(top.wait().unwrap().success());
}

#[test]
fn a_program_that_is_started() {
    let directory = tempfile::tempdir().unwrap();
    let result = has_waits(&["`cache_lock`"], |interval| {
        let mut command =
            recording(directory.path(), ["top", "--updates", "2", "--interval", interval, "--"]);
        command.arg(waits()).arg("forever");
        command
    });
    assert!(result.stdout.contains("`cache_lock`"), "{result:#?}");
    let mut command = recording(directory.path(), ["top", "--interval", "200ms", "--"]);
    let result = said(command.arg(waits()).args(["store", "3"]));
    assert_eq!(result.code, Some(3), "{result:#?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it keeps nothing");
}

#[test]
fn processes_that_cannot_be_watched() {
    let directory = tempfile::tempdir().unwrap();
    let top = |what: &str| said(&mut recording(directory.path(), ["top", "--once", what]));
    top("4194999").fails(2, &["there is no process 4194999", "spinpark top -- PROGRAM"]);
    said(&mut recording(directory.path(), ["top", "4194999", "--once"]))
        .fails(2, &["options come before the process id", "spinpark top --once 4194999"]);
    top("no-such-program").fails(2, &["no program `no-such-program`"]);
    if !rustix::process::geteuid().is_root() && Path::new("/proc/1/maps").exists() {
        top("1").fails(2, &["process 1 cannot be read", "another user's"]);
    }
}
