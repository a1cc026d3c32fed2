//! `spinpark tune`: what it refuses, what it writes, and how it says that there is nothing to write. What it finds depends
//! on the machine, but where the effect is tenfold: other tests of that are `#[ignore]`d.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use spinpark_fixtures::command::{Said, lines_fit, said};
use spinpark_fixtures::{compile_c, dropin, profiler};
use tempfile::TempDir;

use crate::fixtures::spinpark;

fn tune(directory: &Path) -> Command {
    let mut command = spinpark(["tune", "--rounds", "6"]);
    command.env("SPINPARK_PRELOAD", dropin()).env("SPINPARK_PROFILER", profiler()).current_dir(directory);
    command
}

/// The whole way, with few and short runs: whatever it finds, it says which, and a file is there if it says so.
#[test]
fn tunes_a_lock_and_says_what_it_found() {
    let directory = TempDir::new().unwrap();
    let result = said(
        tune(directory.path())
            .args(["--lock", "shared", "--json", "all.json", "--"])
            .arg(compile_c("parks.c", &[]))
            .arg("40"),
    );
    assert_eq!(result.code, Some(0), "{:?}", result.stderr);
    lines_fit(result.stdout.as_str(), 100);
    for word in ["lock", "policy", "95 % interval", "eager", "back-off", "park", "in-order"] {
        assert!(result.stdout.contains(word), "{word}: {}", result.stdout.as_str());
    }
    let file = directory.path().join("spinpark-policy.toml");
    let nothing = "No policy is better than the default beyond the noise: nothing is written.";
    assert_eq!(result.stdout.contains(nothing), !file.exists());
    assert_eq!(
        result.stdout.contains("Written to spinpark-policy.toml. Use it: spinpark run --policy"),
        file.exists()
    );
    let json = fs::read_to_string(directory.path().join("all.json")).unwrap();
    for field in [
        r#""format": "spinpark tune""#,
        r#""format_version": 1"#,
        r#""end": "complete""#,
        r#""name": "shared""#,
    ] {
        assert!(json.contains(field), "{field}: {json}");
    }
}

#[test]
fn what_cannot_be_tuned_is_said() {
    let directory = TempDir::new().unwrap();
    let program = compile_c("parks.c", &[]);
    let mut wrong = tune(directory.path());
    said(wrong.args(["--lock", "nothing", "--"]).arg(&program).arg("40"))
        .fails(2, &["--lock `nothing`: threads waited for no such lock"]);
    fs::write(directory.path().join("precious"), "not ours").unwrap();
    said(tune(directory.path()).args(["--output", "precious", "--"]).arg(&program))
        .fails(2, &["is there, and is no file of policies", "Give --output another name"]);
    assert_eq!(fs::read_to_string(directory.path().join("precious")).unwrap(), "not ours");
    said(spinpark(["tune", "--rounds", "3", "--", "true"]).current_dir(directory.path()))
        .fails(2, &["--rounds 3 is too few"]);
}

/// Tunes `lock` of a program of `tuned.c`, in the directory; what the program prints is the number.
fn tune_by_wait(directory: &Path, program: &Path, lock: &str, policy: &str, options: &[&str]) -> Said {
    let mut command = tune(directory);
    command.args(["--metric-from-output", WAIT, "--lock", lock]).args(options).arg("--").arg(program);
    said(command.args([policy, "100"]))
}

const WAIT: &str = "median wait: ([0-9]+) ns";

/// The program's number with the file of policies, and without one.
fn waits(directory: &Path, program: &Path, policy: &str, drop_in: &Path) -> (f64, f64) {
    let number = |with: &[&str]| {
        let mut command = spinpark(["run"]);
        command.args(with).arg("--").arg(program).args([policy, "100"]);
        let result = said(command.current_dir(directory).env("SPINPARK_PRELOAD", drop_in));
        assert_eq!((result.code, result.stderr.as_str()), (Some(0), ""));
        let number = result.stdout.strip_prefix("median wait: ").and_then(|rest| rest.split(' ').next());
        number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{result:?}"))
    };
    (number(&["--policy", "spinpark-policy.toml"]), number(&[]))
}

/// A program whose writes must each revoke the slots of readers, which never pay: by how long its writes wait, `no-bias`
/// is best, more than tenfold. It is found, kept and used, by any build of the drop-in, but not for another build of the
/// program.
#[test]
fn a_lock_that_is_better_off_with_a_policy_gets_it() {
    let directory = TempDir::new().unwrap();
    let program = directory.path().join("tuned");
    fs::copy(compile_c("tuned.c", &[]), &program).unwrap();
    let (_, default) = {
        fs::write(
            directory.path().join("spinpark-policy.toml"),
            "format = \"spinpark-policy\"\nformat_version = 1\n",
        )
        .unwrap();
        waits(directory.path(), &program, "no-bias", dropin())
    };
    if default < 200.0 {
        eprintln!("skipped a_lock_that_is_better_off_with_a_policy_gets_it: readers use no slots here");
        return;
    }
    let result = tune_by_wait(directory.path(), &program, "table", "no-bias", &[]);
    result.succeeds(&["Better than the default: `no-bias` for table", "Written to spinpark-policy.toml"]);

    // A build of the drop-in: another file, elsewhere.
    let rebuilt = directory.path().join("libspinpark_preload.so");
    fs::copy(dropin(), &rebuilt).unwrap();
    fs::OpenOptions::new().append(true).open(&rebuilt).unwrap().write_all(b"rebuilt").unwrap();
    let (with, without) = waits(directory.path(), &program, "no-bias", &rebuilt);
    assert!(with * 3.0 < without, "{with} ns with the policy, {without} ns without");

    fs::copy(compile_c("tuned.c", &["-O1"]), &program).unwrap();
    let mut command = spinpark(["run", "--policy", "spinpark-policy.toml", "--"]);
    command.current_dir(directory.path()).env("SPINPARK_PRELOAD", dropin());
    let refused = said(command.arg(&program).args(["no-bias", "100"]));
    refused.fails(
        125,
        &["it is for another build of", "Run `spinpark tune` again: addresses change with each build"],
    );
    assert_eq!(refused.stdout, "");
}

/// A thread that comes back for a lock before a waiter wakes up: only in order is that one prompt. And a writer that
/// readers pass.
#[test]
#[ignore = "a measurement: threads must run when they wake up; on a busy machine, under nice -n -20"]
fn who_must_be_prompt_gets_a_policy() {
    for (policy, lock, options) in
        [("in-order", "shared", &[][..]), ("writers-first", "table", &["--writers-first"])]
    {
        let directory = TempDir::new().unwrap();
        let program = compile_c("tuned.c", &[]);
        let options = [&["--rounds", "10"], options].concat();
        let result = tune_by_wait(directory.path(), &program, lock, policy, &options);
        result.succeeds(&["Better than the default", &format!("`{policy}` for {lock}")]);
        let (with, without) = waits(directory.path(), &program, policy, dropin());
        assert!(with * 1.5 < without, "{policy}: {with} ns with it, {without} ns without");
    }
}

/// Long sections on two CPUs: whoever sleeps at once uses no more CPU time than the default, which learns that. A policy
/// that is kept must cost less; `eager` costs more.
#[test]
#[ignore = "a measurement: it needs two idle CPUs"]
fn threads_learn_to_sleep_for_long_sections() {
    let directory = TempDir::new().unwrap();
    let mut command = spinpark(["tune", "--rounds", "15", "--metric", "cpu", "--"]);
    command
        .env("SPINPARK_PRELOAD", dropin())
        .env("SPINPARK_PROFILER", profiler())
        .current_dir(directory.path());
    let result = said(command.arg(compile_c("parks.c", &[])));
    result.succeeds(&[]);
    assert!(!result.stdout.contains("`eager` for shared"), "{}", result.stdout.as_str());
}
