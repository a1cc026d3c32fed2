//! The longest waits, one by one, for tools that show them with other traces: lines of JSON, a
//! timeline for [Perfetto](https://ui.perfetto.dev) (Chrome's trace event format), and one for
//! [speedscope](https://www.speedscope.app).
//!
//! Times of the timeline for Perfetto are the wall clock's, in µs since 1970, as a trace of requests has
//! them; those of speedscope are ns since the recording began.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use spinpark_measure::text::date::iso;

use crate::model::{CallSiteId, Profile, SlowWait};

/// The group of tracks in a timeline.
const CATEGORY: &str = "wait";

/// A line for each wait, the longest first.
#[must_use]
pub fn lines(profiles: &[Profile]) -> String {
    let mut text = String::new();
    for profile in profiles {
        for wait in &profile.slow_waits {
            text += &line(profile, wait).to_string();
            text.push('\n');
        }
    }
    text
}

/// The profile with the longest waits of a part of the run only, ns after the start.
#[must_use]
pub fn of_part(profile: &Profile, (from, to): (u64, u64)) -> Profile {
    let is_in = |wait: &&SlowWait| wait.start < to && wait.start.saturating_add(wait.time) > from;
    Profile { slow_waits: profile.slow_waits.iter().filter(is_in).cloned().collect(), ..profile.clone() }
}

fn line(profile: &Profile, wait: &SlowWait) -> Value {
    let lock = profile.lock(wait.lock);
    json!({
        "wall_clock": wall_clock(profile, wait),
        "program": profile.program,
        "process": profile.pid,
        "thread": wait.thread,
        "thread_name": wait.name,
        "start_ns": wait.start,
        "waited_ns": wait.time,
        "free_ns": wait.free,
        "lock": lock.map(|lock| lock.label.as_str()),
        "kind": lock.map(|lock| lock.kind),
        "type": lock.and_then(|lock| lock.type_name.as_deref()),
        "role": wait.role,
        "queue": (wait.queue > 0).then_some(wait.queue),
        "timed_out": wait.is_timed_out,
        "waited_in": stack(profile, wait.call_site),
        "held_in": stack(profile, wait.holder.filter(|_| !wait.is_release)),
        "released_in": stack(profile, wait.holder.filter(|_| wait.is_release)),
        "holder_call": wait.holder_call.as_ref().map(|call| json!({"function": call.function, "ns": call.time})),
    })
}

/// When a wait began: `2026-11-28T08:40:01.123456789Z`.
fn wall_clock(profile: &Profile, wait: &SlowWait) -> String {
    let at = profile.started.saturating_add(wait.start);
    let seconds = iso(at / 1_000_000_000);
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), at % 1_000_000_000)
}

/// The frames, the innermost first; null if they are not known.
fn stack(profile: &Profile, call_site: Option<CallSiteId>) -> Option<Vec<String>> {
    let frames = &profile.call_sites.get(call_site?)?.frames;
    let shown = |frame: &crate::model::Frame| match &frame.source {
        Some((file, line)) if frame.function.is_some() => format!("{} ({file}:{line})", frame.shown()),
        _ => frame.shown(),
    };
    Some(frames.iter().map(shown).collect())
}

/// `wait: cache_lock`.
fn name(profile: &Profile, wait: &SlowWait) -> String {
    profile.lock(wait.lock).map_or_else(|| String::from("wait"), |lock| format!("wait: {}", lock.label))
}

/// A timeline for Perfetto: a track for each thread, a slice for each wait.
#[must_use]
pub fn perfetto(profiles: &[Profile]) -> String {
    let us = |ns: u64| ns as f64 / 1e3;
    let mut events: Vec<Value> = Vec::new();
    for profile in profiles.iter().filter(|profile| !profile.slow_waits.is_empty()) {
        let program = profile.program.rsplit('/').next().unwrap_or_default();
        events.push(metadata("process_name", profile.pid, profile.pid, program));
        let names: BTreeMap<u32, &str> =
            profile.slow_waits.iter().map(|wait| (wait.thread, wait.name.as_str())).collect();
        let tracks = names.iter().map(|(thread, name)| metadata("thread_name", profile.pid, *thread, name));
        events.extend(tracks);
        for wait in &profile.slow_waits {
            events.push(json!({
                "name": name(profile, wait), "cat": CATEGORY, "ph": "X", "pid": profile.pid, "tid": wait.thread,
                "ts": us(profile.started.saturating_add(wait.start)), "dur": us(wait.time),
                "args": line(profile, wait),
            }));
        }
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events}).to_string()
}

fn metadata(what: &str, process: u32, thread: u32, name: &str) -> Value {
    json!({"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}})
}

/// A timeline for speedscope: a profile for each thread, in which each wait is its stack, and the lock on
/// top.
#[must_use]
pub fn speedscope(profiles: &[Profile]) -> String {
    let mut frames: Vec<Value> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut number = |name: String| {
        *numbers.entry(name).or_insert_with_key(|name| {
            frames.push(json!({"name": name}));
            frames.len() - 1
        })
    };
    let mut shown: Vec<Value> = Vec::new();
    for profile in profiles {
        let mut threads: BTreeMap<u32, Vec<&SlowWait>> = BTreeMap::new();
        for wait in &profile.slow_waits {
            threads.entry(wait.thread).or_default().push(wait);
        }
        for (thread, mut waits) in threads {
            waits.sort_by_key(|wait| wait.start);
            let mut events: Vec<Value> = Vec::new();
            let mut last = 0;
            for wait in &waits {
                // A wait of a signal handler lies within another one.
                if wait.start < last {
                    continue;
                }
                last = wait.start + wait.time;
                let mut stack = stack(profile, wait.call_site).unwrap_or_default();
                stack.insert(0, name(profile, wait));
                let stack: Vec<usize> = stack.into_iter().map(&mut number).collect();
                let open =
                    stack.iter().rev().map(|frame| json!({"type": "O", "frame": frame, "at": wait.start}));
                events.extend(open);
                events.extend(stack.iter().map(|frame| json!({"type": "C", "frame": frame, "at": last})));
            }
            let label = format!("{} {thread} of {}", waits[0].name, profile.pid);
            shown.push(json!({
                "type": "evented", "name": label, "unit": "nanoseconds", "startValue": 0,
                "endValue": profile.duration.max(last), "events": events,
            }));
        }
    }
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "spinpark",
        "shared": {"frames": frames},
        "profiles": shown,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallSite, Frame, HolderCall};

    fn profile() -> Profile {
        let wait = |thread: u32, start: u64, time: u64| SlowWait {
            thread,
            name: String::from("worker"),
            call_site: Some(0),
            holder: Some(0),
            is_release: true,
            start,
            time,
            queue: 2,
            holder_call: Some(HolderCall { function: String::from("fsync"), time: 5 }),
            ..SlowWait::default()
        };
        let frame = Frame {
            function: Some(String::from("put")),
            source: Some((String::from("a.c"), 7)),
            ..Frame::default()
        };
        Profile {
            program: String::from("/usr/bin/app"),
            pid: 7,
            started: 1_772_323_200_000_000_000,
            duration: 1_000_000_000,
            call_sites: vec![CallSite { frames: vec![frame], is_cut: false }],
            slow_waits: vec![
                wait(8, 500, 900),
                wait(8, 2_000_000, 40),
                wait(8, 700, 30),
                wait(9, 1_500_000_001, 20),
            ],
            ..Profile::default()
        }
    }

    #[test]
    fn a_line_has_all_of_a_wait() {
        let lines = lines(&[profile()]);
        assert_eq!(lines.lines().count(), 4);
        let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
        assert_eq!(first["waited_in"][0], "put (a.c:7)");
        assert_eq!(first["released_in"][0], "put (a.c:7)");
        assert_eq!(first["holder_call"]["function"], "fsync");
        assert!(first["held_in"].is_null());
        assert_eq!(first["wall_clock"], "2026-03-01T00:00:00.000000500Z");
    }

    #[test]
    fn slices_are_at_the_wall_clock() {
        let trace: Value = serde_json::from_str(&perfetto(&[profile()])).expect("JSON");
        let events = trace["traceEvents"].as_array().expect("events");
        let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(slices.len(), 4);
        let at = slices[1]["ts"].as_f64().expect("a time");
        assert!((at - 1_772_323_200_002_000.0).abs() < 1.0, "{at}");
        assert_eq!(events.iter().filter(|event| event["name"] == "thread_name").count(), 2);
    }

    #[test]
    fn events_of_a_thread_are_in_order_and_closed() {
        let shown: Value = serde_json::from_str(&speedscope(&[profile()])).expect("JSON");
        let first = &shown["profiles"][0];
        let at: Vec<u64> = first["events"]
            .as_array()
            .expect("events")
            .iter()
            .filter_map(|event| event["at"].as_u64())
            .collect();
        assert!(at.is_sorted() && at.len() == 8, "the wait within another one is left out: {at:?}");
        assert_eq!(shown["profiles"].as_array().map(Vec::len), Some(2));
    }
}
