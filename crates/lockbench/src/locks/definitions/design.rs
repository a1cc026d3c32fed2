//! Targets of the registry: a design of the documents is a target under its name.

use std::collections::BTreeMap;

use spinpark_classics::designs::Design;

use super::{Side, Target};

impl From<&Design> for Target {
    fn from(design: &Design) -> Self {
        Self {
            name: design.name.to_owned(),
            about: design.about.to_owned(),
            side: Side::Classic,
            family: design.name.to_owned(),
            varies: design.varies.map(str::to_owned),
            preload: false,
            profile: None,
            env: BTreeMap::new(),
            install: None,
            package: None,
        }
    }
}
