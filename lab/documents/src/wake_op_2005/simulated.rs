//! Document 003: what a signal costs on one CPU, by how it wakes.

use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting, SettingError};

use crate::published;
use crate::simulated::{self, Bound, Effort, Figure, Progress, Table, Unit, ratios, run_seeds};

const MACHINE: &str = "up";

/// `switch` of the machine is what lmbench shows for two processes. Threads of one process keep address space
/// and TLB.
const THREAD_SWITCH_NS: f64 = 400.0;

/// The document's lock names, and ours.
const VARIANTS: [(&str, &str); 3] = [
    ("orig", "classic-condvar-orig"),
    ("requeue", "classic-condvar-requeue"),
    ("wake_op", "classic-condvar-wake-op"),
];

fn seconds(variant: &str) -> Option<f64> {
    published::mean("condvar_signal", variant, "real_s")
}

pub(crate) fn signal(effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    let machine = simulated::machine(MACHINE)?;
    let for_ns = effort.pick(5_000_000, 500_000_000);
    let with =
        |machine: &Machine, lock| Setting { for_ns, ..Setting::new(machine.clone(), lock, "condvar", 2) };
    let mut threads = machine.clone();
    threads.kernel.switch_ns = THREAD_SWITCH_NS;
    let settings: Vec<_> = [&threads, &machine]
        .iter()
        .flat_map(|machine| VARIANTS.map(|(_, lock)| with(machine, lock)))
        .collect();
    let all = run_seeds(&settings, 1, progress)?;
    let figure = |variant: usize, name: String, from: &[Vec<Report>]| {
        let published =
            seconds(VARIANTS[0].0).zip(seconds(VARIANTS[variant].0)).map(|(orig, this)| orig / this);
        let values = ratios(&from[variant], &from[0], Report::throughput);
        simulated::figure(name, Unit::Ratio, published, &values, None)
    };
    let within = |figure: Figure| {
        let published = figure.published.unwrap_or(f64::NAN);
        Figure { bound: Some(Bound::Within(published * 0.85, published * 1.15)), ..figure }
    };
    let (of_threads, as_filed) = all.split_at(VARIANTS.len());
    let figures = vec![
        within(figure(1, "requeue over orig".to_owned(), of_threads)),
        Figure { fitted: true, ..within(figure(2, "wake-op over orig".to_owned(), of_threads)) },
        figure(1, "requeue, switches as filed".to_owned(), as_filed),
        figure(2, "wake-op, switches as filed".to_owned(), as_filed),
    ];
    Ok(Table {
fitted: "wake-op over orig: by the program's own work between two calls (workload constant TURN)".to_owned(),
..Table::new("003", "Three ways to signal a condition variable, on one CPU", machine.name, figures, vec![
"The document's program is lost: this is what its text describes, with the woken thread running at once.".to_owned(),
format!(
"A switch takes {THREAD_SWITCH_NS} ns here, half of the machine's file, which has it for processes (\"as filed\"): threads keep address space and TLB."
),
"The document's own times put a switch at about half of a futex call: two calls (requeue against wake-op) are 0.13 s, one call and two switches (orig against requeue) 0.14 s.".to_owned(),
])
})
}
