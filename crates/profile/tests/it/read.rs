//! Recordings made by hand are read as what they say, and damaged ones with a message.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use spinpark_fixtures::recordings::{Builder, named, store};
use spinpark_profile::classes::by_class;
use spinpark_profile::folded::{Options, folded};
use spinpark_profile::model::{self, Profile, RecordingEnd};
use spinpark_profile::read::{ReadError, Recording, directory, profile};
use spinpark_profile::symbols::Symbols;
use spinpark_recorder::format::{Detail, Kind, NONE, Role};

fn read(file: Builder) -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = file.write(scratch.path()).expect("it is written");
    profile(&Recording::open(&path).expect("it is a recording"), &mut Symbols::none())
}

#[test]
fn all_of_a_recording() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let profile = named(store(), scratch.path());
    assert_eq!(profile.program, "/opt/store/store");
    assert_eq!(profile.arguments, ["store", "--fast"]);
    assert_eq!((profile.pid, profile.parent, profile.duration), (4242, 4000, 10_000_000_000));
    assert_eq!((profile.ended, profile.detail), (RecordingEnd::Exited, model::Detail::Sampled));
    assert_eq!(profile.locks_of, model::LocksOf::Spinpark);
    assert_eq!(profile.warnings, []);
    assert_eq!(profile.cpus, 2, "as recorded, not those of the reading process");

    let labels: Vec<&str> = profile.locks.iter().map(|lock| lock.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "cache_lock",
            "rwlock of table_new (table.c:9)",
            "mutex of shard_new (shard.c:21) #3",
            "mutex of shard_new (shard.c:21) #2",
            "mutex of shard_new (shard.c:21) #1",
            // No thread waited for it as for a lock.
            "condvar of queue_new (queue.c:8)",
            "mutex in take (queue.c:17)",
        ]
    );
    let cache = &profile.locks[0];
    assert_eq!(cache.class(), "cache_lock");
    assert_eq!(profile.locks[3].class(), "mutex of shard_new (shard.c:21)");
    let write = cache.role(model::Role::Write).expect("it was locked");
    assert_eq!((write.acquisitions, write.contended, write.failed_tries), (6_406, 6, 1));
    assert_eq!((write.wait.count, write.wait.total, write.wait.longest), (6, 3_800_000_000, 2_000_000_000));
    assert_eq!((write.wake_ups, write.longest_queue), (4, 3));
    assert_eq!((write.outcomes.parked, write.outcomes.handed_over, write.outcomes.off_cpu), (2, 3, 2));
    assert_eq!(write.wait.histogram.len(), 31, "up to the bin of 2 s");
    assert_eq!((write.wait.histogram[30], write.wait.histogram[26]), (1, 2));
    // All who waited are measured: 406 ms; 100 of the other 6,400 were in the sample, with a mean of 1.1 ms.
    assert_eq!(write.hold.measured.count, 106);
    assert_eq!(write.hold.total, 406_000_000 + 6_400 * 1_100_000);
    let expected =
        1.984 * 6_400.0 * (0.1e6 * (100.0_f64 / 99.0).sqrt()) / 10.0 * (1.0_f64 - 100.0 / 6_400.0).sqrt();
    // A little more, for the part of the largest one.
    let expected = expected * (1.0 + 6.0 * 1.44 / 122.0);
    assert!((write.hold.total_error as f64 / expected - 1.0).abs() < 0.001, "{}", write.hold.total_error);

    let sites: Vec<(String, u64, u64, u64)> = write
        .sites
        .iter()
        .map(|site| {
            (profile.call_site_label(site.call_site), site.wait_total, site.blocked, site.blocked_total)
        })
        .collect();
    assert_eq!(
        sites,
        [
            (String::from("flush (cache.c:131)"), 3_500_000_000, 2, 300_000_000),
            (String::from("store_update (cache.c:88)"), 300_000_000, 3, 3_400_000_000),
        ]
    );
    // The site that blocked the readers is listed though it never waited.
    let table = profile.locks[1].role(model::Role::Write).expect("it was written");
    assert_eq!(profile.call_site_label(table.sites[0].call_site), "insert (table.c:61)");
    assert_eq!(
        (table.sites[0].blocked, table.sites[0].blocked_total, table.sites[0].acquisitions),
        (1, 5_000_000, 0)
    );

    let pairs: Vec<(u64, bool)> =
        profile.pairs.iter().map(|pair| (pair.wait_total / 1_000, pair.holder.is_some())).collect();
    assert_eq!(pairs, [(3_400_000, true), (300_000, true), (100_000, false), (5_000, true), (150, true)]);
    assert_eq!(profile.lock_wait(), 3_800_000_000 + 5_000_000 + 15_000);
    assert_eq!(profile.back_wait(), 200_000, "apart");
    assert_eq!(profile.signal_wait(), 4_000_000_000, "kept apart");
    assert_eq!(profile.thread_time(), 29_000_000_000);
    assert_eq!(profile.threads[0].name, "flusher");
    let strip: u64 = profile.strip.waited.iter().sum();
    assert_eq!((profile.strip.part, profile.strip.waited.len()), (1_000 << 18, 6));
    assert_eq!(strip, profile.lock_wait(), "without the signals, and the way back");
}

#[test]
fn tables_of_several_threads_are_added_up() {
    let mut file = Builder::new();
    let maps = file.maps("");
    let first = file.stack(maps, &[1, 2]);
    let again = file.stack(maps, &[1, 2]);
    let lock = file.lock(Kind::Mutex, 64, first, false);
    let same = file.lock(Kind::Mutex, 64, again, true);
    let old = file.lock(Kind::Mutex, 128, first, false);
    let new = file.lock(Kind::Mutex, 128, first, false);
    file.destroy(old);
    for (id, lock) in [(1, lock), (2, same), (2, old), (3, new)] {
        let thread = file.thread(id, "t", 0, 1, 10);
        file.uses(thread, lock, Role::Write, |stats| stats.acquisitions = 5.into());
        file.site(thread, lock, Role::Write, if id == 1 { first } else { again }, |stats| {
            stats.contended = 1.into();
            stats.waited = 10.into();
        });
        file.pair(thread, lock, Role::Write, (again, NONE), (1, 10, 10));
    }
    let profile = read(file);
    assert_eq!(profile.call_sites.len(), 1, "two records of one stack");
    assert_eq!(profile.locks.len(), 3, "two records of one lock; two locks at one address after each other");
    let merged = profile.lock(lock).expect("the first one counts");
    assert!(merged.is_created, "the other record knows better");
    assert_eq!(merged.roles[0].acquisitions, 10);
    assert_eq!((merged.roles[0].sites.len(), merged.roles[0].sites[0].wait_total), (1, 20));
    assert_eq!(profile.pairs.iter().map(|pair| pair.count).collect::<Vec<_>>(), [2, 1, 1]);
    let threads: Vec<(u32, u32, u64)> =
        profile.threads.iter().map(|thread| (thread.id, thread.users, thread.waited)).collect();
    assert_eq!(threads, [(2, 1, 20), (1, 1, 10), (3, 1, 10)]);
}

#[test]
fn many_entries_fill_several_segments() {
    let mut file = Builder::new();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1]);
    let thread = file.thread(7, "t", 0, 0, 0);
    for number in 0..500 {
        let lock = file.lock(Kind::Mutex, number * 64, stack, true);
        file.uses(thread, lock, Role::Write, |stats| stats.acquisitions = (number + 1).into());
    }
    let profile = read(file);
    assert_eq!(profile.locks.len(), 500);
    assert_eq!(
        (profile.locks[0].roles[0].acquisitions, profile.locks[0].label.ends_with(" #500")),
        (500, true)
    );
}

#[test]
fn ticks_are_measured_over_the_whole_run() {
    let mut file = Builder::new();
    file.header().tick = (1_u64 << 32) / 3; // 1 % wrong
    let start = file.header().start;
    file.header().last = (start + 30_300_000_000).into();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1]);
    let lock = file.lock(Kind::Mutex, 64, stack, false);
    let thread = file.thread(7, "t", 0, 1, 303);
    file.uses(thread, lock, Role::Write, |stats| {
        stats.contended = 1.into();
        stats.waited = 30_300.into();
    });
    let profile = read(file);
    assert_eq!(profile.locks[0].roles[0].wait.total, 10_000);
    assert_eq!(profile.duration, 10_000_000_000);
}

#[test]
fn a_killed_program_leaves_what_it_had() {
    let mut file = Builder::new();
    file.header().exited = 0.into();
    file.header().pid = 4_194_304; // more than there can be
    file.header().last_monotonic = 0.into();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1]);
    let lock = file.lock(Kind::Mutex, 64, stack, false);
    let thread = file.thread(7, "t", 3_000, 0, 0);
    file.uses(thread, lock, Role::Write, |stats| stats.acquisitions = 1.into());
    let profile = read(file);
    assert_eq!((profile.ended, profile.duration), (RecordingEnd::Killed, 3_000), "the last sign of life");
}

#[test]
fn a_living_program_is_running() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let mut file = Builder::new();
    file.header().exited = 0.into();
    file.header().pid = std::process::id();
    let path = file.write(scratch.path()).expect("it is written");
    assert_eq!(
        Recording::open(&path).expect("a recording").ended(),
        RecordingEnd::Killed,
        "no process writes to it"
    );
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).expect("it is ours");
    let held = memmap2::MmapOptions::new().map_raw(&file).expect("it can be mapped, as recorders do");
    assert_eq!(Recording::open(&path).expect("a recording").ended(), RecordingEnd::Running);
    drop(held);
}

#[test]
fn full_detail_needs_no_estimate() {
    let mut file = Builder::new();
    file.header().detail = (Detail::Full as u32).into();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1]);
    let lock = file.lock(Kind::Mutex, 64, stack, false);
    let thread = file.thread(7, "t", 0, 0, 0);
    file.uses(thread, lock, Role::Write, |stats| {
        stats.acquisitions = 11.into(); // one is held still
        stats.held.count = 10.into();
        stats.held.total = 1_000.into();
    });
    let profile = read(file);
    let hold = &profile.locks[0].roles[0].hold;
    assert_eq!((hold.total, hold.total_error), (1_000, 0));
}

#[test]
fn no_locks_at_all() {
    let profile = read(Builder::new());
    assert!(profile.locks.is_empty() && profile.call_sites.is_empty() && profile.pairs.is_empty());
}

/// The message about a file with these bytes.
fn message(bytes: &[u8]) -> String {
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = scratch.path().join("1.spinprof");
    fs::write(&path, bytes).expect("it is written");
    directory(scratch.path()).expect_err("it is broken").to_string()
}

#[test]
fn broken_files_are_refused_with_a_reason() {
    let whole = store().bytes();
    assert!(message(&[]).contains("too short"));
    assert!(message(&whole[..4095]).contains("too short"));
    assert!(message(&[b'x'; 8192]).contains("another program's file"));
    let mut other = whole.clone();
    other[8] = 9;
    assert!(message(&other).contains("version 9"));
    let mut lost = whole;
    let at = std::mem::offset_of!(spinpark_recorder::format::Header, regions);
    lost[at..at + 4].copy_from_slice(&17_u32.to_le_bytes());
    assert!(message(&lost).contains("damaged"));
}

#[test]
fn files_that_were_cut_short_say_so() {
    let whole = store().bytes();
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = scratch.path().join("1.spinprof");
    // Many lengths, each page among them: nothing panics, and what is missing is said.
    for bytes in (4096..whole.len()).step_by(1_111).chain((4096..whole.len()).step_by(4096)) {
        fs::write(&path, &whole[..bytes]).expect("it is written");
        let recording = Recording::open(&path).expect("the header is whole");
        let profile = profile(&recording, &mut Symbols::none());
        assert_eq!(recording.is_cut_short(), profile.losses().iter().any(|loss| loss.contains("cut short")));
    }
    fs::write(&path, &whole[..whole.len() / 2]).expect("it is written");
    assert!(Recording::open(&path).expect("the header is whole").is_cut_short());
}

#[test]
fn junk_never_panics() {
    let whole = store().bytes();
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = scratch.path().join("1.spinprof");
    let mut state = 42_u64;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..200 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = 12 + (state >> 20) as usize % (bytes.len() - 12);
            bytes[at] = (state >> 8) as u8;
        }
        fs::write(&path, bytes).expect("it is written");
        if let Ok(recording) = Recording::open(&path) {
            let _ = profile(&recording, &mut Symbols::none());
        }
    }
}

#[test]
fn directories() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let missing = directory(&scratch.path().join("none")).expect_err("it is not there");
    assert!(
        matches!(missing, ReadError::Missing(_)) && missing.to_string().contains("spinpark profile --output")
    );
    let empty = directory(scratch.path()).expect_err("it is empty");
    assert!(matches!(empty, ReadError::Empty(_)) && empty.to_string().contains("there is no recording in"));

    fs::write(scratch.path().join("9.spinprof"), "junk").expect("it is written");
    let mut late = Builder::new();
    late.header().pid = 1;
    late.header().start_realtime += 1;
    let late = late.write(scratch.path()).expect("it is written");
    store().write(scratch.path()).expect("it is written");
    let found = directory(scratch.path()).expect("two can be read");
    let pids: Vec<u32> = found.recordings.iter().map(|recording| recording.view().header().pid).collect();
    assert_eq!((pids, found.broken.len()), (vec![4242, 1], 1));
    assert_eq!(directory(&late).expect("a file").recordings.len(), 1);
}

#[test]
fn what_must_not_be_read() {
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = store().write(scratch.path()).expect("it is written");
    let forbid =
        |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o0)).expect("it is ours");
    forbid(&path);
    if fs::File::open(&path).is_ok() {
        println!("skipped: root may read everything");
        return;
    }
    assert!(matches!(directory(&path), Err(ReadError::Unreadable(..))));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    forbid(scratch.path());
    assert!(matches!(directory(scratch.path()), Err(ReadError::Unreadable(..))));
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
}

/// Many locks, each with a site and a pair: nothing takes the square of their number.
#[test]
fn many_locks() {
    let mut file = Builder::new();
    let maps = file.maps("");
    let stacks: Vec<u32> = (0..1_000).map(|number| file.stack(maps, &[number + 1, 7])).collect();
    let thread = file.thread(7, "t", 0, 0, 0);
    for number in 0..20_000_u64 {
        let stack = stacks[number as usize % stacks.len()];
        let lock = file.lock(Kind::Mutex, number * 64, stack, true);
        file.uses(thread, lock, Role::Write, |stats| stats.acquisitions = 1.into());
        file.site(thread, lock, Role::Write, stack, |stats| {
            (stats.contended, stats.waited) = (1.into(), 1_000.into());
        });
        file.pair(thread, lock, Role::Write, (stack, stack), (1, 1_000, 1_000));
    }
    let profile = read(file);
    assert_eq!((profile.locks.len(), profile.pairs.len()), (20_000, 20_000));
    assert_eq!(profile.locks[0].label, "mutex of ?+0x1 #1");
    let report = spinpark_profile::text::report(&profile, spinpark_profile::text::Style::PLAIN);
    assert!(report.contains("… and 19980 more"), "{report}");
    assert_eq!(by_class(&profile).locks.len(), 1_000);
    let options = Options { holder: true, signals: true };
    assert_eq!(folded(&profile, options).lines().count(), 20_000);
}

#[test]
fn time_of_threads_that_ended() {
    let mut file = Builder::new();
    let first = file.thread(1, "first", 1_000, 0, 0);
    let _second = file.thread(2, "second", 4_000, 0, 0);
    file.ended(first, 3_000, 500);
    let profile = read(file);
    let times: Vec<u64> = profile.threads.iter().map(|thread| thread.time).collect();
    let end = 10_000_000_000;
    assert_eq!(times, [500 + end - 1_000, end - 4_000], "the end of the first one is not known");
    assert_eq!(profile.threads.iter().map(|thread| thread.has_ended).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn the_way_back_after_a_time_out_is_kept_apart() {
    let mut file = store();
    // The worker's condition variable, and what it waits for there.
    file.uses(0, 3, Role::Late, |stats| {
        stats.contended = 1.into();
        stats.waited = 7_000_000.into();
    });
    let scratch = tempfile::tempdir().expect("scratch space");
    let profile = named(file, scratch.path());
    assert_eq!(profile.waited(), 3_800_000_000 + 5_000_000 + 200_000 + 15_000, "as without it");
    assert_eq!(profile.signal_wait(), 4_000_000_000);
    let late = profile.lock(3).and_then(|lock| lock.role(model::Role::Late)).expect("it is there");
    assert_eq!(late.wait.total, 7_000_000);
    let style = spinpark_profile::text::Style::PLAIN;
    let table = spinpark_profile::text::condvars(&profile, style);
    assert!(table.contains("time-out") && table.contains("7.00 ms"), "{table}");
    assert!(!spinpark_profile::text::condvars(&named(store(), scratch.path()), style).contains("time-out"));
}
