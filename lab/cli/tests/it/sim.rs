//! `spinpark-lab sim`: requests, files and exit codes. Few figures: they change when the engine is mended.

use std::fs;
use std::process::Command;

use serde_json::Value;

use spinpark_fixtures::command::{Said, interrupted_after, lines_fit, said};

use crate::fixtures::spinpark;

/// A short run, on the smallest machine on which something happens.
fn short(args: &[&str]) -> Command {
    let mut command = spinpark(["sim", "run", "--machine", "plain-4", "--duration", "300us"]);
    command.args(args);
    command
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn is_plain_and_fits(said: &Said) {
    lines_fit(&said.stdout, 100);
    assert!(!said.stdout.has_escapes(), "{}", said.stdout);
}

#[test]
fn a_run_twice_is_the_same_bytes() {
    let run = || said(&mut short(&["--locks", "classic-mutex-2003", "--threads", "9", "--seeds", "3"]));
    let (one, another) = (run(), run());
    one.succeeds(&[
        "classic-mutex-2003 on plain-4 (4 CPUs), hot-lock × 9 threads: 3 runs of 300 µs",
        "throughput",
        "Jain index",
        "waiting for a CPU",
        "cache lines moved",
        "most acquisitions by others",
        "cycles",
    ]);
    is_plain_and_fits(&one);
    assert_eq!(one.stdout, another.stdout);
    assert!(one.stderr.contains("events") && !one.stdout.contains("a second"), "{one:?}");
    let run = || said(&mut short(&["--seeds", "2", "--json"])).stdout;
    assert_eq!(run(), run());
}

#[test]
fn the_answer_comes_first() {
    let first = |args: &[&str]| {
        let mut command =
            spinpark(["sim", "run", "--machine", "plain-4", "--duration", "3ms", "--workload", "long"]);
        let said = said(command.args(args));
        said.stdout.lines().nth(2).unwrap_or_default().to_owned()
    };
    let held = first(&["--locks", "classic-mutex-fixed"]);
    assert!(held.contains("The sections under `lock` limit"), "{held}");
    let work = first(&["--threads", "1"]);
    assert!(work.contains("Nothing limits but the work"), "{work}");
}

#[test]
fn json_has_each_run() {
    let result = said(&mut short(&["--seed", "5", "--seeds", "2", "--json"]));
    let document = json(&result.stdout);
    assert_eq!((&document["format"], &document["schema"]), (&"spinpark sim run".into(), &2.into()));
    assert_eq!((&document["end"], &document["summary"]["seeds"]), (&"complete".into(), &vec![5, 6].into()));
    assert!(document["sentence"].as_str().unwrap().ends_with('.'));
    let run = &document["runs"][1];
    assert_eq!((&run["seed"], run["operations"].as_array().unwrap().len()), (&6.into(), 4));
    assert!(run["outcome"]["counts"]["locks"]["spin_acquired"].is_u64());
    assert!(result.stderr.contains("throughput"), "the table goes there: {}", result.stderr);

    let file = tempfile::NamedTempFile::new().unwrap();
    said(short(&["--seeds", "1", "--json"]).arg(file.path())).succeeds(&["throughput"]);
    assert_eq!(json(&fs::read_to_string(file.path()).unwrap())["end"], "complete");
}

#[test]
fn a_timeline() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.json");
    let result = said(short(&["--seeds", "2", "--threads", "6", "--trace"]).arg(&path));
    result.succeeds(&["throughput"]);
    assert!(result.stderr.contains("ui.perfetto.dev"), "{}", result.stderr);
    let trace = json(&fs::read_to_string(path).unwrap());
    let names: Vec<&str> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    assert!(names.contains(&"CPU 3") && names.contains(&"thread 5"), "{names:?}");
}

#[test]
fn a_sweep_with_all_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut command =
        spinpark(["sim", "sweep", "--machine", "plain-2,plain-4", "--duration", "200us", "--seeds", "2"]);
    command.args(["--locks", "spinpark,classic-mutex-nospin", "--threads", "1,4", "--details"]);
    command.args(["--html", "s.html", "--csv", "s.csv", "--json", "s.json", "--plots", "plots"]);
    let result = said(command.current_dir(directory.path()));
    result.succeeds(&[
        "4 cells × 2 locks × 2 seeds: 16 runs of 200 µs",
        "hot-lock on plain-2: operations/s by threads",
        "hot-lock on plain-4: longest wait by threads",
        "4*",
        "more threads than CPUs",
    ]);
    is_plain_and_fits(&result);
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("s.csv").lines().count(), 1 + 4 * 2);
    assert!(
        read("s.html").contains("<svg")
            && read("plots/hot-lock-plain-4.svg").contains("classic-mutex-nospin")
    );
    let document = json(&read("s.json"));
    assert_eq!((&document["format"], &document["end"]), (&"spinpark sim sweep".into(), &"complete".into()));
    assert_eq!(document["cells"].as_array().unwrap().len(), 4);
    assert!(document["cells"][3]["locks"][1]["of_best"].as_f64().unwrap() <= 1.0);
}

#[test]
fn a_sweep_takes_the_locks_that_fit() {
    let mut command =
        spinpark(["sim", "sweep", "--machine", "plain-2", "--duration", "50us", "--seeds", "1"]);
    let result = said(command.args(["--workload", "mixed-10", "--threads", "2"]));
    result.succeeds(&["spinpark", "classic-rwsem-full"]);
    assert!(!result.stdout.contains("classic-tas"), "{}", result.stdout);
    let mut command = spinpark(["sim", "sweep", "--machine", "plain-2", "--threads", "2", "--json"]);
    let none = said(command.args(["--workload", "mixed-10,condvar-ping-pong", "--locks", "classic-tas"]));
    none.fails(2, &["classic-tas is no read-write lock, which the workload mixed-10 needs"]);
}

#[test]
fn what_there_is() {
    let list = said(&mut spinpark(["sim", "list"]));
    list.succeeds(&[
        "westmere-ex-40",
        "plain-N",
        "classic-rwsem-full",
        "read-write lock",
        "condvar-ping-pong",
    ]);
    is_plain_and_fits(&list);
    let machine = said(&mut spinpark(["sim", "machine", "westmere-ex-40"]));
    machine.succeeds(&["40 CPUs", "memory.near", "source"]);
    is_plain_and_fits(&machine);
    let described = said(&mut spinpark(["sim", "machine", "core2-4", "--json"]));
    assert_eq!(json(&described.stdout)["cpus"], 4);
}

/// On a terminal of 80 columns, or where `COLUMNS` says so, nothing is longer.
#[test]
fn lines_of_80_columns() {
    let narrow = |args: &[&str]| {
        let said = said(spinpark(["sim"]).args(args).env("COLUMNS", "80"));
        for line in said.stdout.lines().chain(said.stderr.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        said
    };
    narrow(&["list"]).succeeds(&["westmere-ex-40", "NAME:N"]);
    narrow(&["machine", "this-2"]).succeeds(&["memory.near: ", "source: "]);
    let short = ["--machine", "westmere-12", "--duration", "300us", "--seeds", "2"];
    let run = ["run", "--locks", "classic-rwsem-full", "--workload", "mmap-touched", "--threads", "12"];
    narrow(&[&run[..], &short].concat()).succeeds(&["mmap_sem (read)", "hold: mean"]);
    let sweep = ["sweep", "--locks", "spinpark,classic-mutex-nospin", "--details"];
    narrow(&[&sweep[..], &short].concat()).succeeds(&["more threads than CPUs"]);
}

/// Everything that is simulated can be shown.
#[test]
fn machines_are_shown_as_they_are_simulated() {
    let shown = |name: &str| said(&mut spinpark(["sim", "machine", name]));
    shown("plain-8").succeeds(&[
        "plain-8: one socket, round figures",
        "8 CPUs: 1 socket × 8 cores",
        "memory.near",
    ]);
    shown("big-512:64").succeeds(&["big-512:64: ", "64 CPUs: ", "of which the first 64 CPUs are used"]);
    for (name, words) in [
        ("plain-x", "write plain-N, with a number of cores from 1 to 1024, as in plain-8"),
        ("plain-5000", "from 1 to 1024"),
        ("big-512:513", "512 CPUs at most: big-512:512"),
        ("./none.toml", "or a machine by its name: this-2, up, core2-4"),
    ] {
        shown(name).fails(2, &[words]);
        said(&mut spinpark(["sim", "run", "--machine", name])).fails(2, &[words]);
    }
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    let text = "name = \"mine\"\nabout = \"mine\"\nbased_on = \"this-2\"\n[memory]\ndram = { ms = 3, source = \"s\" }\n";
    fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    shown(path).fails(2, &[path, "`memory.dram` is 3 ms, but can only be from 0 ns to 1 ms"]);
}

#[test]
fn what_cannot_be_done() {
    let run = |args: &[&str], words: &[&str]| said(spinpark(["sim", "run"]).args(args)).fails(2, words);
    run(&["--machine", "this-3"], &["no machine `this-3`", "did you mean `this-2`"]);
    run(&["--machine", "core2-4:5"], &["4 CPUs at most", "core2-4:4"]);
    run(&["--machine", "/no/such/file.toml"], &["cannot read the machine file /no/such/file.toml"]);
    run(&["--locks", "spinpork"], &["no lock `spinpork`; did you mean `spinpark`?", "sim list"]);
    run(&["--workload", "hotlock"], &["no workload `hotlock`; did you mean `hot-lock`?"]);
    run(&["--workload", "readers", "--locks", "classic-mtx"], &["classic-mtx is no read-write lock"]);
    run(&["--threads", "0"], &["--threads", "at least 1, as in 64"]);
    run(&["--threads", "100000"], &["100000 threads", "8192 at most"]);
    run(&["--duration", "20"], &["as in 20ms"]);
    run(&["--threads", "1,2"], &["spinpark-lab sim sweep"]);
    run(&["--locks", "spinpark,classic-tas"], &["spinpark-lab sim sweep"]);
    run(&["--seeds", "0"], &["--seeds"]);
    run(&["--json", "/no/such/directory/x.json"], &["cannot write"]);
    run(&["--trace", "/no/such/directory/x.json"], &["cannot write", "a directory that exists"]);
    run(
        &["--json", "x.json", "--trace", "./x.json"],
        &["--json and --trace are the same file", "a file of its own"],
    );
    run(&["--json", "--trace", "-"], &["--json and --trace cannot both go to standard output"]);
    run(&["--locks", "glibc"], &["no lock `glibc`", "classic-mutex-2003"]);
    let calibrate = said(&mut spinpark(["sim", "calibrate", "--output", "/no/such/directory/m.toml"]));
    calibrate.fails(2, &["cannot write /no/such/directory/m.toml"]);
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    fs::write(file.path(), "this is no machine").unwrap();
    run(&["--machine", file.path().to_str().unwrap()], &["is not a TOML file"]);
    said(&mut spinpark(["sim", "machine", "nehalem"])).fails(2, &["no machine `nehalem`", "nehalem-ex-64"]);
    said(&mut spinpark(["sim", "tables", "005"])).fails(2, &["no table `005`", "sim list"]);
    said(&mut spinpark(["sim", "sweep", "--threads", "2,0"])).fails(2, &["at least 1, as in 64"]);
}

/// Ctrl-C: the runs that are done are printed.
#[test]
fn interrupted() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command =
        spinpark(["sim", "run", "--machine", "plain-4", "--duration", "100s", "--seeds", "3", "--json"]);
    let (_, errors) = interrupted_after("", command.arg(file.path()));
    assert!(errors.contains("Interrupted after 0 runs of 3"), "{errors}");
}

/// `spinpark-lab sim run 2>&1 | head -1`: the rest has no reader.
#[test]
fn the_reader_may_go() {
    for command in ["run", "sweep"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let errors = writer.try_clone().unwrap();
        let status =
            spinpark(["sim", command, "--duration", "1ms"]).stdout(writer).stderr(errors).status().unwrap();
        assert_eq!(status.code(), Some(0), "{command:?}: {status}");
    }
}

/// Ctrl-C in a sweep of runs with thousands of threads: the stacks of abandoned runs stay in use, but no
/// other run fails because of it. A sweep without a result keeps an old one.
#[test]
fn an_interrupted_sweep_of_many_threads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.json");
    fs::write(&path, "old").unwrap();
    let mut command =
        spinpark(["sim", "sweep", "--machine", "big-512", "--duration", "100s", "--threads", "4096"]);
    command.args(["--seeds", "10", "--locks", "spinpark,classic-mutex-nospin", "--json"]).arg(&path);
    let (_, errors) = interrupted_after("", &mut command);
    assert!(errors.contains("Interrupted after 0 runs of 20"), "{errors}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}
