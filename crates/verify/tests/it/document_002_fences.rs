//! The full fences of document 002's rwsem: each is taken away by itself, and missed.
//!
//! | fence                                           | with     | missed by                                             |
//! |-------------------------------------------------|----------|-------------------------------------------------------|
//! | a writer about to sleep, before it looks        | 3.12     | `mutant_a_writer_sleeps_without_its_fence`            |
//! | the same, under the list's lock                 | patch 9  | `mutant_a_woken_writer_looks_without_its_fence`       |
//! | a release, before it reads `wakeup`             | patch 9  | `mutant_a_release_reads_the_flag_without_its_fence`,  |
//! |                                                 |          | and its twin beside a reader                          |
//! | a thread that lets readers in, before the count | 4 and 9  | `mutant_readers_are_let_in_without_its_fence`         |
//! | a waker of a writer, after it changed the count | 3.12     | none here: see `notes/verification.md`               |

use spinpark_classics::RawRwLock;
use spinpark_classics::rwsem_2013::{Full, NoSpin, Rwsem, Series, Vanilla};
use spinpark_platform::OnCpu;
use spinpark_verify::platform::{Loom, lose_full_fences};
use spinpark_verify::{Model, Shared, rejected};

/// Where full fences are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    Holder,
    Sleeper,
    Thief,
}

/// A writer holds the semaphore and releases it. A second thread sleeps in the queue. A third comes when it
/// is free, or never, and releases it as well.
fn model<S: Series>(sleeps: fn(&Shared<Rwsem<Loom, S>>), without: Without) {
    let lose = move |who| {
        if who == without {
            lose_full_fences();
        }
    };
    Model::new().two_may_spin().oracle(OnCpu::Off).check(move || {
        let shared = Shared::new(<Rwsem<Loom, S> as RawRwLock>::new());
        shared.lock.write();
        let sleeper = shared.spawn(move |shared| {
            lose(Without::Sleeper);
            sleeps(shared);
        });
        let thief = shared.spawn(move |shared| {
            lose(Without::Thief);
            if shared.lock.steal() {
                shared.data.add();
                shared.lock.unlock_write();
            }
        });
        lose(Without::Holder);
        shared.data.add();
        shared.lock.unlock_write();
        sleeper.join().unwrap();
        thief.join().unwrap();
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

#[test]
fn no_thread_sleeps_on() {
    model::<Vanilla>(writes, Without::Nothing);
    model::<Vanilla>(reads, Without::Nothing);
    model::<NoSpin>(writes, Without::Nothing);
    model::<NoSpin>(reads, Without::Nothing);
    model::<Full>(writes, Without::Nothing);
    model::<Full>(reads, Without::Nothing);
}

/// It does not see that the semaphore is free, and the release did not see that it sleeps.
#[test]
fn mutant_a_writer_sleeps_without_its_fence() {
    rejected!("mutant_a_writer_sleeps_without_its_fence", "deadlock", || {
        model::<Vanilla>(writes, Without::Sleeper);
    });
}

/// It sees that the flag is cleared (it has the lock after the waker), and not the release that saw it set.
#[test]
fn mutant_a_woken_writer_looks_without_its_fence() {
    rejected!("mutant_a_woken_writer_looks_without_its_fence", "deadlock", || {
        model::<Full>(writes, Without::Sleeper);
    });
}

/// rwsem_2013.S4: it reads the flag before its own release is seen. No other fence matters in this thread.
#[test]
fn mutant_a_release_reads_the_flag_without_its_fence() {
    rejected!("mutant_a_release_reads_the_flag_without_its_fence", "deadlock", || {
        model::<Full>(writes, Without::Thief);
    });
}

#[test]
fn mutant_a_release_beside_a_reader_reads_the_flag_without_its_fence() {
    rejected!("mutant_a_release_beside_a_reader_reads_the_flag_without_its_fence", "deadlock", || {
        model::<NoSpin>(reads, Without::Thief);
    });
}

/// The waker clears the flag, reads a count from before a release that saw it set, and leaves the readers to
/// that.
#[test]
fn mutant_readers_are_let_in_without_its_fence() {
    rejected!("mutant_readers_are_let_in_without_its_fence", "deadlock", || {
        model::<NoSpin>(reads, Without::Holder);
    });
}

/// The waker of a writer needs none under patch 9: no flag, no count, that it reads; the list's lock has the
/// rest.
#[test]
fn who_wakes_a_writer_under_patch_9_needs_no_fence() {
    model::<NoSpin>(writes, Without::Holder);
    model::<Full>(writes, Without::Holder);
}
