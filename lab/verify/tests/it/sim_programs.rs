//! The simulator checks every lock: a test for each family of programs.
//!
//! `SPINPARK_SEEDS=n` runs n seeds of each family. `SPINPARK_SEED=n` runs that one and shows what it does;
//! `SPINPARK_LIMITS=2x3` then makes the program one of at most 2 threads and 3 rounds,
//! and `SPINPARK_STEPS=n` shows its last n steps.

use spinpark_platform::Event;
use spinpark_verify::sim_programs::{Checker, families, seeds as asked_for};

/// Runs a family; asserts that some run came to each of `events`.
fn check(family: &str, seeds: u64, events: &[Event]) {
    let found = families().iter().find(|known| known.name == family);
    let checker = Checker::new(*found.expect("there is such a family")).from_environment();
    match checker.replay() {
        Some(Ok(_)) => return,
        Some(Err(failing)) => panic!("{failing}"),
        None => {}
    }
    // A run of these is as long as a hundred others.
    let share = if family.ends_with("_patience") { 100 } else { 1 };
    let seeds = asked_for().map_or(seeds, |asked| asked.div_ceil(share));
    match checker.sweep(0..seeds) {
        Ok(swept) => {
            println!("{family}: {swept}");
            swept.reaches(events);
        }
        Err(failing) => match checker.smaller() {
            Some(smaller) => panic!("{failing}\n\nA smaller one:\n{smaller}"),
            None => panic!("{failing}"),
        },
    }
}

macro_rules! families {
    ($($name:ident $seeds:literal [$($event:ident)*],)*) => {
        $(#[test] fn $name() { check(stringify!($name), $seeds, &[$(Event::$event),*]); })*

        #[test]
        fn every_family_is_checked() {
            let known: Vec<_> = families().iter().map(|family| family.name).collect();
            assert_eq!(known, [$(stringify!($name)),*]);
        }
    };
}

families! {
    mutex 8_000 [SpinAcquired SpinLeftOffCpu SpinLeftBudget Parked WokeHead EarlyWake HandedOff RequestedHandoff TimedOut],
    mutex_tight 4_000 [Parked WokeHead WokeUnmarked],
    mutex_freed 4_000 [Parked HandedOff],
    mutex_policies 6_000 [SpinAcquired Parked WokeHead WokeUnmarked EarlyWake HandedOff RequestedHandoff TimedOut],
    mutex_tight_policies 4_000 [Parked WokeHead WokeUnmarked],
    rwlock_policies 6_000 [GrantedReaders HandedOff RequestedHandoff WithdrewRequest TimedOut EnabledBias RevokedBias],
    condvar_policies 4_000 [DeferredWake TimedOut HandedOff],
    mutex_patience 100 [Parked],
    rwlock 8_000 [GrantedReaders HandedOff RequestedHandoff WithdrewRequest TimedOut EnabledBias RevokedBias],
    rwlock_first 4_000 [Parked WokeHead HandedOff GrantedReaders TimedOut],
    rwlock_told 4_000 [GrantedReaders HandedOff TimedOut EnabledBias RevokedBias],
    rwlock_freed 3_000 [GrantedReaders EnabledBias RevokedBias],
    rwlock_helper 1_500 [RequestedHandoff],
    rwlock_queueing 20 [Parked WokeHead],
    rwlock_patience 100 [Parked RequestedHandoff],
    rwlock_dependent_patience 40 [RequestedHandoff WithdrewRequest HandedOff],
    rwlock_tries 3_000 [RequestedHandoff WithdrewRequest TimedOut HandedOff],
    mutex_forked 3_000 [Parked],
    rwlock_forked 3_000 [Parked],
    condvar_forked 3_000 [Parked],
    mutex_signalled 3_000 [Parked TimedOut],
    rwlock_signalled 3_000 [Parked TimedOut EnabledBias RevokedBias],
    mutex_stopped 3_000 [Parked WokeHead TimedOut],
    rwlock_stopped 3_000 [Parked EnabledBias RevokedBias],
    rwlock_first_stopped 3_000 [Parked HandedOff],
    condvar_stopped 3_000 [Parked DeferredWake TimedOut],
    mutex_left 3_000 [Parked WokeHead TimedOut],
    rwlock_left 3_000 [Parked EnabledBias RevokedBias],
    rwsem 3_000 [SpinAcquired GrantedReaders],
    condvar 4_000 [DeferredWake TimedOut HandedOff],
    condvar_tight 3_000 [Parked WokeHead],
    condvar_order 1_500 [DeferredWake],
    condvar_freed 3_000 [DeferredWake TimedOut],
    crowd 2_000 [Parked GrantedReaders],
    condvar_2003 3_000 [MovedWaiter TimedOut],
    queues 1_500 [],
    osq 1_500 [],
    spin_queue 1_500 [],
}
