//! Where the time of threads goes.

use std::rc::Rc;

use spinpark_classics::RawLock;
use spinpark_classics::tas::{TasLock, TestAndTestAndSet};
use spinpark_platform::{Clock, Clocks};
use spinpark_sim::{Object, Sim, Simulation, here, machine::Machine, workload::Setting};

/// Spinners that are preempted do not spin meanwhile.
#[test]
fn no_thread_spins_without_a_cpu() {
    let lock = Object::new(TasLock::<Sim, TestAndTestAndSet>::new());
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

/// A CPU on its way out of idle is idle, and the thread that it is to run waits for it.
#[test]
fn no_thread_runs_on_the_way_out_of_idle() {
    const LONGER: u64 = 300_000;
    let run = |exit_ns: u64| {
        let mut machine = Machine::plain(1);
        machine.scheduler.tick_ns = 0.0;
        machine.kernel.idle_exit_ns = exit_ns as f64;
        let mut simulation = Simulation::new(&machine);
        simulation.thread(|| {
            here::sleep(100_000);
            here::compute(10_000);
        });
        simulation.run().unwrap()
    };
    let (quick, slow) = (run(2_000), run(2_000 + LONGER));
    // It is awoken twice: as it is created, and from its sleep.
    assert_eq!(slow.elapsed_ns, quick.elapsed_ns + 2 * LONGER);
    assert_eq!(slow.busy_ns, quick.busy_ns);
    let (quick, slow) = (&quick.threads[0], &slow.threads[0]);
    assert_eq!(slow.on_cpu_ns, quick.on_cpu_ns);
    assert_eq!(slow.runnable_ns, quick.runnable_ns + 2 * LONGER);
    assert_eq!(slow.asleep_ns, quick.asleep_ns);
}

/// What a thread has used, and was not made to wait for yet, is on the clock at its end.
#[test]
fn the_last_time_of_a_thread_counts() {
    let run = |reads: u32| {
        let mut simulation = Simulation::new(&Machine::plain(1));
        simulation.thread(move || {
            here::compute(1_000);
            for _ in 0..reads {
                let _ = <Sim as Clocks>::now(Clock::Monotonic);
            }
        });
        simulation.run().unwrap()
    };
    let (less, more) = (run(0), run(10));
    let reads = 10 * Machine::plain(1).kernel.clock_ns as u64;
    assert_eq!(more.elapsed_ns, less.elapsed_ns + reads);
    assert_eq!(more.threads[0].on_cpu_ns, less.threads[0].on_cpu_ns + reads);
}

/// No thread begins anew after the run's time, and what is still going on then does not count.
#[test]
fn throughput_is_that_of_the_time_in_which_all_work() {
    let mut setting = Setting::new(Machine::plain(1), "classic-mutex-2003", "long", 50);
    setting.for_ns = 1_000_000;
    let report = setting.run().unwrap();
    assert!(report.outcome.elapsed_ns > setting.for_ns);
    assert!(report.in_time > 0 && report.in_time < report.total(), "{} {}", report.in_time, report.total());
    assert_eq!(report.throughput(), report.in_time as f64 / 1e-3);
}

/// A thread that is started has not been woken.
#[test]
fn starts_are_no_wake_ups() {
    let mut setting = Setting::new(Machine::plain(4), "classic-ttas", "hot-lock", 4);
    setting.for_ns = 100_000;
    assert_eq!(setting.run().unwrap().outcome.counts.wakes, 0);
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
    fails("spinpork", "saturated", 2, "did you mean `spinpark`?");
    fails("glibc", "saturated", 2, "`classic-mutex-2003` works as glibc's");
    fails("parking_lot", "saturated", 2, "ours and the classics only");
    fails("spinpark", "satured", 2, "did you mean `saturated`?");
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
