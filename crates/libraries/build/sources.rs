//! Which files a rebuild depends on: exactly those that the inner cargo says it read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Tells cargo to run this script again if a file changes that `dep_info` (`libNAME.d`) lists, or a manifest of theirs.
pub(crate) fn watch(workspace: &Path, dep_info: &Path) {
    let text = fs::read_to_string(dep_info).unwrap_or_else(|error| panic!("{}: {error}", dep_info.display()));
    let mut watched = BTreeSet::from([workspace.join("Cargo.toml")]);
    // The profiles of single packages are in the latter.
    watched.extend(
        ["Cargo.lock", ".cargo/config.toml"]
            .map(|file| workspace.join(file))
            .into_iter()
            .filter(|file| file.exists()),
    );
    for file in prerequisites(&text) {
        let file = workspace.join(file);
        let manifests = file.ancestors().skip(1).map(|directory| directory.join("Cargo.toml"));
        watched.extend(manifests.take_while(|path| path.starts_with(workspace)).find(|path| path.exists()));
        watched.insert(file);
    }
    for file in watched {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}

/// The files to the right of the colon. A blank in a name is written as `\ `.
fn prerequisites(text: &str) -> Vec<PathBuf> {
    let list = text.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, list)| list);
    let mut files = vec![String::new()];
    let mut characters = list.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => files.last_mut().expect("never empty").extend(characters.next()),
            ' ' => files.push(String::new()),
            _ => files.last_mut().expect("never empty").push(character),
        }
    }
    files.retain(|file| !file.is_empty());
    files.into_iter().map(PathBuf::from).collect()
}
