//! Recordings made by hand, as workloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use spinpark_experiments::prediction::Proof;
use spinpark_experiments::recording::{Recorded, Unfit};
use spinpark_experiments::summary::Summary;
use spinpark_fixtures::recordings::Builder;
use spinpark_measure::report::Style;
use spinpark_profile::model::Profile;
use spinpark_profile::read::{directory, profile};
use spinpark_profile::symbols::Symbols;
use spinpark_recorder::format::{Detail, Kind, Role};
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::{Inner, Lengths, Setting};

const SECOND: u64 = 1_000_000_000;

/// One thread on one CPU, 10 s: a million sections of 2 µs under one lock, a million of 1 µs under another.
fn file() -> Builder {
    let mut file = Builder::new();
    file.header().cpus = 1;
    let maps = file.maps("00400000-00500000 r-xp 00000000 fe:01 77         /opt/store/store\n");
    let stack = file.stack(maps, &[0x0040_1000]);
    let hot = file.lock(Kind::Mutex, 0x50_1000, stack, true);
    file.name(hot, "hot");
    let table = file.lock(Kind::RwLock, 0x50_2000, stack, true);
    file.name(table, "table");
    let thread = file.thread(4242, "main", 0, 0, 0);
    for (lock, role, ns) in [(hot, Role::Write, 2_000), (table, Role::Read, 1_000)] {
        let number = || AtomicU64::from(1_000_000);
        file.uses(thread, lock, role, |stats| {
            stats.acquisitions = number();
            (stats.held.count, stats.held.total) = (number(), (1_000_000 * ns).into());
            stats.held.longest = ns.into();
        });
        file.site(thread, lock, role, stack, |stats| {
            stats.acquisitions = number();
            (stats.held.count, stats.held.total) = (number(), (1_000_000 * ns).into());
            stats.held.longest = ns.into();
        });
    }
    file
}

/// The recording on a machine like its own.
fn proof(recorded: &Recorded) -> Proof {
    let machine = Machine::plain(recorded.cpus);
    let mut setting = Setting::new(machine.clone(), recorded.lock, "replay", recorded.workers);
    setting.for_ns = 20_000_000;
    setting.replay = Some(Arc::new(recorded.replay.clone()));
    Proof::new(recorded, &machine.name, &Summary::of(&machine, &[setting.run().unwrap()]).unwrap())
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn read(file: Builder) -> Profile {
    let at = tempfile::tempdir().unwrap();
    file.write(at.path()).unwrap();
    profile(&directory(at.path()).unwrap().recordings[0], &mut Symbols::new())
}

/// Numbers of lengths by the power of two below each.
fn bins<const N: usize>(stats: &mut [AtomicU32; N], numbers: &[(usize, u32)]) {
    for (bin, number) in numbers {
        *stats[*bin].get_mut() = *number;
    }
}

#[test]
fn times_of_sections_and_between_them() {
    let recorded = Recorded::of(&read(file())).unwrap();
    assert_eq!((recorded.acquisitions, recorded.cpus, recorded.threads), (2_000_000, 1, 1));
    assert!((recorded.rate() - 200_000.0).abs() < 1.0, "{}", recorded.rate());
    let lock = |name: &str| recorded.replay.locks.iter().find(|lock| lock.name.contains(name)).unwrap();
    let [write, read] = &lock("hot").uses;
    assert_eq!((write.outermost, read.outermost, lock("hot").is_rwlock), (1_000_000, 0, false));
    // Shorter and longer by what rounding leaves of the recorder's time.
    assert!((write.hold.mean() / 2_000.0 - 1.0).abs() < 0.02, "{:?}", write.hold);
    let [write, read] = &lock("table").uses;
    assert_eq!((write.outermost, read.outermost, lock("table").is_rwlock), (0, 1_000_000, true));
    assert!((read.hold.mean() / 1_000.0 - 1.0).abs() < 0.02, "{:?}", read.hold);
    // 10 s without 3 s of sections, over two million, as far as recording took none of it.
    assert!((3_000.0..=3_501.0).contains(&recorded.non_critical_ns), "{}", recorded.non_critical_ns);
    let said = recorded.lacks.join(" ");
    for words in
        ["acquired after which", "no non-critical sections", "read-write lock of glibc's", "upper limit"]
    {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("signals"), "{said}");
    assert!(recorded.is_upper_limit(2) && !recorded.is_upper_limit(1));
}

/// Sections of 100 ns, but one in a thousand of 1 ms; one lock after 200 ns, the other after 20 µs.
#[test]
fn lengths_are_as_they_were_recorded() {
    let mut file = Builder::new();
    let thread = file.thread(4242, "main", 0, 0, 0);
    for (address, bin, ns) in [(0x50_1000, 7, 200), (0x50_2000, 14, 20_000)] {
        let lock = file.lock(Kind::Mutex, address, 0, true);
        file.uses(thread, lock, Role::Write, |stats| {
            stats.acquisitions = 100_000.into();
            (stats.held.count, stats.held.total) = (100_000.into(), (99_900 * 100 + 100 * 1_000_000).into());
            bins(&mut stats.holds, &[(6, 99_900), (19, 100)]);
            stats.non_critical = (99_999 * ns).into();
            bins(&mut stats.non_critical_lengths, &[(bin, 99_999)]);
        });
    }
    let recorded = Recorded::of(&read(file)).unwrap();
    for (used, non_critical) in recorded.replay.locks.iter().map(|lock| &lock.uses[0]).zip([200.0, 20_000.0])
    {
        assert!((used.non_critical.mean() / non_critical - 1.0).abs() < 0.01, "{used:?}");
        let Lengths::Parts(parts) = &used.hold else { panic!("{used:?}") };
        let [short, long] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!((short.number, long.number), (99_900, 100));
        assert!(short.high < 200.0 && (500_000.0..1_100_000.0).contains(&long.low), "{parts:?}");
    }
    assert!(!recorded.lacks.join(" ").contains("no non-critical sections"), "{:?}", recorded.lacks);
}

/// 2 µs under `outer`, of which `inner` has 1.2 µs in two acquisitions and 0.3 µs of waiting; `inner` is
/// taken alone, too.
fn nested() -> Builder {
    let mut file = Builder::new();
    let thread = file.thread(4242, "main", 0, 0, 0);
    let outer = file.lock(Kind::Mutex, 0x50_1000, 0, true);
    file.name(outer, "outer");
    let inner = file.lock(Kind::Mutex, 0x50_2000, 0, true);
    file.name(inner, "inner");
    for (lock, number, ns) in [(outer, 1_000_000, 2_000), (inner, 3_000_000, 600)] {
        file.uses(thread, lock, Role::Write, |stats| {
            stats.acquisitions = number.into();
            (stats.held.count, stats.held.total) = (number.into(), (number * ns).into());
        });
    }
    file.nest(thread, inner, Role::Write, (outer, Role::Write), (2_000_000, 300_000_000, 1_200_000_000));
    file
}

#[test]
fn what_is_held_within_others_is_simulated_so() {
    let recorded = Recorded::of(&read(nested())).unwrap();
    let place = |name: &str| recorded.replay.locks.iter().position(|lock| lock.name.contains(name)).unwrap();
    let used = |name: &str| &recorded.replay.locks[place(name)].uses[0];
    assert_eq!((used("outer").outermost, used("inner").outermost), (1_000_000, 1_000_000));
    assert_eq!(used("outer").inner, [Inner { lock: place("inner"), is_shared: false, number: 2.0 }]);
    assert!((used("outer").hold.mean() / 500.0 - 1.0).abs() < 0.05, "{:?}", used("outer").hold);
    assert!((used("inner").hold.mean() / 600.0 - 1.0).abs() < 0.05, "{:?}", used("inner").hold);
    let made = proof(&recorded);
    assert!(made.holds && (0.85..1.15).contains(&made.ratio), "{made:?}");
}

/// Two orders can deadlock: the rarer one is not simulated.
#[test]
fn locks_in_two_orders_do_not_deadlock() {
    let mut file = nested();
    file.nest(0, 0, Role::Write, (1, Role::Write), (1_000, 0, 1_000_000));
    let recorded = Recorded::of(&read(file)).unwrap();
    assert_eq!(recorded.replay.locks.iter().map(|lock| lock.uses[0].inner.len()).sum::<usize>(), 1);
    assert!(recorded.lacks.join(" ").contains("both orders, in 1 pairs"), "{:?}", recorded.lacks);
}

/// The main thread works alone for 2 s, and waits for the others' end; two others work from then on until 8
/// s.
#[test]
fn start_up_and_end_are_cut_off() {
    let mut file = Builder::new();
    let lock = file.lock(Kind::Mutex, 0x50_1000, 0, true);
    let second = 1_000_000;
    let parts = |from: u64, to: u64| move |at: u64| (from..to).contains(&(at << 18));
    for (id, is_active, number) in [
        (4242, parts(0, 2 * second), 300_000_u64),
        (4243, parts(2 * second, 8 * second), 600_000),
        (4244, parts(2 * second, 8 * second), 600_000),
    ] {
        let since = if id == 4242 { 0 } else { 2 * SECOND };
        let thread = file.thread(id, "t", since, 0, 0);
        let active = (0..64).filter(|at| is_active(*at)).count() as u64;
        file.activity(thread, 18, |at| if is_active(at) { (number / active) as u32 } else { 0 });
        file.uses(thread, lock, Role::Write, |stats| {
            stats.acquisitions = number.into();
            (stats.held.count, stats.held.total) = (number.into(), (number * 1_000).into());
        });
    }
    let recorded = Recorded::of(&read(file)).unwrap();
    let phase = recorded.phase;
    assert!((2 * SECOND..3 * SECOND).contains(&phase.start), "{phase:?}");
    assert!((5 * SECOND..6 * SECOND).contains(&phase.length), "{phase:?}");
    assert_eq!((recorded.threads, recorded.workers), (3, 2));
    // 1.2 million in 6 s.
    assert!((recorded.rate() / 200_000.0 - 1.0).abs() < 0.03, "{}", recorded.rate());
}

/// Two threads on one CPU have its time together.
#[test]
fn threads_share_their_cpus() {
    let mut two = file();
    two.thread(4243, "other", 0, 0, 0);
    let (one, two) = (Recorded::of(&read(file())).unwrap(), Recorded::of(&read(two)).unwrap());
    assert_eq!(two.threads, 2);
    assert!((two.non_critical_ns - one.non_critical_ns).abs() < 1.0, "{two:?}");
    // Waiting is not computing.
    let mut waits = file();
    let lock = waits.lock(Kind::Mutex, 0x50_3000, 0, true);
    let thread = waits.thread(4244, "waiter", 0, 1, 9 * SECOND);
    waits.uses(thread, lock, Role::Write, |stats| {
        stats.acquisitions = 1.into();
        stats.contended = 1.into();
        stats.waited = (9 * SECOND).into();
        stats.longest_wait = (9 * SECOND).into();
        *stats.waits[33].get_mut() = 1;
    });
    waits.header().cpus = 2;
    let waits = Recorded::of(&read(waits)).unwrap();
    assert!((3_500.0..=4_010.0).contains(&waits.non_critical_ns), "11 s of 20: {}", waits.non_critical_ns);
}

#[test]
fn without_times_there_is_nothing_to_simulate() {
    let mut file = file();
    file.header().detail = (Detail::Contended as u32).into();
    let error = Recorded::of(&read(file)).unwrap_err();
    assert!(matches!(error, Unfit::Detail { detail: "contended", .. }), "{error:?}");
    assert!(error.to_string().contains("spinpark profile --detail full -- /opt/store/store"), "{error}");
    assert_eq!(Recorded::of(&read(Builder::new())).unwrap_err(), Unfit::NoLocks("/opt/store/store".into()));
}

#[test]
fn a_recording_is_simulated_as_it_was_recorded() {
    let recorded = Recorded::of(&read(file())).unwrap();
    let made = proof(&recorded);
    assert!(made.holds && (0.9..1.1).contains(&made.ratio), "{made:?}");
    let said = unwrapped(&made.render(&recorded, Style::PLAIN));
    assert!(said.contains("within the model's error of ±50 %"), "{said}");
}

/// A million sections of 0.1 ms in 10 s: they were held within others.
#[test]
fn one_that_is_not_reproduced_predicts_nothing() {
    let mut nested = file();
    let lock = nested.lock(Kind::Mutex, 0x50_3000, 0, true);
    let thread = nested.thread(4244, "nests", 0, 0, 0);
    nested.uses(thread, lock, Role::Write, |stats| {
        stats.acquisitions = 1_000_000.into();
        (stats.held.count, stats.held.total) = (1_000_000.into(), (100 * SECOND).into());
        stats.held.longest = 100_000.into();
    });
    let recorded = Recorded::of(&read(nested)).unwrap();
    let made = proof(&recorded);
    assert!(!made.holds && made.ratio < 0.2, "{made:?}");
    let said = unwrapped(&made.render(&recorded, Style::PLAIN));
    for words in ["There is no prediction", "would mean nothing", "locks are held within each other"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn threads_that_wait_for_signals_are_no_workers() {
    let mut idle = file();
    let queue = idle.lock(Kind::Condvar, 0x50_4000, 0, true);
    for number in 0..3 {
        let thread = idle.thread(4300 + number, "pool", 0, 10, 9 * SECOND);
        idle.uses(thread, queue, Role::Signal, |stats| {
            stats.acquisitions = 10.into();
            stats.contended = 10.into();
            stats.waited = (9 * SECOND + SECOND / 2).into();
            stats.longest_wait = SECOND.into();
            *stats.waits[30].get_mut() = 10;
        });
    }
    let recorded = Recorded::of(&read(idle)).unwrap();
    assert_eq!((recorded.threads, recorded.workers), (4, 1));
    assert!(recorded.lacks.join(" ").contains("Of its 4 threads, on average 1 "), "{:?}", recorded.lacks);
}
