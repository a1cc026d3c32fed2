//! A benchmark with servers leaves nothing behind, however it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use spinpark_fixtures::command::Said;

/// Processes that have `directory` in their command line: servers get it, and their children have the same.
fn processes(directory: &Path) -> Vec<u32> {
    let name = directory.to_str().unwrap().as_bytes();
    let is_there = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(name.len()).any(|part| part == name)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_there).collect()
}

/// Checks that nothing is left that has to do with `directory`.
#[track_caller]
pub(crate) fn assert_none(directory: &Path) {
    assert_eq!(processes(directory), [0; 0], "processes");
    let files: Vec<_> = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(files.is_empty(), "{files:?}");
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

/// Starts `command`, which makes its files in `directory`, sends `name` once a server of it runs, and returns
/// what it said.
pub(crate) fn signalled(command: &mut Command, name: &str, directory: &Path) -> Said {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut stdout = Vec::new();
    assert_ne!(reader.read_until(b'\n', &mut stdout).unwrap(), 0, "it says what it will do");
    // The command itself, a worker, a server.
    wait_until(|| processes(directory).len() >= 3);
    signal(name, child.id());
    reader.read_to_end(&mut stdout).unwrap();
    let mut stderr = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status: child.wait().unwrap(), stdout, stderr }.into()
}

/// Waits until no process of `directory` is left.
pub(crate) fn wait_for_the_end(directory: &Path) {
    wait_until(|| processes(directory).is_empty());
}

/// A minute must do.
#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it does not come to that");
}
