//! `spinpark-lab documents delays`: requests, files and exit codes.

use std::fs;

use serde_json::Value;
use spinpark_fixtures::command::{lines_fit, said};

use crate::fixtures::spinpark;

#[test]
fn a_simulated_map_goes_to_all_files_and_can_be_shown_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let run = || {
        let mut command = spinpark(["documents", "delays", "--machine", "e4500-12", "--quick"]);
        command.args(["--place", "attempt,inside", "--duration", "2ms", "--details"]);
        command.args(["--json", &file("map.json"), "--csv", &file("map.csv"), "--plots", &file("plots")]);
        said(&mut command)
    };
    let one = run();
    one.succeeds(&[
        "e4500-12, 12 threads, 2 seeds",
        "A delay after each failed attempt",
        "profiled",
        "failed",
    ]);
    lines_fit(&one.stdout, 100);
    assert_eq!(one.stdout, run().stdout, "one seed is one run");
    let json: Value = serde_json::from_str(&fs::read_to_string(file("map.json")).unwrap()).unwrap();
    assert_eq!((&json["format"], &json["end"]), (&"spinpark documents delays".into(), &"complete".into()));
    assert_eq!(json["maps"][0]["rows"][0]["cells"].as_array().unwrap().len(), 2);
    assert!(fs::read_to_string(file("map.csv")).unwrap().lines().any(|line| line.contains(",attempt,8000,")));
    assert!(fs::read_to_string(file("plots/delays-inside.svg")).unwrap().starts_with("<svg"));
    let again = said(spinpark(["documents", "show", "--details"]).arg(file("map.json")));
    again.succeeds(&[]);
    assert_eq!(again.stdout.trim(), one.stdout.trim());
}

#[test]
fn this_machine_is_measured() {
    let mut command =
        spinpark(["documents", "delays", "--place", "inside", "--delay", "20us", "--between", "0"]);
    command.args(["--threads", "2", "--rounds", "6", "--duration", "1ms", "--seed", "1", "--json"]);
    let said = said(&mut command);
    said.succeeds(&[]);
    let json: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&json["machine"], &json["threads"], &json["seed"]), (&Value::Null, &2.into(), &1.into()));
    assert!(json["environment"]["cpus"].as_u64() > Some(0));
    assert!(json["ingredients"].as_array().is_some_and(|all| all.len() > 5));
}

#[test]
fn invalid_requests_say_what_to_do() {
    let refused = |args: &[&str], parts: &[&str]| {
        said(spinpark(["documents", "delays"]).args(args)).fails(2, parts);
    };
    refused(&["--place", "there"], &["a place is one of before, attempt"]);
    refused(&["--delay", "1us,1us"], &["--delay names `1.00 µs` twice"]);
    refused(&["--rounds", "3"], &["--rounds 3 is too few"]);
    refused(&["--machine", "e4500-12", "--seeds", "1"], &["--seeds"]);
    refused(&["--machine", "e4500-12", "--threads", "2"], &["cannot be used with"]);
    refused(&["--seeds", "3"], &["--machine"]);
    refused(&["--machine", "e4501-12"], &["e4500-12"]);
    refused(&["--between", "2s"], &["at most 1s"]);
    said(&mut spinpark(["bench", "locks", "--locks", "classic-mtx-delayed+attempt=6"]))
        .fails(2, &["classic-mtx-delayed+attempt=6us"]);
    said(&mut spinpark(["sim", "run", "--locks", "classic-mtx-delayed+attempt=6"]))
        .fails(2, &["classic-mtx-delayed+attempt=6us"]);
}
