//! Where the time of threads goes.

use std::rc::Rc;

use spinpark_classics::RawLock;
use spinpark_classics::tas::{TasLock, TestAndTestAndSet};
use spinpark_sim::{Sim, Simulation, here, machine::Machine, workload::Setting};

/// Spinners that are preempted do not spin meanwhile.
#[test]
fn nobody_spins_without_a_cpu() {
    let lock = Rc::new(TasLock::<Sim, TestAndTestAndSet>::new());
    let mut simulation = Simulation::new(&Machine::plain(2));
    for _ in 0..6 {
        let lock = Rc::clone(&lock);
        simulation.thread(move || {
            for _ in 0..20 {
                lock.lock();
                here::compute(2_000_000);
                lock.unlock();
            }
        });
    }
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.failure, None);
    assert!(outcome.threads.iter().any(|times| times.spinning_ns > 0 && times.runnable_ns > 0));
    for times in &outcome.threads {
        assert!(times.spinning_ns <= times.on_cpu_ns, "{times:?}");
        let all = times.on_cpu_ns + times.runnable_ns + times.asleep_ns;
        assert!(all <= outcome.elapsed_ns, "{times:?}");
    }
}

/// Nobody begins anew after the run's time, and what is still going on then does not count.
#[test]
fn throughput_is_that_of_the_time_in_which_all_work() {
    let mut setting = Setting::new(Machine::plain(1), "classic-mutex-2003", "long", 50);
    setting.for_ns = 1_000_000;
    let report = setting.run().unwrap();
    assert!(report.outcome.elapsed_ns > setting.for_ns);
    assert!(report.in_time > 0 && report.in_time < report.total(), "{} {}", report.in_time, report.total());
    assert_eq!(report.throughput(), report.in_time as f64 / 1e-3);
}

/// What a setting cannot be is found without a run.
#[test]
fn settings_are_checked() {
    let setting = |lock: &str, workload: &str, threads| {
        Setting::new(Machine::plain(2), lock, workload, threads).check().map_err(|error| error.to_string())
    };
    assert_eq!(setting("spinpark", "saturated", 2), Ok(()));
    let fails = |lock: &str, workload: &str, threads, words: &str| {
        let error = setting(lock, workload, threads).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    fails("spinpork", "saturated", 2, "did you mean \"spinpark\"?");
    fails("spinpark", "satured", 2, "did you mean \"saturated\"?");
    fails("classic-tas", "readers", 2, "classic-tas is no read-write lock, which the workload readers needs");
    fails("spinpark", "saturated", 0, "at least one thread");
    fails("spinpark", "saturated", 100_000, "8192 at most");
    fails("spinpark", "condvar-ping-pong", 3, "two threads");
}

/// Many locks of one name are one place.
#[test]
fn places_are_merged_by_name() {
    let report = Setting::new(Machine::plain(4), "classic-ttas", "random-32", 4).run().unwrap();
    assert_eq!((report.places.len(), report.places[0].locks), (1, 32));
    assert_eq!(report.places[0].acquisitions, report.total());
}

/// Readers do not wait for each other, whatever the lock's cache line costs them.
#[test]
fn readers_alone_are_not_contended() {
    let report = Setting::new(Machine::plain(8), "classic-rwsem-3.12", "readers", 8).run().unwrap();
    assert!(report.acquisitions() > 0);
    assert_eq!(report.places[0].contended, 0);
}
