//! Known-bad mutexes, read-write locks and condition variables, which the checker must reject. The locks are
//! the right ones; the machine has a fault, or a user does what the lock must not.

use loom::thread;
use spinpark_locks::bits::condvar::GIVEN_UP;
use spinpark_locks::bits::node::{GRANTED, RELEASED};
use spinpark_locks::bits::word::{COUNT, HANDOFF, HOLD, TIMED, UNIT, WAITERS, WAKING, WRITER};
use spinpark_locks::{
    Preference, RawCondvar, RawMutex, RawRwLock, TryMutex as _, TryRwLock as _, WaitResult, Waiter,
};
use spinpark_platform::Ordering::{AcqRel, Acquire, Relaxed, Release};
use spinpark_platform::{Event, Futex, Wait};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Fault, Kind, Loom, NEVER, Op, advance, come_late, lead_in, let_come, noted};
use spinpark_verify::{Guarded, Model, Mortal, Shared, breaks, join_all, rejected};

const RACE: &str = "Causality violation";
const LOST_WAKE_UP: &str = "deadlock";
const STARVED: &str = "exceeded maximum number of branches";

// Mutex

fn mutex_with<const STARVATION_NS: u64>(fault: Fault, threads: usize) {
    mutex_on::<STARVATION_NS>(Model::new().fault(fault), threads);
}

fn mutex_on<const STARVATION_NS: u64>(model: Model, threads: usize) {
    model.check(move || {
        let shared = Shared::new(RawMutex::<Loom<STARVATION_NS>>::new());
        let section = |shared: &Shared<RawMutex<_>>| {
            shared.lock.lock();
            shared.data.add();
            shared.lock.unlock();
        };
        let others: Vec<_> = (1..threads).map(|_| shared.spawn(section)).collect();
        section(&shared);
        join_all(others);
    });
}

#[test]
fn mutex_release_without_release() {
    rejected!("mutex_release_without_release", breaks("core.T5"), RACE, || {
        mutex_with::<1>(Fault::Relaxed(|op| op.is_compare_exchange() && op.order == Release), 2);
    });
}

#[test]
fn mutex_acquire_without_acquire() {
    let taken = |op: &Op| op.is_compare_exchange() && op.order == Acquire && !op.lacks(WRITER);
    rejected!("mutex_acquire_without_acquire", breaks("core.T1"), RACE, || mutex_with::<1>(
        Fault::Relaxed(taken),
        2
    ));
}

#[test]
fn mutex_wakes_are_lost() {
    rejected!("mutex_wakes_are_lost", breaks("core.L1"), LOST_WAKE_UP, || mutex_with::<1>(Fault::NoWakes, 2));
}

#[test]
fn mutex_sleeps_without_comparing() {
    rejected!("mutex_sleeps_without_comparing", breaks("core.L1"), LOST_WAKE_UP, || mutex_with::<1>(
        Fault::NoCompare,
        2
    ));
}

/// core.W1: a waiter queues without its mark in the word, so the release does not look.
#[test]
fn mutex_queues_without_mark() {
    // A thread that looks at the queue would put the mark right (AcqRel): that is forgotten as well.
    let mark = |op: &Op| {
        op.kind == Kind::CompareExchangeWeak
            && matches!(op.order, Release | AcqRel)
            && op.has(WAITERS | WRITER)
    };
    // A waiter that looks would notice, as if a release had wiped the mark out, and mark again (A1): so it
    // does not.
    rejected!("mutex_queues_without_mark", breaks("core.W1"), LOST_WAKE_UP, || {
        mutex_on::<1>(Model::new().fault(Fault::NoWrite(mark)).fault(Fault::NoLook), 2);
    });
}

/// core.M1: a waiter marks the word by a store, whatever has become of the holder that it read.
#[test]
fn mutex_is_marked_by_a_store() {
    let mark = |op: &Op| op.is(Kind::CompareExchangeWeak, Release) && op.has(WAITERS | WRITER);
    rejected!("mutex_is_marked_by_a_store", breaks("core.M1"), LOST_WAKE_UP, || {
        mutex_with::<1>(Fault::Blind(mark), 2);
    });
}

/// Two waiters sleep. A release wakes the first, which does not run; the next release, past it, wakes no other.
fn two_releases_wake_one_waiter(model: Model) -> Checked {
    model.check(|| {
        let shared = Shared::new(RawMutex::<Loom>::new());
        let waiters = lead_in(|| {
            shared.lock.lock();
            let waiters = [(); 2].map(|()| {
                let waiter = shared.spawn(|shared| {
                    come_late();
                    shared.section();
                });
                thread::yield_now(); // it queues
                waiter
            });
            let before = noted(Event::WokeHead);
            shared.lock.unlock();
            shared.lock.lock();
            shared.data.add();
            shared.lock.unlock();
            assert_eq!(noted(Event::WokeHead) - before, 1, "two heads are awake");
            waiters
        });
        let_come();
        join_all(waiters);
        assert_eq!(shared.finish(), 3);
    })
}

#[test]
fn a_release_past_a_woken_waiter_wakes_no_other() {
    two_releases_wake_one_waiter(Model::new()).reaches(&[Event::WokeHead]);
}

/// T6: a waiter is woken, and the word does not say so: the next release wakes the next head, too.
#[test]
fn mutex_wakes_two_heads() {
    let wakes = |op: &Op| if op.is(Kind::CompareExchangeWeak, AcqRel) && op.lacks(HOLD) { WAKING } else { 0 };
    rejected!("mutex_wakes_two_heads", breaks("core.T6"), "two heads are awake", || {
        two_releases_wake_one_waiter(Model::new().fault(Fault::Without(wakes)));
    });
}

/// T6: the release that promises the mutex does not publish the section before it to a thread that takes the
/// mutex past the promise.
#[test]
fn mutex_is_promised_without_release() {
    let promises = |op: &Op| {
        op.is(Kind::CompareExchangeWeak, AcqRel) && op.within(HANDOFF | WAKING | WRITER) == HANDOFF | WAKING
    };
    rejected!("mutex_is_promised_without_release", breaks("core.T6"), RACE, || {
        Model::new().fault(Fault::Relaxed(promises)).check(|| {
            let shared = Shared::new(RawMutex::<Loom<0>>::new());
            let others = lead_in(|| {
                shared.lock.lock();
                let waits = shared.spawn(Shared::section);
                thread::yield_now(); // it queues
                shared.lock.unlock(); // it is woken
                shared.lock.lock();
                thread::yield_now(); // it has lost, and requests the lock
                let tries = shared.spawn(|shared| {
                    if shared.lock.try_lock() {
                        shared.data.add();
                        shared.lock.unlock();
                    }
                });
                [waits, tries]
            });
            shared.data.add();
            shared.lock.unlock();
            join_all(others);
        });
    });
}

/// A waiter that loses goes back with a timer, whose flag stays when it has gone.
#[test]
fn mutex_leaves_a_flag_behind() {
    rejected!("mutex_leaves_a_flag_behind", breaks("core.L1"), "a flag was left behind", || {
        Model::new().fault(Fault::Kept(TIMED)).check(|| {
            let shared = Shared::new(RawMutex::<Loom<1>>::new());
            let other = shared.spawn(Shared::section);
            shared.section();
            shared.section();
            other.join().unwrap();
            shared.finish();
        });
    });
}

/// core.R1: a release that looks at the mutex once more, after another thread was let in.
#[test]
fn mutex_release_looks_back() {
    rejected!("mutex_release_looks_back", breaks("core.R1"), RACE, || {
        Model::new().check(|| {
            let mutex = Mortal::new(RawMutex::<Loom>::new());
            let users = Mortal::new(Guarded::new());
            let run = move || {
                mutex.lock();
                let is_last = users.add() == 2;
                mutex.unlock();
                if is_last {
                    mutex.destroy();
                } else {
                    let _ = mutex.is_locked();
                }
            };
            let other = thread::spawn(run);
            run();
            other.join().unwrap();
        });
    });
}

// Read-write lock

fn writer_and_reader_with(fault: Fault) {
    Model::new().fault(fault).check(|| {
        let shared = Shared::new(RawRwLock::<Loom>::new());
        let writer = shared.spawn(|shared| {
            shared.lock.write();
            shared.data.add();
            shared.lock.unlock_write();
        });
        shared.lock.read(Preference::Readers);
        shared.data.get();
        shared.lock.unlock_read();
        writer.join().unwrap();
    });
}

#[test]
fn rwlock_reader_leaves_without_release() {
    let left = |op: &Op| op.is_compare_exchange() && op.order == Release && op.lacks(WRITER);
    rejected!("rwlock_reader_leaves_without_release", breaks("core.T5"), RACE, || writer_and_reader_with(
        Fault::Relaxed(left)
    ));
}

#[test]
fn rwlock_reader_enters_without_acquire() {
    let entered = |op: &Op| op.is_compare_exchange() && op.order == Acquire && op.lacks(WRITER);
    rejected!("rwlock_reader_enters_without_acquire", breaks("core.T1"), RACE, || {
        writer_and_reader_with(Fault::Relaxed(entered));
    });
}

#[test]
fn rwlock_grants_without_release() {
    let told = |op: &Op| op.is(Kind::Swap, Release) && op.writes(GRANTED);
    rejected!("rwlock_grants_without_release", breaks("core.T6"), RACE, || {
        Model::new().fault(Fault::Relaxed(told)).check(|| {
            let shared = Shared::new(RawRwLock::<Loom>::new());
            shared.lock.write();
            let reader = shared.spawn(|shared| {
                shared.lock.read(Preference::Readers);
                shared.data.get();
                shared.lock.unlock_read();
            });
            thread::yield_now(); // it queues
            shared.data.add();
            shared.lock.unlock_write();
            reader.join().unwrap();
        });
    });
}

/// core.L2: a writer that starves requests the lock, but the request is not recorded.
#[test]
fn rwlock_request_is_not_recorded() {
    let request = |op: &Op| op.is(Kind::CompareExchangeWeak, Release) && op.has(HANDOFF);
    rejected!("rwlock_request_is_not_recorded", breaks("core.L2"), STARVED, || {
        Model::new().moving_clock().preemptions(1).fault(Fault::NoWrite(request)).check(|| {
            let shared = Shared::new(RawRwLock::<Loom>::new());
            shared.lock.read(Preference::Readers);
            let writer = shared.spawn(|shared| {
                shared.lock.write();
                shared.lock.unlock_write();
            });
            let stream = shared.spawn(|shared| {
                while shared.lock.try_read(Preference::Readers) {
                    shared.lock.unlock_read();
                    advance(1);
                    thread::yield_now();
                }
            });
            stream.join().unwrap();
            shared.lock.unlock_read();
            writer.join().unwrap();
        });
    });
}

/// H3: a writer withdraws its request and lets in the reader behind it, but does not count it.
#[test]
fn rwlock_withdrawal_does_not_count_the_reader() {
    type Lock = RawRwLock<Loom<0, 0, NEVER, { u32::MAX }, 1>>;
    let withdraws = |op: &Op| {
        op.is(Kind::CompareExchangeWeak, AcqRel) && op.has(TIMED | HANDOFF) && op.within(COUNT) == 2 * UNIT
    };
    rejected!(
        "rwlock_withdrawal_does_not_count_the_reader",
        breaks("dependent_readers.H3"),
        "attempt to subtract with overflow",
        || {
            Model::new().moving_clock().preemptions(1).fault(Fault::NoWrite(withdraws)).check(|| {
                let shared = Shared::new(Lock::new());
                let (writer, helper) = lead_in(|| {
                    shared.lock.read(Preference::Readers);
                    let writer = shared.spawn(Shared::write);
                    thread::yield_now(); // it queues
                    shared.lock.read(Preference::Readers);
                    shared.lock.unlock_read();
                    thread::yield_now(); // it requests the lock
                    let helper = shared.spawn(|shared| shared.read(Preference::Readers));
                    thread::yield_now(); // it queues
                    (writer, helper)
                });
                advance(1);
                shared.lock.unlock_read();
                join_all([writer, helper]);
            });
        }
    );
}

// Condition variable

struct Pair {
    mutex: RawMutex<Loom>,
    condvar: RawCondvar<Loom>,
}

fn pair() -> Pair {
    Pair { mutex: RawMutex::new(), condvar: RawCondvar::new() }
}

/// C2: the wait releases the mutex before it is in line.
#[test]
fn condvar_enqueues_after_the_unlock() {
    rejected!("condvar_enqueues_after_the_unlock", breaks("condvar.C2"), LOST_WAKE_UP, || {
        Model::new().check(|| {
            let shared = Shared::new(pair());
            let waiter = shared.spawn(|shared| {
                let Pair { mutex, condvar } = &shared.lock;
                mutex.lock();
                while shared.data.get() == 0 {
                    let waiter = Waiter::with_mutex(mutex);
                    mutex.unlock();
                    condvar.enqueue(&waiter);
                    waiter.sleep(None, <Loom>::futex_wait);
                    waiter.reacquire(condvar.finish(&waiter), mutex);
                }
                mutex.unlock();
            });
            shared.lock.mutex.lock();
            shared.data.add();
            shared.lock.condvar.signal();
            shared.lock.mutex.unlock();
            waiter.join().unwrap();
        });
    });
}

/// C1: a waiter that gives up does not claim its own wait, so a signal is spent on it.
#[test]
fn condvar_gives_up_without_claim() {
    let claim = |op: &Op| op.is(Kind::CompareExchange, Relaxed) && op.writes(GIVEN_UP);
    rejected!("condvar_gives_up_without_claim", breaks("condvar.C1"), RACE, || {
        Model::new().fault(Fault::NoWrite(claim)).check(|| {
            let shared = Shared::new(pair());
            // The signalled thread signals the other one; `cancels` gives up instead of sleeping.
            let wait = |shared: &Shared<Pair>, cancels: bool| {
                let Pair { mutex, condvar } = &shared.lock;
                mutex.lock();
                let mut result = WaitResult::TimedOut;
                if shared.data.get() == 0 {
                    let waiter = Waiter::with_mutex(mutex);
                    condvar.enqueue(&waiter);
                    mutex.unlock();
                    waiter.sleep(None, |word, value, deadline| {
                        if cancels { Wait::TimedOut } else { <Loom>::futex_wait(word, value, deadline) }
                    });
                    result = condvar.finish(&waiter);
                    waiter.reacquire(result, mutex);
                }
                mutex.unlock();
                if result == WaitResult::Signalled {
                    condvar.signal();
                }
            };
            let waiters = [
                shared.spawn(move |shared| wait(shared, true)),
                shared.spawn(move |shared| wait(shared, false)),
            ];
            shared.lock.mutex.lock();
            shared.data.add();
            shared.lock.condvar.signal();
            shared.lock.mutex.unlock();
            join_all(waiters);
        });
    });
}

/// C3: the variable is destroyed right after the broadcast, with a thread that gave up still at work in it.
#[test]
fn condvar_destroyed_while_not_idle() {
    rejected!("condvar_destroyed_while_not_idle", breaks("condvar.C3"), RACE, || {
        Model::new().check(|| {
            let mutex = Mortal::new(RawMutex::<Loom>::new());
            let condvar = Mortal::new(RawCondvar::<Loom>::new());
            let is_gone = Mortal::new(Guarded::new());
            let waiter = thread::spawn(move || {
                mutex.lock();
                if is_gone.get() == 0 {
                    let waiter = Waiter::with_mutex(&mutex);
                    condvar.enqueue(&waiter);
                    mutex.unlock();
                    waiter.sleep(None, |_, _, _| Wait::TimedOut);
                    waiter.reacquire(condvar.finish(&waiter), &mutex);
                }
                mutex.unlock();
            });
            mutex.lock();
            is_gone.add();
            condvar.broadcast();
            condvar.destroy();
            mutex.unlock();
            waiter.join().unwrap();
        });
    });
}

/// Q3: a waiter without a mutex is told, but the node does not come back to it with that.
#[test]
fn condvar_tells_without_release() {
    let told = |op: &Op| op.is(Kind::Swap, Release) && op.writes(RELEASED);
    rejected!("condvar_tells_without_release", breaks("queue.Q3"), RACE, || {
        Model::new().fault(Fault::Relaxed(told)).check(|| {
            let shared = Shared::new(pair());
            let waiter = shared.spawn(|shared| {
                let waiter = Waiter::without_mutex();
                shared.lock.condvar.enqueue(&waiter);
                waiter.sleep(None, |_, _, _| Wait::TimedOut);
                shared.lock.condvar.finish(&waiter);
            });
            shared.lock.condvar.signal();
            waiter.join().unwrap();
        });
    });
}
