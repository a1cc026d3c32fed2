//! Workloads of documents 002 and 003: what happens in them, not how long it takes.

use spinpark_platform::Event;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Report, Setting};

fn run(machine: &str, lock: &str, workload: &str, threads: u32, for_ns: u64) -> Report {
    let mut setting = Setting::new(Machine::load(machine).unwrap(), lock, workload, threads);
    setting.for_ns = for_ns;
    setting.most_steps = 20_000_000;
    let report = setting.run().unwrap();
    assert_eq!(report.outcome.failure, None, "{lock}, {workload}");
    report
}

/// Document 003's calls and switches, as `docs/workloads.md` counts them on a real machine.
#[test]
fn calls_and_switches_of_a_signal() {
    for (lock, calls, switches) in [
        ("classic-condvar-orig", 6, 4),
        ("classic-condvar-requeue", 5, 2),
        ("classic-condvar-wake-op", 3, 2),
        ("spinpark", 2, 2),
    ] {
        let report = run("up", lock, "condvar", 2, 5_000_000);
        let per_signal = |count: u64| (count as f64 / report.total() as f64).round() as u64;
        let counts = &report.outcome.counts;
        assert_eq!(
            (per_signal(counts.futex_calls), per_signal(counts.switches)),
            (calls, switches),
            "{lock}"
        );
    }
}

#[test]
fn an_iteration_has_two_writers_and_a_reader_for_each_page() {
    for lock in ["classic-rwsem-3.12", "classic-rwsem-nospin", "classic-rwsem-as-sent", "spinpark"] {
        let report = run("westmere-ex-40", lock, "mmap-touched", 4, 5_000_000);
        let count = |name: &str| {
            let place = report.places.iter().find(|place| place.name == name);
            place.map_or(0, |place| place.acquisitions)
        };
        assert_eq!(count("mmap_sem") * 128, count("mmap_sem (read)"), "{lock}");
    }
}

/// A writer alone does not sleep; writers that spin get the lock by that.
#[test]
fn writers_spin_where_the_series_says_so() {
    let report = run("westmere-ex-40", "classic-rwsem-3.12", "mmap-untouched", 1, 1_000_000);
    assert_eq!(report.outcome.counts.of(Event::Parked), 0);
    let report = run("westmere-ex-40", "classic-rwsem-as-sent", "mmap-untouched", 10, 1_000_000);
    assert!(report.outcome.counts.of(Event::SpinAcquired) > report.total(), "writers spin");
}

#[test]
fn more_threads_than_cpus_are_refused() {
    let setting = Setting::new(Machine::load("westmere-ex-40").unwrap(), "spinpark", "mmap-touched", 41);
    assert!(setting.run().unwrap_err().to_string().contains("--threads 40"));
}

/// Document 004's mutex with delays: without any, the same mutex; with one that is longer than all else, that
/// is what limits.
#[test]
fn delays_are_where_they_are_asked_for() {
    let select = |lock: &str, threads| run("e4500-12", lock, "select", threads, 5_000_000);
    let plain = select("classic-mtx", 12);
    let none = Report { lock: plain.lock.clone(), ..select("classic-mtx-delayed", 12) };
    assert_eq!(none, plain);
    assert!(plain.outcome.counts.failed_exchanges > plain.acquisitions(), "{:?}", plain.outcome.counts);
    // A thread that is alone meets no other: it does not wait, and wakes none.
    let alone = |delay: &str| select(&format!("classic-mtx-delayed{delay}"), 1).total();
    let undelayed = alone("");
    for place in ["attempt", "poll", "wake"] {
        assert_eq!(alone(&format!("+{place}=1ms")), undelayed, "{place}");
    }
    for place in ["before", "inside", "after"] {
        let delayed = alone(&format!("+{place}=250us"));
        assert!(delayed <= 5 && delayed < undelayed / 2, "{place}: {delayed} of {undelayed}");
    }
}

#[test]
fn select_has_any_time_between_sections() {
    let select = |workload: &str| run("e4500-12", "classic-mtx", workload, 12, 5_000_000);
    let named = Report { workload: String::from("select"), ..select("select-19500") };
    assert_eq!(named, select("select"));
    let said = |lock: &str, workload: &str| {
        let machine = Machine::load("e4500-12").unwrap();
        Setting::new(machine, lock, workload, 12).run().unwrap_err().to_string()
    };
    for wrong in ["select-", "select-x", "select-99999999999"] {
        assert!(said("classic-mtx", wrong).contains("write select-CYCLES, as in select-19500"));
    }
    let wrong = said("classic-mtx-delayed+there=6us", "select");
    assert!(wrong.contains("classic-mtx-delayed+attempt=6us"), "{wrong}");
}
