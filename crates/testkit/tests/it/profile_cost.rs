//! What recording costs: by counts, not by times.

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
