//! Recordings that the Rust library makes of its own locks: waits are counted, times are what the program
//! measured itself.

use std::process::Command;

use spinpark_profile::model::{self, LocksOf, Profile};
use spinpark_profile::read;
use spinpark_profile::symbols::Symbols;
use spinpark_recorder::format::{Role, WaitOutcome};
use spinpark_testkit::Run;
use spinpark_testkit::profiled::{Recording, Use, recordings};

const PROGRAM: &str = env!("CARGO_BIN_EXE_library_locks");

struct Scene {
    recording: Recording,
    profile: Profile,
    truths: Vec<Truth>,
}

/// What the program says of a lock in a role.
#[derive(Debug)]
struct Truth {
    role: Role,
    address: u64,
    contended: u64,
    waited: f64,
    held: f64,
}

impl Truth {
    fn parse(line: &str) -> Option<Truth> {
        let words: Vec<&str> = line.strip_prefix("lock ")?.split(' ').collect();
        let role = match words[0] {
            "write" => Role::Write,
            "read" => Role::Read,
            "signal" => Role::Signal,
            "back" => Role::Back,
            other => panic!("a role: {other}"),
        };
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let (address, contended) = (number(1), number(2));
        Some(Truth { role, address, contended, waited: number(3) as f64, held: number(4) as f64 })
    }
}

fn run(scene: &str) -> Scene {
    let directory = tempfile::tempdir().expect("a directory");
    let outcome = Run::new(PROGRAM).arg(scene).env("SPINPARK_PROFILE_DIR", directory.path()).succeed();
    let files = recordings(directory.path());
    assert_eq!(files.len(), 1, "one process: {files:?}");
    let recording = Recording::read(&files[0]);
    assert!(recording.exited);
    assert_eq!((recording.dropped, recording.nested), (0, 0), "{:?}", recording.dropped_by_region);
    let file = read::Recording::open(&files[0]).expect("a recording");
    let profile = read::profile(&file, &mut Symbols::new());
    assert_eq!((profile.locks_of, profile.warnings.as_slice()), (LocksOf::Library, &[][..]));
    let text = outcome.stdout_text();
    Scene { recording, profile, truths: text.lines().filter_map(Truth::parse).collect() }
}

/// By construction, a waiter is seen asleep for at least this long, ns.
const HOLD: f64 = 10e6;

/// At most what the program measured, and 5 % less at most, or as much as it is sure of: on a busy machine a
/// thread that is about to wait may itself be kept waiting, for a CPU. 50 µs per wait are nothing.
#[track_caller]
fn assert_near(what: &str, found: f64, truth: &Truth, true_time: f64, sure: f64) {
    let (least, most) = (sure.min(0.95 * true_time), 1.05 * true_time);
    let slack = 50_000.0 * truth.contended as f64;
    assert!(
        (least - slack..=most + slack).contains(&found),
        "{what}: {found} ns recorded, {true_time} ns in {truth:?}"
    );
}

impl Scene {
    fn check(&self) -> Vec<Use> {
        assert!(!self.truths.is_empty());
        let check = |truth: &Truth| {
            let found = self.recording.use_of(truth.address, truth.role);
            let context = format!("{truth:?}\n{found:?}");
            assert_eq!((found.contended, found.waits), (truth.contended, truth.contended), "{context}");
            assert_eq!(found.outcomes[..5].iter().sum::<u64>(), found.contended, "{context}");
            let sure = if truth.role == Role::Back { 0.0 } else { HOLD * truth.contended as f64 };
            // The signaller may be kept waiting for a CPU between its account and the signal: that is the
            // next one's time.
            let more =
                self.truths.iter().filter(|more| truth.role == Role::Signal && more.role == Role::Back);
            let most = truth.waited + more.map(|more| more.waited).sum::<f64>();
            assert_near("waits", found.waited, truth, most, sure.min(0.95 * truth.waited));
            if truth.held > 0.0 {
                assert_eq!(
                    (found.held.count, found.held_after_wait.count),
                    (0, truth.contended),
                    "{context}"
                );
                assert_near("holds", found.held_after_wait.total, truth, truth.held, truth.held);
            }
            found
        };
        self.truths.iter().map(check).collect()
    }

    fn call_site(&self, call_site: Option<usize>) -> String {
        call_site.map_or("unknown".into(), |call_site| self.profile.call_sites[call_site].label())
    }

    /// Pairs of waiter and holder of a lock, by their names, and how often.
    fn pairs(&self, label: &str) -> Vec<(String, String, u64)> {
        let lock = self.profile.locks.iter().find(|lock| lock.label == label);
        let lock = lock.unwrap_or_else(|| panic!("{label} in {:?}", self.profile.locks));
        let pairs = self.profile.pairs.iter().filter(|pair| pair.lock == lock.id);
        pairs
            .map(|pair| (self.call_site(Some(pair.waiter)), self.call_site(pair.holder), pair.count))
            .collect()
    }
}

#[test]
fn mutex() {
    let scene = run("mutex");
    let found = &scene.check()[0];
    assert_eq!((found.acquisitions, found.longest_queue, found.wake_ups), (10, 1, 10));
    let slept =
        found.outcomes[WaitOutcome::Parked as usize] + found.outcomes[WaitOutcome::HandedOver as usize];
    assert_eq!(slept, 10, "{found:?}");
    let pairs = scene.pairs("store");
    assert_eq!((pairs.len(), pairs[0].2), (1, 10), "{pairs:?}");
    assert!(pairs[0].0.contains("read_store") && pairs[0].1.contains("update_store"), "{pairs:?}");
}

#[test]
fn timed_out() {
    let found = &run("timed").check()[0];
    assert_eq!((found.outcomes[WaitOutcome::TimedOut as usize], found.acquisitions), (10, 0));
}

/// A condition variable's own mutex is let go in the wait; another one is not.
#[test]
fn what_is_held_in_a_wait_for_a_signal() {
    let profile = run("queue").profile;
    let label = |lock: u32| &*profile.lock(lock).expect("it").label;
    let found = profile
        .held_waits
        .iter()
        .map(|waits| (label(waits.outer), label(waits.lock), waits.role, waits.count));
    let signals: Vec<_> = found.filter(|waits| waits.2 == model::Role::Signal).collect();
    assert_eq!(signals, [("book", "ready", model::Role::Signal, 10)], "{:?}", profile.held_waits);
    assert!(profile.held_waits.iter().all(|waits| label(waits.outer) == "book"), "{:?}", profile.held_waits);
}

#[test]
fn rwlock() {
    let scene = run("rwlock");
    let found = scene.check();
    assert_eq!(found[0].held_after_wait.count, 0, "holds of readers are not measured");
    let pairs = scene.pairs("table");
    let all: u64 = pairs.iter().map(|pair| pair.2).sum();
    assert!(all == 20 && pairs.iter().all(|pair| pair.1.contains("rwlock")), "{pairs:?}");
}

#[test]
fn condvar() {
    let scene = run("condvar");
    let found = &scene.check()[0];
    assert_eq!((found.wake_ups, found.longest_queue), (10, 1));
    assert_eq!(scene.truths[1].role, Role::Back);
    assert!(scene.profile.locks.iter().any(|lock| lock.label == "changed"));
}

#[test]
fn nothing_is_lost_in_a_crowd() {
    let scene = run("crowd");
    for found in scene.recording.uses.values() {
        assert_eq!((found.waits, found.outcomes[..5].iter().sum()), (found.contended, found.contended));
        assert!(found.acquisitions <= found.contended && found.held_after_wait.count <= found.contended);
        assert!(found.held.count == 0 && found.contended <= 200_000, "{found:?}");
    }
}

#[test]
fn a_forked_child_has_its_own_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let outcome = Run::new(PROGRAM).arg("fork").env("SPINPARK_PROFILE_DIR", directory.path()).succeed();
    let address = outcome.stdout_text().lines().find_map(Truth::parse).expect("a truth").address;
    let files = recordings(directory.path());
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        let recording = Recording::read(&file);
        assert!(recording.exited);
        assert_eq!(recording.use_of(address, Role::Write).contended, 10);
    }
}

/// Releases that were not seen leave no false holders, and so no false deadlocks.
#[test]
fn releases_that_are_not_seen() {
    for scene in ["unseen-mutex", "unseen-rwlock"] {
        let directory = tempfile::tempdir().expect("a directory");
        let outcome = Run::new(PROGRAM).arg(scene).env("SPINPARK_PROFILE_DIR", directory.path()).outcome();
        assert!(outcome.status.code().is_none(), "it aborts: {}", outcome.stderr_text());
        let file = read::Recording::open(&recordings(directory.path())[0]).expect("a recording");
        let profile = read::profile(&file, &mut Symbols::new());
        assert!(profile.waiting.len() >= 2, "{scene}: {:?}", profile.waiting);
        assert!(profile.deadlocks.is_empty(), "{scene}: {:?}", profile.deadlocks);
    }
}

/// The profiler and the library record side by side.
#[test]
fn beside_the_profiler() {
    let directory = tempfile::tempdir().expect("a directory");
    Run::new(PROGRAM).arg("mutex").profiled(directory.path(), "full").succeed();
    let files = recordings(directory.path());
    let locks: Vec<u32> = files.iter().map(|file| Recording::read(file).locks_of).collect();
    assert_eq!(locks.iter().filter(|locks| **locks == 2).count(), 1, "{files:?}");
    assert_eq!(locks.len(), 2);
}

#[test]
fn off_by_default() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new(PROGRAM)
        .arg("mutex")
        .current_dir(&directory)
        .env_remove("SPINPARK_PROFILE_DIR")
        .output()
        .expect("it runs");
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"recording false\n"));
    assert_eq!(std::fs::read_dir(&directory).expect("a directory").count(), 0);
}
