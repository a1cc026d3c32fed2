//! Recordings made by hand, as workloads.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use spinpark_measure::report::Style;
use spinpark_observe::format::{Detail, Kind, Role};
use spinpark_profile::model::Profile;
use spinpark_profile::read::{directory, profile};
use spinpark_profile::symbols::Symbols;
use spinpark_simlab::replay::proof::Proof;
use spinpark_simlab::replay::recorded::{Recorded, Unfit};
use spinpark_simlab::simulate::sim::machine::Machine;
use spinpark_simlab::simulate::sim::workload::Setting;
use spinpark_simlab::simulate::summary::Summary;
use spinpark_testkit::recordings::Builder;

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

#[test]
fn times_of_sections_and_between_them() {
    let recorded = Recorded::of(&read(file())).unwrap();
    assert_eq!((recorded.acquisitions, recorded.cpus, recorded.threads), (2_000_000, 1, 1));
    assert!((recorded.rate() - 200_000.0).abs() < 1.0, "{}", recorded.rate());
    let lock = |name: &str| recorded.replay.locks.iter().find(|lock| lock.name.contains(name)).unwrap();
    let [write, read] = &lock("hot").uses;
    assert_eq!((write.acquisitions, read.acquisitions, lock("hot").is_rwlock), (1_000_000, 0, false));
    assert!((write.holds[0].1 - 2_000.0).abs() < 1.0, "{:?}", write.holds);
    let [write, read] = &lock("table").uses;
    assert_eq!((write.acquisitions, read.acquisitions, lock("table").is_rwlock), (0, 1_000_000, true));
    assert!((read.holds[0].1 - 1_000.0).abs() < 1.0, "{:?}", read.holds);
    // 10 s without 3 s of sections, over two million, as far as recording took none of it.
    assert!((3_000.0..=3_501.0).contains(&recorded.replay.outside_ns), "{}", recorded.replay.outside_ns);
    let said = recorded.lacks.join(" ");
    for words in ["no order of acquisitions", "no think times", "read-write lock of glibc's"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("signals"), "{said}");
}

/// Two threads on one CPU have its time together.
#[test]
fn threads_share_their_cpus() {
    let mut two = file();
    two.thread(4243, "other", 0, 0, 0);
    let (one, two) = (Recorded::of(&read(file())).unwrap(), Recorded::of(&read(two)).unwrap());
    assert_eq!(two.threads, 2);
    assert!((two.replay.outside_ns - one.replay.outside_ns).abs() < 1.0, "{two:?}");
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
    assert!(
        (3_500.0..=4_010.0).contains(&waits.replay.outside_ns),
        "11 s of 20: {}",
        waits.replay.outside_ns
    );
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
