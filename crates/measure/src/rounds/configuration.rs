//! The configurations of a comparison, and the environment that makes each of them.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::process::executable::preload_list::{prepend, without_drop_in};

/// The variable that states where the recorder writes. Without it nothing is recorded.
pub const DIRECTORY: &str = "SPINPARK_PROFILE_DIR";
/// The variable that has the policies of single locks, for the drop-in.
pub const POLICY: &str = "SPINPARK_POLICY";
/// The variable that states how much is recorded.
pub const DETAIL: &str = "SPINPARK_PROFILE_DETAIL";
/// The variable that states whose children are recorded from their start, whether they wait or not.
pub const PARENT: &str = "SPINPARK_PROFILE_PARENT";

/// The variable that names the file of a plan of delays: nothing is recorded then.
pub const DELAY: &str = "SPINPARK_PROFILE_DELAY";

/// The variable that pads the environment to a random length, so that no configuration owns one stack
/// alignment (Mytkowicz et al., "Producing wrong data without doing anything obviously wrong", 2009).
const PADDING: &str = "SPINPARK_RANDOMIZED_ENVIRONMENT_OFFSET";

/// One of the things that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Configuration {
    /// The program on glibc's locks.
    #[serde(rename = "glibc")]
    Glibc,
    /// The same once more: A/A. What differs between these two is noise.
    #[serde(rename = "glibc again")]
    GlibcAgain,
    /// The program on our locks.
    #[serde(rename = "spinpark")]
    Spinpark,
    /// Of two programs, the one to compare with.
    #[serde(rename = "before")]
    Before,
    /// The same once more: A/A.
    #[serde(rename = "before again")]
    BeforeAgain,
    /// The program that is compared with it.
    #[serde(rename = "after")]
    After,
}

/// What a comparison varies. It has three configurations: a baseline, the baseline again, and a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject {
    /// The locks of one program.
    #[default]
    Locks,
    /// The program, on the same kind of locks.
    Programs,
}

impl Subject {
    /// Baseline, baseline again, candidate.
    #[must_use]
    pub fn configurations(self) -> [Configuration; 3] {
        match self {
            Self::Locks => [Configuration::Glibc, Configuration::GlibcAgain, Configuration::Spinpark],
            Self::Programs => [Configuration::Before, Configuration::BeforeAgain, Configuration::After],
        }
    }
}

impl Configuration {
    /// The name in reports and data.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::GlibcAgain => "glibc again",
            Self::Spinpark => "spinpark",
            Self::Before => "before",
            Self::BeforeAgain => "before again",
            Self::After => "after",
        }
    }

    /// Which comparison has it.
    #[must_use]
    pub fn subject(self) -> Subject {
        match self {
            Self::Glibc | Self::GlibcAgain | Self::Spinpark => Subject::Locks,
            Self::Before | Self::BeforeAgain | Self::After => Subject::Programs,
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the glibc configurations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// The program as it is: what its user runs today.
    Glibc,
    /// The drop-in is loaded, but passes every call to glibc: the same cost of interposition in all
    /// configurations.
    Disabled,
}

/// Makes the environment of a run.
#[derive(Debug, Clone)]
pub struct Environments {
    /// The drop-in; none if no configuration runs on it.
    preload: Option<PathBuf>,
    inherited: OsString,
    baseline: Baseline,
    /// Whether the program loads a drop-in by itself, so that the baseline must switch it off.
    loads_drop_in: bool,
}

impl Environments {
    /// `inherited` is the user's own `LD_PRELOAD`; spinpark's drop-in is removed from it, or the baseline
    /// would not be one.
    #[must_use]
    pub fn new(preload: &Path, inherited: Option<OsString>, baseline: Baseline) -> Self {
        Self { baseline, ..Self::of_programs(Some(preload), inherited) }
    }

    /// Of two programs, both as they are, or both with the drop-in `preload`.
    #[must_use]
    pub fn of_programs(preload: Option<&Path>, inherited: Option<OsString>) -> Self {
        let inherited = without_drop_in(&inherited.unwrap_or_default());
        let preload = preload.map(Path::to_path_buf);
        Self { preload, inherited, baseline: Baseline::Glibc, loads_drop_in: false }
    }

    /// The program loads a drop-in by itself (linked, loaded later, preloaded by a script): from now on it is
    /// off in the baseline.
    pub fn switch_off_drop_in(&mut self) {
        self.loads_drop_in = true;
    }

    /// Whether a drop-in of the program's own is switched off in the baseline.
    #[must_use]
    pub fn switches_off_drop_in(&self) -> bool {
        self.loads_drop_in
    }

    /// Sets the variables of `configuration` on `command`, with `padding` bytes of environment that mean
    /// nothing.
    pub fn apply(&self, configuration: Configuration, padding: usize, command: &mut Command) {
        prepare(command, padding);
        let is_baseline = matches!(configuration, Configuration::Glibc | Configuration::GlibcAgain);
        let pays_for_interposition = is_baseline && self.baseline == Baseline::Disabled;
        match &self.preload {
            Some(preload) if !is_baseline || pays_for_interposition => {
                command.env("LD_PRELOAD", prepend(preload, &self.inherited));
            }
            _ if self.inherited.is_empty() => {
                command.env_remove("LD_PRELOAD");
            }
            _ => {
                command.env("LD_PRELOAD", &self.inherited);
            }
        }
        if pays_for_interposition || (is_baseline && self.loads_drop_in) {
            command.env("SPINPARK_DISABLE", "1");
        }
    }
}

/// Removes our variables of the user's from the environment of `command`, and pads it with `padding` bytes.
pub fn prepare(command: &mut Command, padding: usize) {
    let locks = ["SPINPARK_DISABLE", "SPINPARK_VERBOSE", "SPINPARK_REPORT", POLICY];
    for ours in locks.into_iter().chain([DIRECTORY, DETAIL, PARENT, DELAY]) {
        command.env_remove(ours);
    }
    command.env(PADDING, "X".repeat(padding));
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn variables(
        configuration: Configuration,
        inherited: Option<&str>,
        baseline: Baseline,
    ) -> (Option<String>, Option<String>) {
        let mut command = Command::new("true");
        Environments::new(Path::new("/x/ours.so"), inherited.map(OsString::from), baseline).apply(
            configuration,
            3,
            &mut command,
        );
        let of = |name: &str| {
            let (_, value) = command.get_envs().find(|(key, _)| *key == OsStr::new(name))?;
            value.map(|v| v.to_string_lossy().into_owned())
        };
        assert_eq!(of(PADDING).as_deref(), Some("XXX"));
        (of("LD_PRELOAD"), of("SPINPARK_DISABLE"))
    }

    #[test]
    fn plain_baseline_has_no_preload_and_spinpark_has() {
        assert_eq!(variables(Configuration::Glibc, None, Baseline::Glibc), (None, None));
        assert_eq!(
            variables(Configuration::Spinpark, None, Baseline::Glibc),
            (Some("/x/ours.so".into()), None)
        );
    }

    #[test]
    fn disabled_baseline_pays_for_interposition() {
        let both = (Some("/x/ours.so".into()), Some("1".into()));
        assert_eq!(variables(Configuration::GlibcAgain, None, Baseline::Disabled), both);
        assert_eq!(variables(Configuration::Spinpark, None, Baseline::Disabled).1, None);
    }

    /// Of two programs, none is a baseline on other locks.
    #[test]
    fn both_programs_have_the_same_locks() {
        for (drop_in, preload) in [(None, None), (Some(Path::new("/x/ours.so")), Some("/x/ours.so"))] {
            for configuration in Subject::Programs.configurations() {
                let mut command = Command::new("true");
                Environments::of_programs(drop_in, None).apply(configuration, 0, &mut command);
                let set: Vec<_> = command.get_envs().filter(|(_, value)| value.is_some()).collect();
                let found = set.iter().find(|(name, _)| *name == "LD_PRELOAD").and_then(|(_, value)| *value);
                assert_eq!(found, preload.map(OsStr::new), "{configuration}");
                assert!(set.iter().all(|(name, _)| *name != "SPINPARK_DISABLE"), "{configuration}");
            }
        }
    }

    #[test]
    fn an_inherited_preload_stays_but_our_own_goes() {
        let inherited = Some("/lib/jemalloc.so /y/libspinpark_preload.so");
        assert_eq!(
            variables(Configuration::Glibc, inherited, Baseline::Glibc).0.as_deref(),
            Some("/lib/jemalloc.so")
        );
        let both = Some("/x/ours.so:/lib/jemalloc.so");
        assert_eq!(variables(Configuration::Spinpark, inherited, Baseline::Glibc).0.as_deref(), both);
    }
}
