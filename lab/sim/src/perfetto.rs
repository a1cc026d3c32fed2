//! A run as a timeline that [Perfetto](https://ui.perfetto.dev) shows: Chrome's trace event format, as JSON.
//!
//! Two groups of tracks: a track for each CPU, which shows whose thread it runs, and a track for each thread,
//! which shows its contended waits and its holds. Of the format, only complete events (`X`), metadata (`M`)
//! and one instant (`i`) are used. Times are in microseconds; slices of one track lie side by side or within
//! each other.

use std::cmp::Reverse;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use crate::outcome::Slice;
use crate::workload::Report;

/// Slices that a timeline has at most, unless told: about 30 MB, which a browser still likes.
pub const MOST_SLICES: usize = 250_000;

/// The group of the CPUs.
const CPUS: u32 = 1;
/// The group of the threads.
const THREADS: u32 = 2;
/// The number of the first CPU's track, and of the first thread's: numbers differ between groups, and from
/// those of the groups, because a thread with its process' number is taken for the main thread.
const FIRST_TRACK: [u32; 2] = [1_000, 10_000];

/// Something on a track.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'static str,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// Of an instant: for which tracks it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

/// Where a slice belongs: group and track.
fn track(slice: &Slice) -> (u32, u32) {
    match slice.cpu {
        Some(cpu) => (CPUS, FIRST_TRACK[0] + cpu),
        None => (THREADS, FIRST_TRACK[1] + slice.thread),
    }
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Writes the timeline of a run whose slices were recorded: see [`Record::slices`](crate::Record::slices).
///
/// # Errors
///
/// If `to` cannot be written.
pub fn write(report: &Report, to: impl Write) -> io::Result<()> {
    let outcome = &report.outcome;
    let mut slices: Vec<&Slice> = outcome.slices.iter().collect();
    // What surrounds comes before what is within.
    slices.sort_by_key(|slice| (track(slice), slice.from_ns, Reverse(slice.to_ns)));
    let mut events = Events { to, is_first: true };
    events.open(report)?;
    for (group, name) in [(CPUS, "CPUs"), (THREADS, "Threads")] {
        events.name("process_name", group, group, json!({ "name": name }))?;
        events.name("process_sort_index", group, group, json!({ "sort_index": group }))?;
    }
    let cpus = (0..outcome.busy_ns.len()).map(|cpu| (CPUS, cpu as u32, format!("CPU {cpu}")));
    let threads = (0..outcome.threads.len()).map(|thread| (THREADS, thread as u32, named(thread as u32)));
    for (group, number, name) in cpus.chain(threads) {
        let tid = FIRST_TRACK[group as usize - 1] + number;
        events.name("thread_name", group, tid, json!({ "name": name }))?;
        events.name("thread_sort_index", group, tid, json!({ "sort_index": number }))?;
    }
    for slice in slices {
        events.slice(slice)?;
    }
    if outcome.slices_cut > 0 {
        let last = outcome.slices.iter().map(|slice| slice.to_ns).max().unwrap_or_default();
        events.note(&cut(outcome.slices_cut), last)?;
    }
    events.close()
}

/// A thread's name.
fn named(thread: u32) -> String {
    format!("thread {thread}")
}

fn cut(slices: u64) -> String {
    format!("The record is full: {slices} later slices are not shown.")
}

/// The list of events, one a line.
struct Events<W> {
    to: W,
    is_first: bool,
}

impl<W: Write> Events<W> {
    fn open(&mut self, report: &Report) -> io::Result<()> {
        let mut about = json!({
            "machine": report.machine,
            "lock": report.lock,
            "workload": report.workload,
            "threads": report.threads.to_string(),
            "seed": report.seed.to_string(),
        });
        if report.outcome.slices_cut > 0 {
            about["note"] = cut(report.outcome.slices_cut).into();
        }
        write!(self.to, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.to.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        serde_json::to_writer(&mut self.to, event).map_err(io::Error::from)
    }

    fn name(&mut self, what: &str, pid: u32, tid: u32, args: Value) -> io::Result<()> {
        let args = Some(args);
        self.event(&Event { name: what, ph: "M", pid, tid, cat: None, ts: None, dur: None, s: None, args })
    }

    fn slice(&mut self, slice: &Slice) -> io::Result<()> {
        let (pid, tid) = track(slice);
        let runs = named(slice.thread);
        let (name, cat) = match &slice.name {
            Some(name) => (&**name, "lock"),
            None => (runs.as_str(), "cpu"),
        };
        let ts = Some(microseconds(slice.from_ns));
        let dur = Some(microseconds(slice.to_ns.saturating_sub(slice.from_ns)));
        self.event(&Event { name, ph: "X", pid, tid, cat: Some(cat), ts, dur, s: None, args: None })
    }

    fn note(&mut self, name: &str, at_ns: u64) -> io::Result<()> {
        let ts = Some(microseconds(at_ns));
        let (pid, tid, s) = (CPUS, FIRST_TRACK[0], Some("g"));
        self.event(&Event { name, ph: "i", pid, tid, cat: Some("note"), ts, dur: None, s, args: None })
    }

    fn close(&mut self) -> io::Result<()> {
        self.to.write_all(b"\n]}\n")?;
        self.to.flush()
    }
}
