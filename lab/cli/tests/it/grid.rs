//! `spinpark-lab bench grid`.

use std::fs;

use serde_json::Value;

use spinpark_fixtures::command::{interrupted_after, said};

use crate::fixtures::spinpark;

/// The heat maps and the table, without what is said about the machine.
fn maps(text: &str) -> Vec<&str> {
    text.lines()
        .skip_while(|line| !line.contains("rows:"))
        .take_while(|line| !line.starts_with("Noise"))
        .collect()
}

/// Tiny cells of every plane: everything is written, and shown again unchanged.
#[test]
fn every_plane_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let mut command =
        spinpark(["bench", "grid", "--quick", "--rounds", "1", "--duration", "1ms", "--threads", "2"]);
    command.args(["--locks", "glibc,parking_lot,spinpark,drop-in", "--work", "0", "--section", "0,30"]);
    command.arg("--json").arg(file("grid.json")).arg("--html").arg(file("grid.html"));
    let result = said(command.arg("--csv").arg(file("grid.csv")).arg("--record").arg(directory.path()));
    result.succeeds(&[
        "no intervals",
        "mutex, 2 threads: throughput ÷ the best peer",
        "2,2,16",
        "barrier, 2",
    ]);
    result.succeeds(&[
        "mutex-bursts",
        "geometric mean",
        "An iteration takes",
        "Noise: the throughput of glibc",
    ]);
    assert!(maps(&result.stdout).iter().all(|line| line.chars().count() <= 100), "{}", result.stdout);

    let document: Value = serde_json::from_str(&fs::read_to_string(file("grid.json")).unwrap()).unwrap();
    assert_eq!((&document["format"], &document["schema"]), (&"spinpark bench".into(), &3.into()));
    let cells = document["cells"].as_array().unwrap();
    let planes: Vec<&str> =
        document["planes"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(planes.len(), 19);
    let mut implementations = 0;
    for cell in cells {
        let plane = cell["place"]["plane"].as_str().unwrap();
        assert!(planes.contains(&plane));
        // Only locks of glibc's interface have a kind that prefers writers.
        let prefers_writers = plane.starts_with("rwlock-writers-first") || plane == "rwlock-one-writer";
        let count = if prefers_writers { 2 } else { 4 };
        assert_eq!(cell["implementations"].as_array().unwrap().len(), count, "{cell}");
        assert_eq!(cell["runs"].as_array().unwrap().len(), count + 1, "{cell}");
        implementations += count;
    }
    assert_eq!(document["results"].as_array().unwrap().len(), cells.len());
    assert_eq!(document["calibrations"].as_array().unwrap().len(), 1);
    let page = fs::read_to_string(file("grid.html")).unwrap();
    assert!(page.matches("<svg").count() >= 16 && page.contains("rwlock"));
    assert_eq!(fs::read_to_string(file("grid.csv")).unwrap().lines().count(), implementations + 1);
    let is_record = |name: &str| name.starts_with("20") && name.ends_with("-grid.json");
    let mut names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.any(|name| is_record(name.to_str().unwrap())));

    let again = said(spinpark(["bench", "show"]).arg(file("grid.json")));
    again.succeeds(&[]);
    assert_eq!(maps(&again.stdout), maps(&result.stdout));
    let other = said(
        spinpark(["bench", "show", "--figure", "cpu", "--against", "glibc", "--html"])
            .arg(file("cpu.html"))
            .arg(file("grid.json")),
    );
    other.succeeds(&["CPU time an operation ÷ glibc", "less is better"]);
    assert!(fs::read_to_string(file("cpu.html")).unwrap().contains("CPU time an operation ÷ glibc"));
    said(spinpark(["bench", "show", "--details"]).arg(file("grid.json"))).fails(2, &["--details"]);
}

#[test]
fn other_points_than_those_of_the_plane() {
    let mut command = spinpark(["bench", "grid", "--plane", "rwlock", "--threads", "2", "--section", "7"]);
    command.args(["--outside", "5,6", "--writes", "250", "--rounds", "6", "--duration", "1ms", "--no-waits"]);
    let result = said(command.args(["--locks", "glibc", "drop-in", "--json"]));
    result.succeeds(&[]);
    let document: Value = serde_json::from_str(&result.stdout).unwrap();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    assert_eq!(cells[0]["load"]["shared"]["writes_per_thousand"], 250);
    assert_eq!(
        (&cells[1]["load"]["shared"]["inside"], &cells[1]["place"]["column"]),
        (&7.into(), &"6".into())
    );
    assert!(cells[0]["runs"][0].get("waits").is_none());
    assert!(result.stderr.contains("250 ‰, 7"), "{}", result.stderr);
    let ratio = &document["results"][0]["ratios"]["drop-in"]["throughput"]["best"];
    assert!(ratio["ratio"].as_f64().unwrap() > 0.0 && ratio["interval"][1].as_f64().unwrap() > 0.0);
}

/// With too few rounds nothing is decided, and `--check` does not count that as success.
#[test]
fn bounds_and_check() {
    let mut command = spinpark(["bench", "grid", "--plane", "mutex", "--threads", "2", "--section", "0"]);
    command.args([
        "--outside",
        "0",
        "--rounds",
        "1",
        "--duration",
        "1ms",
        "--locks",
        "glibc,spinpark",
        "--bounds",
    ]);
    let result = said(&mut command);
    result.succeeds(&[
        " mutex ",
        "spinpark: throughput,",
        "every cell",
        "≥ 0.90",
        "undecided",
        "bounds: 0 hold, 0 missed",
    ]);
    assert_eq!(said(command.arg("--check")).code, Some(1));
}

/// Ctrl-C: what was measured so far is printed and written.
#[test]
fn interrupted() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = spinpark(["bench", "grid", "--plane", "mutex", "--threads", "2", "--section", "0"]);
    command.args([
        "--outside",
        "0",
        "--rounds",
        "1000",
        "--duration",
        "20ms",
        "--locks",
        "glibc,spinpark",
        "--json",
    ]);
    let (_, warnings) = interrupted_after("", command.arg(file.path()));
    assert!(warnings.contains("Interrupted"), "{warnings}");
    let document: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    assert_eq!(document["end"], "interrupted");
}

/// Each request that makes no sense has a message that says what to do.
#[test]
fn what_it_refuses() {
    let fails = |args: &[&str], words: &[&str]| said(spinpark(["bench", "grid"]).args(args)).fails(2, words);
    fails(&["--plane", "spinlock"], &["no plane `spinlock`", "there are: mutex, "]);
    fails(&["--plane", "mutex,mutex"], &["--plane names `mutex` twice"]);
    fails(&["--locks", "none"], &["no implementation `none`"]);
    fails(&["--locks", "glibc,std"], &["none of the implementations is ours", "spinpark or drop-in"]);
    fails(
        &["--plane", "rwlock", "--locks", "glibc-adaptive"],
        &["nothing is left to measure", "no read-write lock"],
    );
    fails(&["--plane", "queue", "--threads", "2"], &["--threads is for the planes mutex,", "leave it out"]);
    fails(&["--plane", "mutex", "--writes", "10"], &["--writes is for the planes rwlock"]);
    fails(&["--plane", "rwlock", "--writes", "2000"], &["--writes", "must be from 0 to 1000, as in 10"]);
    fails(&["--threads", "0"], &["--threads", "must be from 1 to 4096"]);
    fails(&["--figure", "speed"], &["no figure `speed`", "throughput, cpu"]);
    fails(&["--figure", "cpu", "--against", "ideal"], &["only throughput has an ideal"]);
    fails(
        &["--against", "usync", "--locks", "glibc,spinpark"],
        &["--against usync", "not measured", "--locks"],
    );
    fails(&["--against", "none"], &["no implementation `none`"]);
    fails(&["--no-waits", "--figure", "longest-wait"], &["--no-waits"]);
    fails(&["--no-waits", "--bounds"], &["--bounds", "--no-waits"]);
    fails(&["--html", "/no/such/file.html"], &["cannot write /no/such/file.html"]);
    fails(&["--check"], &["--bounds"]);
}

/// Options of grids are for files of grids.
#[test]
fn show_refuses_what_another_file_does_not_have() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), r#"{"format":"spinpark compare","schema":1}"#).unwrap();
    said(spinpark(["bench", "show", "--figure", "cpu"]).arg(file.path()))
        .fails(2, &["--figure", "`bench grid`"]);
}
