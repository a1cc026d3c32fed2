//! Document 002, decided by model on the running lock: its two claims, and which full fences of its rwsem are
//! needed. Each is taken away by itself, and missed:
//!
//! | fence                                           | with     | missed by                                             |
//! |-------------------------------------------------|----------|-------------------------------------------------------|
//! | a writer about to sleep, before it looks        | 3.12     | `mutant_a_writer_sleeps_without_its_fence`            |
//! | the same, under the list's lock                 | patch 9  | `mutant_a_woken_writer_looks_without_its_fence`       |
//! | a release, before it reads `wakeup`             | patch 9  | `mutant_a_release_reads_the_flag_without_its_fence`,  |
//! |                                                 |          | and its twin beside a reader                          |
//! | a thread that lets readers in, before the count | 4 and 9  | `mutant_readers_are_let_in_without_its_fence`         |
//! | a waker of a writer, after it changed the count | 3.12     | none here: see `notes/verification.md`               |

use loom::thread;
use spinpark_classics::RawRwLock;
use spinpark_classics::rwsem_2013::{AsSent, Full, NO_OWNER, NoSpin, Patches, Rwsem, Series, Vanilla};
use spinpark_platform::{OnCpu, Threads};
use spinpark_verify::platform::{Loom, lose_full_fences};
use spinpark_verify::{Model, Mortal, Shared, breaks, breaks_rule, rejected};

/// The series up to patch 8.
type UpTo8 = Patches<true, true, true, true, true, false>;

/// How the third thread comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thief {
    /// As a spinner whose moment has come; if it has not, never.
    Steals,
    /// As any writer.
    Comes,
}

/// Where full fences are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    Holder,
    Sleeper,
    Thief,
}

/// One thread holds the semaphore and releases it, one comes and sleeps, one steals or comes.
fn a_holder_a_sleeper_and<S: Series>(
    model: Model,
    sleeps: fn(&Shared<Rwsem<Loom, S>>),
    thief: Thief,
    without: Without,
) {
    let lose = move |thread| {
        if thread == without {
            lose_full_fences();
        }
    };
    model.check(move || {
        let shared = Shared::new(<Rwsem<Loom, S> as RawRwLock>::new());
        shared.lock.write();
        let section = |shared: &Shared<Rwsem<Loom, S>>| {
            shared.data.add();
            shared.lock.unlock_write();
        };
        let sleeper = shared.spawn(move |shared| {
            lose(Without::Sleeper);
            sleeps(shared);
        });
        let other = shared.spawn(move |shared| {
            lose(Without::Thief);
            match thief {
                Thief::Steals if !shared.lock.steal() => {}
                Thief::Steals => section(shared),
                Thief::Comes => {
                    shared.lock.write();
                    thread::yield_now(); // others go on: not a preemption, of which the bound allows few
                    section(shared);
                }
            }
        });
        lose(Without::Holder);
        section(&shared);
        sleeper.join().unwrap();
        other.join().unwrap();
    });
}

fn writes<S: Series>(shared: &Shared<Rwsem<Loom, S>>) {
    shared.lock.write();
    shared.data.add();
    shared.lock.unlock_write();
}

fn reads<S: Series>(shared: &Shared<Rwsem<Loom, S>>) {
    shared.lock.read();
    shared.data.get();
    shared.lock.unlock_read();
}

/// No thread spins, whatever the series says.
fn asleep() -> Model {
    Model::new().two_may_spin().oracle(OnCpu::Off)
}

/// Patch 8, first half of the verdict: whenever the owner is cleared, writers exclude each other, and all
/// come in.
#[test]
fn patch_8_is_safe_and_live_either_way() {
    let awake = Model::new().three_may_spin().oracle(OnCpu::Running);
    a_holder_a_sleeper_and::<UpTo8>(asleep(), writes, Thief::Steals, Without::Nothing);
    a_holder_a_sleeper_and::<AsSent<UpTo8, true, false>>(asleep(), writes, Thief::Steals, Without::Nothing);
    a_holder_a_sleeper_and::<UpTo8>(awake, writes, Thief::Comes, Without::Nothing);
    a_holder_a_sleeper_and::<AsSent<UpTo8, true, false>>(awake, writes, Thief::Comes, Without::Nothing);
}

/// A writer asks who owns what it holds.
fn the_holder_is_the_owner<S: Series>() {
    Model::new().preemptions(3).check(|| {
        let shared = Shared::new(<Rwsem<Loom, S> as RawRwLock>::new());
        shared.lock.write();
        let thief = shared.spawn(|shared| {
            if shared.lock.steal() {
                let me = Loom::<1, 0>::thread_token();
                assert_ne!(me, NO_OWNER);
                assert_eq!(shared.lock.owner(), me, "the owner is not who holds it");
                shared.lock.unlock_write();
            }
        });
        shared.lock.unlock_write();
        thief.join().unwrap();
    });
}

/// Second half: cleared before the release, the owner is right for as long as a writer holds the semaphore.
#[test]
fn patch_8_cleared_before_the_release_the_owner_is_right() {
    the_holder_is_the_owner::<UpTo8>();
    the_holder_is_the_owner::<Full>();
}

/// Cleared after it, the next writer's owner is erased, and no thread spins on that writer: the price in
/// speed.
#[test]
fn patch_8_as_sent_erases_the_next_owner() {
    rejected!(
        "patch_8_as_sent_erases_the_next_owner",
        breaks_rule("of document 002: the owner is cleared before the release"),
        "the owner is not who holds it",
        || {
            the_holder_is_the_owner::<AsSent<UpTo8, true, false>>();
        }
    );
}

/// The next writer frees what the semaphore is part of.
fn freed_by_the_next_writer<S: Series>() {
    Model::new().preemptions(3).check(|| {
        let rwsem = Mortal::new(<Rwsem<Loom, S> as RawRwLock>::new());
        rwsem.write();
        let thief = thread::spawn(move || {
            if rwsem.steal() {
                rwsem.destroy();
            }
        });
        rwsem.unlock_write();
        thief.join().unwrap();
    });
}

#[test]
fn patch_8_cleared_before_the_release_it_may_be_freed() {
    freed_by_the_next_writer::<UpTo8>();
}

/// A limit of the verdict: the late store is an access after the release, which the next writer must allow
/// for.
#[test]
fn patch_8_as_sent_touches_what_may_be_gone() {
    rejected!(
        "patch_8_as_sent_touches_what_may_be_gone",
        breaks_rule("of document 002: the release is the last access"),
        "Causality violation",
        || {
            freed_by_the_next_writer::<AsSent<UpTo8, true, false>>();
        }
    );
}

/// Patch 9 as sent loses a wake-up: a writer sleeps, the semaphore is free, and no thread is left to wake it.
#[test]
fn patch_9_as_sent_loses_a_wake_up() {
    rejected!("patch_9_as_sent_loses_a_wake_up", breaks("rwsem_2013.S4"), "deadlock", || {
        a_holder_a_sleeper_and::<AsSent<Full, false, true>>(
            asleep(),
            writes,
            Thief::Steals,
            Without::Nothing,
        );
    });
}

/// Also without patch 8, where a writer steals from the end of the line only.
#[test]
fn patch_9_as_sent_loses_a_wake_up_without_spinners() {
    rejected!(
        "patch_9_as_sent_loses_a_wake_up_without_spinners",
        breaks("rwsem_2013.S4"),
        "deadlock",
        || {
            a_holder_a_sleeper_and::<AsSent<NoSpin, false, true>>(
                asleep(),
                writes,
                Thief::Comes,
                Without::Nothing,
            );
        }
    );
}

/// What its comment takes for granted, that the woken writer does nothing before `wait_lock` is free, saves
/// it.
#[test]
fn patch_9_with_the_look_under_the_lock() {
    a_holder_a_sleeper_and::<Full>(asleep(), writes, Thief::Steals, Without::Nothing);
    a_holder_a_sleeper_and::<NoSpin>(asleep(), writes, Thief::Comes, Without::Nothing);
}

/// Without the flag, the look without the lock is right: 3.12.
#[test]
fn without_patch_9_the_look_may_come_first() {
    a_holder_a_sleeper_and::<Vanilla>(asleep(), writes, Thief::Steals, Without::Nothing);
    a_holder_a_sleeper_and::<Vanilla>(asleep(), writes, Thief::Comes, Without::Nothing);
}

/// With all fences, no thread sleeps on. (Writers that sleep, of the whole series and of 3.12: above.)
#[test]
fn with_all_fences() {
    a_holder_a_sleeper_and::<Vanilla>(asleep(), reads, Thief::Steals, Without::Nothing);
    a_holder_a_sleeper_and::<NoSpin>(asleep(), writes, Thief::Steals, Without::Nothing);
    a_holder_a_sleeper_and::<NoSpin>(asleep(), reads, Thief::Steals, Without::Nothing);
    a_holder_a_sleeper_and::<Full>(asleep(), reads, Thief::Steals, Without::Nothing);
}

/// It does not see that the semaphore is free, and the release did not see that it sleeps.
#[test]
fn mutant_a_writer_sleeps_without_its_fence() {
    rejected!(
        "mutant_a_writer_sleeps_without_its_fence",
        breaks_rule("of the rwsem of 3.12: a writer announces its sleep before it reads the count"),
        "deadlock",
        || {
            a_holder_a_sleeper_and::<Vanilla>(asleep(), writes, Thief::Steals, Without::Sleeper);
        }
    );
}

/// It sees that the flag is cleared (it has the lock after the waker), and not the release that saw it set.
#[test]
fn mutant_a_woken_writer_looks_without_its_fence() {
    rejected!("mutant_a_woken_writer_looks_without_its_fence", breaks("rwsem_2013.S4"), "deadlock", || {
        a_holder_a_sleeper_and::<Full>(asleep(), writes, Thief::Steals, Without::Sleeper);
    });
}

/// rwsem_2013.S4: it reads the flag before its own release is seen. No other fence matters in this thread.
#[test]
fn mutant_a_release_reads_the_flag_without_its_fence() {
    rejected!(
        "mutant_a_release_reads_the_flag_without_its_fence",
        breaks("rwsem_2013.S4"),
        "deadlock",
        || {
            a_holder_a_sleeper_and::<Full>(asleep(), writes, Thief::Steals, Without::Thief);
        }
    );
}

#[test]
fn mutant_a_release_beside_a_reader_reads_the_flag_without_its_fence() {
    rejected!(
        "mutant_a_release_beside_a_reader_reads_the_flag_without_its_fence",
        breaks("rwsem_2013.S4"),
        "deadlock",
        || {
            a_holder_a_sleeper_and::<NoSpin>(asleep(), reads, Thief::Steals, Without::Thief);
        }
    );
}

/// The waker clears the flag, reads a count from before a release that saw it set, and leaves the readers to
/// that.
#[test]
fn mutant_readers_are_let_in_without_its_fence() {
    rejected!("mutant_readers_are_let_in_without_its_fence", breaks("rwsem_2013.S4"), "deadlock", || {
        a_holder_a_sleeper_and::<NoSpin>(asleep(), reads, Thief::Steals, Without::Holder);
    });
}

/// The waker of a writer needs none under patch 9: no flag, no count, that it reads; the list's lock has the
/// rest.
#[test]
fn the_waker_of_a_writer_under_patch_9_needs_no_fence() {
    a_holder_a_sleeper_and::<NoSpin>(asleep(), writes, Thief::Steals, Without::Holder);
    a_holder_a_sleeper_and::<Full>(asleep(), writes, Thief::Steals, Without::Holder);
}
