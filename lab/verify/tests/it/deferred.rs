//! Models of signals by the holder of the mutex, on several CPUs: the release of the mutex wakes the waiter,
//! or the signal itself does.

use std::sync::Arc;

use loom::thread::{self, yield_now};
use spinpark_locks::bits::queue_lock::CONTENDED;
use spinpark_locks::bits::word::{WAITERS, WRITER};
use spinpark_locks::{RawCondvar, RawMutex, WaitResult};
use spinpark_platform::Event::{DeferredWake, HandedOff, MovedWaiter, TimedOut, WokeHead};
use spinpark_platform::Ordering::{AcqRel, Release as Releases};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Fault, Kind, Loom, Op, advance, lead_in};
use spinpark_verify::{Guarded, Model, Mortal, Shared, after, breaks, join_all, rejected};

/// A mutex and a condition variable; waiters wait until the data is not 0.
type Pair = (RawMutex<Loom>, RawCondvar<Loom>);

const LOST_WAKE_UP: &str = "deadlock";

fn deferring() -> Model {
    Model::new().defers()
}

fn waits(shared: &Shared<Pair>) {
    let (mutex, condvar) = &shared.lock;
    mutex.lock();
    while shared.data.get() == 0 {
        condvar.wait(mutex, None);
    }
    mutex.unlock();
}

/// A thread signals while it holds the mutex, for which the waiter waits or not yet.
fn signals() {
    let shared = Shared::new(Pair::default());
    let waiter = shared.spawn(waits);
    let (mutex, condvar) = &shared.lock;
    mutex.lock();
    shared.data.add();
    condvar.signal();
    mutex.unlock();
    waiter.join().unwrap();
    assert!(condvar.is_idle());
}

/// `waiters` threads wait, and the calling one holds the mutex: it does the rest.
fn held(waiters: usize, rest: impl FnOnce(&Arc<Shared<Pair>>)) {
    let shared = Shared::new(Pair::default());
    let waiters = lead_in(|| {
        let waiters: Vec<_> = (0..waiters).map(|_| shared.spawn(waits)).collect();
        yield_now(); // they wait
        shared.lock.0.lock();
        waiters
    });
    shared.data.add();
    rest(&shared);
    join_all(waiters);
    assert!(shared.lock.1.is_idle());
}

fn contends(shared: &Shared<Pair>) {
    shared.lock.0.lock();
    shared.lock.0.unlock();
}

#[test]
fn the_release_wakes_the_waiter() {
    let models = [
        deferring().preemptions(4),
        deferring().aborted(),
        deferring().without_steps(),
        deferring().stays_contended(),
    ];
    for model in models {
        model.check(signals).reaches(&[DeferredWake]);
    }
}

#[test]
fn the_release_wakes_all_waiters() {
    deferring()
        .check(|| {
            held(2, |shared| {
                shared.lock.1.broadcast();
                shared.lock.0.unlock();
            });
        })
        .reaches(&[DeferredWake]);
}

/// One waiter; another thread queues before the signal, which then wakes at once, or behind it, or not at
/// all.
fn contended(release: fn(&RawMutex<Loom>)) -> Checked {
    deferring().preemptions(1).check(move || {
        held(1, |shared| {
            let other = shared.spawn(contends);
            shared.lock.1.signal();
            release(&shared.lock.0);
            other.join().unwrap();
        });
    })
}

#[test]
fn others_contend() {
    contended(RawMutex::unlock).reaches(&[DeferredWake, WokeHead]);
}

/// The waiter is the longest one: it is handed the mutex, and not told to try.
#[test]
fn a_fair_release_hands_over() {
    contended(RawMutex::unlock_fair).reaches(&[DeferredWake, HandedOff]);
}

/// Another thread queues between two signals: its turn comes before that of the second waiter.
#[test]
fn a_second_signal() {
    deferring()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Pair::default());
            let (mutex, condvar) = &shared.lock;
            let others = lead_in(|| {
                let mut others: Vec<_> = (0..2).map(|_| shared.spawn(waits)).collect();
                yield_now(); // they wait
                mutex.lock();
                shared.data.add();
                condvar.signal();
                others.push(shared.spawn(contends));
                yield_now(); // it queues
                condvar.signal();
                others
            });
            mutex.unlock();
            join_all(others);
            assert!(condvar.is_idle());
        })
        .reaches(&[DeferredWake, WokeHead]);
}

/// The holder signals, and waits then: what ends its hold is the release of a wait.
#[test]
fn the_signaller_waits_next() {
    deferring()
        .preemptions(3)
        .check(|| {
            let shared = Shared::new(Pair::default());
            let other = shared.spawn(|shared| {
                let (mutex, condvar) = &shared.lock;
                waits(shared);
                mutex.lock();
                shared.data.add();
                condvar.signal();
                mutex.unlock();
            });
            let (mutex, condvar) = &shared.lock;
            mutex.lock();
            shared.data.add();
            condvar.signal();
            while shared.data.get() < 2 {
                condvar.wait(mutex, None);
            }
            mutex.unlock();
            other.join().unwrap();
        })
        .reaches(&[DeferredWake]);
}

/// The last of the two to leave the mutex destroys it; the release that wakes touches nothing afterwards.
#[test]
fn the_mutex_goes_with_the_last_user() {
    deferring()
        .preemptions(3)
        .check(|| {
            let mutex = Mortal::new(RawMutex::<Loom>::new());
            let condvar = Mortal::new(RawCondvar::<Loom>::new());
            let (go, users) = (Mortal::new(Guarded::new()), Mortal::new(Guarded::new()));
            let leave = move || {
                let is_last = users.add() == 2;
                mutex.unlock();
                if is_last {
                    mutex.destroy();
                }
            };
            let waiter = thread::spawn(move || {
                mutex.lock();
                if go.get() == 0 {
                    assert_eq!(condvar.wait(&mutex, None), WaitResult::Signalled);
                }
                leave();
            });
            mutex.lock();
            go.add();
            condvar.signal();
            leave();
            waiter.join().unwrap();
        })
        .reaches(&[DeferredWake]);
}

/// A mutant: the waiter is put into the queue, and the word does not say so.
#[test]
fn the_word_is_not_marked() {
    let marks = |op: &Op| {
        matches!(op.kind, Kind::CompareExchange | Kind::CompareExchangeWeak)
            && op.order == AcqRel
            && op.has(WAITERS | WRITER)
    };
    rejected!("the_word_is_not_marked", breaks("deferred.D1"), LOST_WAKE_UP, move || {
        deferring().fault(Fault::NoWrite(marks)).check(signals);
    });
}

/// A mutant: the queue is unlocked without contended, so the release is a plain store.
#[test]
fn the_release_does_not_look() {
    let unlocks = |op: &Op| op.is(Kind::CompareExchange, Releases) && op.writes(CONTENDED);
    rejected!("the_release_does_not_look", breaks("deferred.D1"), LOST_WAKE_UP, move || {
        deferring().fault(Fault::Clears(unlocks)).check(signals);
    });
}

/// A waiter between two that were signalled gives up after a fair release, a barging thread and a release
/// that left it asleep: its own look is then the only one that can end the second signalled wait, whose
/// telling leaves the word as it is.
#[test]
fn a_waiter_in_between_gives_up() {
    type Patient = Loom<1000>;
    type Pair = (RawMutex<Patient>, RawCondvar<Patient>);
    fn waits(shared: &Shared<Pair>) {
        let (mutex, condvar) = &shared.lock;
        mutex.lock();
        while shared.data.get() == 0 {
            condvar.wait(mutex, None);
        }
    }
    Model::new()
        .moving_clock()
        .backing_off()
        .defers()
        .preemptions(0)
        .check(|| {
            let shared = Shared::new(Pair::default());
            let (mutex, condvar) = &shared.lock;
            let others = lead_in(|| {
                let first = shared.spawn(|shared| {
                    waits(shared); // is handed the mutex
                    shared.lock.0.unlock(); // wakes the one in between
                    shared.lock.0.lock(); // before that comes
                    yield_now(); // it has lost, and keeps its own time
                    shared.lock.0.unlock(); // it is left asleep
                });
                yield_now();
                let second = shared.spawn(|shared| {
                    waits(shared);
                    shared.lock.0.unlock();
                });
                yield_now(); // both wait
                mutex.lock();
                shared.data.add();
                condvar.signal();
                let between = shared.spawn(|shared| {
                    if shared.lock.0.lock_until(after(1)) {
                        shared.lock.0.unlock();
                    }
                });
                yield_now(); // it queues
                condvar.signal();
                let last = shared.spawn(|shared| {
                    shared.lock.0.lock();
                    shared.lock.0.unlock();
                });
                yield_now(); // it queues
                mutex.unlock_fair();
                [first, second, between, last]
            });
            for _ in 0..5 {
                yield_now();
            }
            advance(1);
            join_all(others);
            assert!(condvar.is_idle());
        })
        .reaches(&[DeferredWake, HandedOff, WokeHead, TimedOut]);
}

/// Where signals are not left to the release, a waiter is not moved to the mutex, but woken: by a signal, or
/// by a broadcast, with the mutex held or not.
#[test]
fn with_several_cpus_a_signal_wakes() {
    for broadcasts in [false, true] {
        let checked = Model::new().cpus(2).preemptions(3).check(move || {
            let shared = Shared::new(Pair::default());
            let waiter = shared.spawn(waits);
            let (mutex, condvar) = &shared.lock;
            mutex.lock();
            shared.data.add();
            if broadcasts {
                mutex.unlock();
                condvar.broadcast();
            } else {
                condvar.signal();
                mutex.unlock();
            }
            waiter.join().unwrap();
            assert!(condvar.is_idle());
        });
        assert!(!checked.to_string().contains(&format!("{MovedWaiter:?}")), "a waiter was moved: {checked}");
    }
}

#[test]
fn with_several_cpus_a_broadcast_wakes_two() {
    Model::new().cpus(2).preemptions(1).check(|| {
        let shared = Shared::new(Pair::default());
        let waiters = [0, 1].map(|_| shared.spawn(waits));
        let (mutex, condvar) = &shared.lock;
        mutex.lock();
        shared.data.add();
        condvar.broadcast();
        mutex.unlock();
        join_all(waiters);
    });
}
