//! Which cells are measured: a preset or the bounds, narrowed down by the user.

use std::fmt::Display;

use super::bounds;
use super::definitions::{Definitions, Preset, Selection, Target};
use super::experiment::{Cell, Skipped};
use super::families::{FAMILIES, by_name};
use super::load::{Load, PingPong, Placement, Primitive};
use super::peers::Peers;
use super::targets;

/// What a user asked for; empty lists mean "as the preset says".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// Names of shapes.
    pub shapes: Vec<String>,
    /// Names of targets, perhaps with variables.
    pub targets: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Which target is the baseline.
    pub baseline: Option<String>,
    /// Exactly what the bounds need.
    pub bounds: bool,
}

/// What will be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The targets; the first one is the baseline.
    pub targets: Vec<Target>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// What is not as it was asked for: shapes that do not run at a number of threads.
    pub notes: Vec<String>,
}

/// Something is named twice; the sentence says what to do.
#[must_use]
pub fn twice(option: &str, what: impl Display) -> String {
    format!(
        "{option} names `{what}` twice\nName it once; the baseline runs twice per round in any case, which shows the noise"
    )
}

/// Checks that nothing is named twice by an option.
///
/// # Errors
///
/// A sentence about the first thing that is.
pub fn once<T: PartialEq + Display>(option: &str, all: &[T]) -> Result<(), String> {
    let second = all.iter().enumerate().find(|(place, what)| all[..*place].contains(what));
    second.map_or(Ok(()), |(_, what)| Err(twice(option, what)))
}

/// Finds the cells for a wish.
///
/// # Errors
///
/// A sentence about the first thing that is not there.
pub fn select(
    definitions: &Definitions,
    preset: &Preset,
    wish: &Wish,
    peers: &Peers,
    cpus: usize,
) -> Result<Selected, String> {
    once("--workload", &wish.shapes)?;
    once("--locks", &wish.targets)?;
    once("--threads", &wish.threads)?;
    let targets = targets_of(definitions, preset, wish)?;
    let mut notes = Vec::new();
    let mut cells = Vec::new();
    let selections = match wish.bounds {
        true => bounds::selections(definitions)?,
        false => selections(definitions, preset, wish, &mut notes)?,
    };
    for (selection, wanted) in selections {
        if wish.bounds && !wish.shapes.is_empty() && !wish.shapes.contains(&selection.shape) {
            continue;
        }
        let shape = definitions.shape(&selection.shape)?;
        let threads = if selection.threads.is_empty() { &shape.threads } else { &selection.threads };
        for &threads in threads {
            shape.load.check(threads).map_err(|what| format!("shape `{}`: {what}", shape.name))?;
            let here = targets.iter().filter(|t| wanted.is_empty() || wanted.contains(&t.name));
            let (can, skipped) = split(here, &shape.load, peers, cpus);
            cells.push(Cell {
                shape: shape.name.clone(),
                load: shape.load.clone(),
                threads,
                at_least_millis: shape.millis_per_thread * threads as u64,
                targets: can,
                skipped,
            });
        }
    }
    if cells.iter().all(|cell| cell.targets.is_empty()) {
        return Err(nothing_left(&cells));
    }
    Ok(Selected { targets, cells, notes })
}

/// Why no target runs in any cell.
fn nothing_left(cells: &[Cell]) -> String {
    let Some(cell) = cells.first() else {
        return String::from("nothing is left to measure: there is no such shape");
    };
    let reasons: Vec<String> =
        cell.skipped.iter().map(|Skipped { target, why }| format!("{target}: {why}")).collect();
    format!("nothing is left to measure; no implementation can run `{}`\n{}", cell.shape, reasons.join("\n"))
}

fn targets_of(definitions: &Definitions, preset: &Preset, wish: &Wish) -> Result<Vec<Target>, String> {
    let bounds: Vec<String>;
    let names = match (&wish.targets[..], wish.bounds) {
        ([], true) => {
            let needed: Vec<String> =
                bounds::selections(definitions)?.into_iter().flat_map(|(_, targets)| targets).collect();
            let all = definitions.targets.iter().map(|target| target.name.clone());
            bounds = all.filter(|name| needed.contains(name)).collect();
            &bounds
        }
        ([], false) => &preset.targets,
        _ => &wish.targets,
    };
    let mut found = Vec::new();
    for name in wish.baseline.iter().chain(names) {
        let target = targets::parse(definitions, name)?;
        if !found.contains(&target) {
            found.push(target);
        }
    }
    Ok(found)
}

fn selections(
    definitions: &Definitions,
    preset: &Preset,
    wish: &Wish,
    notes: &mut Vec<String>,
) -> Result<Vec<(Selection, Vec<String>)>, String> {
    let all = || preset.cells.clone();
    let by_name = |name: &String| {
        let of_preset = preset.cells.iter().find(|selection| selection.shape == *name);
        match of_preset {
            Some(selection) => Ok(selection.clone()),
            None => Ok(Selection { shape: definitions.shape(name)?.name.clone(), threads: Vec::new() }),
        }
    };
    let chosen: Vec<Selection> = match wish.shapes.is_empty() {
        true => all(),
        false => wish.shapes.iter().map(by_name).collect::<Result<_, String>>()?,
    };
    let mut selections = Vec::new();
    for mut selection in chosen {
        if !wish.threads.is_empty() {
            let shape = definitions.shape(&selection.shape)?;
            let fixed = shape.threads.len() == 1;
            let possible = |threads: &&usize| match fixed {
                true => shape.threads.contains(threads),
                false => shape.load.check(**threads).is_ok(),
            };
            selection.threads = wish.threads.iter().filter(possible).copied().collect();
            if selection.threads.is_empty() {
                // A shape for one number of threads is what it is, and not left out of a run at other numbers. Any
                // other shape says what is wrong with the numbers.
                selection.threads.clone_from(if fixed { &shape.threads } else { &wish.threads });
            }
            let numbers = |numbers: &mut dyn Iterator<Item = &usize>| {
                numbers.map(usize::to_string).collect::<Vec<_>>().join(", ")
            };
            let mut left_out = wish.threads.iter().filter(|n| !selection.threads.contains(n)).peekable();
            if left_out.peek().is_some() {
                notes.push(format!(
                    "--threads {} does not apply to {}, which runs with {}",
                    numbers(&mut left_out),
                    shape.name,
                    numbers(&mut selection.threads.iter())
                ));
            }
        }
        selections.push((selection, Vec::new()));
    }
    Ok(selections)
}

/// The names of those that can run `load`, and the others with the reason.
pub(crate) fn split<'a>(
    targets: impl Iterator<Item = &'a Target>,
    load: &Load,
    peers: &Peers,
    cpus: usize,
) -> (Vec<String>, Vec<Skipped>) {
    let (mut can, mut skipped) = (Vec::new(), Vec::new());
    for target in targets {
        match obstacle(target, load, peers, cpus) {
            None => can.push(target.name.clone()),
            Some(why) => skipped.push(Skipped { target: target.name.clone(), why }),
        }
    }
    (can, skipped)
}

fn obstacle(target: &Target, load: &Load, peers: &Peers, cpus: usize) -> Option<String> {
    if cpus < 2 && matches!(load, Load::PingPong(PingPong { cpus: Placement::Two, .. })) {
        return Some(String::from("needs two CPUs"));
    }
    let needs = load.needs();
    match primitives(&target.family, peers) {
        None => Some(peers.why_missing(&target.family, target.install.as_deref())),
        Some(has) if has.contains(&needs) => None,
        Some(_) => Some(format!("no {}", needs.name())),
    }
}

/// What a family has; none if it is not there.
#[must_use]
pub fn primitives(family: &str, peers: &Peers) -> Option<Vec<Primitive>> {
    if let Some(family) = by_name(&FAMILIES, family) {
        return Some(
            Primitive::ALL.into_iter().filter(|&primitive| family.run(primitive).is_some()).collect(),
        );
    }
    let names = peers.listing.primitives.get(family)?;
    Some(
        Primitive::ALL
            .into_iter()
            .filter(|primitive| names.iter().any(|name| name == primitive.name()))
            .collect(),
    )
}
