//! Models of locks that stay marked as contended, and of waiters that leave a lock to its owner for a while.
//!
//! `stays_contended`: the attention of the queue outlives the queue, and a waiter that finds it marks the lock without a fence.
//! `apart`: two CPUs, a first waiter that keeps its own time from the start, releases that leave it asleep, and holders that
//! mark the lock themselves because their turn is to be timed.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use loom::sync::atomic::AtomicBool;
use loom::thread::{self, yield_now};
use spinpark_locks::{Preference, RawCondvar, RawMutex, RawRwLock};
use spinpark_platform::Event::{DemandedHandoff, HandedOff, Parked, TimedOut, WokeHead};
use spinpark_platform::Ordering::Release as Releases;
use spinpark_verify::platform::{Fault, Kind, Loom, Op, advance, lead_in};
use spinpark_verify::{Model, Mortal, Shared, join_all, rejected};

/// Starves after 1 ns: a waiter that lets its owner go on demands the lock when it looks for the first time.
type Mutex = RawMutex<Loom>;
/// Starves after 3 ns: such a waiter looks twice before that.
type PatientMutex = RawMutex<Loom<4>>;

const WAITERS: u64 = 1;
const WRITER: u64 = 1 << 6;
/// Of the queue lock.
const ATTENTION: u32 = 4;

const LOST_WAKE_UP: &str = "deadlock";
const HANGS: &str = "exceeded maximum number of branches";

/// A lock, and how many threads are done with it.
struct Timed<L> {
    shared: Arc<Shared<L>>,
    done: Arc<AtomicBool>,
}

impl<L: 'static> Timed<L> {
    fn new(lock: L) -> Self {
        Self { shared: Shared::new(lock), done: Arc::new(AtomicBool::new(false)) }
    }

    /// A thread whose end [`Timed::finish`] waits for.
    fn spawn(&self, run: impl FnOnce(&Shared<L>) + 'static) -> thread::JoinHandle<()> {
        let done = Arc::clone(&self.done);
        self.shared.spawn(move |shared| {
            run(shared);
            done.store(true, Release);
        })
    }

    /// Moves the clock until the thread is done: whatever sleeps by a timer wakes up, again and again.
    fn finish(&self, other: thread::JoinHandle<()>) {
        while !self.done.load(Acquire) {
            advance(1);
            yield_now();
        }
        other.join().unwrap();
    }
}

/// One critical section of a thread that does not come back: its release leaves no waiter asleep.
fn last_section<const STARVATION_NS: u64>(shared: &Shared<RawMutex<Loom<STARVATION_NS>>>) {
    shared.lock.lock();
    shared.data.add();
    shared.lock.unlock_to_wait();
}

/// A thread holds the mutex, whose queue is empty and has attention: returned before the thread's `rest`.
fn marked(rest: impl FnOnce(&Shared<Mutex>) + 'static) -> (Arc<Shared<Mutex>>, thread::JoinHandle<()>) {
    let shared = Shared::new(Mutex::new());
    let holder = lead_in(|| {
        shared.lock.lock();
        let holder = shared.spawn(|shared| {
            shared.lock.lock();
            shared.data.add();
            yield_now(); // here the lead-in ends
            rest(shared);
        });
        yield_now(); // it queues
        shared.lock.unlock(); // it is woken
        yield_now(); // it holds the lock
        holder
    });
    (shared, holder)
}

/// The holder of a marked mutex releases it twice, against a waiter that comes twice.
fn marked_twice(model: Model) {
    model
        .check(|| {
            let (shared, holder) = marked(|shared| {
                shared.lock.unlock();
                shared.section();
            });
            shared.section();
            shared.section();
            holder.join().unwrap();
            assert_eq!(shared.lock.lock(), ());
            assert_eq!(shared.data.get(), 4);
            shared.lock.unlock();
        })
        .reaches(&[Parked, WokeHead]);
}

#[test]
fn a_waiter_that_finds_attention_needs_no_fence() {
    for model in [Model::new(), Model::new().aborted(), Model::new().without_steps()] {
        marked_twice(model.stays_contended().preemptions(2));
    }
}

/// Each second contention finds the attention of the first.
#[test]
fn two_threads_contend_twice() {
    Model::new().stays_contended().preemptions(3).check(|| {
        let shared = Shared::new(Mutex::new());
        let other = shared.spawn(|shared| {
            shared.section();
            shared.section();
        });
        shared.section();
        shared.section();
        other.join().unwrap();
        assert_eq!(shared.finish(), 4);
    });
}

/// The holder ends the attention, and a second waiter marks the lock meanwhile, or just before, or after.
#[test]
fn the_attention_ends_as_a_waiter_marks() {
    marked_twice(Model::new().preemptions(3));
}

#[test]
fn the_last_one_out_frees_a_marked_mutex() {
    Model::new().stays_contended().preemptions(3).check(|| {
        let mutex = Mortal::new(Mutex::new());
        let users = Mortal::new(loom::sync::atomic::AtomicU32::new(2));
        let run = move || {
            mutex.lock();
            mutex.unlock();
            mutex.lock();
            let is_last = users.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 1;
            mutex.unlock();
            if is_last {
                mutex.destroy();
            }
        };
        let other = thread::spawn(run);
        run();
        other.join().unwrap();
    });
}

/// Writers and a reader of a lock that stays marked.
#[test]
fn writers_and_a_reader_of_a_marked_lock() {
    Model::new().stays_contended().preemptions(2).check(|| {
        let shared = Shared::new(RawRwLock::<Loom>::new());
        let other = shared.spawn(|shared| {
            shared.write();
            shared.read(Preference::Readers);
        });
        shared.write();
        shared.write();
        other.join().unwrap();
    });
}

/// A waiter keeps its own time from the start. Releases leave it asleep; it looks by itself, and demands the lock at last.
fn left_asleep<const STARVATION_NS: u64>(model: Model, sections: u32) {
    model
        .check(move || {
            let timed = Timed::new(RawMutex::<Loom<STARVATION_NS>>::new());
            timed.shared.lock.lock();
            let waiter = timed.spawn(last_section);
            for _ in 0..sections {
                timed.shared.data.add();
                timed.shared.lock.unlock();
                timed.shared.lock.lock();
                advance(1);
            }
            timed.shared.lock.unlock();
            timed.finish(waiter);
            assert_eq!(timed.shared.finish(), sections + 1);
        })
        .reaches(&[Parked]);
}

#[test]
fn a_waiter_that_is_left_asleep_looks_by_itself() {
    left_asleep::<1>(Model::new().moving_clock().apart().preemptions(2), 1);
    left_asleep::<4>(Model::new().moving_clock().apart().preemptions(2), 1);
}

/// It has marked the lock as the holder ends the attention: the next release sees that, whether or not this one wakes it.
#[test]
fn the_attention_ends_as_a_waiter_comes_that_keeps_its_own_time() {
    for model in [Model::new(), Model::new().stays_contended()] {
        model.moving_clock().apart().preemptions(2).check(attention_ends_beside_a_timed_head);
    }
}

fn attention_ends_beside_a_timed_head() {
    let timed = Timed::new(Mutex::new());
    let shared = Arc::clone(&timed.shared);
    shared.lock.lock();
    shared.lock.draw_attention();
    let waiter = timed.spawn(last_section);
    shared.lock.unlock(); // the attention ends, perhaps
    shared.section(); // perhaps by a plain store
    shared.lock.lock();
    shared.data.add();
    advance(1);
    yield_now(); // the waiter looks, and demands the lock
    shared.lock.unlock();
    timed.finish(waiter);
    shared.lock.lock();
    assert_eq!(shared.data.get(), 3);
    shared.lock.unlock();
}

/// A thread that releases to wait for something else does not come back: it wakes the waiter, and no clock is needed.
#[test]
fn a_release_to_wait_wakes_a_waiter_that_keeps_its_own_time() {
    Model::new()
        .apart()
        .preemptions(3)
        .check(|| {
            let shared = Shared::new(PatientMutex::new());
            shared.lock.lock();
            let waiter = shared.spawn(last_section);
            shared.data.add();
            shared.lock.unlock_to_wait();
            waiter.join().unwrap();
            assert_eq!(shared.data.get(), 2);
        })
        .reaches(&[WokeHead]);
}

/// The same of a fair release, which hands the mutex over.
#[test]
fn a_fair_release_serves_a_waiter_that_keeps_its_own_time() {
    Model::new()
        .apart()
        .preemptions(2)
        .check(|| {
            let shared = Shared::new(PatientMutex::new());
            let waiter = lead_in(|| {
                shared.lock.lock();
                let waiter = shared.spawn(last_section);
                yield_now(); // it queues
                waiter
            });
            shared.data.add();
            shared.lock.unlock_fair();
            waiter.join().unwrap();
            assert_eq!(shared.data.get(), 2);
        })
        .reaches(&[HandedOff]);
}

/// One that keeps its own time, one behind it, and a deadline at which the first leaves: the second is not left behind.
#[test]
fn a_waiter_that_keeps_its_own_time_gives_up() {
    Model::new()
        .moving_clock()
        .apart()
        .preemptions(1)
        .check(|| {
            let timed = Timed::new(PatientMutex::new());
            timed.shared.lock.lock();
            let first = timed.shared.spawn(|shared| shared.timed_section(1));
            let second = timed.spawn(Shared::section);
            advance(1);
            timed.shared.lock.unlock();
            timed.finish(second);
            first.join().unwrap();
            timed.shared.finish();
        })
        .reaches(&[TimedOut]);
}

/// A holder marks the mutex by itself, for its turn to be timed, as the other thread queues; each acquires twice.
#[test]
fn a_holder_marks_as_a_waiter_queues() {
    for model in [Model::new(), Model::new().stays_contended()] {
        model.moving_clock().apart().preemptions(2).check(|| {
            let timed = Timed::new(Mutex::new());
            let other = timed.spawn(|shared| {
                shared.section();
                last_section(shared);
            });
            timed.shared.section();
            timed.shared.section();
            timed.finish(other);
            timed.shared.lock.lock();
            assert_eq!(timed.shared.data.get(), 4);
            timed.shared.lock.unlock();
        });
    }
}

/// A waiter that starves is handed the mutex by a holder that comes back for it again and again.
#[test]
fn a_waiter_that_keeps_its_own_time_demands_the_lock() {
    Model::new()
        .moving_clock()
        .apart()
        .preemptions(2)
        .check(|| {
            let timed = Timed::new(Mutex::new());
            let shared = &timed.shared;
            let waiter = lead_in(|| {
                shared.lock.lock();
                let waiter = timed.spawn(Shared::section);
                yield_now(); // it queues
                waiter
            });
            advance(1);
            yield_now();
            shared.lock.unlock();
            timed.finish(waiter);
            shared.finish();
        })
        .reaches(&[DemandedHandoff, HandedOff]);
}

// Mutants.

/// The waiter relies on a mark that was not there when it locked the queue, or that no fence followed.
#[test]
fn no_fence_at_the_first_contention() {
    rejected("no_fence_at_the_first_contention", LOST_WAKE_UP, || {
        Model::new().stays_contended().fault(Fault::NoFence).preemptions(3).check(|| {
            let shared = Shared::new(Mutex::new());
            let other = shared.spawn(Shared::section);
            shared.section();
            shared.section();
            other.join().unwrap();
        });
    });
}

/// The waiter looks for the attention before it locks the queue, so it may have ended meanwhile.
#[test]
fn attention_is_looked_for_before_the_queue_is_locked() {
    rejected("attention_is_looked_for_before_the_queue_is_locked", LOST_WAKE_UP, || {
        marked_once(Model::new().fault(Fault::Overlooked(ATTENTION)).preemptions(3));
    });
}

/// Not a mutant of the lock: the same model on a machine without that fault.
#[test]
fn attention_is_looked_for_as_the_queue_is_locked() {
    marked_once(Model::new().preemptions(3));
}

/// The holder releases, acquires and releases again; one waiter comes, and is the only one that locks the queue.
fn marked_once(model: Model) {
    model.check(|| {
        let (shared, holder) = marked(|shared| {
            shared.lock.unlock();
            shared.section();
        });
        shared.section();
        holder.join().unwrap();
    });
}

/// A release clears the attention although the queue is not empty.
#[test]
fn attention_ends_with_a_waiter_left() {
    rejected("attention_ends_with_a_waiter_left", LOST_WAKE_UP, || {
        let unlocks = |op: &Op| op.is(Kind::Swap, Releases) && op.value == u64::from(ATTENTION);
        marked_twice(Model::new().stays_contended().fault(Fault::Clears(unlocks)).preemptions(3));
    });
}

/// A release that ends the attention stores blindly, whatever came meanwhile.
#[test]
fn attention_ends_and_no_look_follows() {
    rejected("attention_ends_and_no_look_follows", LOST_WAKE_UP, || {
        let releases = |op: &Op| op.is(Kind::CompareExchange, Releases) && op.value & (WAITERS | WRITER) == 0;
        marked_twice(Model::new().fault(Fault::Blind(releases)).preemptions(3));
    });
}

/// The waiter that releases leave asleep has no timer.
#[test]
fn a_waiter_that_keeps_no_time() {
    rejected("a_waiter_that_keeps_no_time", HANGS, || {
        left_asleep::<1>(Model::new().moving_clock().apart().fault(Fault::NoTimeouts).preemptions(1), 1);
    });
}

/// A mutex and a condition variable; what waiters wait for is the data.
type Pair = (RawMutex<Loom>, RawCondvar<Loom>);

/// Not moved to the mutex, but woken: by a signal, or by a broadcast, with the mutex held or not.
#[test]
fn with_several_cpus_a_signal_wakes() {
    use spinpark_platform::Event::MovedWaiter;
    for broadcasts in [false, true] {
        let checked = Model::new().cpus(2).preemptions(3).check(move || {
            let shared = Shared::new(Pair::default());
            let waiter = shared.spawn(|shared| {
                let (mutex, condvar) = &shared.lock;
                mutex.lock();
                while shared.data.get() == 0 {
                    condvar.wait(mutex, None);
                }
                mutex.unlock();
            });
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
        let waiters = [0, 1].map(|_| {
            shared.spawn(|shared| {
                let (mutex, condvar) = &shared.lock;
                mutex.lock();
                while shared.data.get() == 0 {
                    condvar.wait(mutex, None);
                }
                mutex.unlock();
            })
        });
        let (mutex, condvar) = &shared.lock;
        mutex.lock();
        shared.data.add();
        condvar.broadcast();
        mutex.unlock();
        join_all(waiters);
    });
}
