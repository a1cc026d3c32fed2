//! Cargo builds a program of tests for a crate that has tests, and for no other: each is built, linked and
//! run for nothing. And a crate that gets tests or examples is asked for them: they would never run.

use std::fs;
use std::path::Path;

use cargo_metadata::{Target, TargetKind};

/// What the blocks of documentation name that are no examples in Rust.
const OTHERS: [&str; 6] = ["text", "console", "c", "cpp", "sh", "toml"];

fn sources(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(fs::read_to_string(path).expect("a source is text"));
        }
    }
}

fn has_tests(source: &str) -> bool {
    source.lines().any(|line| line.trim() == "#[test]")
}

fn has_examples(source: &str) -> bool {
    let comments = source
        .lines()
        .filter_map(|line| ["//!", "///"].iter().find_map(|mark| line.trim().strip_prefix(mark)));
    // Every second fence is the end of a block.
    let mut fences = comments.filter_map(|comment| comment.trim().strip_prefix("```")).step_by(2);
    fences.any(|kind| !OTHERS.contains(&kind))
}

#[test]
fn tests_are_built_where_there_are_some() {
    let metadata = crate::workspace();
    let is_program = |target: &&Target| target.is_kind(TargetKind::Bin);
    let is_library = |target: &&Target| target.is_kind(TargetKind::Lib) || target.is_kind(TargetKind::CDyLib);
    let mut checked = 0;
    for package in metadata.workspace_packages() {
        for target in package.targets.iter().filter(|target| is_program(target) || is_library(target)) {
            let mut found = Vec::new();
            let folder = target.src_path.parent().expect("a source is in a folder").as_std_path();
            // Beside a library, a program is its one file: it names the library's modules.
            if is_program(&target) && folder.join("lib.rs").exists() {
                found.push(fs::read_to_string(&target.src_path).expect("a source is text"));
            } else {
                sources(folder, &mut found);
            }
            let tests = found.iter().any(|source| has_tests(source));
            assert_eq!(target.test, tests, "`test` of {}, a target of {}", target.name, package.name);
            if is_library(&target) {
                let examples = found.iter().any(|source| has_examples(source));
                assert_eq!(target.doctest, examples, "`doctest` of {}", package.name);
            }
            checked += 1;
        }
    }
    assert!(checked > 15, "the workspace was read: {checked}");
}
