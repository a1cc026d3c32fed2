//! Locks that are let go without the recorder, or by another thread than the one that took them.

use std::mem::offset_of;
use std::path::Path;

use spinpark_profile::read;
use spinpark_profile::symbols::Symbols;
use spinpark_recorder::format::{Header, Role};
use spinpark_testkit::profiled::{Recording, recordings};
use spinpark_testkit::{Configuration, Run, both_configurations, compile_c};

/// Threads that wait when the program is killed; none of them waits for itself.
fn assert_no_circle(directory: &Path, configuration: Configuration, arguments: &[&str]) {
    let program = compile_c("profile/stale.c", &[]);
    let outcome =
        Run::new(program).args(arguments).configuration(configuration).profiled(directory, "full").outcome();
    assert!(outcome.status.code().is_none(), "it kills itself: {}", outcome.stderr_text());
    let files = recordings(directory);
    assert_eq!(files.len(), 1, "{files:?}");
    let file = read::Recording::open(&files[0]).expect("a recording");
    let profile = read::profile(&file, &mut Symbols::new());
    assert_eq!(profile.waiting.len(), 2, "{:?}", profile.waiting);
    assert!(profile.deadlocks.is_empty(), "{:?}", profile.deadlocks);
}

/// Locks are counted, whatever becomes of their notes.
fn assert_counted(directory: &Path, configuration: Configuration, scene: &str) {
    let program = compile_c("profile/stale.c", &[]);
    let outcome =
        Run::new(program).arg(scene).configuration(configuration).profiled(directory, "full").succeed();
    let recording = Recording::read(&recordings(directory)[0]);
    let text = outcome.stdout_text();
    let locks: Vec<Vec<u64>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("lock write "))
        .map(|line| line.split(' ').map(|word| word.parse().expect("a number")).collect())
        .collect();
    assert!(!locks.is_empty());
    for lock in locks {
        let found = recording.use_of(lock[0], Role::Write);
        assert_eq!(found.acquisitions, lock[1], "{lock:?} {found:?}");
    }
}

both_configurations! {
    another_thread_lets_it_go = |directory, configuration| assert_no_circle(directory, configuration, &["given-away"]);
    with_less_detail_than_before = |directory, configuration| {
        let at = offset_of!(Header, detail).to_string();
        assert_no_circle(directory, configuration, &["less-detail", &at]);
    };
    recording_is_off_meanwhile = |directory, configuration| {
        let at = offset_of!(Header, detail).to_string();
        assert_no_circle(directory, configuration, &["off-meanwhile", &at]);
    };
    more_locks_than_are_noted = |directory, configuration| assert_counted(directory, configuration, "many-held");
    threads_that_ended_with_a_lock = |directory, configuration| assert_counted(directory, configuration, "ended");
    the_holder_of_a_mutex_that_is_repaired = |directory, configuration| {
        let program = compile_c("profile/stale.c", &[]);
        let outcome = Run::new(program).arg("repaired").configuration(configuration).profiled(directory, "full").succeed();
        let text = outcome.stdout_text();
        let function = |name: &str| -> u64 {
            let start = format!("function {name} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start)).expect("a function");
            line.parse().expect("an address")
        };
        let recording = Recording::read(&recordings(directory)[0]);
        let pairs: Vec<_> = recording.pairs.keys().filter(|pair| pair.1 == Role::Write as u32).collect();
        let is_in = |stack: u32, name: &str| {
            let frames = recording.stacks.get(&stack).expect("a stack");
            (function(name)..function(name) + 1024).contains(&frames[0])
        };
        assert!(pairs.len() == 1 && is_in(pairs[0].2, "waiter_site") && is_in(pairs[0].3, "holder_site"), "{pairs:?}");
    };
}
