//! Models of waiters with real-time priorities: the order in which they are served, and wakes beside a waiter
//! that was woken and does not run.

use std::sync::Arc;

use loom::thread::{JoinHandle, yield_now};
use spinpark_locks::bits::word::{HANDOFF, TIMED, WAITERS, WAKING, WRITER};
use spinpark_locks::{Preference, RawCondvar, RawMutex, RawRwLock, TryMutex as _};
use spinpark_platform::Event::{HandedOff, Parked, RequestedHandoff, TimedOut, WokeHead};
use spinpark_platform::{Clock, Deadline, Ordering};
use spinpark_verify::platform::{
    EPOCH_NS, Fault, Kind, Loom, Op, advance, come_late, lead_in, let_come, set_priority,
};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

type Mutex = RawMutex<Loom>;
/// Starves at once.
type HastyMutex = RawMutex<Loom<0>>;

const HOLD_AND_FLAGS: u32 = WRITER | HANDOFF | TIMED | WAITERS | WAKING;

const LOST_WAKE_UP: &str = "deadlock";

/// One section of a thread of this priority, which is the `place`th of all.
fn section_of<const S: u64>(
    shared: &Arc<Shared<RawMutex<Loom<S>>>>,
    priority: u8,
    place: u32,
) -> JoinHandle<()> {
    shared.spawn(move |shared| {
        set_priority(priority);
        shared.lock.lock();
        assert_eq!(shared.data.get(), place, "priority {priority}");
        shared.data.add();
        shared.lock.unlock();
    })
}

/// Two waiters queue, the one of the lower priority first; each release serves the one of the higher.
fn served_by_priority<const STARVATION_NS: u64>(model: Model) {
    model
        .check(|| {
            let shared = Shared::new(RawMutex::<Loom<STARVATION_NS>>::new());
            let waiters = lead_in(|| {
                shared.lock.lock();
                let waiters = [(1, 2), (0, 3), (2, 1)].map(|(priority, place)| {
                    let waiter = section_of(&shared, priority, place);
                    yield_now(); // it queues
                    waiter
                });
                shared.data.add();
                waiters
            });
            shared.lock.unlock();
            join_all(waiters);
            shared.finish();
        })
        .reaches(&[Parked, WokeHead]);
}

#[test]
fn waiters_are_served_by_priority() {
    served_by_priority::<1>(Model::new().preemptions(1));
}

/// The waiters' times are up, at any moment of the release: the one of the lower priority does not take the
/// lock before the other one.
#[test]
fn a_waiter_whose_time_is_up_leaves_a_free_lock_to_a_higher_priority() {
    Model::new().moving_clock().preemptions(1).check(|| {
        let shared = Shared::new(RawMutex::<Loom<1>>::new());
        let waiters = lead_in(|| {
            shared.lock.lock();
            let waiters = [(1, 2), (2, 1)].map(|(priority, place)| {
                let waiter = section_of(&shared, priority, place);
                yield_now(); // it queues
                waiter
            });
            shared.data.add();
            waiters
        });
        advance(1);
        shared.lock.unlock();
        join_all(waiters);
        shared.finish();
    });
}

/// A waiter was woken and does not run; the lock is taken past it. The release wakes a real-time waiter all
/// the same.
fn woken_beside(model: Model) {
    model
        .check(|| {
            let shared = Shared::new(Mutex::new());
            let late = lead_in(|| {
                shared.lock.lock();
                let late = shared.spawn(|shared| {
                    come_late();
                    shared.section();
                });
                yield_now(); // it queues
                shared.lock.unlock();
                shared.lock.lock();
                late
            });
            let urgent = shared.spawn(|shared| {
                set_priority(1);
                shared.section();
                let_come();
            });
            shared.data.add();
            shared.lock.unlock();
            join_all([late, urgent]);
            assert_eq!(shared.finish(), 3);
        })
        .reaches(&[WokeHead]);
}

#[test]
fn a_realtime_waiter_is_woken_beside_one_that_does_not_run() {
    woken_beside(Model::new().preemptions(3));
    woken_beside(Model::new().preemptions(2).aborted());
}

/// The same of two real-time waiters: the first one is woken and does not run, and the next release wakes the
/// second one.
#[test]
fn a_realtime_waiter_is_woken_beside_another_that_does_not_run() {
    Model::new()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new(Mutex::new());
            let [late, urgent] = lead_in(|| {
                shared.lock.lock();
                let late = shared.spawn(|shared| {
                    set_priority(2);
                    come_late();
                    shared.section();
                });
                yield_now(); // it queues
                let urgent = shared.spawn(|shared| {
                    set_priority(1);
                    shared.section();
                    let_come();
                });
                yield_now(); // it queues
                shared.lock.unlock(); // wakes the first one
                shared.lock.lock();
                [late, urgent]
            });
            shared.data.add();
            shared.lock.unlock();
            join_all([late, urgent]);
            assert_eq!(shared.finish(), 3);
        })
        .reaches(&[WokeHead]);
}

/// The same, and the woken one runs, at any time: it takes the lock, or queues again behind the real-time
/// waiter.
fn woken_comes(model: Model) {
    model
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Mutex::new());
            let others = lead_in(|| {
                shared.lock.lock();
                let first = shared.spawn(|shared| {
                    come_late();
                    shared.section();
                });
                yield_now(); // it queues
                shared.lock.unlock();
                shared.lock.lock();
                let urgent = shared.spawn(|shared| {
                    set_priority(1);
                    shared.section();
                });
                yield_now(); // it queues
                [first, urgent]
            });
            let_come();
            shared.data.add();
            shared.lock.unlock();
            join_all(others);
            assert_eq!(shared.finish(), 3);
        })
        .reaches(&[WokeHead]);
}

#[test]
fn a_woken_waiter_comes_as_a_realtime_waiter_queues() {
    woken_comes(Model::new());
}

/// A starved waiter has been promised the lock; the real-time waiter that comes then is served first, and the
/// other one after it.
#[test]
fn a_promise_yields_to_a_realtime_waiter() {
    Model::new()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new(HastyMutex::new());
            let starved = lead_in(|| {
                shared.lock.lock();
                let starved = section_of(&shared, 0, 2);
                yield_now(); // it queues
                shared.lock.unlock();
                shared.lock.lock();
                yield_now(); // it loses, and requests the lock
                starved
            });
            let urgent = lead_in(|| {
                let urgent = section_of(&shared, 1, 1);
                yield_now(); // it queues
                urgent
            });
            shared.data.add();
            shared.lock.unlock();
            join_all([starved, urgent]);
            shared.finish();
        })
        .reaches(&[RequestedHandoff, HandedOff]);
}

/// A real-time thread releases the mutex that a waiter without a priority has requested, and comes back for
/// it: it is not handed over. It is, once the thread has no priority either.
fn comes_back(model: Model) {
    model
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(HastyMutex::new());
            let starved = lead_in(|| {
                shared.lock.lock();
                let starved = shared.spawn(Shared::section);
                yield_now(); // it queues
                shared.lock.unlock();
                shared.lock.lock();
                yield_now(); // it loses, and requests the lock
                set_priority(1);
                shared.lock.unlock();
                assert!(shared.lock.try_lock(), "handed over");
                starved
            });
            shared.data.add();
            shared.lock.unlock();
            shared.lock.lock();
            shared.data.add();
            set_priority(0);
            shared.lock.unlock();
            starved.join().unwrap();
            assert_eq!(shared.finish(), 3);
        })
        .reaches(&[RequestedHandoff, HandedOff]);
}

#[test]
fn a_realtime_thread_comes_back_before_a_starved_waiter() {
    comes_back(Model::new());
}

/// The real-time waiter leaves at its deadline, perhaps as it is woken beside the other one.
#[test]
fn a_realtime_waiter_gives_up_beside_a_woken_one() {
    Model::new()
        .moving_clock()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(Mutex::new());
            let others = lead_in(|| {
                shared.lock.lock();
                let first = shared.spawn(|shared| {
                    come_late();
                    shared.section();
                });
                yield_now(); // it queues
                shared.lock.unlock();
                shared.lock.lock();
                let urgent = shared.spawn(|shared| {
                    set_priority(1);
                    shared.timed_section(1);
                    let_come();
                });
                yield_now(); // it queues
                [first, urgent]
            });
            advance(1);
            shared.lock.unlock();
            join_all(others);
            shared.finish();
        })
        .reaches(&[TimedOut, WokeHead]);
}

/// A real-time reader comes in past a writer of a lower priority, and does not take the reader behind that
/// along.
#[test]
fn a_realtime_reader_goes_before_a_writer() {
    Model::new()
        .preemptions(1)
        .check(|| {
            let shared = Shared::new(RawRwLock::<Loom>::new());
            let others = lead_in(|| {
                shared.lock.write();
                let writer = shared.spawn(|shared| {
                    set_priority(1);
                    shared.lock.write();
                    shared.data.add();
                    shared.lock.unlock_write();
                });
                yield_now(); // it queues
                let reader = shared.spawn(|shared| {
                    shared.lock.read(Preference::Readers);
                    assert_eq!(shared.data.get(), 1, "after the writer");
                    shared.lock.unlock_read();
                });
                yield_now(); // it queues
                let first = shared.spawn(|shared| {
                    set_priority(2);
                    shared.lock.read(Preference::Readers);
                    assert_eq!(shared.data.get(), 0, "before the writer");
                    shared.lock.unlock_read();
                });
                yield_now(); // it queues
                [writer, reader, first]
            });
            shared.lock.unlock_write();
            join_all(others);
        })
        .reaches(&[Parked]);
}

/// Signals choose waiters by priority, whether they wake them or leave that to the release.
#[test]
fn signals_choose_by_priority() {
    for model in [Model::new().cpus(2), Model::new().defers(), Model::new()] {
        model.preemptions(1).check(|| {
            let shared = Shared::new((RawMutex::<Loom>::new(), RawCondvar::<Loom>::new()));
            let waiters = lead_in(|| {
                [(1, 1), (2, 0)].map(|(priority, place)| {
                    let waiter = shared.spawn(move |shared| {
                        set_priority(priority);
                        let (mutex, condvar) = &shared.lock;
                        mutex.lock();
                        condvar.wait(mutex, None);
                        assert_eq!(shared.data.get(), place, "priority {priority}");
                        shared.data.add();
                        condvar.signal();
                        mutex.unlock();
                    });
                    yield_now(); // it waits
                    waiter
                })
            });
            let (mutex, condvar) = &shared.lock;
            mutex.lock();
            condvar.signal();
            mutex.unlock();
            join_all(waiters);
        });
    }
}

/// A signal has chosen the waiter, but not taken it out of the condition variable's queue yet, as the
/// waiter's timer ends: a look at the mutex' queue must not take it for one that is linked there.
#[test]
fn a_signalled_waiter_looks_before_it_is_dequeued() {
    Model::new()
        .moving_clock()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new((HastyMutex::new(), RawCondvar::<Loom<0>>::new()));
            let waiter = shared.spawn(|shared| {
                set_priority(1);
                let (mutex, condvar) = &shared.lock;
                mutex.lock();
                condvar.wait(mutex, Some(Deadline { clock: Clock::Monotonic, at: EPOCH_NS + 1 }));
                mutex.unlock();
            });
            advance(1);
            let (mutex, condvar) = &shared.lock;
            mutex.lock();
            condvar.signal();
            mutex.unlock();
            waiter.join().unwrap();
            assert!(condvar.is_idle());
        })
        .reaches(&[TimedOut]);
}

// Mutants.

/// Q6: waiters queue in the order in which they come.
#[test]
fn waiters_are_not_served_by_priority() {
    rejected!("waiters_are_not_served_by_priority", breaks("queue.Q6"), "priority 1", || {
        served_by_priority::<1>(Model::new().preemptions(1).fault(Fault::NoPriorities));
    });
}

/// U1: `WAKING` stays as a real-time waiter becomes the head.
#[test]
fn a_realtime_head_is_left_to_a_woken_waiter() {
    let clears = |op: &Op| {
        op.is(Kind::CompareExchangeWeak, Ordering::AcqRel) && op.within(HOLD_AND_FLAGS) == WRITER | WAITERS
    };
    rejected!("a_realtime_head_is_left_to_a_woken_waiter", breaks("realtime.U1"), LOST_WAKE_UP, || {
        woken_beside(Model::new().fault(Fault::NoWrite(clears)).preemptions(2));
    });
}

/// H2: a request that is not met is left over the free mutex.
#[test]
fn a_request_is_left_over_a_free_mutex() {
    rejected!(
        "a_request_is_left_over_a_free_mutex",
        breaks("wake_pass.H2"),
        "a flag was left behind",
        || {
            comes_back(Model::new().fault(Fault::Kept(HANDOFF)));
        }
    );
}
