//! Wrappers of locks are known by their shape, whatever they are called: the report names who calls them.

use spinpark_fixtures::compile_c;

use super::recording;
use spinpark_fixtures::command::{flat, said};

/// The report of the program, doing `what`.
fn report(what: &str, detail: &str) -> String {
    let program = compile_c("wrapper_shapes.c", &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--detail", detail, "--"]);
    let result = said(command.arg(program).arg(what));
    assert_eq!(result.code, Some(0), "{result:#?}");
    flat(&result.stderr)
}

#[test]
fn a_function_that_keeps_the_lock_for_its_callers_is_passed_through() {
    for detail in ["contended", "full"] {
        let report = report("wrapper", detail);
        let by = report.split_once("held by `").or_else(|| report.split_once("released in `"));
        let (_, held) = by.unwrap_or_else(|| panic!("{report}"));
        assert!(held.starts_with("rebuild`"), "{report}");
        let (sentence, _) = held.split_once("Threads waited").unwrap_or_else(|| panic!("{report}"));
        assert!(!sentence.contains("`grab`") && !sentence.contains("`give`"), "{report}");
    }
}

#[test]
fn a_function_that_releases_what_it_takes_is_named_itself() {
    let report = report("worker", "contended");
    assert!(report.contains("held by `bump` while other threads wait in it"), "{report}");
    let (_, rest) = report.split_once("detail contended.").unwrap_or_else(|| panic!("{report}"));
    let (sentence, _) = rest.split_once("Threads waited").unwrap_or_else(|| panic!("{report}"));
    assert!(!sentence.contains("slow_bump"), "{report}");
}
