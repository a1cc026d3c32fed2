//! Which cells are measured: a preset or the bounds, narrowed down by the user.

use std::fmt::Display;

use super::adapters::{ADAPTERS, by_name};
use super::bounds;
use super::definitions::{Bound, Definitions, Implementation, Preset, Role, Selection};
use super::experiment::{Cell, Measured, Skipped};
use super::implementations;
use super::load::{Load, PingPong, Placement, Primitive};
use super::peers::Peers;
use super::planes::{Plane, Point};

/// What a user asked for; empty lists mean "as the preset says".
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Names of workloads.
    pub workloads: Vec<String>,
    /// Names of implementations, perhaps with variables.
    pub implementations: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Which implementation is the baseline.
    pub baseline: Option<String>,
    /// Exactly what these bounds need, if there are any.
    pub bounds: Vec<Bound>,
}

/// What will be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The implementations; the first one is the baseline.
    pub implementations: Vec<Implementation>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// What is not as it was asked for: workloads that do not run at a number of threads.
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

/// Finds the cells for a request.
///
/// # Errors
///
/// A sentence about the first thing that is not there.
pub fn select(
    definitions: &Definitions,
    preset: &Preset,
    request: &Request,
    peers: &Peers,
    cpus: usize,
) -> Result<Selected, String> {
    once("--workload", &request.workloads)?;
    once("--locks", &request.implementations)?;
    once("--threads", &request.threads)?;
    let implementations = implementations_of(definitions, preset, request)?;
    let mut notes = Vec::new();
    let mut cells = Vec::new();
    let of_bounds = !request.bounds.is_empty();
    let selections = match of_bounds {
        true => bounds::selections(definitions, &request.bounds)?,
        false => selections(definitions, preset, request, &mut notes)?,
    };
    for (selection, wanted) in selections {
        if of_bounds && !request.workloads.is_empty() && !request.workloads.contains(&selection.workload) {
            continue;
        }
        let workload = definitions.workload(&selection.workload)?;
        let threads = if selection.threads.is_empty() { &workload.threads } else { &selection.threads };
        for &threads in threads {
            workload.load.check(threads).map_err(|what| format!("workload `{}`: {what}", workload.name))?;
            let here = implementations.iter().filter(|t| wanted.is_empty() || wanted.contains(&t.name));
            let (can, skipped) = split(here, &workload.load, peers, cpus);
            cells.push(Cell {
                workload: workload.name.clone(),
                place: None,
                load: workload.load.clone(),
                threads,
                cpus: Placement::Any,
                at_least_millis: workload.millis_per_thread * threads as u64,
                implementations: can,
                skipped,
            });
        }
    }
    if cells.iter().all(|cell| cell.implementations.is_empty()) {
        return Err(nothing_left(&cells));
    }
    Ok(Selected { implementations, cells, notes })
}

/// The cells of `points`, without runs, with those of `implementations` that can run them.
#[must_use]
pub fn plane_cells(
    plane: &Plane,
    points: Vec<Point>,
    implementations: &[Implementation],
    peers: &Peers,
    cpus: usize,
) -> Vec<Measured> {
    let has_peer = |name: &String| plane.peers.is_empty() || plane.peers.contains(name);
    let wanted = |one: &&Implementation| one.role != Role::Peer || has_peer(&one.name);
    let cell = |Point { place, load, threads }| {
        let (implementations, skipped) = split(implementations.iter().filter(wanted), &load, peers, cpus);
        Measured::new(Cell {
            workload: format!("{} {} {}", place.plane, place.row, place.column),
            place: Some(place),
            load,
            threads,
            cpus: plane.cpus,
            at_least_millis: plane.millis_per_thread * threads as u64,
            implementations,
            skipped,
        })
    };
    points.into_iter().map(cell).collect()
}

/// Why no implementation runs in any cell.
fn nothing_left(cells: &[Cell]) -> String {
    let Some(cell) = cells.first() else {
        return String::from("nothing is left to measure: there is no such workload");
    };
    let reasons: Vec<String> = cell
        .skipped
        .iter()
        .map(|Skipped { implementation, why }| format!("{implementation}: {why}"))
        .collect();
    format!(
        "nothing is left to measure; no implementation can run `{}`\n{}",
        cell.workload,
        reasons.join("\n")
    )
}

fn implementations_of(
    definitions: &Definitions,
    preset: &Preset,
    request: &Request,
) -> Result<Vec<Implementation>, String> {
    let bounds: Vec<String>;
    let names = match (&request.implementations[..], !request.bounds.is_empty()) {
        ([], true) => {
            let needed: Vec<String> = bounds::selections(definitions, &request.bounds)?
                .into_iter()
                .flat_map(|(_, implementations)| implementations)
                .collect();
            let all = definitions.implementations.iter().map(|implementation| implementation.name.clone());
            bounds = all.filter(|name| needed.contains(name)).collect();
            &bounds
        }
        ([], false) => &preset.implementations,
        _ => &request.implementations,
    };
    let mut found = Vec::new();
    for name in request.baseline.iter().chain(names) {
        let implementation = implementations::parse(definitions, name)?;
        if !found.contains(&implementation) {
            found.push(implementation);
        }
    }
    Ok(found)
}

fn selections(
    definitions: &Definitions,
    preset: &Preset,
    request: &Request,
    notes: &mut Vec<String>,
) -> Result<Vec<(Selection, Vec<String>)>, String> {
    let all = || preset.cells.clone();
    let by_name = |name: &String| {
        let of_preset = preset.cells.iter().find(|selection| selection.workload == *name);
        match of_preset {
            Some(selection) => Ok(selection.clone()),
            None => Ok(Selection { workload: definitions.workload(name)?.name.clone(), threads: Vec::new() }),
        }
    };
    let chosen: Vec<Selection> = match request.workloads.is_empty() {
        true => all(),
        false => request.workloads.iter().map(by_name).collect::<Result<_, String>>()?,
    };
    let mut selections = Vec::new();
    // Numbers of threads that are left out, those instead, and the workloads.
    let mut exceptions: Vec<([String; 2], Vec<&str>)> = Vec::new();
    for mut selection in chosen {
        if !request.threads.is_empty() {
            let workload = definitions.workload(&selection.workload)?;
            let fixed = workload.threads.len() == 1;
            let possible = |threads: &&usize| match fixed {
                true => workload.threads.contains(threads),
                false => workload.load.check(**threads).is_ok(),
            };
            selection.threads = request.threads.iter().filter(possible).copied().collect();
            if selection.threads.is_empty() {
                // A workload for one number of threads is what it is, and not left out of a run at other
                // numbers. Any other workload says what is wrong with the numbers.
                selection.threads.clone_from(if fixed { &workload.threads } else { &request.threads });
            }
            let numbers = |numbers: &mut dyn Iterator<Item = &usize>| {
                numbers.map(usize::to_string).collect::<Vec<_>>().join(", ")
            };
            let mut left_out = request.threads.iter().filter(|n| !selection.threads.contains(n)).peekable();
            if left_out.peek().is_some() {
                let numbers = [numbers(&mut left_out), numbers(&mut selection.threads.iter())];
                match exceptions.iter_mut().find(|(known, _)| *known == numbers) {
                    Some((_, names)) => names.push(&workload.name),
                    None => exceptions.push((numbers, vec![&workload.name])),
                }
            }
        }
        selections.push((selection, Vec::new()));
    }
    notes.extend(exceptions.into_iter().map(|([left_out, runs_with], names)| {
        let run = if names.len() == 1 { "runs" } else { "run" };
        format!("--threads {left_out} does not apply to {}, which {run} with {runs_with}", names.join(", "))
    }));
    Ok(selections)
}

/// The names of those that can run `load`, and the others with the reason.
fn split<'a>(
    implementations: impl Iterator<Item = &'a Implementation>,
    load: &Load,
    peers: &Peers,
    cpus: usize,
) -> (Vec<String>, Vec<Skipped>) {
    let (mut can, mut skipped) = (Vec::new(), Vec::new());
    for implementation in implementations {
        match obstacle(implementation, load, peers, cpus) {
            None => can.push(implementation.name.clone()),
            Some(why) => skipped.push(Skipped { implementation: implementation.name.clone(), why }),
        }
    }
    (can, skipped)
}

fn obstacle(implementation: &Implementation, load: &Load, peers: &Peers, cpus: usize) -> Option<String> {
    if cpus < 2 && matches!(load, Load::PingPong(PingPong { cpus: Placement::Each, .. })) {
        return Some(String::from("needs two CPUs"));
    }
    let needs = load.needs();
    match primitives(&implementation.adapter, peers) {
        None => Some(peers.why_missing(&implementation.adapter, implementation.install.as_deref())),
        Some(has) if has.contains(&needs) => None,
        Some(_) => Some(format!("no {}", needs.name())),
    }
}

/// What an adapter has; none if it is not there.
#[must_use]
pub fn primitives(adapter: &str, peers: &Peers) -> Option<Vec<Primitive>> {
    if let Some(adapter) = by_name(&ADAPTERS, adapter) {
        return Some(
            Primitive::ALL.into_iter().filter(|&primitive| adapter.run(primitive).is_some()).collect(),
        );
    }
    let names = peers.listing.primitives.get(adapter)?;
    Some(
        Primitive::ALL
            .into_iter()
            .filter(|primitive| names.iter().any(|name| name == primitive.name()))
            .collect(),
    )
}
