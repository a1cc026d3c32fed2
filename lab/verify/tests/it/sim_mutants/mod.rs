//! Known-bad machines, locks and users, which the simulator must find: the same as those that loom must
//! reject, as far as an x86 memory shows them. See `notes/verification.md`.

mod asymmetric;
mod condvar;
mod forked;
mod harness;
mod mutex;
mod queues;
mod rwlock;
mod rwsem;
mod signalled;
mod slots;
mod stopped;

use std::rc::Rc;

use spinpark_verify::breaks_rule;
use spinpark_verify::mutants::queue_lock;
use spinpark_verify::sim_programs::{Checker, Family, Guard, Hold, Limits, Program};

use harness::{OF_TEST, found, hangs, lets_two_in, rejected};

/// Without a lock, the checker would see it.
#[test]
fn no_lock_at_all() {
    let build = |program: &mut Program| {
        let guard = Rc::new(Guard::new());
        for _ in 0..program.threads() {
            let guard = Rc::clone(&guard);
            program.thread(move || guard.visit(Hold::Alone));
        }
    };
    rejected(breaks_rule("exclusion"), Checker::new(Family { name: "no_lock_at_all", build }), lets_two_in);
}

/// A run of a family that is nowhere but here can be run again by the command that it shows.
#[test]
fn what_fails_can_be_run_again() {
    let build = |program: &mut Program| queues::queue_lock(program, queue_lock::Error::WakesBeforeUnlock);
    let checker = Checker::new(Family { name: "wakes_first", build });
    let Some(failing) = found(
        breaks_rule("of the queue lock: the wake comes after the unlock"),
        checker.limits(Limits { threads: 4, rounds: 2 }),
        hangs,
    ) else {
        return;
    };
    let told = failing.to_string();
    let command = told.lines().last().expect("a story has lines").trim();
    let (set, arguments) = command.split_once(" cargo test ").expect("it is a command of cargo");
    assert!(arguments.starts_with(OF_TEST), "{command}");
    // What cargo would run, with what it would say.
    let tests = std::env::current_exe().expect("the test has a path");
    let mut again = std::process::Command::new(tests);
    again.args(["--exact", "sim_mutants::what_fails_can_be_run_again"]);
    again.envs(set.split(' ').map(|set| set.split_once('=').expect("a variable and its value")));
    let output = again.output().expect("the test runs again");
    let shown = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && shown.contains(&failing.story()), "{command}\n{shown}");
}
