//! What can be measured, in files: workloads, planes of workloads, implementations, presets and bounds.
//!
//! The files of this repository are part of the command; a user's file adds to them, or replaces what has the
//! same name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use spinpark_classics::designs::{DESIGNS, Design};
use spinpark_measure::process::executable::Library;
use spinpark_measure::text::nearest::did_you_mean;
use thiserror::Error;

use super::figure::{Against, Figure};
use super::load::Load;
use super::planes::{self, Plane};
use super::recording::Detail;

/// The adapters whose locks the recorder of profiles sees.
const PTHREAD: [&str; 2] = ["pthread", "pthread-adaptive"];

/// Everything that is defined.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Definitions {
    /// What threads do.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// Whose locks.
    #[serde(rename = "implementation")]
    pub implementations: Vec<Implementation>,
    /// What a command runs unless told otherwise.
    #[serde(rename = "preset")]
    pub presets: Vec<Preset>,
    /// Loads over parameters.
    #[serde(rename = "plane")]
    pub planes: Vec<Plane>,
    /// What is to hold.
    #[serde(rename = "bound")]
    pub bounds: Vec<Bound>,
}

/// A load with a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name on the command line.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// The thread counts that it is measured at.
    pub threads: Vec<usize>,
    /// A run is at least this long for each thread, in milliseconds, so that every thread gets a CPU.
    #[serde(default)]
    pub millis_per_thread: u64,
    /// What threads do.
    pub load: Load,
}

/// Locks in an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Implementation {
    /// Its name on the command line.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// What it is in a comparison.
    pub role: Role,
    /// The code that calls the locks.
    pub adapter: String,
    /// Whether the drop-in is loaded.
    #[serde(default)]
    pub preload: bool,
    /// Whether the recorder of `spinpark profile` is in front of its locks, and how much it records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Detail>,
    /// The implementation from which it differs in one thing: what it costs or gains is that thing's effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varies: Option<String>,
    /// Variables of the worker process.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The Debian package without which it cannot be built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// The Rust package that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
}

impl Implementation {
    /// The file that is loaded as `library`, if this implementation needs it: the one that its own variable
    /// names, else `usual`.
    #[must_use]
    pub fn file<'a>(&'a self, library: Library, usual: Option<&'a Path>) -> Option<&'a Path> {
        let own = self.env.get(library.variable()).map(Path::new);
        own.or(usual).filter(|_| self.loads(library))
    }

    /// Whether it needs `library`.
    #[must_use]
    pub fn loads(&self, library: Library) -> bool {
        match library {
            Library::DropIn => self.preload,
            Library::Profiler => self.profile.is_some(),
        }
    }
}

/// A design of the registry is an implementation under its name.
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

/// What an implementation is in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What we are compared with.
    Peer,
    /// Ours.
    Ours,
    /// Neither: measured to understand the others.
    Control,
    /// Neither: a design of old.
    Classic,
}

/// What a command runs unless told otherwise.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The command.
    pub name: String,
    /// The implementations; the first one is the baseline.
    pub implementations: Vec<String>,
    /// The workloads; of `grid`, none: it has the planes.
    #[serde(default)]
    pub cells: Vec<Selection>,
}

/// A workload, perhaps at other numbers of threads than its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The workload's name.
    pub workload: String,
    /// Numbers of threads, instead of the workload's.
    #[serde(default)]
    pub threads: Vec<usize>,
}

/// Something that is to hold: a ratio of two implementations, in a workload or in planes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// In words.
    pub what: String,
    /// The preset with which it is judged.
    #[serde(default = "locks_preset")]
    pub preset: String,
    /// In which workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// In which planes instead, each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planes: Vec<String>,
    /// Which number.
    pub figure: Figure,
    /// What is made of the cells.
    #[serde(default)]
    pub over: Over,
    /// Only cells with these numbers of threads; empty: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<usize>,
    /// Only cells with these numbers of writes in a thousand operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<u16>,
    /// Which implementations are judged, each by itself.
    pub ours: Vec<String>,
    /// What they are divided by.
    pub against: Against,
    /// The largest ratio that is fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The smallest ratio that is fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
}

fn locks_preset() -> String {
    String::from("locks")
}

/// What a bound makes of several cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The geometric mean of those of each number of threads has to be within the limit.
    #[default]
    EachThreads,
    /// The geometric mean of all has to be.
    GeometricMean,
    /// Each has to be.
    EachCell,
}

/// A file that does not define anything.
#[derive(Debug, Error)]
pub enum BadDefinition {
    /// It cannot be read.
    #[error(
        "cannot read {file}: {error}\nName a TOML file that you may read; docs/bench.md describes its keys"
    )]
    Read {
        /// Which.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is not TOML, or has a key that means nothing. The error has the line.
    #[error("{file}: {error}\nThe keys are described in docs/bench.md")]
    Syntax {
        /// Which.
        file: String,
        /// Where and what.
        error: Box<toml::de::Error>,
    },
    /// It says something that makes no sense.
    #[error("{file}: {what}")]
    Sense {
        /// Which file.
        file: String,
        /// What makes no sense.
        what: String,
    },
}

impl Definitions {
    /// What the command knows by itself.
    ///
    /// # Errors
    ///
    /// If one of its files is wrong. A test makes sure that none is.
    pub fn built_in() -> Result<Self, BadDefinition> {
        let files = [
            ("workloads.toml", include_str!("../../definitions/workloads.toml")),
            ("implementations.toml", include_str!("../../definitions/implementations.toml")),
            ("presets.toml", include_str!("../../definitions/presets.toml")),
            ("planes.toml", include_str!("../../definitions/planes.toml")),
            ("bounds.toml", include_str!("../../definitions/bounds.toml")),
        ];
        let mut all = Self::default();
        for (file, text) in files {
            all.add(Self::parse(file, text)?);
        }
        all.implementations
            .extend(DESIGNS.iter().filter(|design| design.is_native()).map(Implementation::from));
        all.check("the built-in definitions")?;
        Ok(all)
    }

    /// Reads a user's file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a definition file.
    pub fn read(path: &Path) -> Result<Self, BadDefinition> {
        let file = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(error) => Err(BadDefinition::Read { file, error }),
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// If it is not a definition file.
    pub fn parse(file: &str, text: &str) -> Result<Self, BadDefinition> {
        toml::from_str(text)
            .map_err(|error| BadDefinition::Syntax { file: file.to_owned(), error: Box::new(error) })
    }

    /// Adds `others`; what has the name of something that is there already replaces it. Bounds have no names:
    /// if there are any in `others`, they are the bounds.
    pub fn add(&mut self, others: Self) {
        merge(&mut self.workloads, others.workloads, |workload| &workload.name);
        merge(&mut self.implementations, others.implementations, |implementation| &implementation.name);
        let mut presets = others.presets;
        for preset in &mut presets {
            self.name_peers(&mut preset.implementations);
        }
        merge(&mut self.presets, presets, |preset| &preset.name);
        merge(&mut self.planes, others.planes, |plane| &plane.name);
        if !others.bounds.is_empty() {
            self.bounds = others.bounds;
        }
    }

    /// Replaces the word `peers` by the names of all implementations with that role.
    fn name_peers(&self, names: &mut Vec<String>) {
        if let Some(at) = names.iter().position(|name| name == "peers") {
            let peers =
                self.implementations.iter().filter(|implementation| implementation.role == Role::Peer);
            names.splice(at..=at, peers.map(|peer| peer.name.clone()));
        }
    }

    /// Checks that everything makes sense and every name is defined. `file` is named in errors.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self, file: &str) -> Result<(), BadDefinition> {
        let wrong = |what: String| BadDefinition::Sense { file: file.to_owned(), what };
        for workload in &self.workloads {
            let of_workload = |what| wrong(format!("workload `{}`: {what}", workload.name));
            if workload.threads.is_empty() {
                return Err(of_workload(String::from("`threads` is empty")));
            }
            for &threads in &workload.threads {
                workload.load.check(threads).map_err(of_workload)?;
            }
        }
        for implementation in &self.implementations {
            let of_implementation = |what| wrong(format!("implementation `{}`: {what}", implementation.name));
            implementation
                .varies
                .iter()
                .try_for_each(|name| self.implementation(name).map(|_| ()))
                .map_err(of_implementation)?;
            if implementation.profile.is_some() && !PTHREAD.contains(&implementation.adapter.as_str()) {
                return Err(of_implementation(format!(
                    "`profile` records pthread locks only: the adapter must be {}, not {}",
                    PTHREAD.join(" or "),
                    implementation.adapter
                )));
            }
        }
        for preset in &self.presets {
            let of_preset = |what| wrong(format!("preset `{}`: {what}", preset.name));
            for name in &preset.implementations {
                self.implementation(name).map_err(of_preset)?;
            }
            for Selection { workload, threads } in &preset.cells {
                let load = &self.workload(workload).map_err(of_preset)?.load;
                threads.iter().try_for_each(|&threads| load.check(threads)).map_err(of_preset)?;
            }
        }
        for plane in &self.planes {
            let of_plane = |what| wrong(format!("plane `{}`: {what}", plane.name));
            plane
                .peers
                .iter()
                .try_for_each(|name| self.implementation(name).map(|_| ()))
                .map_err(of_plane)?;
            for axes in [&plane.axes, &plane.axes.replaced_by(&plane.quick)] {
                planes::points(plane, axes).map_err(of_plane)?;
            }
        }
        self.bounds.iter().try_for_each(|bound| {
            self.check_bound(bound).map_err(|what| wrong(format!("bound `{}`: {what}", bound.what)))
        })
    }

    fn check_bound(&self, bound: &Bound) -> Result<(), String> {
        self.preset(&bound.preset)?;
        match &bound.workload {
            Some(workload) if bound.planes.is_empty() => {
                let load = &self.workload(workload)?.load;
                bound.threads.iter().try_for_each(|&threads| load.check(threads))?;
                if bound.figure.is_of_waits() && !load.has_waits() {
                    return Err(format!("no thread waits in the workload `{workload}`"));
                }
            }
            None if !bound.planes.is_empty() => {
                bound.planes.iter().try_for_each(|name| self.plane(name).map(|_| ()))?;
            }
            _ => return Err(String::from("it needs either `workload` or `planes`")),
        }
        bound.ours.iter().try_for_each(|name| self.implementation(name).map(|_| ()))?;
        if bound.ours.is_empty() {
            return Err(String::from("`ours` names no implementation"));
        }
        if let Against::Implementation(name) = &bound.against {
            self.implementation(name)?;
        }
        match (bound.at_most, bound.at_least) {
            (Some(limit), None) | (None, Some(limit)) if limit > 0.0 && limit.is_finite() => Ok(()),
            (Some(_), Some(_)) => Err(String::from("it has both `at_most` and `at_least`")),
            (None, None) => Err(String::from("it has neither `at_most` nor `at_least`")),
            _ => Err(String::from("a limit must be a number above zero")),
        }
    }

    /// The bounds of a preset; those in a workload name their numbers of threads.
    ///
    /// # Errors
    ///
    /// A sentence that says which presets have bounds, if this one has none.
    pub fn bounds_of(&self, preset: &str) -> Result<Vec<Bound>, String> {
        let own = self.bounds.iter().filter(|bound| bound.preset == preset);
        let named = |bound: &Bound| {
            let mut bound = bound.clone();
            if let (Some(workload), true) = (&bound.workload, bound.threads.is_empty()) {
                bound.threads.clone_from(&self.workload(workload)?.threads);
            }
            Ok(bound)
        };
        let own = own.map(named).collect::<Result<Vec<_>, String>>()?;
        if own.is_empty() {
            let others = self.bounds.iter().filter(|bound| bound.workload.is_some());
            let others: BTreeSet<&str> = others.map(|bound| bound.preset.as_str()).collect();
            return Err(format!(
                "the preset `{preset}` has no bounds; there are some for: {}\n\
                 A bound in a definition file belongs to `locks`, unless it says `preset = \"{preset}\"`",
                others.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(own)
    }

    /// The workload of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says what may have been meant.
    pub fn workload(&self, name: &str) -> Result<&Workload, String> {
        find(&self.workloads, name, "workload", |workload| &workload.name)
    }

    /// The preset of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says what may have been meant.
    pub fn preset(&self, name: &str) -> Result<&Preset, String> {
        find(&self.presets, name, "preset", |preset| &preset.name)
    }

    /// The plane of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says which there are.
    pub fn plane(&self, name: &str) -> Result<&Plane, String> {
        self.planes.iter().find(|plane| plane.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.planes.iter().map(|plane| plane.name.as_str()).collect();
            format!("there is no plane `{name}`; there are: {}", names.join(", "))
        })
    }

    /// The implementation of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says what may have been meant.
    pub fn implementation(&self, name: &str) -> Result<&Implementation, String> {
        find(&self.implementations, name, "implementation", |implementation| &implementation.name)
    }
}

fn find<'a, T>(
    all: &'a [T],
    name: &str,
    kind: &str,
    name_of: impl Fn(&T) -> &String,
) -> Result<&'a T, String> {
    all.iter().find(|item| name_of(item) == name).ok_or_else(|| {
        let hint = did_you_mean(name, all.iter().map(|item| name_of(item).as_str()));
        format!("there is no {kind} `{name}`{hint}\n`spinpark-lab bench list` shows them all")
    })
}

fn merge<T>(all: &mut Vec<T>, others: Vec<T>, name_of: impl Fn(&T) -> &String) {
    for other in others {
        match all.iter_mut().find(|item| name_of(item) == name_of(&other)) {
            Some(item) => *item = other,
            None => all.push(other),
        }
    }
}
