//! Modules of a crate do not name each other in circles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use spinpark_verify::circles::in_crate;

/// Every crate of ours, with its root file.
fn crates() -> BTreeMap<String, PathBuf> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let metadata =
        MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata runs");
    let root = |package: &cargo_metadata::Package| {
        let folder = Path::new(package.manifest_path.as_str())
            .parent()
            .expect("a manifest is in a folder")
            .join("src");
        ["lib.rs", "main.rs"].map(|file| folder.join(file)).into_iter().find(|file| file.exists())
    };
    metadata
        .workspace_packages()
        .iter()
        .filter_map(|package| Some((package.name.to_string(), root(package)?)))
        .collect()
}

#[test]
fn no_crate_has_a_circle() {
    let crates = crates();
    assert!(crates.len() > 15, "the workspace was read: {}", crates.len());
    let found: BTreeMap<&str, Vec<String>> = crates
        .iter()
        .map(|(name, root)| (name.as_str(), in_crate(root).expect("every crate parses")))
        .filter(|(_, circles)| !circles.is_empty())
        .collect();
    assert_eq!(found, BTreeMap::new());
}
