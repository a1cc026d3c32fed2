//! `spinpark gate`: exit statuses and documents. Programs print prepared numbers, so that no verdict depends on
//! the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use spinpark_fixtures::command::{Said, said, waits};

use crate::fixtures::spinpark;
use crate::profile::recording;

/// A shell script that prints one of `numbers` after the other, run by run, and begins again.
fn prints(directory: &Path, name: &str, numbers: &[f64]) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;

    let path = directory.join(name);
    let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
    let text = format!(
        "#!/bin/sh\nset -- {}\ncount=$(cat '{name}.runs' 2>/dev/null || echo 0)\necho $((count + 1)) >'{name}.runs'\n\
         shift $((count % $#))\necho \"score: $1\"\n",
        numbers.join(" ")
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn gate(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = spinpark(["gate"]);
    command.args(arguments).current_dir(directory).env_remove("GITHUB_ACTIONS");
    command
}

const SCORE: [&str; 5] = ["--rounds", "8", "--metric-from-output", "score: ([0-9.]+)", "--higher-is-better"];

/// Compares the scripts `old` and `new` of the directory.
fn compare(directory: &Path, options: &[&str]) -> Said {
    let all =
        [&["compare", "--seed", "1", "--against", "./old"][..], &SCORE, options, &["--", "./new"]].concat();
    said(&mut gate(directory, &all))
}

/// Checks the exit code, and that standard output begins with `words`.
#[track_caller]
fn exits(result: &Said, code: i32, words: &str) {
    assert_eq!(result.code, Some(code), "{result:#?}");
    let said = result.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.starts_with(words), "not `{words}` first in: {}", result.stdout);
}

#[test]
fn the_same_program_passes_and_a_worse_one_fails() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    prints(path, "old", &[1000.0]);
    prints(path, "new", &[1000.0]);
    let same = compare(path, &[]);
    exits(
        &same,
        0,
        "`after` is not worse than `before`: program's number 0.0 % [0.0 %, 0.0 %], noise ±0.0 %, 8 rounds. The gate passes.",
    );
    assert!(same.stdout.contains("wall time") && same.stderr.contains("Comparing two commands"), "{same:#?}");
    prints(path, "new", &[800.0]);
    let worse = compare(path, &[]);
    exits(&worse, 1, "`after` is worse than `before`: program's number -20.0 % [-20.0 %, -20.0 %]");
    exits(&compare(path, &["--at-most", "25%"]), 0, "`after` is worse than `before` by less than 25.0 %");
    exits(&compare(path, &["--at-most", "15%"]), 1, "`after` is worse than `before`");
    prints(path, "new", &[1200.0]);
    exits(&compare(path, &[]), 0, "`after` is better than `before`");
}

/// Numbers that scatter like noise are never red, except on request.
#[test]
fn undecided_has_an_exit_status_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    prints(path, "old", &[1000.0, 1300.0, 800.0, 1100.0, 700.0]);
    prints(path, "new", &[1000.0, 700.0, 1200.0]);
    let result = compare(path, &[]);
    exits(&result, 3, "Undecided whether `after` is worse than `before`");
    assert!(
        result.stdout.contains("That is no verdict.") && result.stdout.contains("a longer or steadier load"),
        "{result:#?}"
    );
    exits(&compare(path, &["--strict"]), 1, "Undecided whether");
    exits(
        &compare(path, &["--at-most", "99%"]),
        0,
        "`after` is worse than `before` by less than 99.0 %, if at all",
    );
}

#[test]
fn documents_for_build_servers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    prints(path, "old", &[1000.0]);
    prints(path, "new", &[800.0]);
    fs::write(path.join("summary.md"), "of another step\n").unwrap();
    let files = ["--json", "gate.json", "--markdown", "summary.md", "--junit", "gate.xml"];
    let all = [&["compare", "--against", "./old"][..], &SCORE, &files, &["--", "./new", "<&\"'>"]].concat();
    let result = said(gate(path, &all).env("GITHUB_ACTIONS", "true"));
    exits(&result, 1, "`after` is worse than `before`");
    let annotation =
        result.stdout.lines().find(|line| line.starts_with("::error title=spinpark gate compare"));
    assert!(annotation.is_some_and(|line| line.contains("-20.0 %25 ")), "{result:#?}");

    let document: Value = serde_json::from_str(&fs::read_to_string(path.join("gate.json")).unwrap()).unwrap();
    assert_eq!(document["format"], "spinpark gate");
    assert_eq!(document["version"], 1);
    assert_eq!((&document["verdict"], &document["exit_status"]), (&"failed".into(), &1.into()));
    assert!((document["figure"]["value"].as_f64().unwrap() - 0.8).abs() < 1e-12, "{document}");
    assert_eq!(document["measurement"]["format"], "spinpark compare");
    assert_eq!(document["measurement"]["runs"].as_array().unwrap().len(), 24);

    let summary = fs::read_to_string(path.join("summary.md")).unwrap();
    assert!(summary.starts_with("of another step\n### ❌ spinpark gate compare: failed\n"), "{summary}");
    assert!(summary.contains("| 0.8000 | [0.8000, 0.8000] | ±0.0 % | – |"), "{summary}");

    let text = fs::read_to_string(path.join("gate.xml")).unwrap();
    let report = roxmltree::Document::parse(&text).unwrap();
    let case = report.descendants().find(|node| node.has_tag_name("testcase")).unwrap();
    assert!(case.attribute("name").unwrap().contains("<&\""), "{text}");
    assert_eq!(report.root_element().attribute("failures"), Some("1"));
    assert!(case.children().any(|node| node.has_tag_name("failure")), "{text}");

    prints(path, "new", &[1000.0]);
    let result = said(&mut gate(path, &all));
    exits(&result, 0, "`after` is not worse");
    assert!(!result.stdout.contains("::"), "annotations are for GitHub alone: {result:#?}");
    assert_eq!(fs::read_to_string(path.join("summary.md")).unwrap().matches("### ").count(), 2);
}

#[test]
fn one_document_takes_standard_output() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    prints(path, "old", &[1000.0]);
    prints(path, "new", &[1000.0]);
    let result = compare(path, &["--json"]);
    result.succeeds(&[]);
    assert!(serde_json::from_str::<Value>(&result.stdout).is_ok(), "{result:#?}");
    assert!(result.stderr.contains("The gate passes."), "{result:#?}");
    assert!(compare(path, &["--markdown"]).stdout.starts_with("### ✅ "), "{result:#?}");
    compare(path, &["--json", "--markdown"]).fails(2, &["would write to standard output", "Name a file"]);
}

/// What cannot be written is an error, but the verdict is said, and the other files are written.
#[test]
fn a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    prints(path, "old", &[1000.0]);
    prints(path, "new", &[1000.0]);
    let result = compare(path, &["--json", "/dev/full", "--junit", "gate.xml"]);
    result.fails(2, &["cannot write /dev/full", "No space left"]);
    assert!(result.stdout.contains("The gate passes."), "{result:#?}");
    assert!(path.join("gate.xml").exists());
    compare(path, &["--markdown", "/dev/full"]).fails(2, &["cannot write /dev/full"]);
}

#[test]
fn requests_that_cannot_be_judged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    prints(path, "old", &[1000.0]);
    prints(path, "new", &[1000.0]);
    compare(path, &["--at-most", "5"]).fails(2, &["write a percentage, as in 5%"]);
    compare(path, &["--markdown", "no/such/directory/summary.md"])
        .fails(2, &["cannot write no/such/directory"]);
    said(&mut gate(path, &["compare", "--against", "./none", "--", "./new"]))
        .fails(2, &["--against", "./none"]);
    said(&mut gate(path, &["compare", "--", "./new"])).fails(2, &["--against"]);
    let failing = ["compare", "--against", "./old", "--rounds", "6", "--", "sh", "-c", "exit 3"];
    said(&mut gate(path, &failing)).fails(1, &["exited with status 3"]);
}

/// A program that prints `one` as its throughput with one thread, and `two` with two.
fn scales(directory: &Path, one: u32, two: u32) {
    use std::os::unix::fs::PermissionsExt;

    let path = directory.join("scales");
    let text =
        format!("#!/bin/sh\ncase $1 in -t1) echo score: {one};; -t2) echo score: {two};; *) exit 4;; esac\n");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn scaling(directory: &Path, options: &[&str], arguments: &[&str]) -> Said {
    let all =
        [&["scaling", "--at-least", "1.7"][..], &SCORE, options, &["--", "./scales"], arguments].concat();
    said(&mut gate(directory, &all))
}

#[test]
fn a_program_that_serialises_fails() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("skipped a_program_that_serialises_fails: one CPU");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let run = |options: &[&str]| scaling(path, &[&["--threads", "1,2"], options].concat(), &["-t{threads}"]);
    scales(path, 1000, 1900);
    let result = run(&["--unit", "ops/s", "--json", "gate.json", "--junit", "gate.xml"]);
    exits(
        &result,
        0,
        "2 threads are at least 1.7 times as fast as 1 thread: speed-up 1.90 [1.90, 1.90] (ops/s), noise ±0.0 %, 8 rounds. The gate passes.",
    );
    let document: Value = serde_json::from_str(&fs::read_to_string(path.join("gate.json")).unwrap()).unwrap();
    assert_eq!((&document["gate"], &document["figure"]["bound"]), (&"scaling".into(), &1.7.into()));
    let runs = document["measurement"]["runs"].as_array().unwrap();
    let with = |threads: u64| runs.iter().filter(|run| run["threads"] == threads).count();
    assert_eq!((with(1), with(2)), (16, 8));
    roxmltree::Document::parse(&fs::read_to_string(path.join("gate.xml")).unwrap()).unwrap();

    scales(path, 1000, 1020);
    exits(&run(&[]), 1, "2 threads are not 1.7 times as fast as 1 thread: speed-up 1.02");
    scales(path, 0, 1);
    run(&[]).fails(1, &["the program, configuration `1 thread`", "only numbers above zero"]);
}

#[test]
fn numbers_of_threads_that_mean_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    scales(path, 1, 2);
    scaling(path, &["--threads", "1,4096"], &["-t{threads}"]).fails(2, &["more than the", "Ask for at most"]);
    scaling(path, &["--threads", "1"], &["-t{threads}"]).fails(2, &["--threads 1,2"]);
    scaling(path, &["--threads", "2,1"], &["-t{threads}"]).fails(2, &["the smallest first"]);
    scaling(path, &["--threads", "0,1"], &["-t{threads}"]).fails(2, &["from 1 to 4096"]);
    if std::thread::available_parallelism().unwrap().get() >= 2 {
        scaling(path, &["--threads", "1,2"], &["-t2"]).fails(2, &["have no {threads}"]);
        scaling(path, &["--threads", "1,2"], &["-x{threads}"])
            .fails(1, &["configuration `1 thread`", "exited with status 4"]);
    }
}

/// `gate waits` with the recorder, in `directory`.
fn waits_gate(directory: &Path, arguments: &[&str]) -> Said {
    let mut command = recording(directory, ["gate", "waits"]);
    said(command.args(arguments).env_remove("GITHUB_ACTIONS"))
}

/// The program `waits store`: one thread holds `cache_lock` while the other one waits for it.
#[test]
fn the_share_of_threads_time_that_is_waited() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let program = waits().display().to_string();
    let files = ["--json", "gate.json", "--junit", "gate.xml", "--output", "one"];
    let all = [&["--at-most", "0%", "--lock", "cache_lock"][..], &files, &["--", &program, "store"]].concat();
    let result = waits_gate(path, &all);
    assert_eq!(result.code, Some(1), "{result:#?}");
    assert!(
        result.stdout.contains("Threads waited more than 0.0 % of their time for `cache_lock`: "),
        "{result:#?}"
    );
    assert!(
        result.stdout.contains("The gate fails.") && path.join("one/profile.json").exists(),
        "{result:#?}"
    );
    let document: Value = serde_json::from_str(&fs::read_to_string(path.join("gate.json")).unwrap()).unwrap();
    assert_eq!((&document["gate"], &document["verdict"]), (&"waits".into(), &"failed".into()));
    let share = document["figure"]["value"].as_f64().unwrap();
    assert!(share > 0.0 && share <= 1.0, "{document}");
    assert_eq!(document["measurement"]["processes"].as_array().unwrap().len(), 1);
    roxmltree::Document::parse(&fs::read_to_string(path.join("gate.xml")).unwrap()).unwrap();

    for recording in ["one", "one/profile.json"] {
        exits(
            &waits_gate(path, &["--at-most", "100%", recording]),
            0,
            "Threads waited at most 100 % of their time for locks",
        );
        exits(
            &waits_gate(path, &["--at-most", "0%", recording]),
            1,
            "Threads waited more than 0.0 % of their time for locks",
        );
    }
    exits(
        &waits_gate(path, &["--at-most", "0.0003%", "one"]),
        1,
        "Threads waited more than 0.0003 % of their time for locks",
    );
    let misspelt = waits_gate(path, &["--at-most", "5%", "--lock", "cash_lock", "one"]);
    exits(&misspelt, 3, "Undecided whether threads waited more than 5.0 % of their time for `cash_lock`");
    assert!(misspelt.stdout.contains("Is it `cache_lock`?"), "{misspelt:#?}");
    exits(&waits_gate(path, &["--at-most", "5%", "--lock", "cash_lock", "--strict", "one"]), 1, "Undecided");

    // Records that were lost may have been waits.
    let text = fs::read_to_string(path.join("one/profile.json")).unwrap();
    let mut profile: Value = serde_json::from_str(&text).unwrap();
    profile[0]["dropped"] = 3.into();
    fs::write(path.join("lossy.json"), profile.to_string()).unwrap();
    let lossy = waits_gate(path, &["--at-most", "100%", "lossy.json"]);
    exits(&lossy, 3, "Undecided whether threads waited more than 100 % of their time for locks");
    assert!(
        lossy.stdout.contains("3 records did not fit") && lossy.stdout.contains("not known]"),
        "{lossy:#?}"
    );
}

/// What `report` adds up is judged together.
#[test]
fn waits_of_several_recordings() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for host in ["fleet/web-1", "fleet/web-2"] {
        fs::create_dir_all(path.join(host)).unwrap();
        let mut command = recording(path, ["profile", "--output", host, "--"]);
        assert_eq!(said(command.arg(waits()).arg("store")).code, Some(0));
    }
    for recordings in [&["fleet"][..], &["fleet/web-1", "fleet/web-2"]] {
        let all = [&["--at-most", "100%", "--json", "gate.json"][..], recordings].concat();
        exits(&waits_gate(path, &all), 0, "Threads waited at most 100 % of their time for locks");
        let document: Value =
            serde_json::from_str(&fs::read_to_string(path.join("gate.json")).unwrap()).unwrap();
        assert_eq!(document["measurement"]["processes"].as_array().unwrap().len(), 2, "{document}");
        assert_eq!(document["measurement"]["recordings"].as_array().unwrap().len(), recordings.len());
    }
    // One that cannot be read may have had waits.
    fs::create_dir(path.join("fleet/web-3")).unwrap();
    fs::write(path.join("fleet/web-3/profile.json"), "[").unwrap();
    let broken = waits_gate(path, &["--at-most", "100%", "fleet"]);
    exits(&broken, 3, "Undecided whether threads waited more than 100 % of their time for locks");
    assert!(broken.stdout.contains("web-3"), "{broken:#?}");
    waits_gate(path, &["--at-most", "100%", "fleet/web-3"]).fails(2, &["web-3"]);
}

#[test]
fn waits_that_cannot_be_judged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let program = waits().display().to_string();
    waits_gate(path, &["--at-most", "5%"]).fails(2, &["RECORDING"]);
    waits_gate(path, &["--at-most", "5%", "none"]).fails(2, &["none"]);
    waits_gate(path, &["none"]).fails(2, &["--at-most"]);
    waits_gate(path, &["--at-most", "5%", "one", "--", &program]).fails(2, &["cannot be used with"]);
    let failed = waits_gate(path, &["--at-most", "100%", "--", &program, "store", "3"]);
    failed.fails(1, &["exited with status 3", "No verdict: the program failed."]);
    assert!(!failed.stdout.contains("gate"), "{failed:#?}");
}

#[test]
fn a_baseline_that_is_checked_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let program = waits().display().to_string();
    let all = ["--at-most", "100%", "--json", "waits.json", "--output", "one", "--", &program, "store"];
    let first = waits_gate(path, &all);
    assert!(first.code == Some(0) && first.stdout.contains("Threads waited at most 100 %"), "{first:#?}");
    let same = waits_gate(path, &["--baseline", "waits.json", "one"]);
    exits(&same, 0, "Threads waited at most");
    assert!(same.stdout.contains("The bound is what waits.json has."), "{same:#?}");
    // As if it had been less then.
    let text = fs::read_to_string(path.join("waits.json")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let share = document["figure"]["low"].as_f64().unwrap();
    document["figure"]["high"] = (share / 2.0).into();
    fs::write(path.join("less.json"), document.to_string()).unwrap();
    exits(&waits_gate(path, &["--baseline", "less.json", "one"]), 1, "Threads waited more than");
    let worse = waits_gate(path, &["--baseline", "less.json", "--worse-by", "100%", "one"]);
    exits(&worse, 0, "Threads waited at most 100 %");
    document["figure"]["high"] = Value::Null;
    fs::write(path.join("unknown.json"), document.to_string()).unwrap();

    let refused: [(&[&str], &str); 6] = [
        (&["--baseline", "waits.json", "--lock", "cache_lock"], "is a baseline for another figure"),
        (&["--baseline", "unknown.json"], "has no bound"),
        (&["--baseline", "none.json"], "a first run writes it: --json none.json"),
        (&["--baseline", "one/profile.json"], "is no result of `spinpark gate`"),
        (&["--baseline", "waits.json", "--at-most", "5%"], "cannot be used with"),
        (&["--at-most", "5%", "--worse-by", "5%"], "--baseline"),
    ];
    for (options, words) in refused {
        waits_gate(path, &[options, &["one"]].concat()).fails(2, &[words]);
    }
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    scales(path, 1000, 1900);
    let of_scaling = |options: &[&str]| {
        let all = [&["scaling", "--threads", "1,2"][..], &SCORE, options, &["--", "./scales", "-t{threads}"]];
        said(&mut gate(path, &all.concat()))
    };
    exits(
        &of_scaling(&["--at-least", "1.5", "--json", "scaling.json"]),
        0,
        "2 threads are at least 1.5 times",
    );
    exits(&of_scaling(&["--baseline", "scaling.json"]), 0, "2 threads are at least 1.9 times");
    scales(path, 1000, 1800);
    exits(&of_scaling(&["--baseline", "scaling.json"]), 1, "2 threads are not 1.9 times");
    exits(
        &of_scaling(&["--baseline", "scaling.json", "--worse-by", "10%"]),
        0,
        "2 threads are at least 1.71 times",
    );
    of_scaling(&["--baseline", "waits.json"]).fails(2, &["is a baseline for another figure"]);
}

/// A step of action.yml, as GitHub runs it: what it printed, and its outputs.
fn action(directory: &Path, step: &str, variables: &[(&str, &str)]) -> (Said, String) {
    let binary = assert_cmd::cargo::cargo_bin!("spinpark").parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/action.sh");
    let mut command = Command::new("bash");
    command.arg(script).arg(step).current_dir(directory).env("PATH", path).env("GITHUB_ACTIONS", "true");
    command.env("GITHUB_STEP_SUMMARY", directory.join("summary.md"));
    command.env("GITHUB_OUTPUT", directory.join("output")).env("GITHUB_PATH", directory.join("path"));
    let none =
        [("GATE_OPTIONS", ""), ("GATE_JUNIT", ""), ("GATE_JSON", ""), ("SPINPARK_VERSION", "installed")];
    let result = said(command.envs(none).envs(variables.iter().copied()));
    let output = fs::read_to_string(directory.join("output")).unwrap_or_default();
    let _ = fs::remove_file(directory.join("output"));
    (result, output)
}

#[test]
fn the_github_action() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    prints(path, "old", &[1000.0]);
    prints(path, "new build", &[800.0]);
    let (installed, _) = action(path, "install", &[]);
    installed.succeeds(&[]);
    let metric = "--rounds 8 --metric-from-output 'score: ([0-9.]+)' --higher-is-better";
    let inputs = [("GATE_AGAINST", "./old 1"), ("GATE_COMMAND", "'./new build' $(touch injected)")];
    let run = |options: &str, junit: &str| {
        action(path, "gate", &[&inputs[..], &[("GATE_OPTIONS", options), ("GATE_JUNIT", junit)]].concat())
    };
    let (result, output) = run(metric, "gate.xml");
    exits(&result, 1, "`after` is worse than `before`");
    assert!(result.stdout.contains("::error title=spinpark gate compare"), "{result:#?}");
    assert_eq!(output, "verdict=failed\n");
    assert!(!path.join("injected").exists() && path.join("gate.xml").exists());
    assert!(fs::read_to_string(path.join("summary.md")).unwrap().starts_with("### ❌ "));

    let (result, output) = run(&format!("{metric} --at-most 25%"), "");
    exits(&result, 0, "`after` is worse than `before` by less than 25.0 %");
    assert_eq!(output, "verdict=passed\n");

    // Undecided is a warning.
    prints(path, "new build", &[1000.0, 500.0, 2000.0]);
    let (result, output) = run(&format!("{metric} --seed 1"), "");
    exits(&result, 0, "Undecided");
    assert!(result.stdout.contains("::warning title=") && output == "verdict=undecided\n", "{result:#?}");
    let (result, output) = run("--no-such-option", "");
    assert_eq!((result.code, output.as_str()), (Some(2), ""), "{result:#?}");
}

/// Each variable of the script is set by action.yml, from an input that exists.
#[test]
fn the_action_has_the_inputs_that_its_script_reads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let definition = fs::read_to_string(root.join("action.yml")).unwrap();
    let script = fs::read_to_string(root.join("ci/action.sh")).unwrap();
    for input in ["against", "command", "options", "junit", "json", "version"] {
        assert!(definition.contains(&format!("\n  {input}:\n    description: ")), "{input}");
        let prefix = if input == "version" { "SPINPARK" } else { "GATE" };
        let variable = format!("{prefix}_{}", input.to_uppercase());
        assert!(definition.contains(&format!("{variable}: ${{{{ inputs.{input} }}}}")), "{variable}");
        assert!(script.contains(&variable), "{variable}");
    }
}
