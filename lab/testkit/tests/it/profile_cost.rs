//! What recording costs: by counts, not by times. `SPINPARK_PROFILE_SPANS` is for these tests: the recorder
//! then forwards calls from the start, but for one part in this number of the time.

use spinpark_profile::model::Profile;
use spinpark_profile::read;
use spinpark_profile::symbols::Symbols;
use spinpark_testkit::profiled::recordings;
use spinpark_testkit::{Configuration, Run, compile_c};

/// Runs `sites.cpp`: what was recorded, and how often the lock was taken.
fn sites(detail: &str, arguments: &[&str]) -> (Profile, u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile_c("profile/sites.cpp", &["-std=c++17"]);
    let run = Run::new(program).args(arguments).configuration(Configuration::Glibc);
    let outcome = run.profiled(directory.path(), detail).succeed();
    let taken = outcome.stdout_text().trim().parse().expect("a number");
    let file = read::Recording::open(&recordings(directory.path())[0]).expect("a recording");
    (read::profile(&file, &mut Symbols::new()), taken)
}

#[test]
fn a_thousand_call_sites_are_unwound_once() {
    let (profile, taken) = sites("full", &[]);
    let locks = profile.locks.iter().filter(|lock| lock.kind.is_lock());
    let counted: u64 = locks.flat_map(|lock| &lock.roles).map(|it| it.acquisitions).sum();
    // Besides the first acquisition and the waiter's.
    assert_eq!(counted, taken + 2);
    let own = profile.recorder;
    // One for each of the 1,000 functions, and some for what calls them and as a check.
    assert!((1..1_100).contains(&own.unwound), "{own:?}");
    assert!(own.calls + own.rare > 0 && own.recorded > taken / 2, "{own:?}");
    assert!(profile.cost.is_some());
}

#[test]
fn what_is_too_fast_is_sampled() {
    let (profile, taken) = sites("contended", &["4000000"]);
    let own = profile.recorder;
    assert!(own.left_out > taken / 2, "{own:?}");
    assert!(own.recorded < taken / 10, "{own:?}");
    let stats =
        profile.locks.iter().flat_map(|lock| &lock.roles).find(|it| it.contended > 0).expect("the lock");
    // Twice the 95 % interval, and the last gap.
    let off = stats.acquisitions.abs_diff(taken);
    assert!(stats.error.acquisitions > 0 && off < 2 * stats.error.acquisitions + 10_000, "{off} {stats:?}");
    // The wait is longer than those that are left out.
    assert_eq!((stats.contended, stats.error.contended), (1, 0));
    assert!(profile.left_out().expect("a sentence").contains("left out of a random sample"));
}

/// Runs `spans.c`, in which the process records for one part in `times` of the time.
fn in_spans(times: &str, arguments: &[&str]) -> (Profile, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile_c("profile/spans.c", &[]);
    let run = Run::new(program).args(arguments).configuration(Configuration::Glibc);
    let run = run.profiled(directory.path(), "contended").env("SPINPARK_PROFILE_SPANS", times);
    let outcome = if arguments[0] == "deadlock" { run.outcome() } else { run.succeed() };
    let file = read::Recording::open(&recordings(directory.path())[0]).expect("a recording");
    (read::profile(&file, &mut Symbols::new()), outcome.stdout_text())
}

#[test]
fn what_spans_leave_out_is_estimated() {
    const ROUNDS: u64 = 4_000;
    let (profile, _) = in_spans("8", &["waits", &ROUNDS.to_string()]);
    let own = profile.recorder;
    let experiment = own.experiment.expect("an experiment");
    assert!(experiment.light > 0, "{own:?}");
    let stats =
        profile.locks.iter().flat_map(|lock| &lock.roles).find(|it| it.contended > 0).expect("the lock");
    // Twice the 95 % interval: spans are alike, and a busy machine makes them differ.
    let off = stats.contended.abs_diff(ROUNDS);
    assert!(stats.error.contended > 0 && off < 2 * stats.error.contended, "{off} {stats:?} {own:?}");
    // Acquisitions, waits and releases count.
    assert!(own.recorded < 2 * ROUNDS && own.left_out > 0, "{own:?}");
    // A cost is claimed only where it was compared.
    let cost = profile.cost.expect("a cost");
    assert_eq!(
        cost.interval.is_some(),
        experiment.time.is_some() && experiment.cpu_time.is_some(),
        "{cost:?}"
    );
}

#[test]
fn without_spans_waits_are_counted() {
    const ROUNDS: u64 = 2_000;
    let (profile, _) = in_spans("1", &["waits", &ROUNDS.to_string()]);
    assert_eq!(profile.recorder.experiment, None);
    let contended: u64 = profile.locks.iter().flat_map(|lock| &lock.roles).map(|it| it.contended).sum();
    assert!(contended.abs_diff(ROUNDS) < ROUNDS / 4, "{contended}");
}

#[test]
fn a_deadlock_is_seen_while_calls_are_passed_on() {
    for _ in 0..8 {
        let (profile, _) = in_spans("16", &["deadlock"]);
        assert!(profile.recorder.experiment.is_some_and(|found| found.light > 0), "{:?}", profile.recorder);
        assert_eq!(profile.waiting.len(), 2, "{:?}", profile.waiting);
        assert_eq!(profile.deadlocks.len(), 1, "{:?}", profile.waiting);
    }
}
