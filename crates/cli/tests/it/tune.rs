//! `spinpark tune`: what it refuses, what it writes, and how it says that there is nothing to write. What it finds depends
//! on the machine: the one test of that is `#[ignore]`d.

use std::fs;
use std::path::Path;
use std::process::Command;

use spinpark_fixtures::command::{lines_fit, said};
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

/// Long sections on two CPUs: to spin for them costs CPU time, and to sleep at once does not.
#[test]
#[ignore = "a measurement: it needs two idle CPUs"]
fn a_lock_with_long_sections_is_parked_for() {
    let directory = TempDir::new().unwrap();
    let mut command = spinpark(["tune", "--rounds", "15", "--metric", "cpu", "--"]);
    command
        .env("SPINPARK_PRELOAD", dropin())
        .env("SPINPARK_PROFILER", profiler())
        .current_dir(directory.path());
    let result = said(command.arg(compile_c("parks.c", &[])));
    result.succeeds(&["Better than the default", "`park` for shared"]);
    let file = fs::read_to_string(directory.path().join("spinpark-policy.toml")).unwrap();
    assert!(file.contains("policy = \"park\"") && file.contains("metric = \"CPU time\""), "{file}");
}
