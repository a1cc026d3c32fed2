//! A run, or several seeds of one: the answer, then the figures.

use serde::Serialize;
use spinpark_measure::report::{Style, fits, table, text};
use spinpark_measure::text::units::number;
use spinpark_platform::Event;

use crate::Document;
use crate::formats::{align_left, bar, bar_room, ns, rate, share};
use crate::limit::{Causes, Limit, Lock};
use crate::summary::{Summary, Weak};
use spinpark_sim::workload::{Histogram, Place, Report};

/// What is in the JSON of `spinpark-lab sim run`.
#[derive(Debug, Serialize)]
pub struct Run<'a> {
    limit: Limit,
    sentence: String,
    weak: Vec<Weak>,
    summary: &'a Summary,
    runs: &'a [Report],
}

/// The JSON of these runs.
#[must_use]
pub fn json<'a>(
    end: &'a str,
    command: &'a str,
    summary: &'a Summary,
    runs: &'a [Report],
) -> Document<'a, Run<'a>> {
    let limit = Limit::of(summary);
    let (sentence, weak) = (limit.sentence(), Weak::of(summary));
    Document::new("spinpark sim run", end, command, Run { limit, sentence, weak, summary, runs })
}

/// Everything about it.
#[must_use]
pub fn render(summary: &Summary, style: Style) -> String {
    let mut out = style.wrap(&Limit::of(summary).sentence(), 0) + "\n\n";
    for weak in Weak::of(summary) {
        out += &(style.wrap(&weak.sentence(), 2) + "\n\n");
    }
    out += &figures(summary, style);
    out += &places(summary, style);
    out += &locks(summary, style);
    out += &outcomes(summary, style);
    for place in &summary.places {
        out += &histogram(place, summary.ghz, style);
    }
    out
}

/// `4.12 M operations/s ±1.2 % (4.08 M … 4.16 M)`.
fn throughput(summary: &Summary) -> String {
    let spread = summary.throughput;
    let mean = format!("{} operations/s", rate(spread.mean));
    match spread.relative() {
        None => mean,
        Some(deviation) => {
            format!("{mean} ±{} ({} … {})", share(deviation), rate(spread.low), rate(spread.high))
        }
    }
}

fn figures(summary: &Summary, style: Style) -> String {
    let (counts, time) = (&summary.counts, &summary.time);
    let per = |count: u64| summary.per_acquisition(count);
    let [moves, near, within, between] =
        [counts.moves(), counts.moves_near, counts.moves_socket, counts.moves_far].map(per).map(number);
    let thousand = |count: u64| number(per(count) * 1e3);
    let [switches, preemptions, migrations] =
        [counts.switches, counts.preemptions, counts.migrations].map(thousand);
    let [calls, wakes] = [counts.futex_calls, counts.wakes].map(thousand);
    let [fewest, most] = [summary.fairness.fewest, summary.fairness.most].map(|count| number(count as f64));
    let [working, spinning, runnable, asleep] =
        [time.working, time.spinning, time.runnable, time.asleep].map(share);
    let jain = summary.fairness.jain;
    let rows = [
        ("throughput", throughput(summary)),
        ("fairness", format!("Jain index {jain:.3}; a thread did {fewest} … {most} operations")),
        (
            "threads' time",
            format!("{working} working, {spinning} spinning, {runnable} waiting for a CPU, {asleep} asleep"),
        ),
        ("CPUs", busy(summary)),
        (
            "cache lines moved",
            format!(
                "{moves} an acquisition: {near} near, {within} within the socket, {between} between sockets"
            ),
        ),
        (
            "scheduler",
            format!(
                "{switches} switches, {preemptions} preemptions, {migrations} migrations per 1000 acquisitions"
            ),
        ),
        ("futexes", format!("{calls} calls, {wakes} wake-ups per 1000 acquisitions")),
    ];
    let lines = rows.map(|(name, value)| style.wrap(&format!("{name:19}{value}"), 19) + "\n");
    lines.concat() + "\n"
}

fn busy(summary: &Summary) -> String {
    let each =
        summary.cpu_ns.is_finite().then(|| format!("; {} of CPU time an operation", ns(summary.cpu_ns)));
    format!("{} busy{}", share(summary.utilisation), each.unwrap_or_default())
}

fn places(summary: &Summary, style: Style) -> String {
    if summary.places.is_empty() {
        return String::from("No lock was used.\n");
    }
    let rows: Vec<_> = summary.places.iter().map(row).collect();
    let all = columns(&rows, 0..HEADER.len(), style);
    let tables = if fits(&all) {
        text(&all)
    } else {
        // Waits, and below them what is left.
        text(&columns(&rows, 0..6, style)) + &text(&columns(&rows, 6..HEADER.len(), style))
    };
    let explanation =
        "passed: the most acquisitions by others during one wait. Waits and holds of all seeds together.";
    format!("{tables}{}\n\n", style.wrap(explanation, 2))
}

/// What is said of a place.
const HEADER: [&str; 9] =
    ["place", "acquired", "contended", "waits: total", "mean", "longest", "passed", "hold: mean", "longest"];

fn row(place: &Place) -> [String; 9] {
    let acquisitions = place.acquisitions.max(1) as f64;
    let name =
        if place.locks > 1 { format!("{} × {}", place.locks, place.name) } else { place.name.clone() };
    [
        name,
        number(place.acquisitions as f64),
        share(place.contended as f64 / acquisitions),
        ns(place.wait_ns),
        ns(place.wait_ns / acquisitions),
        ns(place.longest_wait_ns),
        number(place.most_passed as f64),
        ns(place.hold_ns / acquisitions),
        ns(place.longest_hold_ns),
    ]
}

/// Some of the columns, beside the name.
fn columns(rows: &[[String; 9]], which: std::ops::Range<usize>, style: Style) -> comfy_table::Table {
    let which = || std::iter::once(0).chain(which.clone().skip_while(|&column| column == 0));
    let mut all = table(style, &which().map(|column| HEADER[column]).collect::<Vec<_>>());
    for row in rows {
        all.add_row(which().map(|column| &row[column]));
    }
    all
}

/// What is said of a lock's time.
const TIMES: [&str; 8] =
    ["lock", "held", "free, wanted", "of that: wake-ups", "CPUs", "lines", "pauses", "steps"];

/// Where the time of each lock went, of those that were wanted.
fn locks(summary: &Summary, style: Style) -> String {
    let rows: Vec<_> =
        Lock::all(summary).iter().filter(|lock| lock.held() + lock.wanted > 0.0).map(times).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut all = table(style, &TIMES);
    all.add_rows(rows);
    let explanation = "free, wanted: no thread has it, and one waits. Of that, what its next owner is kept by: it sleeps or is being \
                       woken; others have its CPU; cache lines are on their way; it does not poll (PAUSE, back-off); its own steps.";
    format!("{}{}\n\n", text(&all), style.wrap(explanation, 2))
}

fn times(lock: &Lock) -> [String; 8] {
    let Causes { wake_ups, cpus, lines, pauses, steps } = lock.causes;
    let [wake_ups, cpus, lines, pauses, steps] = [wake_ups, cpus, lines, pauses, steps].map(share);
    [lock.name.clone(), share(lock.held()), share(lock.wanted), wake_ups, cpus, lines, pauses, steps]
}

/// What becomes of acquisitions that find the lock taken, in the words of tables.
const OUTCOMES: [(Event, &str); 15] = [
    (Event::SpinAcquired, "got it spinning"),
    (Event::SpinLeftOwnerChanged, "stopped spinning: new owner"),
    (Event::SpinLeftOffCpu, "stopped spinning: owner off CPU"),
    (Event::SpinLeftBudget, "stopped spinning: spin limit"),
    (Event::Parked, "went to sleep"),
    (Event::WokeHead, "a release woke the oldest"),
    (Event::GrantedReaders, "a release let readers in"),
    (Event::HandedOff, "was handed over"),
    (Event::RequestedHandoff, "a waiter asked for a hand-over"),
    (Event::WithdrewRequest, "a waiter let readers pass again"),
    (Event::MovedWaiter, "a signal moved a waiter"),
    (Event::DeferredWake, "wake-up deferred to the release"),
    (Event::TimedOut, "a wait timed out"),
    (Event::EnabledBias, "readers enabled the bias"),
    (Event::RevokedBias, "a writer revoked the bias"),
];

fn outcomes(summary: &Summary, style: Style) -> String {
    let contended: u64 = summary.places.iter().map(|place| place.contended).sum();
    let seen = || OUTCOMES.iter().filter(|(event, _)| summary.counts.of(*event) > 0);
    if seen().next().is_none() {
        return String::new();
    }
    let mut rows = table(style, &["what the lock did", "times", "per contended acquisition"]);
    for (event, name) in seen() {
        let count = summary.counts.of(*event);
        let part = if contended == 0 { String::from("–") } else { share(count as f64 / contended as f64) };
        rows.add_row([(*name).to_owned(), number(count as f64), part]);
    }
    text(&rows) + "\n"
}

/// The waits of contended acquisitions by powers of two, in cycles, as document 001 has them.
fn histogram(place: &Place, ghz: f64, style: Style) -> String {
    const MOST: usize = 40;
    let waits: &Histogram = &place.waits;
    let bins = waits.bins();
    let (Some(first), Some(last)) =
        (bins.iter().position(|&count| count > 0), bins.iter().rposition(|&count| count > 0))
    else {
        return String::new();
    };
    let most = bins.iter().copied().max().unwrap_or_default().max(1);
    let title = format!("waits for {}", place.name);
    let row = |bin: usize, count: u64| {
        let below = 2f64.powi(bin as i32);
        [
            format!("2^{bin} cycles"),
            ns(below / ghz),
            number(count as f64),
            share(count as f64 / waits.total() as f64),
        ]
    };
    let all: Vec<_> = (first..=last).map(|bin| (row(bin, bins[bin]), bins[bin])).collect();
    let header = [&title, "below", "waits", "part", ""];
    let longest = bar_room(style, &header, all.iter().map(|(row, _)| &row[..])).min(MOST) as f64;
    let mut rows = table(style, &header);
    align_left(&mut rows, &[4]);
    for (row, count) in all {
        rows.add_row(row.into_iter().chain([bar(count as f64 / most as f64 * longest)]));
    }
    text(&rows) + "\n"
}
