//! The bundled demonstration.

use spinpark_fixtures::command::{interrupted_after, said};

use crate::fixtures::spinpark;

#[test]
fn workload_checks_itself_and_prints_its_number() {
    said(&mut spinpark(["__demo", "--operations", "1000"]))
        .succeeds(&["1024 operations, all accounted for", "operations per second: "]);
}

/// Without any argument, the command measures the demonstration, and ends by saying how to go on.
#[test]
fn no_argument_means_the_demonstration() {
    let (text, _) = interrupted_after("rounds of 3 runs", &mut spinpark([]));
    for word in ["Demonstration:", "no round is complete", "spinpark compare -- PROGRAM"] {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}
