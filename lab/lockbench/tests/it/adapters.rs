//! Every load on every adapter: each run does something, finds its own result right, and reports it in a form
//! that survives the pipe. On whatever pthread locks this process has.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use spinpark_classics::designs;
use spinpark_lockbench::locks::adapters::{ADAPTERS, by_name};
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::load::{Load, Placement, Primitive};
use spinpark_lockbench::locks::planes::{Point, points};
use spinpark_lockbench::locks::worker::{self, Request, WorkerError};
use spinpark_lockbench::locks::workloads::{Job, Report};

/// Longer only where a busy machine lets nothing happen in a short time.
const MILLIS: [u64; 4] = [5, 50, 500, 5_000];

fn report(adapter: &str, load: &Load, threads: usize) -> Report {
    let reports = MILLIS.into_iter().map(|millis| {
        let (adapter, load) = (adapter.to_owned(), load.clone());
        let cpus = Placement::Any;
        let request =
            Request { adapter, load, threads, cpus, millis, count_futex_calls: false, untimed: false };
        worker::run(&ADAPTERS, &serde_json::to_string(&request).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", request.adapter))
    });
    let is_enough = |report: &Report| {
        let timed = report.waits.as_ref().is_none_or(|waits| !waits.buckets.is_empty());
        report.operations > 0 && timed
    };
    let mut reports = reports;
    reports.find(is_enough).unwrap_or_else(|| panic!("{adapter} does nothing in {load:?}"))
}

fn run_all(adapter: &str) {
    let definitions = Definitions::built_in().unwrap();
    let has = by_name(&ADAPTERS, adapter).unwrap();
    let mut runs = 0;
    for workload in definitions.workloads.iter().filter(|workload| has.run(workload.load.needs()).is_some()) {
        let threads = workload.threads[workload.threads.len() / 3];
        let report = report(adapter, &workload.load, threads);
        assert!(report.elapsed_s > 0.0 && report.cpu_s >= 0.0, "{adapter}: {report:?}");
        assert_eq!(report.waits.is_some(), workload.load.has_waits(), "{adapter}: {}", workload.name);
        if let Some(waits) = &report.waits {
            let (highest, _) = waits.buckets[waits.buckets.len() - 1];
            assert!(waits.longest_ns as f64 >= highest as f64 * 0.98, "{adapter}: {waits:?}");
            assert!(waits.buckets.iter().map(|bucket| bucket.1).sum::<u64>() > 0);
        }
        assert!(report.jain.is_none_or(|jain| jain > 0.0 && jain <= 1.0 + 1e-9), "{adapter}: {report:?}");
        let line = serde_json::to_string(&report).unwrap();
        assert_eq!(Report::parse(&line).unwrap(), report);
        runs += 1;
    }
    assert!(runs >= 4, "{adapter} ran {runs} workloads");
}

/// Several at a time: most of a run is waiting.
#[test]
fn every_adapter_runs_every_workload() {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(adapter) = ADAPTERS.get(next.fetch_add(1, Relaxed)) {
                    run_all(adapter.name);
                }
            });
        }
    });
}

/// The first and the last point of every plane, thinned.
fn corners() -> Vec<Point> {
    let definitions = Definitions::built_in().unwrap();
    let corners = definitions.planes.iter().flat_map(|plane| {
        let mut points = points(plane, &plane.axes.replaced_by(&plane.quick)).unwrap();
        let last = points.pop();
        points.into_iter().take(1).chain(last)
    });
    corners.collect()
}

/// Every adapter of today runs every load of the planes that it has locks for.
#[test]
fn adapters_of_today_run_all_planes() {
    for adapter in ADAPTERS.iter().filter(|adapter| designs::by_name(adapter.name).is_none()) {
        let name = adapter.name;
        for Point { load, threads, .. } in corners() {
            if adapter.run(load.needs()).is_none() {
                continue;
            }
            let report = report(name, &load, threads);
            let waits = report.waits.unwrap();
            assert!(
                waits.p999_ns.unwrap() <= waits.longest_ns.max(1) * 102 / 100 + 1,
                "{name} {load:?} {waits:?}"
            );
            let is_written = matches!(&load, Load::Shared(shared) if shared.per_thousand() > 0);
            assert!(!is_written || report.writes.is_some(), "{name}");
            assert!(is_written || waits.longest_write_ns.is_none(), "{name}");
        }
    }
}

/// The counting run never times waits, and either counts futex calls or says why it cannot.
#[test]
fn futex_calls_are_counted_or_the_reason_is_said() {
    let load = Definitions::built_in().unwrap().workload("ping-pong-one-cpu").unwrap().load.clone();
    let mut reports = MILLIS.into_iter().map(|millis| {
        let load = load.clone();
        let request = Request {
            adapter: "std".into(),
            load,
            threads: 2,
            cpus: Placement::Any,
            millis,
            count_futex_calls: true,
            untimed: false,
        };
        worker::run(&ADAPTERS, &serde_json::to_string(&request).unwrap()).unwrap()
    });
    let report = reports.find(|report| report.operations > 10).unwrap();
    assert_eq!(report.waits, None);
    match report.futex_calls {
        // Two threads that alternate on one CPU sleep all the time.
        Some(calls) => assert!(calls > 0),
        None => assert!(!report.futex_error.unwrap().is_empty()),
    }
}

/// Document 003's count for its best variant: on one CPU, a hand-off between two threads costs one wake and
/// one wait at most. On more, a signal wakes its waiter under the mutex: if the waiter meets the mutex there
/// and has to sleep, it is woken once more.
#[test]
fn a_hand_off_costs_few_futex_calls() {
    for (workload, most) in [("ping-pong-one-cpu", 2), ("ping-pong-two-cpus", 4), ("condvar-ping-pong", 4)] {
        let load = Definitions::built_in().unwrap().workload(workload).unwrap().load.clone();
        let mut reports = MILLIS.into_iter().map(|millis| {
            let load = load.clone();
            let request = Request {
                adapter: "spinpark".into(),
                load,
                threads: 2,
                cpus: Placement::Any,
                millis,
                count_futex_calls: true,
                untimed: false,
            };
            worker::run(&ADAPTERS, &serde_json::to_string(&request).unwrap()).unwrap()
        });
        let report = reports.find(|report| report.operations > 1_000).unwrap();
        let Some(calls) = report.futex_calls else {
            eprintln!("skipped: {}", report.futex_error.unwrap());
            return;
        };
        // Counted from start to end of the run, in which threads also start, stop and wait for each other.
        const BESIDES: u64 = 50;
        assert!(calls <= most * report.operations + BESIDES, "{workload}: {calls} for {}", report.operations);
    }
}

#[test]
fn what_a_worker_refuses() {
    let run = |text: &str| worker::run(&ADAPTERS, text).unwrap_err();
    assert!(matches!(run("{"), WorkerError::Request(_)));
    let request = |adapter: &str, load: &str, threads: usize| {
        format!(r#"{{"adapter":"{adapter}","load":{load},"threads":{threads},"millis":1}}"#)
    };
    assert!(matches!(run(&request("none", r#"{"broadcast":{}}"#, 2)), WorkerError::Adapter(_)));
    assert!(matches!(run(&request("std", r#"{"broadcast":{}}"#, 1)), WorkerError::Load(_)));
    let pair = r#"{"pair":{"lock":"recursive","threaded":true}}"#;
    assert!(run(&request("std", pair, 1)).to_string().contains("cannot run this load"));
}

/// A function of an adapter is only ever asked for what it is for; the others say so.
#[test]
fn a_mutex_is_no_condition_variable() {
    let adapter = by_name(&ADAPTERS, "std").unwrap();
    let job = Job {
        load: serde_json::from_str(r#"{"broadcast":{}}"#).unwrap(),
        cpus: Placement::Any,
        threads: 2,
        duration: Duration::from_millis(1),
        time_waits: false,
        count_futex_calls: false,
    };
    assert!(adapter.run(Primitive::Mutex).unwrap()(&job).is_err());
    assert!(adapter.run(Primitive::RwLock).unwrap()(&job).is_err());
}
