//! What can be measured, in files: shapes, targets, presets and bounds.
//!
//! The files of this repository are part of the command; a user's file adds to them, or replaces what has the same name.

mod bound;
mod design;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use spinpark_classics::designs::{DESIGNS, renamed};
use thiserror::Error;

pub use self::bound::{Bound, Figure, Over};
use super::load::Load;
use super::recording::Detail;

/// The families whose locks the recorder of profiles sees.
const PTHREAD: [&str; 2] = ["pthread", "pthread-adaptive"];

/// Everything that is defined.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Definitions {
    /// What threads do.
    #[serde(rename = "shape")]
    pub shapes: Vec<Shape>,
    /// Whose locks.
    #[serde(rename = "target")]
    pub targets: Vec<Target>,
    /// What a command runs unless told otherwise.
    #[serde(rename = "preset")]
    pub presets: Vec<Preset>,
    /// What is to hold.
    #[serde(rename = "bound")]
    pub bounds: Vec<Bound>,
}

/// A load with a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
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
pub struct Target {
    /// Its name on the command line.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// What it is in a comparison.
    pub side: Side,
    /// The code that calls the locks.
    pub family: String,
    /// Whether the drop-in is loaded.
    #[serde(default)]
    pub preload: bool,
    /// Whether the recorder of `spinpark profile` is in front of its locks, and how much it records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Detail>,
    /// The target from which it differs in one thing: what it costs or gains is that thing's effect.
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

/// What a target is in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
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
    /// The targets; the first one is the baseline.
    pub targets: Vec<String>,
    /// The shapes.
    pub cells: Vec<Selection>,
}

/// A shape, perhaps at other numbers of threads than its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The shape's name.
    pub shape: String,
    /// Numbers of threads, instead of the shape's.
    #[serde(default)]
    pub threads: Vec<usize>,
}

/// A file that does not define anything.
#[derive(Debug, Error)]
pub enum BadDefinition {
    /// It cannot be read.
    #[error("cannot read {file}: {error}")]
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
            ("shapes.toml", include_str!("../../../definitions/shapes.toml")),
            ("targets.toml", include_str!("../../../definitions/targets.toml")),
            ("presets.toml", include_str!("../../../definitions/presets.toml")),
            ("bounds.toml", include_str!("../../../definitions/bounds.toml")),
        ];
        let mut all = Self::default();
        for (file, text) in files {
            all.add(Self::parse(file, text)?);
        }
        all.targets.extend(DESIGNS.iter().filter(|design| design.is_native()).map(Target::from));
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

    /// Adds `others`; what has the name of something that is there already replaces it. Bounds have no names: if there
    /// are any in `others`, they are the bounds.
    pub fn add(&mut self, others: Self) {
        merge(&mut self.shapes, others.shapes, |shape| &shape.name);
        merge(&mut self.targets, others.targets, |target| &target.name);
        merge(&mut self.presets, others.presets, |preset| &preset.name);
        if !others.bounds.is_empty() {
            self.bounds = others.bounds;
        }
    }

    /// Checks that everything makes sense and every name is defined. `file` is named in errors.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self, file: &str) -> Result<(), BadDefinition> {
        let wrong = |what: String| BadDefinition::Sense { file: file.to_owned(), what };
        for shape in &self.shapes {
            let of_shape = |what| wrong(format!("shape `{}`: {what}", shape.name));
            if shape.threads.is_empty() {
                return Err(of_shape(String::from("`threads` is empty")));
            }
            for &threads in &shape.threads {
                shape.load.check(threads).map_err(of_shape)?;
            }
        }
        for target in &self.targets {
            let of_target = |what| wrong(format!("target `{}`: {what}", target.name));
            target.varies.iter().try_for_each(|name| self.target(name).map(|_| ())).map_err(of_target)?;
            if target.profile.is_some() && !PTHREAD.contains(&target.family.as_str()) {
                return Err(of_target(format!(
                    "`profile` records pthread locks only: the family must be {}, not {}",
                    PTHREAD.join(" or "),
                    target.family
                )));
            }
        }
        for preset in &self.presets {
            let of_preset = |what| wrong(format!("preset `{}`: {what}", preset.name));
            for name in &preset.targets {
                self.target(name).map_err(of_preset)?;
            }
            for Selection { shape, threads } in &preset.cells {
                let load = &self.shape(shape).map_err(of_preset)?.load;
                threads.iter().try_for_each(|&threads| load.check(threads)).map_err(of_preset)?;
            }
        }
        self.bounds.iter().try_for_each(|bound| {
            self.check_bound(bound).map_err(|what| wrong(format!("bound `{}`: {what}", bound.what)))
        })
    }

    fn check_bound(&self, bound: &Bound) -> Result<(), String> {
        self.preset(&bound.preset)?;
        let load = &self.shape(&bound.shape)?.load;
        bound.threads.iter().try_for_each(|&threads| load.check(threads))?;
        bound.ours.iter().try_for_each(|name| self.target(name).map(|_| ()))?;
        if bound.ours.is_empty() {
            return Err(String::from("`ours` names no target"));
        }
        if bound.against != "best" {
            self.target(&bound.against)?;
        }
        if bound.figure == Figure::LongestWait && !load.has_waits() {
            return Err(format!("no thread waits in the shape `{}`", bound.shape));
        }
        match (bound.at_most, bound.at_least) {
            (Some(limit), None) | (None, Some(limit)) if limit > 0.0 && limit.is_finite() => Ok(()),
            (Some(_), Some(_)) => Err(String::from("it has both `at_most` and `at_least`")),
            (None, None) => Err(String::from("it has neither `at_most` nor `at_least`")),
            _ => Err(String::from("a limit must be a number above zero")),
        }
    }

    /// Drops the bounds of other presets.
    ///
    /// # Errors
    ///
    /// A sentence that says which presets have bounds, if this one has none.
    pub fn keep_bounds_of(&mut self, preset: &str) -> Result<(), String> {
        let others: BTreeSet<String> = self.bounds.iter().map(|bound| bound.preset.clone()).collect();
        self.bounds.retain(|bound| bound.preset == preset);
        if self.bounds.is_empty() {
            let others = others.into_iter().collect::<Vec<_>>().join(", ");
            return Err(format!(
                "the preset `{preset}` has no bounds; there are some for: {others}\n\
                 A bound in a definition file belongs to `locks`, unless it says `preset = \"{preset}\"`"
            ));
        }
        Ok(())
    }

    /// The shape of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says which there are.
    pub fn shape(&self, name: &str) -> Result<&Shape, String> {
        find(&self.shapes, name, "workload", |shape| &shape.name)
    }

    /// The preset of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says which there are.
    pub fn preset(&self, name: &str) -> Result<&Preset, String> {
        find(&self.presets, name, "preset", |preset| &preset.name)
    }

    /// The target of that name.
    ///
    /// # Errors
    ///
    /// A sentence that says which there are.
    pub fn target(&self, name: &str) -> Result<&Target, String> {
        find(&self.targets, name, "implementation", |target| &target.name).map_err(|unknown| {
            renamed(name).map_or(unknown, |today| format!("the implementation `{name}` is now `{today}`"))
        })
    }
}

fn find<'a, T>(
    all: &'a [T],
    name: &str,
    kind: &str,
    name_of: impl Fn(&T) -> &String,
) -> Result<&'a T, String> {
    all.iter().find(|item| name_of(item) == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|item| name_of(item).as_str()).collect();
        format!("there is no {kind} `{name}`; there are: {}", names.join(", "))
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
