//! Runs so small that their figures can be worked out by hand.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_sim::here;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Mode, Report, Setting, Workload};

/// Two threads: the first one holds the lock for 100 µs from the start; the other one asks 10 µs later, and
/// holds it for 20 µs.
const ONE_WAITS: Workload = Workload {
    name: "one-waits",
    about: "",
    mode: Mode::User,
    build: |plan| {
        let lock = plan.mutex("lock")?;
        for (before, hold) in [(0, 100_000), (10_000, 20_000)] {
            let lock = lock.clone();
            plan.worker(move |worker| {
                here::compute(before);
                lock.with(|| here::compute(hold));
                worker.did_one();
            });
        }
        Ok(())
    },
};

/// Two threads that never meet, each on a CPU, take turns at one lock, 100 times each.
const TURNS: Workload = Workload {
    name: "turns",
    about: "",
    mode: Mode::User,
    build: |plan| {
        let lock = plan.mutex("lock")?;
        let is_first = Rc::new(Cell::new(true));
        for _ in 0..2 {
            let (lock, is_first) = (lock.clone(), Rc::clone(&is_first));
            plan.worker(move |worker| {
                here::compute(if is_first.replace(false) { 0 } else { 5_000 });
                for _ in 0..100 {
                    lock.with(|| ());
                    here::compute(10_000);
                    worker.did_one();
                }
            });
        }
        Ok(())
    },
};

fn run(workload: &Workload, lock: &str, cpus: u32) -> Report {
    let mut setting = Setting::new(Machine::plain(cpus), lock, workload.name, 2);
    setting.for_ns = 200_000;
    let report = setting.run_as(workload).expect("it can be run");
    assert_eq!(report.outcome.failure, None);
    report
}

/// Within what a lock, its cache lines, system calls and wakes take.
fn is_about(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 15_000.0, "{value} is not about {expected}");
}

#[test]
fn a_wait_is_from_the_question_to_the_lock() {
    for (lock, spins) in [("classic-ttas", true), ("classic-mutex-2003", false)] {
        let report = run(&ONE_WAITS, lock, 2);
        let place = &report.places[0];
        assert_eq!((place.locks, place.acquisitions, place.contended), (1, 2, 1), "{lock}");
        is_about(place.wait_ns, 90_000.0);
        // The one wait that was contended is nearly all of it.
        assert!(place.longest_wait_ns <= place.wait_ns && place.wait_ns < place.longest_wait_ns + 5_000.0);
        is_about(place.hold_ns, 120_000.0);
        is_about(place.longest_hold_ns, 100_000.0);
        // The holder was in before the other one asked: no thread passed that.
        assert_eq!((place.most_passed, place.waits.total(), place.holds.total()), (0, 1, 2));
        assert_eq!((report.total(), report.in_time), (2, 2));
        assert_eq!(report.throughput(), 2.0 / (report.outcome.elapsed_ns as f64 / 1e9));
        is_about(report.outcome.elapsed_ns as f64, 120_000.0);
        let [first, second] = &report.outcome.threads[..] else { panic!("two threads") };
        is_about(first.on_cpu_ns as f64, 100_000.0);
        assert_eq!((first.spinning_ns, first.asleep_ns), (0, 0));
        let (awake, asleep) = if spins { (120_000.0, 0.0) } else { (30_000.0, 90_000.0) };
        is_about(second.on_cpu_ns as f64, awake);
        is_about(second.asleep_ns as f64, asleep);
        is_about(second.spinning_ns as f64, if spins { 90_000.0 } else { 0.0 });
        // Both CPUs, of which one has nothing to do after 100 µs, and the other one while its thread sleeps.
        let busy = (100_000.0 + awake) / (2.0 * 120_000.0);
        assert!((report.outcome.utilisation() - busy).abs() < 0.1, "{}", report.outcome.utilisation());
    }
}

/// With one CPU, who waits for the lock's holder waits for the CPU first.
#[test]
fn who_has_no_cpu_is_runnable() {
    let report = run(&ONE_WAITS, "classic-mutex-2003", 1);
    let [first, second] = &report.outcome.threads[..] else { panic!("two threads") };
    assert_eq!(report.places[0].acquisitions, 2);
    is_about((first.on_cpu_ns + second.on_cpu_ns) as f64, 130_000.0);
    is_about(report.outcome.elapsed_ns as f64, 130_000.0);
    assert!(report.outcome.utilisation() > 0.9, "{}", report.outcome.utilisation());
}

/// Each acquisition brings the lock's line from the other core, once: the release finds it there.
#[test]
fn a_turn_moves_one_line() {
    for lock in ["classic-ttas", "classic-mutex-2003", "spinpark"] {
        let report = run(&TURNS, lock, 2);
        assert_eq!((report.acquisitions(), report.places[0].contended), (200, 0), "{lock}");
        let moves = report.moves_per_acquisition();
        assert!((0.98..=1.02).contains(&moves), "{lock}: {moves} lines for each acquisition");
    }
}
