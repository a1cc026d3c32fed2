//! Models of the condition variable of 2003, in the three variants of document 003, and of the one that it
//! rejects.

use loom::thread;
use spinpark_classics::condvar_2003::{Condvar, Orig, Requeue, Signalling, WaitResult, WakeByOp};
use spinpark_platform::Event::{self, MovedWaiter, Parked, TimedOut};
use spinpark_platform::Ordering::{AcqRel, Release};
use spinpark_verify::model::Checked;
use spinpark_verify::mutants::condvar_2003::{Forgetful, PlainRequeue};
use spinpark_verify::platform::{Fault, Kind, Loom, advance};
use spinpark_verify::{Model, Tokens, after, breaks, breaks_rule, join_all, rejected};

type Shared<S> = Tokens<Condvar<Loom, S>>;

fn a_signal<S: Signalling>(model: Model, under_the_lock: bool) -> Checked {
    model.check(move || {
        let shared = Shared::<S>::new();
        let waiter = shared.spawn(Shared::take);
        if under_the_lock {
            shared.put_and_signal();
        } else {
            shared.put();
            shared.condvar.signal();
        }
        waiter.join().unwrap();
    })
}

/// Document 003's scenario: one thread waits, one signals, and a third one finds the internal lock taken.
fn a_signal_beside_another<S: Signalling>(preemptions: usize) -> Checked {
    Model::new().preemptions(preemptions).check(|| {
        let shared = Shared::<S>::new();
        let waiter = shared.spawn(Shared::take);
        let other = shared.spawn(|shared| shared.condvar.signal());
        shared.put();
        shared.condvar.signal();
        join_all([waiter, other]);
    })
}

fn two_signals_for_two_waiters<S: Signalling>() {
    Model::new().preemptions(3).check(|| {
        let shared = Shared::<S>::new();
        let waiters = [0, 1].map(|_| shared.spawn(Shared::take));
        shared.put_and_signal();
        shared.put_and_signal();
        join_all(waiters);
    });
}

fn a_broadcast_for_two_waiters<S: Signalling>(fault: Fault) -> Checked {
    Model::new().preemptions(3).fault(fault).check(|| {
        let shared = Shared::<S>::new();
        let waiters = [0, 1].map(|_| shared.spawn(Shared::take));
        shared.mutex.lock();
        shared.tokens.add();
        shared.tokens.add();
        shared.mutex.unlock();
        shared.condvar.broadcast();
        join_all(waiters);
    })
}

/// A timeout uses no signal up: what was signalled in time is not reported as a timeout.
fn a_timeout_against_a_signal<S: Signalling>() {
    Model::new()
        .moving_clock()
        .preemptions(4)
        .check(|| {
            let shared = Shared::<S>::new();
            let waiter = shared.spawn(|shared| {
                shared.mutex.lock();
                if shared.tokens.get() == 0 {
                    let result = shared.condvar.wait(&shared.mutex, Some(after(1)));
                    assert!(result == WaitResult::TimedOut || shared.tokens.get() == 1);
                }
                shared.mutex.unlock();
            });
            advance(1);
            shared.put_and_signal();
            waiter.join().unwrap();
        })
        .reaches(&[TimedOut]);
}

/// One signal, two waiters of which one gives up: the one that does not time out has the signal.
fn a_timeout_loses_no_signal<S: Signalling>() {
    Model::new().moving_clock().preemptions(2).check(|| {
        let shared = Shared::<S>::new();
        let waiter = shared.spawn(Shared::take);
        let clock = thread::spawn(|| advance(1));
        shared.mutex.lock();
        let result = shared.condvar.wait(&shared.mutex, Some(after(1)));
        assert_eq!(result, WaitResult::TimedOut, "there was no signal");
        shared.tokens.add();
        shared.condvar.signal();
        shared.mutex.unlock();
        join_all([waiter, clock]);
    });
}

/// All that holds of a variant; document 003's scenario reaches these events.
fn holds<S: Signalling>(scenario: &[Event]) {
    a_signal::<S>(Model::new().preemptions(5), true);
    a_signal::<S>(Model::new().preemptions(5), false);
    a_signal::<S>(Model::new().spurious().preemptions(4), true);
    a_signal_beside_another::<S>(4).reaches(scenario);
    two_signals_for_two_waiters::<S>();
    a_broadcast_for_two_waiters::<S>(Fault::None).reaches(&[MovedWaiter]);
    a_timeout_against_a_signal::<S>();
    a_timeout_loses_no_signal::<S>();
    // A machine with calls on one word only.
    a_signal::<S>(Model::new().fault(Fault::OneWordOnly), false);
    a_broadcast_for_two_waiters::<S>(Fault::OneWordOnly);
}

#[test]
fn orig() {
    holds::<Orig>(&[Parked]);
}

#[test]
fn requeue() {
    holds::<Requeue>(&[Parked, MovedWaiter]);
}

#[test]
fn wake_by_op() {
    holds::<WakeByOp>(&[Parked]);
}

/// The document's known-bad variant: a waiter moved to the internal lock takes it unmarked, and a sleeper
/// beside it is forgotten.
#[test]
fn mutant_plain_requeue() {
    rejected!("mutant_plain_requeue", breaks("mutex_2003.M3"), "deadlock", || {
        a_signal_beside_another::<PlainRequeue>(2);
    });
}

/// A thread that sleeps on the internal lock while the kernel unlocks it: it is the condition that wakes it.
#[test]
fn mutant_unlock_by_the_kernel_that_forgets_sleepers() {
    rejected!(
        "mutant_unlock_by_the_kernel_that_forgets_sleepers",
        breaks("mutex_2003.M1"),
        "deadlock",
        || {
            a_signal_beside_another::<Forgetful>(2);
        }
    );
}

/// What the signaller wrote is not published by the kernel's unlock.
#[test]
fn mutant_unlock_by_the_kernel_without_release() {
    rejected!(
        "mutant_unlock_by_the_kernel_without_release",
        breaks_rule("of document 003: the unlock by the kernel is AcqRel"),
        "Causality violation",
        || {
            let unlock = Fault::Relaxed(|op| op.is(Kind::Swap, AcqRel) && op.value == 0);
            a_signal::<WakeByOp>(Model::new().fault(unlock), false);
        }
    );
}

#[test]
fn mutant_mutex_unlock_without_release() {
    rejected!("mutant_mutex_unlock_without_release", breaks("mutex_2003.T3"), "Causality violation", || {
        let unlock = Fault::Relaxed(|op| op.is(Kind::Swap, Release) && op.value == 0);
        a_signal::<Orig>(Model::new().fault(unlock), true);
    });
}

/// N3: the sleeper's comparison is what keeps it from missing a signal.
#[test]
fn mutant_sleep_without_comparison() {
    rejected!("mutant_sleep_without_comparison", breaks("condvar_2003.N3"), "deadlock", || {
        a_signal::<WakeByOp>(Model::new().fault(Fault::NoCompare), true);
    });
}
