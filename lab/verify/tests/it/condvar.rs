//! Models of the condition variable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::thread;
use spinpark_locks::{RawCondvar, RawMutex, WaitResult, Waiter};
use spinpark_platform::Event::{DeferredWake, TimedOut, WokeHead};
use spinpark_platform::{Futex, Wait};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Loom, advance, leave_next_sleep};
use spinpark_verify::{Guarded, Model, Mortal, Tokens, after, breaks, join_all, rejected};

type Shared = Tokens<RawCondvar<Loom>>;

/// Waits once if there is no token yet, and passes a signal that it got on to the next one, as a thread must
/// that was cancelled or gives up.
fn wait_once(shared: &Shared, wait: impl FnOnce(&Shared) -> WaitResult) {
    shared.mutex.lock();
    let is_signalled = shared.tokens.get() == 0 && wait(shared) == WaitResult::Signalled;
    shared.mutex.unlock();
    if is_signalled {
        shared.condvar.signal();
    }
}

/// Two threads wait, and one signal is sent. The thread that got it passes it on, so both end, unless the
/// signal is lost.
fn one_signal_for_two(shared: &Arc<Shared>, first: impl FnOnce(&Shared) -> WaitResult + 'static) {
    let waiters = [
        shared.spawn(move |shared| wait_once(shared, first)),
        shared.spawn(|shared| wait_once(shared, |shared| shared.condvar.wait(&shared.mutex, None))),
    ];
    shared.put_and_signal();
    join_all(waiters);
    assert!(shared.condvar.is_idle());
}

/// Sleeps until signalled, or is cancelled: then the sleep ends at once, whatever has happened.
fn sleep(waiter: &Waiter<Loom>, is_cancelled: bool) {
    waiter.sleep(
        None,
        |word, value, deadline| {
            if is_cancelled { Wait::TimedOut } else { <Loom>::futex_wait(word, value, deadline) }
        },
    );
}

#[test]
fn a_signal_under_the_lock() {
    Model::new()
        .preemptions(4)
        .check(|| {
            let shared = Shared::new();
            let waiter = shared.spawn(Shared::take);
            shared.put_and_signal();
            waiter.join().unwrap();
        })
        .reaches(&[DeferredWake]);
}

#[test]
fn a_signal_after_the_lock() {
    Model::new()
        .preemptions(4)
        .check(|| {
            let shared = Shared::new();
            let waiter = shared.spawn(Shared::take);
            shared.put();
            shared.condvar.signal();
            waiter.join().unwrap();
        })
        .reaches(&[WokeHead]);
}

#[test]
fn waits_that_end_for_no_reason() {
    Model::new().spurious().preemptions(3).check(|| {
        let shared = Shared::new();
        let waiter = shared.spawn(Shared::take);
        shared.put_and_signal();
        waiter.join().unwrap();
    });
}

#[test]
fn two_signals_for_two_waiters() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new();
            let waiters = [0, 1].map(|_| shared.spawn(Shared::take));
            shared.put_and_signal();
            shared.put_and_signal();
            join_all(waiters);
        })
        .reaches(&[DeferredWake]);
}

#[test]
fn a_broadcast_for_two_waiters() {
    Model::new()
        .check(|| {
            let shared = Shared::new();
            let waiters = [0, 1].map(|_| shared.spawn(Shared::take));
            shared.mutex.lock();
            shared.tokens.add();
            shared.tokens.add();
            shared.condvar.broadcast();
            shared.mutex.unlock();
            join_all(waiters);
        })
        .reaches(&[DeferredWake, WokeHead]);
}

/// With several CPUs a signal wakes its waiter; with one it leaves that to the release of the mutex.
#[test]
fn a_timeout_against_a_signal() {
    a_timeout_against_a_signal_on(1).reaches(&[TimedOut, DeferredWake]);
    a_timeout_against_a_signal_on(2).reaches(&[TimedOut]);
}

fn a_timeout_against_a_signal_on(cpus: u32) -> Checked {
    Model::new().moving_clock().cpus(cpus).check(|| {
        let shared = Shared::new();
        let waiter = shared.spawn(|shared| {
            shared.mutex.lock();
            let result = shared.condvar.wait(&shared.mutex, Some(after(1)));
            // `tokens` counts the signals that found the waiter: one that is used up is not a timeout (C1).
            assert_eq!(result == WaitResult::Signalled, shared.tokens.get() == 1);
            shared.mutex.unlock();
        });
        advance(1);
        shared.mutex.lock();
        if shared.condvar.signal() {
            shared.tokens.add();
        }
        shared.mutex.unlock();
        waiter.join().unwrap();
    })
}

#[test]
fn a_timeout_loses_no_signal() {
    // Four threads and a clock: one preemption is what can be explored, and does not let the clock come
    // first.
    Model::new()
        .moving_clock()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new();
            let clock = thread::spawn(|| advance(1));
            one_signal_for_two(&shared, |shared| shared.condvar.wait(&shared.mutex, Some(after(1))));
            clock.join().unwrap();
        })
        .reaches(&[DeferredWake]);
}

/// A cancelled waiter leaves by unwinding where it waits for its mutex, while a signal takes it out of this
/// queue and into that one.
#[test]
fn a_waiter_leaves_as_it_is_signalled() {
    Model::new()
        .check(|| {
            let shared = Shared::new();
            let leaver = shared.spawn(|shared| {
                shared.mutex.lock();
                let waiter = Waiter::with_mutex(&shared.mutex);
                shared.condvar.enqueue(&waiter);
                shared.mutex.unlock();
                sleep(&waiter, true);
                let result = shared.condvar.finish(&waiter);
                leave_next_sleep();
                // If it need not sleep, it stays.
                if catch_unwind(AssertUnwindSafe(|| waiter.reacquire(result, &shared.mutex))).is_ok() {
                    shared.mutex.unlock();
                }
            });
            shared.put_and_signal();
            leaver.join().unwrap();
            shared.mutex.lock();
            shared.mutex.unlock();
            assert!(shared.condvar.is_idle());
        })
        .reaches(&[TimedOut, DeferredWake]);
}

#[test]
fn a_cancelled_wait_loses_no_signal() {
    Model::new()
        .check(|| {
            one_signal_for_two(&Shared::new(), |shared| {
                let waiter = Waiter::with_mutex(&shared.mutex);
                shared.condvar.enqueue(&waiter);
                shared.mutex.unlock();
                sleep(&waiter, true);
                let result = shared.condvar.finish(&waiter);
                waiter.reacquire(result, &shared.mutex);
                result
            });
        })
        .reaches(&[TimedOut, DeferredWake]);
}

#[test]
fn a_waiter_with_a_mutex_of_another_make() {
    for cancels in [false, true] {
        Model::new().preemptions(3).check(move || {
            let shared = Shared::new();
            let waiter = shared.spawn(move |shared| {
                shared.mutex.lock();
                if shared.tokens.get() == 0 {
                    let waiter = Waiter::without_mutex();
                    shared.condvar.enqueue(&waiter);
                    shared.mutex.unlock();
                    sleep(&waiter, cancels);
                    shared.condvar.finish(&waiter);
                    drop(waiter);
                    shared.mutex.lock();
                }
                shared.mutex.unlock();
            });
            shared.put_and_signal();
            waiter.join().unwrap();
        });
    }
}

/// The broadcaster destroys the variable right away; the last thread to leave the mutex destroys that.
fn destroyed_right_after_a_broadcast(waiters: u32, cancels: bool) {
    let mutex = Mortal::new(RawMutex::<Loom>::new());
    let condvar = Mortal::new(RawCondvar::<Loom>::new());
    let users = Mortal::new(Guarded::new());
    let go = Mortal::new(Guarded::new());
    let leave = move || {
        let is_last = users.add() == waiters + 1;
        mutex.unlock();
        if is_last {
            mutex.destroy();
        }
    };
    let others: Vec<_> = (0..waiters)
        .map(|_| {
            thread::spawn(move || {
                mutex.lock();
                // Waits once: the broadcast may have come and gone, with the variable.
                if go.get() == 0 {
                    let waiter = Waiter::with_mutex(&mutex);
                    condvar.enqueue(&waiter);
                    mutex.unlock();
                    sleep(&waiter, cancels);
                    let result = condvar.finish(&waiter);
                    waiter.reacquire(result, &mutex);
                    drop(waiter);
                }
                leave();
            })
        })
        .collect();
    mutex.lock();
    go.add();
    condvar.broadcast();
    // A thread that has given up at this moment is still to unlink itself (C3).
    while !condvar.is_idle() {
        thread::yield_now();
    }
    condvar.destroy();
    leave();
    join_all(others);
}

#[test]
fn destroyed_right_after_a_broadcast_to_one() {
    Model::new().preemptions(3).check(|| destroyed_right_after_a_broadcast(1, false));
    Model::new().preemptions(3).check(|| destroyed_right_after_a_broadcast(1, true));
}

#[test]
fn destroyed_right_after_a_broadcast_to_two() {
    Model::new().check(|| destroyed_right_after_a_broadcast(2, false)).reaches(&[DeferredWake]);
}

/// With several CPUs the broadcast wakes the waiters itself.
#[test]
fn destroyed_right_after_a_broadcast_that_wakes() {
    Model::new().cpus(2).preemptions(3).check(|| destroyed_right_after_a_broadcast(1, false));
    Model::new().cpus(2).preemptions(3).check(|| destroyed_right_after_a_broadcast(1, true));
    Model::new().cpus(2).preemptions(1).check(|| destroyed_right_after_a_broadcast(2, false));
}

/// A mutant of the wait: its sleep ends early, and its node goes although the signal that has claimed it has
/// not told it.
#[test]
fn a_signalled_waiter_goes_before_it_is_told() {
    rejected!("a_signalled_waiter_goes_before_it_is_told", breaks("queue.Q3"), "", || {
        Model::new().cpus(2).preemptions(3).check(|| {
            let shared = Shared::new();
            let waiter = shared.spawn(|shared| {
                shared.mutex.lock();
                let waiter = Waiter::with_mutex(&shared.mutex);
                shared.condvar.enqueue(&waiter);
                shared.mutex.unlock();
                sleep(&waiter, true);
                let _ = shared.condvar.finish(&waiter);
                drop(waiter); // not `reacquire`
            });
            shared.put_and_signal();
            waiter.join().unwrap();
        });
    });
}
