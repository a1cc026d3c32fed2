//! One run under the recorder: the program's waits limit what other locks can improve.

use std::env;
use std::ffi::OsString;

use spinpark_measure::configuration::{Configuration, prepend};
use spinpark_measure::executable::Library;
use spinpark_measure::launch::Launcher;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::{json, swap};

use crate::libraries;

/// Records a run on glibc's locks; returns a sentence about it. `None` if it cannot be recorded: the
/// comparison goes on.
pub(super) fn record(launcher: &Launcher<'_>) -> Option<String> {
    let profiler = libraries::find(Library::Profiler).ok()?.path;
    let directory = tempfile::Builder::new().prefix("spinpark-waits-").tempdir().ok()?;
    let recorded = launcher.run_with(Configuration::Glibc, 0, |command| {
        let set = |name: &str| {
            let of_command = command.get_envs().find(|(known, _)| *known == name);
            of_command.map_or_else(|| env::var_os(name), |(_, value)| value.map(OsString::from))
        };
        let before = set("LD_PRELOAD").unwrap_or_default();
        command
            .env("LD_PRELOAD", prepend(&profiler, &before))
            .env("SPINPARK_PROFILE_DIR", directory.path())
            .env("SPINPARK_PROFILE_DETAIL", "contended");
    });
    recorded.ok()?;
    let loaded = json::load(directory.path(), &mut Symbols::new()).ok()?;
    swap::sentence(&loaded.profiles)
}
