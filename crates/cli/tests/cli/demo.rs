//! The bundled demonstration.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::fixtures::{said, spinpark};

#[test]
fn workload_checks_itself_and_prints_its_number() {
    said(&mut spinpark(["__demo", "--operations", "1000"]))
        .succeeds(&["1024 operations, all accounted for", "operations per second: "]);
}

/// Without any argument, the command measures the demonstration, and ends by saying how to go on.
#[test]
fn no_argument_means_the_demonstration() {
    let mut child = spinpark([]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("rounds of 3 runs") {
        assert_ne!(stdout.read_line(&mut text).unwrap(), 0, "{text}");
    }
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    for word in ["Demonstration:", "operations/s", "spinpark compare -- PROGRAM"] {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}
