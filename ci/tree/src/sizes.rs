//! No crate has more than a bounded part of all lines.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest part of all lines of Rust that a crate may have, %. The simulator is the largest, since its
/// experiments are in it.
const PART: usize = 15;

/// The source files below `directory`, with their numbers of lines.
fn sources(directory: &Path, found: &mut Vec<(PathBuf, usize)>) {
    const KINDS: [&str; 4] = ["rs", "c", "h", "cpp"];
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            if path.file_name() != Some(OsStr::new("target")) {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known)) {
            let lines = fs::read_to_string(&path).expect("a source is text").lines().count();
            found.push((path, lines));
        }
    }
}

#[test]
fn no_crate_is_most_of_the_code() {
    let crates = fs::read_dir(crate::repository().join("crates")).expect("the crates");
    let lines: Vec<(PathBuf, usize)> = crates
        .map(|entry| {
            let path = entry.expect("a crate").path();
            let mut files = Vec::new();
            sources(&path, &mut files);
            let rust = files.iter().filter(|(path, _)| path.extension() == Some(OsStr::new("rs")));
            (path, rust.map(|(_, lines)| lines).sum())
        })
        .collect();
    let all: usize = lines.iter().map(|(_, lines)| lines).sum();
    for (path, lines) in lines {
        let (part, name) = (100 * lines / all, path.display());
        assert!(100 * lines <= PART * all, "{name} has {part} % of all lines of Rust: {PART} % at most");
    }
}
