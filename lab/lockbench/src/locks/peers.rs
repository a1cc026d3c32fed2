//! Peers that are not Rust. They are in a worker of their own, since they need their C and C++ libraries; it
//! is found next to the command, if it was built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// The name of that worker.
pub const WORKER: &str = "spinpark-peers-worker";

/// What a worker says about itself when it is called with `--list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Adapters with the version of their libraries.
    pub adapters: BTreeMap<String, String>,
    /// Adapters that are not there, and why.
    pub missing: BTreeMap<String, String>,
    /// What each adapter has: names of [`Primitive`](super::load::Primitive)s.
    pub primitives: BTreeMap<String, Vec<String>>,
}

/// The worker, if there is one.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    /// Where it is.
    pub path: Option<PathBuf>,
    /// What it says.
    pub listing: Listing,
    /// Why it says nothing although it was built.
    pub broken: Option<String>,
}

impl Peers {
    /// Looks in the directory of the executable `own`.
    #[must_use]
    pub fn find(own: &Path) -> Self {
        let candidates = own.parent().into_iter().flat_map(|here| {
            let here = if here.ends_with("deps") { here.parent().unwrap_or(here) } else { here };
            [here.join(WORKER), here.join("../libexec").join(WORKER)]
        });
        candidates.into_iter().find(|path| path.is_file()).map(Self::ask).unwrap_or_default()
    }

    fn ask(path: PathBuf) -> Self {
        let listing = match Command::new(&path).arg("--list").stdin(Stdio::null()).output() {
            // The loader says on standard error which library it lacks.
            Ok(output) => serde_json::from_slice(&output.stdout).map_err(|_| {
                String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no list").to_owned()
            }),
            Err(error) => Err(error.to_string()),
        };
        match listing {
            Ok(listing) => Self { path: Some(path), listing, broken: None },
            Err(why) => {
                Self { broken: Some(format!("{} does not start: {why}", path.display())), ..Self::default() }
            }
        }
    }

    /// Why the adapter is not there.
    #[must_use]
    pub fn why_missing(&self, adapter: &str, install: Option<&str>) -> String {
        match (self.listing.missing.get(adapter), install) {
            (Some(why), _) => why.clone(),
            (None, Some(_)) if self.broken.is_some() => self.broken.clone().unwrap_or_default(),
            (None, Some(packages)) => format!("not built: {}", how_to_build(packages)),
            (None, None) => String::from("there are no such locks in this command"),
        }
    }
}

/// How to have the worker with the locks that need these Debian packages.
#[must_use]
pub fn how_to_build(packages: &str) -> String {
    format!("apt install {packages}, cargo install --path lab/peers")
}
