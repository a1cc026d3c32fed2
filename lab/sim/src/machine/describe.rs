//! A machine for readers: all its figures, and where each comes from.

use serde::Serialize;
use spinpark_measure::text::units::counted;

use super::Machine;
use super::keys::KEYS;
use super::sheet::{Sheet, Topology};

/// A machine, and where its figures come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// The name by which it is chosen.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// What is known about it, and what is not.
    pub notes: String,
    /// How many CPUs it has, of those that are used.
    pub cpus: u32,
    /// How they lie, in words.
    pub shape: String,
    /// Where the shape comes from.
    pub shape_source: String,
    /// The machines from which figures are taken that do not stand in its own file, nearest first.
    pub based_on: Vec<String>,
    /// Every figure.
    pub figures: Vec<DescribedFigure>,
}

/// A figure with its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DescribedFigure {
    /// Where it stands in a file: `memory.hit`.
    pub key: String,
    /// What it means.
    pub meaning: &'static str,
    /// Its value with a unit.
    pub value: String,
    /// Where it comes from.
    pub source: String,
    /// The file in which it stands: the machine's own, or one that it is based on.
    pub file: String,
}

impl Description {
    pub(super) fn new(machine: Machine, sheet: &Sheet, based_on: Vec<String>) -> Self {
        let figures = KEYS.iter().filter_map(|key| {
            let figure = sheet.figures.get(&(key.table, key.name))?;
            Some(DescribedFigure {
                key: key.path(),
                meaning: key.meaning,
                value: figure.quantity.in_words(machine.ghz),
                source: figure.source.clone(),
                file: figure.file.clone(),
            })
        });
        Self {
            cpus: machine.cpus(),
            shape: shape_in_words(&machine, sheet),
            shape_source: sheet.shape.source.clone(),
            notes: sheet.notes.clone(),
            based_on,
            figures: figures.collect(),
            name: machine.name,
            about: machine.about,
        }
    }
}

/// "8 sockets (twisted-hypercube-8) × 8 cores × 2 hardware threads".
fn shape_in_words(machine: &Machine, sheet: &Sheet) -> String {
    let shape = &machine.shape;
    let some = |count: u32, one: &str| counted(count as usize, one);
    let mut words = vec![some(shape.sockets, "socket")];
    if shape.sockets > 1 {
        match &sheet.shape.topology {
            Some(Topology::Named(name)) => words[0].push_str(&format!(" ({name})")),
            _ => words[0].push_str(" (own links)"),
        }
    }
    if shape.caches > 1 {
        words.push(some(shape.caches, "last-level cache"));
    }
    words.push(some(shape.cores, "core"));
    if shape.threads > 1 {
        words.push(some(shape.threads, "hardware thread"));
    }
    let all = words.join(" × ");
    let used = match shape.usable {
        usable if usable == shape.all_cpus() => all,
        1 => format!("{all}, of which the first CPU is used"),
        usable => format!("{all}, of which the first {usable} CPUs are used"),
    };
    match shape.quota {
        Some(quota) => format!("{used}, with a quota of {quota} CPUs in 100 ms"),
        None => used,
    }
}
