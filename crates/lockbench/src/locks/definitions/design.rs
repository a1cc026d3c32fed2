//! Implementations of the registry: a design of the documents is one under its name.

use std::collections::BTreeMap;

use spinpark_classics::designs::Design;

use super::{Implementation, Role};

impl From<&Design> for Implementation {
    fn from(design: &Design) -> Self {
        Self {
            name: design.name.to_owned(),
            about: design.about.to_owned(),
            role: Role::Classic,
            adapter: design.name.to_owned(),
            varies: design.varies.map(str::to_owned),
            preload: false,
            profile: None,
            env: BTreeMap::new(),
            install: None,
            package: None,
        }
    }
}
