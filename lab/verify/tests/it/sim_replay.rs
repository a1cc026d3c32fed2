//! A seed determines a run: one that fails does so again, in this process and in another, to the letter.

use std::process::Command;

use spinpark_locks::bits::condvar::GIVEN_UP;
use spinpark_platform::Ordering::Relaxed;
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_verify::sim_programs::{Checker, Failing, families};

/// In the child: it only tells its story.
const CHILD: &str = "SPINPARK_REPLAY_CHILD";

/// Runs that fail, because the machine has a fault.
fn failing(name: &str) -> Box<Failing> {
    fn gives_up(op: &Op) -> bool {
        op.is(Kind::CompareExchange, Relaxed) && op.writes(GIVEN_UP)
    }
    let fault = if name == "condvar" { Fault::NoWrite(gives_up) } else { Fault::NoWakes };
    let family = families().iter().find(|family| family.name == name).expect("there is such a family");
    Checker::new(*family).fault(fault).sweep(0..1_000).expect_err("the fault is found")
}

const FAMILIES: [&str; 5] = ["mutex", "rwlock", "condvar", "condvar_2003", "rwsem"];

#[test]
fn a_seed_is_a_run() {
    let tell = || FAMILIES.map(|name| failing(name).story()).join("\n");
    let story = tell();
    if std::env::var_os(CHILD).is_some() {
        println!("{story}");
        return;
    }
    // Elsewhere in memory.
    let _elsewhere: Vec<_> = (1..200).map(|size| vec![0u8; size * 24]).collect();
    assert_eq!(story, tell());
    let program = std::env::current_exe().expect("the test has a path");
    let child = Command::new(program)
        .args(["sim_replay::a_seed_is_a_run", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .expect("the test runs again");
    let theirs = String::from_utf8_lossy(&child.stdout);
    assert!(theirs.contains(&story), "here:\n{story}\nin another process:\n{theirs}");
}

/// What the first programs of each family come to: the same on every build, until a lock, a family or the
/// machine changes (`INSTA_UPDATE=always` writes the figures anew).
#[test]
fn figures_are_those_of_every_build() {
    let figures = families().iter().map(|family| {
        let seeds = if family.name.ends_with("_patience") { 1 } else { 20 };
        let swept = Checker::new(*family).sweep(0..seeds).unwrap_or_else(|failing| panic!("{failing}"));
        format!("{}: {swept}\n", family.name)
    });
    insta::assert_snapshot!(figures.collect::<String>());
}

#[test]
fn a_story_has_what_a_reader_needs() {
    let failing = failing("mutex");
    let told = failing.to_string();
    let command = format!(
        "SPINPARK_SEED={} cargo test -p spinpark-verify --test it -- --exact sim_programs::mutex",
        failing.seed
    );
    for part in ["deadlock", "threads,", "CPUs,", "Chaos {", "sleeps on", "lock", &command] {
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
    assert!(!failing.interleaving.is_empty());
}
