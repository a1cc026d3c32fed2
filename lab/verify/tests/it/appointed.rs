//! Models of the timers of waiters (probe.L3): a waiter of a lock that is simply held has none, and is not
//! woken; one is appointed to set it before the others come to rely on a thread that may be stopped.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use loom::thread::{JoinHandle, yield_now};
use spinpark_locks::bits::node::APPOINTED;
use spinpark_locks::bits::queue_lock::LOCKED;
use spinpark_locks::bits::word::WRITER;
use spinpark_locks::{Preference, RawMutex, RawRwLock};
use spinpark_platform::Event::{Appointed, Parked, Probed};
use spinpark_platform::Ordering::Relaxed;
use spinpark_platform::{AtomicU32, Memory};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{
    Fault, Kind, Loom, NEVER, Op, advance, lead_in, noted, stop_after, while_stopped,
};
use spinpark_verify::{Model, Shared, breaks, join_all, rejected};

/// Waiters with a timer probe the lock after 1 ns.
type Machine = Loom<1, 0, NEVER, { u32::MAX }, NEVER, 1>;
type Mutex = RawMutex<Machine>;
type RwLock = RawRwLock<Machine>;

const READERS: Preference = Preference::Readers;
const WRITERS: Preference = Preference::Writers;

const SLEEPS_ON: &str = "a waiter sleeps on at a free mutex";
const FOR_NOTHING: &str = "waiters were woken for nothing";

// ---- an appointment comes before the release

/// Which thread is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// The one that releases the mutex.
    Holder,
    /// The waiter that it wakes.
    First,
}

/// Whether a thread has the mutex' queue locked.
#[allow(unsafe_code)]
fn is_queue_locked(mutex: &Mutex) -> bool {
    let queue = std::ptr::from_ref(mutex.queue()).cast::<u8>();
    let [lock, _] = spinpark_locks::WaitQueue::<Machine>::layout();
    // SAFETY: `layout` says that the queue lock's word is there.
    let word = unsafe { &*queue.wrapping_add(lock).cast::<<Machine as Memory>::AtomicU32>() };
    word.fetch_or(0, Relaxed) & LOCKED != 0
}

/// Two waiters without a timer: the first is woken by a release. A thread stops at a `step` of that, or of the
/// first waiter's way on. The second one gets the mutex all the same, unless that thread has it or its queue.
fn a_release_wakes_one_of_two(stopped: Stopped, step: u32) {
    let shared = Shared::new(Mutex::new());
    let go = Arc::new(AtomicBool::new(false));
    let is_done = Arc::new(AtomicBool::new(false));
    let threads = lead_in(|| {
        let goes = Arc::clone(&go);
        let holder = shared.spawn(move |shared| {
            shared.lock.lock();
            while !goes.load(SeqCst) {
                yield_now();
            }
            if stopped == Stopped::Holder {
                stop_after(step);
            }
            shared.lock.unlock();
        });
        yield_now(); // it has the mutex
        let first = shared.spawn(move |shared| {
            if stopped == Stopped::First {
                stop_after(step);
            }
            shared.lock.lock();
            stop_after(u32::MAX); // as in `stopped`: its release is another matter
            shared.data.add();
            shared.lock.unlock();
        });
        yield_now(); // it comes to the place where it stops, or sleeps
        let done = Arc::clone(&is_done);
        let second = shared.spawn(move |shared| {
            shared.section();
            done.store(true, SeqCst);
        });
        yield_now(); // it sleeps
        [holder, first, second]
    });
    while_stopped(|| {
        lead_in(|| {
            go.store(true, SeqCst);
            for _ in 0..8 {
                yield_now();
                advance(64);
            }
            yield_now();
        });
        // By read-modify-writes, which read the latest value.
        let word = shared.lock.queue().word().fetch_or(0, Relaxed);
        assert!(
            is_done.load(SeqCst) || word & WRITER != 0 || is_queue_locked(&shared.lock),
            "{stopped:?} at step {step}: {SLEEPS_ON}, {word:#x}"
        );
    });
    join_all(threads);
    assert_eq!(shared.finish(), 2);
}

fn at_each_step(stopped: Stopped, model: Model) -> Vec<Checked> {
    let model = model.moving_clock().preemptions(0);
    (0..40).map(|step| model.check(move || a_release_wakes_one_of_two(stopped, step))).collect()
}

fn reach(checked: &[Checked], event: spinpark_platform::Event) {
    let name = format!("{event:?}");
    assert!(checked.iter().any(|checked| checked.to_string().contains(&name)), "no execution reaches {name}");
}

#[test]
fn a_waiter_is_appointed_before_the_release() {
    for stopped in [Stopped::Holder, Stopped::First] {
        let checked = at_each_step(stopped, Model::new());
        reach(&checked, Appointed);
        reach(&checked, Probed);
    }
}

// ---- no waiter is woken that is owed nothing

/// Two waiters queue, in every order; the lock is held for long after that.
fn held_for_long<L: 'static>(
    model: Model,
    lock: fn() -> L,
    [hold, release]: [fn(&L); 2],
    waits: fn(&Shared<L>),
) -> Checked {
    model.moving_clock().preemptions(0).check(move || {
        let shared = Shared::new(lock());
        hold(&shared.lock);
        let before = noted(Parked);
        let waiters: [JoinHandle<()>; 2] = [(); 2].map(|()| shared.spawn(waits));
        while noted(Parked) < before + 2 {
            yield_now();
        }
        for _ in 0..3 {
            advance(64);
            yield_now();
        }
        let woken = noted(Parked) - before - 2;
        assert!(woken == 0, "{FOR_NOTHING}, {woken} times");
        release(&shared.lock);
        join_all(waiters);
    })
}

fn behind_a_holder(model: Model) {
    held_for_long(model, Mutex::new, [Mutex::lock, Mutex::unlock], Shared::section);
}

#[test]
fn waiters_of_a_mutex_that_is_held_sleep_on() {
    behind_a_holder(Model::new());
}

#[test]
fn writers_behind_a_reader_sleep_on() {
    let reader: [fn(&RwLock); 2] = [|lock| lock.read(READERS), RwLock::unlock_read];
    held_for_long(Model::new(), RwLock::new, reader, Shared::write);
    held_for_long(Model::new(), RwLock::new, reader, Shared::write_first);
}

#[test]
fn readers_behind_a_writer_sleep_on() {
    let writer = [RwLock::write, RwLock::unlock_write];
    held_for_long(Model::new(), RwLock::new, writer, |shared| shared.read(READERS));
    held_for_long(Model::new(), RwLock::new, writer, |shared| shared.read(WRITERS));
}

/// Waiters that come after a wake pass has woken one set a timer at once: that ends as they find that the lock
/// is simply held.
#[test]
fn a_timer_ends_at_a_lock_that_is_held() {
    thread_local! {
        static BEFORE: Cell<u64> = const { Cell::new(0) };
    }
    Model::new()
        .moving_clock()
        .stays_contended() // else `SERVED` ends with that
        .preemptions(0) // one that finds the queue locked probes again
        .check(|| {
            let shared = Shared::new(Mutex::new());
            let waiters = lead_in(|| {
                shared.lock.lock();
                let first = shared.spawn(Shared::section);
                yield_now(); // it queues
                shared.lock.unlock(); // it is woken
                first.join().unwrap();
                shared.lock.lock();
                BEFORE.set(noted(Probed));
                [(); 2].map(|()| {
                    let waiter = shared.spawn(Shared::section);
                    yield_now(); // it queues, with a timer
                    waiter
                })
            });
            for _ in 0..4 {
                advance(64);
                yield_now();
            }
            let probes = noted(Probed) - BEFORE.get();
            assert!(probes <= 2, "{FOR_NOTHING}, {probes} times");
            shared.lock.unlock();
            join_all(waiters);
        })
        .reaches(&[Probed]);
}

// Mutants.

/// A waiter is appointed.
fn appoints(op: &Op) -> bool {
    op.is(Kind::CompareExchange, Relaxed) && op.writes(APPOINTED)
}

#[test]
fn no_waiter_is_appointed() {
    rejected!("no_waiter_is_appointed", breaks("probe.L3"), SLEEPS_ON, || {
        at_each_step(Stopped::First, Model::new().fault(Fault::NoWrite(appoints)));
    });
}

#[test]
fn a_waiter_is_appointed_after_the_release() {
    rejected!("a_waiter_is_appointed_after_the_release", breaks("probe.L3"), SLEEPS_ON, || {
        at_each_step(Stopped::Holder, Model::new().fault(Fault::AfterUnlock(appoints)));
    });
}

/// Each waiter is woken after a time, whatever it is owed.
#[test]
fn each_waiter_has_a_timer() {
    rejected!("each_waiter_has_a_timer", breaks("probe.L3"), FOR_NOTHING, || {
        behind_a_holder(Model::new().fault(Fault::TimedSleeps));
    });
}
