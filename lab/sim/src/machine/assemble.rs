//! A machine out of a complete sheet.

use super::error::MachineError;
use super::keys::{KEYS, Kind, SHAPE, find, nearest};
use super::sheet::{CPUS, Sheet, Topology};
use super::topology::{TOPOLOGIES, hops};
use super::{Cpu, Kernel, Machine, Memory, Scheduler, Shape};

/// The machine that `sheet` describes; nothing more is taken from elsewhere.
pub(super) fn machine(sheet: &Sheet) -> Result<Machine, MachineError> {
    // The clock comes first: all that is in cycles depends on it. It is in none itself.
    let ghz = numbers(sheet, f64::NAN, "clock.ghz")?[0];
    check_ranges(sheet, ghz)?;
    let shape = shape(sheet)?;
    let figure = |path: &str| numbers(sheet, ghz, path);
    let memory = Memory::read(figure)?;
    if shape.sockets > 1 && memory.hop_ns.is_empty() {
        let what =
            format!("is empty, but there are {} sockets. Write a time for one link at least", shape.sockets);
        return Err(sheet.bad("memory.hop", &what));
    }
    let is_never = |path| figure(path).map(|times| times.is_empty());
    if !is_never("kernel.deep_idle_after")? && is_never("kernel.deep_idle_exit")? {
        let what = "is never, but `kernel.deep_idle_after` is a time. Make both a time, or both never";
        return Err(sheet.bad("kernel.deep_idle_exit", what));
    }
    Ok(Machine {
        name: sheet.name.clone(),
        about: sheet.about.clone(),
        ghz,
        shape,
        memory,
        cpu: Cpu::read(figure)?,
        kernel: Kernel::read(figure)?,
        scheduler: Scheduler::read(figure)?,
    })
}

/// The figure at `path`: its numbers, times in ns. Cycles are those of a clock of `ghz`.
fn numbers(sheet: &Sheet, ghz: f64, path: &str) -> Result<Vec<f64>, MachineError> {
    let key = find(path);
    match key.and_then(|key| sheet.figures.get(&(key.table, key.name))) {
        Some(figure) => Ok(figure.quantity.numbers(ghz)),
        // Files written before there was this key do not have it.
        None if path == "kernel.kick_socket" => Ok(vec![0.0]),
        None => {
            let (meaning, example) = key.map_or(("", ""), |key| (key.meaning, key.kind.example()));
            Err(MachineError::missing(&sheet.file, path, meaning, example))
        }
    }
}

/// Whether every figure of a sheet can be. Cycles are those of a clock of `ghz`.
fn check_ranges(sheet: &Sheet, ghz: f64) -> Result<(), MachineError> {
    for key in KEYS {
        let Some(figure) = sheet.figures.get(&(key.table, key.name)) else { continue };
        let range = key.range();
        let fits = |number: f64| range.holds(number) && is_whole_enough(key.kind, number);
        let can_be = figure.quantity.numbers(ghz).into_iter().all(fits);
        if !can_be {
            let power = match key.kind {
                Kind::PowerOfTwo => "a power of two ",
                Kind::Count => "a whole number ",
                _ => "",
            };
            let value = figure.quantity.in_words(ghz);
            let what = format!(
                "is {value}, but can only be {power}from {} ({})",
                range.in_words(key.kind),
                key.meaning
            );
            return Err(MachineError::bad(&figure.file, &key.path(), &what));
        }
    }
    Ok(())
}

fn is_whole_enough(kind: Kind, number: f64) -> bool {
    match kind {
        Kind::PowerOfTwo => number.fract() == 0.0 && (number as u32).is_power_of_two(),
        Kind::Count => number.fract() == 0.0,
        _ => true,
    }
}

fn shape(sheet: &Sheet) -> Result<Shape, MachineError> {
    let count = |name: &'static str| {
        sheet.shape.counts.get(name).copied().ok_or_else(|| {
            let meaning = SHAPE.iter().find(|(key, _)| *key == name).map_or("", |(_, meaning)| meaning);
            let example = format!("`{name} = 2` in [shape], with the source of the shape");
            MachineError::missing(&sheet.file, &format!("shape.{name}"), meaning, &example)
        })
    };
    let (sockets, caches, cores, threads) =
        (count("sockets")?, count("caches")?, count("cores")?, count("threads")?);
    let cpus = [sockets, caches, cores, threads].into_iter().map(u64::from).fold(1, u64::saturating_mul);
    let most = *CPUS.end();
    if cpus > most.into() {
        let what = format!("gives {cpus} CPUs; at most {most} are simulated. Take fewer sockets or cores");
        return Err(sheet.bad("shape", &what));
    }
    let hops = links(sheet, sockets)?;
    Ok(Shape {
        sockets,
        caches,
        cores,
        threads,
        hops,
        usable: sockets * caches * cores * threads,
        quota: None,
    })
}

fn links(sheet: &Sheet, sockets: u32) -> Result<Vec<Vec<u32>>, MachineError> {
    let bad = |what: String| sheet.bad("shape.topology", &what);
    let matrix = match &sheet.shape.topology {
        // A machine of one socket needs none, whatever it inherits.
        _ if sockets == 1 => vec![vec![0]],
        None => {
            return Err(bad(format!(
                "is missing: there are {sockets} sockets. Write one of {}, or a matrix of links",
                TOPOLOGIES.join(", ")
            )));
        }
        Some(Topology::Named(name)) => hops(name, sockets).ok_or_else(|| {
            let hint = if TOPOLOGIES.contains(&name.as_str()) {
                format!("has the name `{name}`, which is not for {sockets} sockets; write a matrix of links")
            } else {
                let nearest = nearest(name, TOPOLOGIES.iter().copied());
                let hint =
                    nearest.map_or_else(|| ".".to_owned(), |nearest| format!("; did you mean `{nearest}`?"));
                format!(
                    "has the unknown name `{name}`{hint} Known are {}, or a matrix of links",
                    TOPOLOGIES.join(", ")
                )
            };
            bad(hint)
        })?,
        Some(Topology::Matrix(matrix)) => matrix.clone(),
    };
    check(&matrix, sockets as usize).map_err(bad)?;
    Ok(matrix)
}

/// Whether a matrix of links makes sense.
fn check(matrix: &[Vec<u32>], sockets: usize) -> Result<(), String> {
    if matrix.len() != sockets || matrix.iter().any(|row| row.len() != sockets) {
        return Err(format!("has to be a matrix of {sockets} × {sockets} numbers, one row for each socket"));
    }
    for (from, row) in matrix.iter().enumerate() {
        for (to, &links) in row.iter().enumerate() {
            if from == to && links != 0 {
                return Err(format!(
                    "has to have 0 where a socket meets itself, not {links} at socket {from}"
                ));
            }
            if from != to && links == 0 {
                return Err(format!("has 0 links between the sockets {from} and {to}; they have at least 1"));
            }
            if links != matrix[to][from] {
                return Err(format!(
                    "is not symmetric: {links} from socket {from} to {to}, {} back",
                    matrix[to][from]
                ));
            }
        }
    }
    Ok(())
}
