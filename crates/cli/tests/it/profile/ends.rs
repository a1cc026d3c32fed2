//! The recordings of limits, daemons and damage, and their messages.

use std::fs;
use std::process::Command;

use spinpark_fixtures::profiler;

use super::{kill, recording};
use spinpark_fixtures::command::{flat, said, waits};

/// A limit of the shell on the length of files still allows a recording.
#[test]
fn short_files() {
    let directory = tempfile::tempdir().unwrap();
    let command = recording(directory.path(), ["profile", "--"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 1000 && exec \"$@\"", "sh"]).arg(command.get_program());
    limited.args(command.get_args()).arg(waits()).arg("briefly").current_dir(directory.path());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let result = said(&mut limited);
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), "stored\n"), "{result:#?}");
    assert!(result.stderr.contains("`cache_lock`"), "{}", result.stderr);
    assert!(!result.stderr.contains("ulimit"), "{}", result.stderr);
}

/// The profile is damaged, and the recordings are gone: that is what is said.
#[test]
fn only_a_damaged_profile() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("one")).unwrap();
    fs::write(directory.path().join("one/profile.json"), "[{\"form").unwrap();
    let result = said(&mut recording(directory.path(), ["report", "one"]));
    result.fails(2, &["profile.json is not a profile in JSON"]);
    fs::write(directory.path().join("hot.c"), "int main(void) { return 0; }\n").unwrap();
    said(&mut recording(directory.path(), ["report", "hot.c"])).fails(2, &["hot.c is not a recording"]);
}

/// A status says that no signal ended the program, whether its exit handlers ran or not.
#[test]
fn a_status_is_no_signal() {
    let directory = tempfile::tempdir().unwrap();
    let source = "#include <unistd.h>\nint main(void) { _exit(3); }\n";
    fs::write(directory.path().join("early.c"), source).unwrap();
    let cc = Command::new("cc").args(["-o", "early", "early.c"]).current_dir(directory.path()).status();
    assert!(cc.unwrap().success());
    let result = said(&mut recording(directory.path(), ["profile", "--", "./early"]));
    assert_eq!(result.code, Some(3), "{result:#?}");
    let text = flat(&result.stderr);
    assert!(
        text.contains("exited with status 3") && text.contains(", ended by `_exit` or `exec`;"),
        "{text}"
    );
    assert!(!text.contains("kill") && !text.contains("signal"), "{text}");
}

/// The command waits for its program, not for what that leaves behind.
#[test]
fn a_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let script = "\"$0\" forever >pipe 2>/dev/null & read ready <pipe; echo $!";
    let pipe = Command::new("mkfifo").arg(directory.path().join("pipe")).status();
    assert!(pipe.unwrap().success());
    let mut command = recording(directory.path(), ["profile", "--", "sh", "-c", script]);
    let result = said(command.arg(waits()));
    let pid = result.stdout.trim();
    assert_eq!(result.code, Some(0), "{result:#?}");
    let words = format!("Process {pid} still runs and is recorded");
    assert!(result.stderr.contains(&words), "no `{words}` in {}", result.stderr);
    kill("KILL", pid);
}

/// The library alone, as in a container.
#[test]
fn without_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(waits());
    command.arg("briefly").env("LD_PRELOAD", profiler()).current_dir(directory.path());
    command.env("SPINPARK_PROFILE_DIR", "new").env("SPINPARK_PROFILE_DETAIL", "everything");
    let result = said(&mut command);
    assert_eq!((result.code, result.stdout.as_str()), (Some(0), "stored\n"), "{result:#?}");
    assert_eq!(
        result.stderr.matches("SPINPARK_PROFILE_DETAIL is none of off").count(),
        1,
        "{}",
        result.stderr
    );
    said(&mut recording(directory.path(), ["report", "new"])).succeeds(&["`cache_lock`", "detail contended"]);
}
