//! Our read-write lock and one that counts its readers in its word, on 64 CPUs: 0 and 0.1 % writes.

use spinpark_sim::workload::{Report, Setting, SettingError};

use super::{Bound, Effort, Figure, Progress, Table, Unit, figure, machine, ratios, run_seeds};

const OURS: &str = "spinpark";
/// A count in one word. With optimistic spinning, it is the fastest of the documents' read-write locks.
const COUNTER: &str = "classic-rwsem-full";
/// With the virtual times of their runs, ns. A longer run of readers in slots takes minutes: they do too many
/// operations.
const WORKLOADS: [(&str, u64); 2] = [("readers", 5_000_000), ("mixed-0.1", 20_000_000)];
const MACHINES: [&str; 4] = ["westmere-ex-80", "epyc-7r13-96", "sapphire-rapids-112", "big-512"];
/// As many threads, each with a CPU of its own.
const CPUS: u32 = 64;
/// A writer's longest wait, ns.
const LONGEST_WRITE_NS: f64 = 20e6;

pub(crate) fn table(effort: Effort, progress: Progress<'_>) -> Result<Table, SettingError> {
    let (machines, shorter) = effort.pick((&MACHINES[1..2], 20), (&MACHINES[..], 1));
    let mut settings = Vec::new();
    for name in machines {
        let machine = machine(name)?.limited_to(CPUS);
        for (workload, for_ns) in WORKLOADS {
            let for_ns = for_ns / shorter;
            for lock in [OURS, COUNTER] {
                settings.push(Setting { for_ns, ..Setting::new(machine.clone(), lock, workload, CPUS) });
            }
        }
    }
    let milliseconds = |workload: usize| (WORKLOADS[workload].1 / shorter) as f64 / 1e6;
    let reports = run_seeds(&settings, 1, progress)?;
    Ok(Table::new(
        "ours",
        format!("Our read-write lock and a counting one, {CPUS} threads on {CPUS} CPUs"),
        machines.join(", "),
        reports.chunks(2).flat_map(compare).collect(),
        vec![format!(
            "The counting lock is {COUNTER}. One seed; runs of {} ms without writes, and {} ms with. They begin with a lock that has not been read yet: ours counts its readers, too, until there have been enough of them to pay for a writer that ends the bias.",
            milliseconds(0),
            milliseconds(1)
        )],
    ))
}

/// Ours and the other one, each by seed.
fn compare(pair: &[Vec<Report>]) -> Vec<Figure> {
    let [ours, counter] = pair else { return Vec::new() };
    let Some(first) = ours.first() else { return Vec::new() };
    let place = format!("{}, {}", first.machine, first.workload);
    let name = format!("{place}: throughput ÷ {COUNTER}'s");
    let gains = ratios(ours, counter, Report::throughput);
    let mut figures = vec![figure(name, Unit::Ratio, None, &gains, Some(Bound::AtLeast(20.0)))];
    let writes = |report: &Report| {
        let of_writers = report.places.iter().filter(|place| !place.name.ends_with("(read)"));
        of_writers.map(|place| place.longest_wait_ns).fold(0.0, f64::max)
    };
    if ours.iter().any(|report| writes(report) > 0.0) {
        let waits: Vec<f64> = ours.iter().map(writes).collect();
        let (name, bound) = (format!("{place}: a writer's longest wait"), Bound::AtMost(LONGEST_WRITE_NS));
        figures.push(figure(name, Unit::Nanoseconds, None, &waits, Some(bound)));
    }
    figures
}
