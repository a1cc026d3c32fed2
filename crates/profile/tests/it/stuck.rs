//! Waits that had not ended.

use spinpark_fixtures::recordings::Builder;
use spinpark_profile::classes::by_class;
use spinpark_profile::model::{self, Profile};
use spinpark_profile::read::{Recording, note_end, profile};
use spinpark_profile::stuck::stuck;
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;
use spinpark_recorder::format::{Begun, Hold, Holds, Kind, NONE, Role};

const S: u64 = 1_000_000_000;

fn read(file: Builder) -> Profile {
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = file.write(scratch.path()).expect("it is written");
    profile(&Recording::open(&path).expect("it is a recording"), &mut Symbols::none())
}

fn holds(locks: &[u32]) -> Holds {
    let mut holds = Holds::default();
    locks.iter().for_each(|lock| holds.push(Hold { lock: *lock, stack: 0 }));
    holds
}

/// A thread's wait: what it is for, since when, its holder, and what the thread has itself.
#[derive(Clone, Copy)]
struct UnfinishedWait {
    lock: u32,
    since: u64,
    owner: u32,
    is_noted: bool,
    has: &'static [u32],
    unseen_release: u64,
    is_timed: bool,
}

const PLAIN: UnfinishedWait = UnfinishedWait {
    lock: 0,
    since: S,
    owner: 0,
    is_noted: false,
    has: &[],
    unseen_release: 0,
    is_timed: false,
};

/// Threads 1, 2 … with these waits, and as many locks.
fn waiting(waits: &[UnfinishedWait]) -> Profile {
    let mut file = Builder::new();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1, 2]);
    for number in 0..waits.len() as u64 {
        file.lock(Kind::Mutex, 0x1000 + 64 * number, stack, false);
    }
    for (id, wait) in (1..).zip(waits) {
        let thread = file.thread(id, "t", 0, 0, 0);
        let begun = Begun {
            since: wait.since,
            lock: wait.lock,
            role: Role::Write as u32,
            stack,
            holder: NONE,
            owner: wait.owner,
            is_timed: wait.is_timed,
            is_noted: wait.is_noted,
            holds: holds(wait.has),
        };
        file.uses(thread, wait.lock, Role::Write, |_| {});
        file.waits(thread, begun, wait.unseen_release);
    }
    read(file)
}

/// A thread that has left a wait, by `pthread_exit` in a handler or cancelled, waits for nothing, and is in
/// no deadlock.
#[test]
fn a_thread_that_has_ended_waits_no_more() {
    let mut file = Builder::new();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1, 2]);
    file.lock(Kind::Mutex, 0x1000, stack, false);
    file.lock(Kind::Mutex, 0x1040, stack, false);
    let wait = |lock, has: &[u32]| Begun {
        since: S,
        lock,
        role: Role::Write as u32,
        stack,
        holder: NONE,
        owner: 0,
        is_timed: false,
        is_noted: false,
        holds: holds(has),
    };
    for (id, lock, has) in [(1, 0, [1]), (2, 1, [0])] {
        let thread = file.thread(id, "t", 0, 0, 0);
        file.uses(thread, lock, Role::Write, |_| {});
        file.waits(thread, wait(lock, &has), 0);
        if id == 2 {
            file.ended(thread, 2 * S, 0);
        }
    }
    let profile = read(file);
    let waiting: Vec<u32> = profile.waiting.iter().map(|wait| wait.thread).collect();
    assert_eq!((waiting, profile.deadlocks.len(), profile.lock_wait()), (vec![1], 0, 9 * S));
}

#[test]
fn they_count_until_the_end() {
    // The recording ends after 10 s.
    let profile = waiting(&[PLAIN, UnfinishedWait { since: 4 * S, ..PLAIN }]);
    assert_eq!(profile.lock_wait(), 15 * S);
    let stats = &profile.locks[0].roles[0];
    assert_eq!((stats.contended, stats.wait.count, stats.outcomes.still_waiting), (2, 2, 2));
    assert_eq!((stats.wait.longest, stats.wait.histogram.iter().sum::<u64>()), (9 * S, 2));
    assert_eq!((stats.sites[0].contended, stats.sites[0].wait_total), (2, 15 * S));
    assert_eq!((profile.pairs[0].count, profile.pairs[0].wait_total), (2, 15 * S));
    assert_eq!(profile.strip.waited.iter().sum::<u64>(), 15 * S);
    assert_eq!(profile.threads.iter().map(|thread| thread.waited).collect::<Vec<_>>(), [9 * S, 6 * S]);
    let times: Vec<u64> = profile.waiting.iter().map(|wait| wait.time).collect();
    assert_eq!(times, [9 * S, 6 * S], "the longest first");
    let summary = summary(&profile);
    assert!(
        summary
            .headline
            .starts_with("2 threads were still waiting when the recording ended, the longest for 9.000 s"),
        "{summary:?}"
    );
    assert_eq!(by_class(&profile).waiting.len(), 2);
    let json = spinpark_profile::json::text(&[profile]);
    let again: Vec<Profile> = serde_json::from_str(&json).expect("the same again");
    assert_eq!(again[0].waiting.len(), 2);
}

/// Threads that wait for one of two semaphores since `since`, and have others.
fn at_semaphores(threads: &[(u32, u64, &[u64])]) -> Profile {
    let mut file = Builder::new();
    let maps = file.maps("");
    let stack = file.stack(maps, &[1, 2]);
    for address in [0x1000, 0x1040] {
        file.lock(Kind::Semaphore, address, stack, false);
    }
    for (id, (lock, since, has)) in (1..).zip(threads) {
        let thread = file.thread(id, "t", 0, 0, 0);
        file.uses(thread, *lock, Role::Wake, |_| {});
        let begun = Begun {
            since: *since,
            lock: *lock,
            role: Role::Wake as u32,
            stack,
            holder: NONE,
            ..Begun::default()
        };
        file.waits(thread, begun, 0);
        file.has_semaphores(thread, has);
    }
    read(file)
}

#[test]
fn semaphores_that_are_locks() {
    let both = at_semaphores(&[(0, S, &[0x1040]), (1, 2 * S, &[0x1000])]);
    assert_eq!(both.deadlocks.iter().map(Vec::len).collect::<Vec<_>>(), [2]);
    let said = summary(&both).headline;
    assert!(
        said.contains("Deadlock: thread 1 (`t`) waits") && said.contains("which thread 2 has taken"),
        "{said}"
    );
    // The recording ends after 10 s: in half a second another thread might still post one.
    let early = at_semaphores(&[(0, S, &[0x1040]), (1, 19 * S / 2, &[0x1000])]);
    assert!(early.deadlocks.is_empty());
    // A semaphore that its own thread has taken is posted by another one, as in Python's condition variables.
    assert!(at_semaphores(&[(0, S, &[0x1000])]).deadlocks.is_empty());
    // One that two threads have is no lock.
    let two = at_semaphores(&[(0, S, &[0x1040]), (1, S, &[0x1000]), (1, S, &[0x1000])]);
    assert!(two.deadlocks.is_empty());
}

#[test]
fn cycles() {
    let cycles = |waits: &[UnfinishedWait]| waiting(waits).deadlocks;
    let first = UnfinishedWait { lock: 1, owner: 2, is_noted: true, has: &[0], ..PLAIN };
    let second = UnfinishedWait { lock: 0, since: 2 * S, owner: 1, is_noted: true, has: &[1], ..PLAIN };
    let found = cycles(&[first, second]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].len(), 2);
    // One of them would have timed out.
    assert!(cycles(&[first, UnfinishedWait { is_timed: true, ..second }]).is_empty());
    // The second one has released the first one's lock since.
    assert!(cycles(&[first, UnfinishedWait { has: &[], ..second }]).is_empty());
    // Neither lock was noted when it was taken: the locks themselves name their owners.
    let first = UnfinishedWait { is_noted: false, has: &[], ..first };
    let second = UnfinishedWait { is_noted: false, has: &[], ..second };
    assert_eq!(cycles(&[first, second]).len(), 1);
    // But the second one released a lock after the first one began to wait: that may have been this one.
    assert!(cycles(&[first, UnfinishedWait { unseen_release: 3 * S / 2, ..second }]).is_empty());
    assert_eq!(cycles(&[first, UnfinishedWait { unseen_release: S / 2, ..second }]).len(), 1);
    // A lock that its own thread wants again.
    assert_eq!(cycles(&[UnfinishedWait { owner: 1, ..PLAIN }]), [[0]]);
    // Three, and a thread that waits for them.
    let three = [
        UnfinishedWait { lock: 1, has: &[0], ..PLAIN },
        UnfinishedWait { lock: 2, has: &[1], ..PLAIN },
        UnfinishedWait { lock: 0, has: &[2], ..PLAIN },
        UnfinishedWait { lock: 0, has: &[3], ..PLAIN },
    ];
    let found = cycles(&three);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].len(), 3);
    assert!(!found[0].contains(&3));
}

#[test]
fn sentences() {
    let profile = waiting(&[
        UnfinishedWait { lock: 1, owner: 2, has: &[0], ..PLAIN },
        UnfinishedWait { lock: 0, since: 2 * S, owner: 1, has: &[1], ..PLAIN },
    ]);
    let summary = summary(&profile);
    assert!(summary.headline.starts_with("Deadlock: thread 1 (`t`) waits"), "{summary:?}");
    assert!(summary.headline.contains("which thread 2 has taken"), "{summary:?}");
    assert_eq!(summary.details[0], "They had waited for each other for 8.000 s when the recording ended.");
}

/// A thread that took a lock before it was waited for has not noted its call site, except with `full`.
#[test]
fn how_to_know_where_it_was_taken() {
    let mut profile = waiting(&[
        UnfinishedWait { lock: 1, owner: 2, ..PLAIN },
        UnfinishedWait { lock: 0, since: 2 * S, owner: 1, ..PLAIN },
    ]);
    assert!(!summary(&profile).details[0].contains("--detail"));
    profile.detail = model::Detail::Contended;
    let said = summary(&profile).details[0].clone();
    assert!(said.ends_with(" `--detail full` records where each lock was taken."), "{said}");
}

/// The callers of a wrapper say more than the wrapper.
#[test]
fn wrappers_have_their_callers() {
    let mut profile = waiting(&[
        UnfinishedWait { lock: 1, owner: 2, has: &[0], ..PLAIN },
        UnfinishedWait { lock: 0, since: 2 * S, owner: 1, has: &[1], ..PLAIN },
        UnfinishedWait { lock: 0, since: 3 * S, owner: 1, ..PLAIN },
    ]);
    let call_site = profile.call_sites[0].clone();
    let named = |functions: [&str; 2]| {
        let mut call_site = call_site.clone();
        for (frame, function) in call_site.frames.iter_mut().zip(functions) {
            frame.function = Some(function.to_owned());
        }
        call_site
    };
    profile.call_sites =
        [["take_lock", "load"], ["take_lock", "store"], ["flush", "main"], ["flush", "worker"]]
            .map(named)
            .into();
    for (wait, call_site) in profile.waiting.iter_mut().zip([0, 1, 2]) {
        wait.call_site = Some(call_site);
        if let Some(holder) = &mut wait.holder {
            holder.call_site = Some(1 - call_site.min(1));
        }
    }
    let answered = summary(&profile);
    for words in [
        "thread 1 (`t`) waits in `load` for",
        "which thread 2 has taken in `store`",
        "which thread 1 has taken in `load`",
    ] {
        assert!(answered.headline.contains(words), "{answered:?}");
    }
    // A function that is no wrapper has none, though it has two.
    let stuck = stuck(&profile).expect("there is one more");
    assert!(stuck.contains(" in `flush` for the mutex"), "{stuck}");
    assert!(stuck.contains("held by `load`"), "{stuck}");
}

#[test]
fn a_wait_that_is_half_written_is_none() {
    let mut file = Builder::new();
    let thread = file.thread(1, "t", 0, 0, 0);
    let maps = file.maps("");
    let stack = file.stack(maps, &[1]);
    let lock = file.lock(Kind::Mutex, 64, stack, false);
    file.uses(thread, lock, Role::Write, |stats| stats.acquisitions = 1.into());
    let begun = Begun { since: S, lock, stack, holder: NONE, ..Begun::default() };
    file.waits(thread, begun, 0);
    let mut bytes = file.bytes();
    // The stack of the next wait is there already.
    let needle = (1_000 + S).to_le_bytes();
    let at = bytes.windows(8).position(|window| window == needle).expect("it is in the file");
    bytes[at + 24] ^= 1;
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = scratch.path().join("1.spinprof");
    std::fs::write(&path, bytes).expect("written");
    let profile = profile(&Recording::open(&path).expect("a recording"), &mut Symbols::none());
    assert_eq!((profile.waiting.len(), profile.lock_wait(), profile.warnings.len()), (0, 0, 0));
}

#[test]
fn the_end_of_a_killed_program_is_noted() {
    let mut file = Builder::new();
    let header = file.header();
    header.exited = 0.into();
    header.last = 0.into();
    header.last_monotonic = 0.into();
    // Not a process that lives.
    header.pid = 0x7fff_fff0;
    let scratch = tempfile::tempdir().expect("scratch space");
    let path = file.write(scratch.path()).expect("it is written");
    let read = || profile(&Recording::open(&path).expect("a recording"), &mut Symbols::none());
    let before = read();
    assert_eq!((before.ended, before.duration), (model::RecordingEnd::Killed, 0));
    note_end(scratch.path(), 0x7fff_fff0).expect("noted");
    let after = read().duration;
    assert!(after > 0);
    note_end(scratch.path(), 0x7fff_fff0).expect("nothing more to note");
    assert_eq!(read().duration, after);
}

#[test]
fn names_of_threads_do_not_steer_a_terminal() {
    let first = UnfinishedWait { lock: 1, owner: 2, is_noted: true, has: &[0], ..PLAIN };
    let second = UnfinishedWait { lock: 0, since: 2 * S, owner: 1, is_noted: true, has: &[1], ..PLAIN };
    let mut profile = waiting(&[first, second]);
    profile.threads[0].name = String::from("\u{1b}[31mA\nrm");
    let headline = summary(&profile).headline;
    assert!(headline.starts_with("Deadlock") && !headline.contains(char::is_control), "{headline:?}");
    assert!(headline.contains(r"(`\u{1b}[31mA\nrm`)"), "{headline:?}");
}
