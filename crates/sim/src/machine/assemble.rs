//! A machine out of a complete sheet.

use super::error::MachineError;
use super::figure::Quantity;
use super::keys::{KEYS, Kind, SHAPE, find, nearest};
use super::sheet::{CPUS, Sheet, Topology};
use super::topology::{TOPOLOGIES, hops};
use super::{Cpu, DeepIdle, Kernel, Machine, Memory, Scheduler, Shape};

/// The machine that `sheet` describes; nothing more is taken from elsewhere.
pub(super) fn machine(sheet: &Sheet) -> Result<Machine, MachineError> {
    let figures =
        Figures { sheet, ghz: figure(sheet, "clock", "ghz").and_then(|found| number(sheet, found))? };
    // The clock stands first there: all that is in cycles depends on it.
    check_ranges(sheet, figures.ghz)?;
    let shape = shape(sheet)?;
    let memory = figures.memory(&shape)?;
    Ok(Machine {
        name: sheet.name.clone(),
        about: sheet.about.clone(),
        ghz: figures.ghz,
        shape,
        memory,
        cpu: Cpu {
            pause_ns: figures.ns("cpu", "pause")?,
            step_ns: figures.ns("cpu", "step")?,
            window_ns: figures.ns("cpu", "window")?,
            work_ns: figures.ns("cpu", "work")?,
            fence_ns: figures.ns("cpu", "fence")?,
            stores: figures.number("cpu", "stores")? as u32,
            smt: figures.number("cpu", "smt")?,
        },
        kernel: figures.kernel()?,
        scheduler: figures.scheduler()?,
    })
}

/// Whether every figure of a sheet can be. Cycles are those of a clock of `ghz`.
fn check_ranges(sheet: &Sheet, ghz: f64) -> Result<(), MachineError> {
    for key in KEYS {
        let Some(figure) = sheet.figures.get(&(key.table, key.name)) else { continue };
        let range = key.range();
        let can_be = match &figure.quantity {
            Quantity::Number(number) => range.holds(*number) && is_whole_enough(key.kind, *number),
            quantity => quantity.to_ns(ghz).into_iter().all(|ns| range.holds(ns)),
        };
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

/// The figures of a sheet, with its clock rate.
struct Figures<'a> {
    sheet: &'a Sheet,
    ghz: f64,
}

impl Figures<'_> {
    fn ns(&self, table: &str, name: &str) -> Result<f64, MachineError> {
        let ns = figure(self.sheet, table, name)?.to_ns(self.ghz);
        Ok(ns.first().copied().unwrap_or_default())
    }

    fn ns_or_never(&self, table: &str, name: &str) -> Result<Option<f64>, MachineError> {
        Ok(figure(self.sheet, table, name)?.to_ns(self.ghz).first().copied())
    }

    fn number(&self, table: &str, name: &str) -> Result<f64, MachineError> {
        number(self.sheet, figure(self.sheet, table, name)?)
    }

    fn memory(&self, shape: &Shape) -> Result<Memory, MachineError> {
        let ns = |name| self.ns("memory", name);
        let memory = Memory {
            hit_ns: ns("hit")?,
            rmw_ns: ns("rmw")?,
            shared_ns: ns("shared")?,
            shared_busy_ns: ns("shared_busy")?,
            near_ns: ns("near")?,
            socket_ns: ns("socket")?,
            hop_ns: figure(self.sheet, "memory", "hop")?.to_ns(self.ghz),
            dram_ns: ns("dram")?,
            invalidate_ns: ns("invalidate")?,
            serial: self.number("memory", "serial")?,
            nearness: self.number("memory", "nearness")?,
            spread: self.number("memory", "spread")?,
        };
        if shape.sockets > 1 && memory.hop_ns.is_empty() {
            let what = format!(
                "is empty, but there are {} sockets. Write a time for one link at least",
                shape.sockets
            );
            return Err(self.sheet.bad("memory.hop", &what));
        }
        Ok(memory)
    }

    fn kernel(&self) -> Result<Kernel, MachineError> {
        let ns = |name| self.ns("kernel", name);
        let deep_idle = match self.ns_or_never("kernel", "deep_idle_after")? {
            None => None,
            Some(after_ns) => {
                let exit = self.ns_or_never("kernel", "deep_idle_exit")?;
                let exit_ns = exit.ok_or_else(|| {
                    let what =
                        "is never, but `kernel.deep_idle_after` is a time. Make both a time, or both never";
                    self.sheet.bad("kernel.deep_idle_exit", what)
                })?;
                Some(DeepIdle { after_ns, exit_ns })
            }
        };
        Ok(Kernel {
            syscall_ns: ns("syscall")?,
            futex_ns: ns("futex")?,
            futex_buckets: self.number("kernel", "futex_buckets")? as u32,
            wake_ns: ns("wake")?,
            kick_ns: ns("kick")?,
            // Files written before there was this key do not have it.
            kick_socket_ns: match self.sheet.figures.contains_key(&("kernel", "kick_socket")) {
                true => ns("kick_socket")?,
                false => 0.0,
            },
            idle_exit_ns: ns("idle_exit")?,
            deep_idle,
            switch_ns: ns("switch")?,
            clock_ns: ns("clock")?,
            cpu_clock_ns: ns("cpu_clock")?,
            membarrier_ns: ns("membarrier")?,
            interrupt_ns: ns("interrupt")?,
            timer_slack_ns: ns("timer_slack")?,
            migrate_ns: [ns("migrate_core")?, ns("migrate_socket")?],
            spread: self.number("kernel", "spread")?,
        })
    }

    fn scheduler(&self) -> Result<Scheduler, MachineError> {
        let ns = |name| self.ns("scheduler", name);
        Ok(Scheduler {
            latency_ns: ns("latency")?,
            min_slice_ns: ns("min_slice")?,
            wakeup_ns: self.ns_or_never("scheduler", "wakeup")?,
            sleeper_credit: self.number("scheduler", "sleeper_credit")?,
            tick_ns: ns("tick")?,
            balance_ns: ns("balance")?,
            preempts_kernel: matches!(
                figure(self.sheet, "scheduler", "preempts_kernel")?,
                Quantity::Flag(true)
            ),
        })
    }
}

fn figure<'a>(sheet: &'a Sheet, table: &str, name: &str) -> Result<&'a Quantity, MachineError> {
    let key = find(table, name);
    let found = key.and_then(|key| sheet.figures.get(&(key.table, key.name)));
    found.map(|figure| &figure.quantity).ok_or_else(|| {
        let (meaning, example) = key.map_or(("", ""), |key| (key.meaning, key.kind.example()));
        MachineError::missing(&sheet.file, &format!("{table}.{name}"), meaning, example)
    })
}

fn number(sheet: &Sheet, quantity: &Quantity) -> Result<f64, MachineError> {
    match quantity {
        Quantity::Number(number) => Ok(*number),
        // The parser lets nothing else through where a number is wanted.
        other => Err(sheet.bad("figure", &format!("is no number: {other:?}"))),
    }
}
