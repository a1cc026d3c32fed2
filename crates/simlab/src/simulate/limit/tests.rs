//! Runs of which it is known what limits them.

use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Gap, Setting};

use super::*;

fn limit(machine: Machine, lock: &str, workload: &str, threads: u32) -> Limit {
    let mut setting = Setting::new(machine.clone(), lock, workload, threads);
    setting.for_ns = 3_000_000;
    let report = setting.run().unwrap();
    Limit::of(&Summary::of(&machine, &[report]).unwrap())
}

/// The limit's name in JSON, and what kept the next owner of a lock for most of the time.
fn name(limit: &Limit) -> (String, Option<Mostly>) {
    let json = serde_json::to_value(limit).unwrap();
    let mostly = match limit {
        Limit::HandOver { mostly, .. } => Some(*mostly),
        _ => None,
    };
    (json["limit"].as_str().unwrap().to_owned(), mostly)
}

#[test]
fn limits_of_plain_cases() {
    let is = |cpus, lock, workload, threads, expected: &str| {
        let limit = limit(Machine::plain(cpus), lock, workload, threads);
        assert_eq!(name(&limit).0, expected, "{limit:?}");
    };
    is(4, "spinpark", "long", 1, "work");
    is(4, "classic-mutex-fixed", "long", 4, "held");
    // Sections of some 70 ns: the owner does not wait for its stores.
    is(8, "classic-mutex-2.6.34", "hot-lock", 8, "hand_over");
    is(8, "classic-tas", "saturated", 8, "hand_over");
    is(64, "classic-rwsem-3.12", "readers", 64, "lines");
    is(1, "classic-mutex-nospin", "long", 8, "cpus");
    is(4, "classic-condvar-orig", "condvar-ping-pong", 2, "wake_ups");
    // Some sleep, but the others have all CPUs' time.
    is(2, "spinpark", "creat", 8, "cpus");
}

/// Most readers find the line near them, and those that do not come one after the other: fewer operations
/// than of one thread.
#[test]
fn lines_that_seldom_move() {
    let machine = Machine::load("nehalem-ex-64").unwrap();
    let limit = limit(machine, "classic-rwsem-3.12", "readers", 128);
    let Limit::Lines { moves, wait_ns, .. } = limit else { panic!("{limit:?}") };
    assert!(moves < 0.5 && wait_ns > 100.0, "{moves} {wait_ns}");
}

/// One thing of a machine is made dear, so that it limits.
#[test]
fn what_passes_between_owners_is_told() {
    let is = |machine: &Machine, lock, workload, threads, mostly| {
        let limit = limit(machine.clone(), lock, workload, threads);
        assert_eq!(name(&limit), (String::from("hand_over"), Some(mostly)), "{lock}, {workload}: {limit:?}");
    };
    let mut sleepy = Machine::plain(8);
    sleepy.kernel.idle_exit_ns = 50_000.0;
    sleepy.kernel.deep_idle = None;
    // Most of the waiting is done by readers, which wait for each other's wake-ups and not for writers.
    for workload in ["mixed-1", "mixed-10"] {
        is(&sleepy, "classic-rwsem-3.12", workload, 8, Mostly::WakeUps);
    }
    let mut far = Machine::plain(8);
    far.memory.near_ns *= 20.0;
    is(&far, "classic-tas", "saturated", 8, Mostly::Lines);
    is(&far, "classic-rwsem-full", "mixed-50", 8, Mostly::Lines);
    let mut drowsy = Machine::plain(8);
    drowsy.cpu.pause_ns = 100_000.0;
    is(&drowsy, "classic-ttas", "five-lines", 8, Mostly::Pauses);
}

/// Spinners take the CPUs of the lock's owners.
#[test]
fn owners_that_are_preempted() {
    let machine = Machine::plain(2);
    let mut setting = Setting::new(machine.clone(), "classic-ttas", "long", 16);
    setting.for_ns = 200_000_000;
    let limit = Limit::of(&Summary::of(&machine, &[setting.run().unwrap()]).unwrap());
    let Limit::OffCpu { held, off_cpu, .. } = limit else { panic!("{limit:?}") };
    assert!(held > 0.9 && (0.5..1.0).contains(&off_cpu), "{held} {off_cpu}");
}

/// Writers compute for long under the lock, and readers hardly.
#[test]
fn readers_that_wait_for_writers() {
    let summary = |held: [f64; 2]| {
        let machine = Machine::plain(4);
        let report = Setting::new(machine.clone(), "classic-rwsem-full", "mixed-50", 4).run().unwrap();
        let mut summary = Summary::of(&machine, &[report]).unwrap();
        let all = summary.measured_ns as f64;
        for place in &mut summary.places {
            let is_read = place.name.ends_with("(read)");
            place.in_time.held_ns = held[usize::from(is_read)] * all;
            place.in_time.gap = Gap::default();
            place.in_time.wait_ns = if is_read { 2.0 * all } else { 0.0 };
        }
        summary
    };
    let limit = Limit::of(&summary([0.9, 0.05]));
    assert!(matches!(limit, Limit::Readers { held, .. } if held == 0.9), "{limit:?}");
    let limit = Limit::of(&summary([0.05, 0.9]));
    assert!(matches!(limit, Limit::Held { readers, .. } if readers == 0.9), "{limit:?}");
}

/// Where a lock's time goes adds up to what there is.
#[test]
fn shares_of_a_lock() {
    for (lock, workload, threads) in [
        ("spinpark", "mixed-10", 16),
        ("classic-mutex-nospin", "hot-lock", 4),
        ("classic-tas", "random-32", 8),
    ] {
        let machine = Machine::plain(8);
        let report = Setting::new(machine.clone(), lock, workload, threads).run().unwrap();
        let summary = Summary::of(&machine, &[report]).unwrap();
        let [lock] = &Lock::all(&summary)[..] else { panic!("one lock") };
        assert!(lock.held() > 0.0 && lock.held() + lock.wanted <= 1.0 + 1e-9, "{lock:?}");
        let Causes { wake_ups, cpus, lines, pauses, steps } = lock.causes;
        assert!((wake_ups + cpus + lines + pauses + steps - 1.0).abs() < 1e-6, "{lock:?}");
    }
}

/// At the end sleepers are woken one by one, which takes as long as the run: that is no time in which the
/// lock could have been held.
#[test]
fn what_comes_after_the_run_is_in_no_share() {
    let machine = Machine::choose("big-512:64").unwrap();
    let limit = |for_ns| {
        let mut setting = Setting::new(machine.clone(), "spinpark", "long", 64);
        setting.for_ns = for_ns;
        let report = setting.run().unwrap();
        let outcome = &report.outcome;
        assert!(outcome.measured_ns == for_ns && outcome.elapsed_ns > for_ns, "{}", outcome.elapsed_ns);
        for times in &outcome.threads {
            let all = times.on_cpu_ns + times.runnable_ns + times.asleep_ns;
            assert!(times.spinning_ns <= times.on_cpu_ns && all <= for_ns, "{times:?}");
        }
        assert!(outcome.busy_ns.iter().all(|busy| *busy <= for_ns));
        Limit::of(&Summary::of(&machine, &[report]).unwrap())
    };
    for for_ns in [5_000_000, 20_000_000] {
        let Limit::Held { held, .. } = limit(for_ns) else { panic!("{:?}", limit(for_ns)) };
        assert!((0.75..=1.0).contains(&held), "{held}");
    }
}

/// Where there is nothing but a lock to sleep on, it is said; and no thread is awake alone if none sleeps.
#[test]
fn sleep_has_a_reason() {
    let limit = |machine: &str, lock: &str, threads, for_ns| {
        let machine = Machine::choose(machine).unwrap();
        let mut setting = Setting::new(machine.clone(), lock, "hot-lock", threads);
        setting.for_ns = for_ns;
        Limit::of(&Summary::of(&machine, &[setting.run().unwrap()]).unwrap())
    };
    let many = limit("big-512", "spinpark", 2048, 300_000);
    assert!(!matches!(many, Limit::Sleep { .. } | Limit::Work { .. }), "{many:?}");
    let two = limit("this-2", "classic-mutex-2003", 2, 5_000_000);
    assert!(!matches!(two, Limit::Barging { .. } | Limit::Sleep { .. }), "{two:?}");
    assert_eq!(limit("this-2", "spinpark", 2, 1), Limit::TooShort { for_ns: 1 });
}

#[test]
fn a_failure_comes_first() {
    let machine = Machine::plain(2);
    let mut setting = Setting::new(machine.clone(), "spinpark", "saturated", 2);
    setting.most_steps = 100;
    let report = setting.run().unwrap();
    let limit = Limit::of(&Summary::of(&machine, &[report]).unwrap());
    assert!(matches!(limit, Limit::Failure { seed: 0, .. }), "{limit:?}");
}
