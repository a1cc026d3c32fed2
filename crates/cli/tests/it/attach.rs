//! `spinpark profile --pid` and `top PID`: a process that was not started by spinpark, sampled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use spinpark_fixtures::command::{Said, flat, said};
use spinpark_fixtures::{compile_c, dropin};

use crate::fixtures::spinpark;
use crate::profile::recording;
use crate::why::{Hanging, has};

fn sampled(directory: &Path, pid: u32, arguments: &[&str]) -> Said {
    let mut command = recording(directory, ["profile", "--for", "600ms", "--pid"]);
    said(command.arg(pid.to_string()).args(arguments))
}

#[test]
fn a_holder_that_sleeps() {
    for preload in [None, Some(dropin())] {
        let directory = tempfile::tempdir().expect("a directory");
        let hanging = Hanging::scene("sleeper", preload);
        let result = sampled(directory.path(), hanging.0.id(), &["--output", "x"]);
        assert_eq!(result.code, Some(0), "{result:#?}");
        let words = [
            "still running",
            "sampled every",
            "All waiting is on one mutex, `accounts`, held by `has_accounts` while `wants_accounts` waits.",
            "While threads waited for it, its holder was in `clock_nanosleep` in `has_accounts` (100 %).",
            "How often threads waited is not known.",
        ];
        has(&result.stdout, &words);
        // It is kept as a recording is.
        has(&said(&mut recording(directory.path(), ["report", "x"])).stdout, &words);
        let json = said(&mut recording(directory.path(), ["report", "x", "--json"]));
        let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
        let waited = json[0]["locks"][0]["roles"][0]["wait"]["total"].as_u64().expect("a time");
        let duration = json[0]["duration"].as_u64().expect("a time");
        // Two threads, all the time.
        assert!((1.9..=2.0).contains(&(waited as f64 / duration as f64)), "{waited} of {duration}");
        assert!(json[0]["sampling"]["snapshots"].as_u64() > Some(0), "{json:#}");
        let folded = said(&mut recording(directory.path(), ["report", "x", "--folded"]));
        assert!(folded.stdout.contains("wants_accounts"), "{folded:#?}");
    }
}

#[test]
fn a_deadlock() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("deadlock", None);
    let result = sampled(directory.path(), hanging.0.id(), &[]);
    has(&result.stdout, &["Deadlock: thread", "for the mutex `audit`, which thread", "Waiting now"]);
    let text = flat(&result.stdout);
    let (_, table) = text.split_once("Waiting now").expect("the table");
    let (table, _) = table.split_once("Locks").expect("another table");
    // Each is where the other one's holder is.
    assert!(!table.contains("not known") && !text.contains("Probably"), "{text}");
    assert!(["transfer", "report"].iter().all(|place| table.matches(place).count() == 2), "{text}");
}

#[test]
fn without_a_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("idle", None);
    let result = sampled(directory.path(), hanging.0.id(), &[]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(!result.stdout.contains("Deadlock") && !result.stdout.contains("All waiting"), "{result:#?}");
    has(&result.stdout, &["No thread waited for a lock in any snapshot"]);
}

#[test]
fn a_process_that_ends_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("it starts");
    let mut command = recording(directory.path(), ["profile", "--for", "600s", "--pid"]);
    let sampler = sampling(command.arg(sleeper.id().to_string()));
    sleeper.kill().expect("it runs");
    sleeper.wait().expect("it ends");
    let result = Said::from(sampler.wait_with_output().expect("it ends"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    assert!(!result.stdout.contains("still running"), "{result:#?}");
}

/// It is another program then, of which nothing is known.
#[test]
fn a_process_that_becomes_another_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut shell = Command::new("sh");
    // Until its input ends.
    shell.args(["-c", "read line; exec sleep 600"]).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("it starts");
    let mut command = recording(directory.path(), ["profile", "--for", "600s", "--pid"]);
    let sampler = sampling(command.arg(shell.id().to_string()));
    drop(shell.stdin.take());
    let result = Said::from(sampler.wait_with_output().expect("it ends"));
    let _ = shell.kill();
    let _ = shell.wait();
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(
        &result.stdout,
        &["became another program (exec)", "Warning: Process", "of which nothing was sampled"],
    );
}

/// Starts sampling a process, and waits until it samples: until it has files of threads open, and pauses.
fn sampling(command: &mut Command) -> Child {
    let sampler = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let open = PathBuf::from(format!("/proc/{}/fd", sampler.id()));
    let is_of_thread = |file: fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|path| path.starts_with("/proc") && path.ends_with("syscall"))
    };
    while !fs::read_dir(&open).expect("it runs").flatten().any(is_of_thread) {
        std::thread::yield_now();
    }
    let call = format!("/proc/{}/syscall", sampler.id());
    let pauses = format!("{} ", libc::SYS_clock_nanosleep);
    while !fs::read_to_string(&call).expect("it runs").starts_with(&pauses) {
        std::thread::yield_now();
    }
    sampler
}

/// Root reads all that others may not, but for this capability.
fn as_user(program: &Path) -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        return Some(Command::new(program));
    }
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-sys_ptrace");
    if !Command::new("setpriv")
        .args(["--bounding-set=-sys_ptrace", "true"])
        .status()
        .is_ok_and(|it| it.success())
    {
        println!("skipped: no setpriv is installed, or may be used");
        return None;
    }
    command.arg(program);
    Some(command)
}

/// What was sampled until then is shown, and kept.
#[test]
fn a_process_that_may_no_longer_be_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut program) = as_user(&compile_c("hangs.c", &["-O1"])) else { return };
    program.arg("hides");
    let hanging = Hanging::start(program);
    let plain = spinpark(["profile"]);
    let mut command = as_user(Path::new(plain.get_program())).expect("as before");
    command.args(["profile", "--for", "600s", "--output", "x", "--pid"]).arg(hanging.0.id().to_string());
    let sampler = sampling(command.current_dir(&directory));
    assert!(
        Command::new("kill")
            .arg("-USR1")
            .arg(hanging.0.id().to_string())
            .status()
            .is_ok_and(|it| it.success())
    );
    let output = sampler.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    has(&text, &["can no longer be read: it has changed its user or its capabilities, or forbids it"]);
    assert!(directory.path().join("x/profile.json").is_file());
    let mut why = as_user(Path::new(plain.get_program())).expect("as before");
    said(why.arg("why").arg(hanging.0.id().to_string())).fails(2, &["cannot be read"]);
}

/// The report is all that is left: it says so.
#[test]
fn a_profile_that_cannot_be_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("sleeper", None);
    let mut command = recording(directory.path(), ["profile", "--for", "600s", "--output", "x", "--pid"]);
    let sampler = sampling(command.arg(hanging.0.id().to_string()));
    fs::remove_dir(directory.path().join("x")).expect("it is there, and empty");
    assert!(
        Command::new("kill").args(["-INT", &sampler.id().to_string()]).status().is_ok_and(|it| it.success())
    );
    let output = sampler.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    has(&String::from_utf8_lossy(&output.stdout), &["All waiting is on one mutex, `accounts`"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    has(&errors, &["Nothing is kept: cannot write to", "--output names a directory with space"]);
    assert!(!errors.contains("spinpark report"), "{errors}");
}

/// Its children are no part of it.
#[test]
fn a_process_that_forks_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("forks", None);
    let result = sampled(directory.path(), hanging.0.id(), &[]);
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(&result.stdout, &["All waiting is on one mutex, `accounts`", "still running"]);
}

/// A program of 32 bits: it is made without libraries, which few machines have.
#[test]
fn a_program_of_32_bits() {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, program) = (directory.path().join("narrow.s"), directory.path().join("narrow"));
    fs::write(&source, ".globl _start\n_start: movl $29, %eax\nint $0x80\njmp _start\n").expect("a file");
    let mut compile = Command::new("cc");
    compile.args(["-m32", "-nostdlib", "-static", "-no-pie", "-o"]).arg(&program).arg(&source);
    let child = compile.status().is_ok_and(|it| it.success()).then(|| Command::new(&program).spawn());
    let Some(Ok(mut child)) = child else {
        println!("skipped: programs of 32 bits cannot be made or run here");
        return;
    };
    let pid = child.id().to_string();
    for arguments in [&["why"][..], &["why", "--stop"], &["profile", "--pid"], &["top"]] {
        let mut command = recording(directory.path(), []);
        said(command.args(arguments).arg(&pid)).fails(2, &["is a 32-bit program"]);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Readers do not see each other.
#[test]
fn two_at_once() {
    let hanging = Hanging::scene("sleeper", None);
    let pid = hanging.0.id();
    let sample = || {
        let directory = tempfile::tempdir().expect("a directory");
        sampled(directory.path(), pid, &[])
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(sample);
        let other = sample();
        (one.join().expect("it ends"), other)
    });
    for result in [one, other] {
        has(&result.stdout, &["All waiting is on one mutex, `accounts`, held by `has_accounts`"]);
    }
}

#[test]
fn top_of_a_process_that_is_not_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let hanging = Hanging::scene("sleeper", None);
    let pid = hanging.0.id().to_string();
    let mut top = recording(directory.path(), ["top", "--updates", "2", "--interval", "300ms"]);
    let result = said(top.arg(&pid));
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(
        &result.stdout,
        &[&format!("(process {pid}), the last "), "held by `has_accounts` while `wants_accounts` waits"],
    );
    assert_eq!(result.stdout.as_str().matches("All waiting is on one mutex").count(), 2, "{result:#?}");
}

#[test]
fn options_of_a_recording() {
    let directory = tempfile::tempdir().expect("a directory");
    let with =
        |arguments: &[&str]| said(recording(directory.path(), ["profile", "--pid", "1"]).args(arguments));
    with(&["--detail", "full"]).fails(2, &["cannot be used with"]);
    with(&["--", "true"]).fails(2, &["cannot be used with"]);
    said(&mut recording(directory.path(), ["profile", "--for", "1s", "--", "true"]))
        .fails(2, &["cannot be used with"]);
}
