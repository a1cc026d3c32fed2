//! Tests of the source tree itself (`cargo test -p spinpark-tree`). They run no code of the other crates.
//!
//! | module      | the rule                                                                                    |
//! |-------------|---------------------------------------------------------------------------------------------|
//! | `layers`    | dependencies between our crates point down, and from the laboratory to the product          |
//! | `circles`   | sibling modules of a crate do not name each other in a circle                               |
//! | `labels`    | each invariant that a comment cites is defined once                                         |
//! | `constants` | the tables of constants in `notes/tuning.md` have the names and values of the sources       |
//! | `formats`   | `docs/stability.md` has the versions of files                                                |
//! | `policies`  | the protocol of the locks decides nothing that is up to a policy                               |
//! | `models`    | the table of models in `notes/verification.md` names files of tests that there are          |
//! | `mutants`   | each mutant names an invariant that there is; each invariant of the locks has a mutant, or a  |
//! |             | reason in `notes/verification.md` why it has none                                           |
//! | `targets`   | cargo builds test programs for crates that have tests, and for no others                    |
#![cfg(test)]

mod circles;
mod constants;
mod formats;
mod labels;
mod layers;
mod models;
mod mutants;
mod policies;
mod targets;

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand};

/// The root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// The packages of the workspace, as cargo has them.
fn workspace() -> Metadata {
    let manifest = repository().join("Cargo.toml");
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata runs")
}
