//! The timeline keeps to the trace event format, as far as Perfetto reads it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spinpark_sim::Record;
use spinpark_sim::machine::Machine;
use spinpark_sim::perfetto;
use spinpark_sim::workload::{Report, Setting};

fn run(slices: usize) -> Report {
    let mut setting = Setting::new(Machine::plain(2), "classic-mutex-2003", "hot-lock", 5);
    setting.for_ns = 9_000_000;
    setting.record = Record { slices, ..Record::default() };
    setting.run().unwrap()
}

fn timeline(report: &Report) -> Value {
    let mut text = Vec::new();
    perfetto::write(report, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn phase<'a>(trace: &'a Value, ph: &str) -> Vec<&'a Value> {
    trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == *ph).collect()
}

/// Start and end, ns.
fn span(event: &Value) -> (u64, u64) {
    let ns = |key: &str| (event[key].as_f64().unwrap() * 1e3).round() as u64;
    (ns("ts"), ns("ts") + ns("dur"))
}

fn track(event: &Value) -> (u64, u64) {
    (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())
}

#[test]
fn it_keeps_to_the_format() {
    let report = run(400_000);
    let trace = timeline(&report);
    assert_eq!(trace["displayTimeUnit"], "ns");
    assert_eq!(trace["otherData"]["lock"], "classic-mutex-2003");
    for event in trace["traceEvents"].as_array().unwrap() {
        assert!(event["name"].is_string() && event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(["X", "M"].contains(&event["ph"].as_str().unwrap()), "{event}");
    }
    let named: BTreeSet<_> =
        phase(&trace, "M").into_iter().filter(|event| event["name"] == "thread_name").map(track).collect();
    assert_eq!(named.len(), 2 + 5);
    let slices = phase(&trace, "X");
    assert_eq!(slices.len(), report.outcome.slices.len());
    assert!(slices.iter().all(|slice| named.contains(&track(slice))));
    let has = |name: &str| slices.iter().any(|slice| slice["name"] == *name);
    assert!(has("thread 4") && has("wait for lock") && has("hold lock"));
}

#[test]
fn slices_of_a_track_do_not_cross() {
    let report = run(100_000);
    let trace = timeline(&report);
    let mut tracks = BTreeMap::<_, Vec<(u64, u64)>>::new();
    for slice in phase(&trace, "X") {
        tracks.entry(track(slice)).or_default().push(span(slice));
    }
    for (track, spans) in tracks {
        let mut around: Vec<(u64, u64)> = Vec::new();
        for (from, to) in spans {
            assert!(to <= report.outcome.elapsed_ns + 1);
            while around.last().is_some_and(|outer| outer.1 <= from) {
                around.pop();
            }
            if let Some(outer) = around.last() {
                assert!(outer.0 <= from && to <= outer.1, "{track:?}: {from}–{to} crosses {outer:?}");
            }
            around.push((from, to));
        }
    }
}

#[test]
fn what_is_cut_is_said() {
    let report = run(50);
    assert_eq!(report.outcome.slices.len(), 50);
    assert!(report.outcome.slices_cut > 50);
    let trace = timeline(&report);
    let words = format!("{} later slices", report.outcome.slices_cut);
    assert!(trace["otherData"]["note"].as_str().unwrap().contains(&words));
    let note = phase(&trace, "i");
    assert_eq!((note.len(), &note[0]["s"]), (1, &"g".into()));
    assert!(note[0]["name"].as_str().unwrap().contains(&words));
}
