//! Whose locks.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::{dropin, profiler};

/// Whose locks a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Configuration {
    /// The C library's, nothing interposed.
    Glibc,
    /// The drop-in's.
    Spinpark,
    /// The C library's, reached through the drop-in (`SPINPARK_DISABLE=1`).
    Disabled,
}

impl Configuration {
    /// Every configuration.
    pub const ALL: [Configuration; 3] =
        [Configuration::Glibc, Configuration::Spinpark, Configuration::Disabled];
    /// With and without the drop-in.
    pub const BOTH: [Configuration; 2] = [Configuration::Glibc, Configuration::Spinpark];

    pub(super) fn apply(self, command: &mut Command, is_profiled: bool) {
        command
            .env_remove("LD_PRELOAD")
            .env_remove("SPINPARK_DISABLE")
            .env("SPINPARK_TEST_CONFIGURATION", self.to_string());
        // The profiler comes first: it watches what comes after it.
        let libraries = [is_profiled.then(profiler), (self != Configuration::Glibc).then(dropin)];
        let libraries: Vec<&OsStr> = libraries.into_iter().flatten().map(Path::as_os_str).collect();
        if !libraries.is_empty() {
            command.env("LD_PRELOAD", libraries.join(OsStr::new(":")));
        }
        if self == Configuration::Disabled {
            command.env("SPINPARK_DISABLE", "1");
        }
    }
}

/// `glibc`, `spinpark` or `disabled`, as in the environment variable `SPINPARK_TEST_CONFIGURATION` that every
/// program gets.
impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Configuration::Glibc => "glibc",
            Configuration::Spinpark => "spinpark",
            Configuration::Disabled => "disabled",
        })
    }
}
