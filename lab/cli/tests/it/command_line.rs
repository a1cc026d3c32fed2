//! The command line: manual pages and completions, and what is wrong with a request.

use std::fs;

use spinpark_fixtures::command::said;

use crate::fixtures::spinpark;

#[test]
fn manual_pages_and_completions() {
    let directory = tempfile::tempdir().unwrap();
    said(spinpark(["man"]).arg(directory.path())).succeeds(&[]);
    let completions = said(&mut spinpark(["completions", "bash"]));
    for name in
        ["spinpark-lab", "spinpark-lab-bench-locks", "spinpark-lab-sim-run", "spinpark-lab-documents-run"]
    {
        let page = fs::read_to_string(directory.path().join(format!("{name}.1"))).unwrap();
        assert!(!page.contains("__"), "{page}");
        completions.succeeds(&[name.rsplit('-').next().unwrap()]);
    }
    assert!(!completions.stdout.contains("__bench-worker"), "{}", completions.stdout);
}

#[test]
fn too_few_rounds() {
    said(&mut spinpark(["bench", "locks", "--preset", "pthread", "--rounds", "1"]))
        .fails(2, &["--rounds 1 is too few"]);
}

#[test]
fn commands_of_the_product_are_named() {
    said(&mut spinpark(["profile", "--", "true"])).fails(2, &["`spinpark profile`"]);
}

/// An error about a number is a sentence with an example.
#[test]
fn numbers() {
    let whole = "write a whole number, as in ";
    for (line, words) in [
        ("bench grid --rounds 1.5", [whole, "7"]),
        ("bench locks --threads 2,x", [whole, "16"]),
        ("documents jobs --users many", [whole, "8"]),
        ("sim run --seed x", [whole, "1"]),
        ("sim run --threads x", [whole, "64"]),
        ("sim run --seeds 0", ["must be from 1 to 100000, as in", "5"]),
        ("sim sweep --threads 0", ["must be at least 1, as in", "64"]),
        ("documents creat --threads 0", ["must be from 1 to 4096, as in", "16"]),
    ] {
        said(spinpark([]).args(line.split(' '))).fails(2, &words);
    }
}

/// With too little address space for the threads, nothing hangs or panics: the command says so before it
/// starts one.
#[test]
fn limits_are_checked_before_anything_starts() {
    for bench in ["bench locks --workload saturated --locks glibc,std", "documents mmap"] {
        let own = spinpark([]).get_program().to_owned();
        let line = format!("ulimit -v 700000; \"$0\" {bench} --threads 256 --duration 5ms");
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(line).arg(own).env("SPINPARK_PRELOAD", spinpark_fixtures::command::drop_in());
        said(&mut command).fails(2, &["of address space", "684 MiB are available", "ulimit -v"]);
    }
}
