//! A thread that is stopped anywhere inside a call of a lock hinders no release, no signal and no try of
//! another thread.
//!
//! Each model is run for each place where the one thread may stop: before its first access to a word, its
//! second, and so on. It stays stopped until the other thread's calls have returned, so one of them that
//! waits for it waits for ever. Then it goes on, and everything must come to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use loom::thread::{JoinHandle, spawn, yield_now};
use spinpark_locks::bits::queue_lock::{ASKED, CONTENDED, LOCKED, PIN, PINS, SERVED};
use spinpark_locks::bits::word::WRITER;
use spinpark_locks::{
    Preference, RawCondvar, RawMutex, RawRwLock, TryMutex as _, TryRwLock as _, Waiter, WaiterRefs,
};
use spinpark_platform::Event::{DeferredWake, Parked, RequestedHandoff, RevokedBias, WokeHead};
use spinpark_platform::Ordering::{Relaxed, Release};
use spinpark_platform::{AtomicU32, Futex, Memory};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Fault, Kind, Loom, NEVER, Op, advance, lead_in, stop_after, while_stopped};
use spinpark_verify::{Model, Mortal, Shared, breaks, join_all, rejected};

type Mutex = RawMutex<Loom>;
type RwLock = RawRwLock<Loom>;
type Pair = (Mutex, RawCondvar<Loom>);

const WAITS: &str = "deadlock";
const LIVELOCK: &str = "exceeded maximum number of branches";

/// Runs `body` for each of the first places where a thread can stop. The last of them come after its end.
fn at_each_step(model: Model, steps: u32, body: impl Fn(u32) + Copy + Send + Sync + 'static) -> Vec<Checked> {
    (0..steps).map(|step| model.check(move || body(step))).collect()
}

/// Whether some run came to it.
fn reach(checked: &[Checked], event: spinpark_platform::Event) {
    let name = format!("{event:?}");
    assert!(checked.iter().any(|checked| checked.to_string().contains(&name)), "no execution reaches {name}");
}

/// A thread that stops.
fn stopping<L: 'static>(
    shared: &Arc<Shared<L>>,
    step: u32,
    run: impl FnOnce(&Shared<L>) + 'static,
) -> JoinHandle<()> {
    shared.spawn(move |shared| {
        stop_after(step);
        run(shared);
    })
}

/// The holder releases the mutex, and tries to take it again, beside a thread that stops as it locks or
/// unlocks it.
fn an_unlock_beside_a_waiter<const STARVATION_NS: u64>(step: u32) {
    let shared = Shared::new(RawMutex::<Loom<STARVATION_NS>>::new());
    shared.lock.lock();
    let waiter = while_stopped(|| {
        let waiter = stopping(&shared, step, Shared::section);
        shared.data.add();
        shared.lock.unlock();
        if shared.lock.try_lock() {
            shared.data.add();
            shared.lock.unlock();
        }
        waiter
    });
    waiter.join().unwrap();
    assert!(shared.finish() >= 2);
}

#[test]
fn an_unlock_does_not_wait_for_a_waiter() {
    for model in [Model::new(), Model::new().without_steps(), Model::new().stays_contended()] {
        let checked = at_each_step(model, 24, an_unlock_beside_a_waiter::<1>);
        reach(&checked, Parked);
        reach(&checked, WokeHead);
    }
}

/// A second thread waits, and is woken or requests the mutex, as the first one stops in the queue.
fn an_unlock_beside_two<const STARVATION_NS: u64>(step: u32) {
    let shared = Shared::new(RawMutex::<Loom<STARVATION_NS>>::new());
    let first = lead_in(|| {
        shared.lock.lock();
        let first = shared.spawn(Shared::section);
        yield_now(); // it queues
        first
    });
    let second = while_stopped(|| {
        let second = stopping(&shared, step, Shared::section);
        yield_now(); // it comes to the place where it stops, or sleeps
        shared.data.add();
        shared.lock.unlock();
        second
    });
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!(shared.finish(), 3);
}

#[test]
fn an_unlock_does_not_wait_for_one_of_two_waiters() {
    at_each_step(Model::new().preemptions(0), 20, an_unlock_beside_two::<1>);
    at_each_step(Model::new().preemptions(0), 20, an_unlock_beside_two::<0>);
}

#[test]
fn an_unlock_does_not_wait_for_a_waiter_that_requests() {
    reach(&at_each_step(Model::new(), 32, an_unlock_beside_a_waiter::<0>), RequestedHandoff);
}

/// A mutex whose waiters look at it by themselves, after `PROBE_NS`.
type Watched<const STARVATION_NS: u64, const PROBE_NS: u64> =
    RawMutex<Loom<STARVATION_NS, 0, NEVER, { u32::MAX }, NEVER, PROBE_NS>>;

/// probe.L3: the first waiter stops, perhaps after it was woken, or promised the mutex. The second one gets
/// on, unless the first has the mutex, or has locked its queue since the second one is in that. One that
/// comes later stands outside (probe.L3).
fn a_waiter_behind_a_stopped_one<const STARVATION_NS: u64, const PROBE_NS: u64>(step: u32) {
    let shared = Shared::new(Watched::<STARVATION_NS, PROBE_NS>::new());
    let first = lead_in(|| {
        shared.lock.lock();
        let first = stopping(&shared, step, |shared| {
            shared.lock.lock();
            stop_after(u32::MAX); // not any more: a release has steps in which it must not stop (docs/drop-in.md, Limits)
            shared.data.add();
            shared.lock.unlock();
        });
        yield_now(); // it comes to the place where it stops, or sleeps
        first
    });
    let is_done = Arc::new(AtomicBool::new(false));
    let second = while_stopped(|| {
        let stands_outside = is_queue_locked(&shared.lock);
        let done = Arc::clone(&is_done);
        let second = lead_in(|| {
            let second = shared.spawn(move |shared| {
                shared.section();
                done.store(true, SeqCst);
            });
            yield_now(); // it sleeps
            shared.lock.unlock();
            for _ in 0..8 {
                yield_now();
                advance(64);
            }
            yield_now();
            second
        });
        // By read-modify-writes, which read the latest value.
        let word = shared.lock.queue().word().fetch_or(0, Relaxed);
        assert!(
            is_done.load(SeqCst) || word & WRITER != 0 || (is_queue_locked(&shared.lock) && !stands_outside),
            "step {step}: a waiter sleeps on at a free mutex, {word:#x}"
        );
        second
    });
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!(shared.finish(), 2);
}

/// Whether a thread has the mutex' queue locked.
#[allow(unsafe_code)]
fn is_queue_locked<const S: u64, const W: u64>(mutex: &Watched<S, W>) -> bool {
    type Word = <Loom as Memory>::AtomicU32;
    let queue = std::ptr::from_ref(mutex.queue()).cast::<u8>();
    let [lock, _] = spinpark_locks::WaitQueue::<Loom<S, 0, NEVER, { u32::MAX }, NEVER, W>>::layout();
    // SAFETY: `layout` says that the queue lock's word is there.
    let word = unsafe { &*queue.wrapping_add(lock).cast::<Word>() };
    word.fetch_or(0, Relaxed) & LOCKED != 0
}

#[test]
fn a_waiter_does_not_wait_for_one_that_was_woken() {
    let model = Model::new().preemptions(0).moving_clock();
    reach(&at_each_step(model, 40, a_waiter_behind_a_stopped_one::<1, 1>), WokeHead);
    reach(&at_each_step(model, 40, a_waiter_behind_a_stopped_one::<0, 1>), WokeHead);
}

/// probe.L3: waiters do not look at the mutex by themselves.
#[test]
fn waiters_do_not_probe() {
    rejected!("waiters_do_not_probe", breaks("probe.L3"), "a waiter sleeps on at a free mutex", || {
        let model = Model::new().preemptions(0).moving_clock();
        at_each_step(model, 40, a_waiter_behind_a_stopped_one::<1, NEVER>);
    });
}

/// Counted readers leave beside a writer that stops as it queues; then a try each way.
fn readers_beside_a_writer(step: u32) {
    let shared = Shared::new(RwLock::new());
    shared.lock.read(Preference::Readers);
    shared.lock.read(Preference::Readers);
    let writer = while_stopped(|| {
        let writer = stopping(&shared, step, Shared::write);
        yield_now(); // it comes to the place where it stops, or waits
        shared.lock.unlock_read();
        shared.lock.unlock_read();
        if shared.lock.try_write() {
            shared.data.add();
            shared.lock.unlock_write();
        }
        if shared.lock.try_read(Preference::Readers) {
            shared.lock.unlock_read();
        }
        writer
    });
    writer.join().unwrap();
    assert!(shared.lock.try_write() && shared.data.get() >= 1);
    shared.lock.unlock_write();
}

#[test]
fn readers_do_not_wait_for_a_writer() {
    at_each_step(Model::new().preemptions(1), 24, readers_beside_a_writer);
}

/// Tries beside a writer that stops as it revokes the bias.
fn tries_beside_a_writer(step: u32) {
    let shared = Shared::new(RawRwLock::<Loom<1, 0, NEVER, 0>>::new());
    shared.lock.read(Preference::Readers);
    let (writer, reads) = while_stopped(|| {
        let writer = stopping(&shared, step, Shared::write);
        yield_now(); // it comes to the place where it stops, or waits
        assert!(!shared.lock.try_write());
        (writer, 1 + u32::from(shared.lock.try_read(Preference::Readers)))
    });
    for _ in 0..reads {
        shared.lock.unlock_read();
    }
    writer.join().unwrap();
    assert_eq!(shared.data.get(), 1);
}

#[test]
fn tries_do_not_wait_for_a_writer_that_revokes_the_bias() {
    reach(&at_each_step(Model::new().preemptions(0), 30, tries_beside_a_writer), RevokedBias);
}

/// A reader leaves its slot beside a writer that stops as it revokes the bias, or as it waits for the readers
/// to go.
fn a_reader_in_a_slot_beside_a_writer(step: u32) {
    let shared = Shared::new(RawRwLock::<Loom<1, 0, NEVER, 0>>::new());
    shared.read(Preference::Readers); // enables the bias
    shared.lock.read(Preference::Readers);
    shared.lock.read(Preference::Readers);
    let writer = while_stopped(|| {
        let writer = stopping(&shared, step, Shared::write);
        yield_now(); // it comes to the place where it stops, or waits
        shared.lock.unlock_read();
        yield_now();
        shared.lock.unlock_read();
        writer
    });
    writer.join().unwrap();
    assert_eq!(shared.data.get(), 1);
    assert!(shared.lock.try_write(), "all readers have left");
}

fn readers_beside_one_that_revokes_the_bias(model: Model) -> Vec<Checked> {
    at_each_step(model, 30, a_reader_in_a_slot_beside_a_writer)
}

#[test]
fn a_reader_does_not_wait_for_a_writer_that_revokes_the_bias() {
    reach(&readers_beside_one_that_revokes_the_bias(Model::new().preemptions(1)), RevokedBias);
}

/// A reader that has left a marked slot stays in the count.
#[test]
fn mutant_marked_slots_are_not_settled() {
    rejected!("mutant_marked_slots_are_not_settled", breaks("bias.G2"), WAITS, || {
        readers_beside_one_that_revokes_the_bias(Model::new().preemptions(1).fault(Fault::NotSettled));
    });
}

/// As the lock was: whether it is counted, a reader learned under the queue lock.
#[test]
fn mutant_a_reader_waits_for_a_writer_that_revokes_the_bias() {
    rejected!("mutant_a_reader_waits_for_a_writer_that_revokes_the_bias", breaks("core.V1"), WAITS, || {
        readers_beside_one_that_revokes_the_bias(Model::new().preemptions(1).fault(Fault::Unsure));
    });
}

/// A writer and a downgrade beside a thread that stops.
fn a_writer_beside_a_reader(step: u32) {
    let shared = Shared::new(RwLock::new());
    shared.lock.write();
    let reader = while_stopped(|| {
        let reader = stopping(&shared, step, |shared| shared.read(Preference::Readers));
        shared.data.add();
        shared.lock.downgrade();
        shared.lock.unlock_read();
        reader
    });
    reader.join().unwrap();
}

#[test]
fn a_writer_does_not_wait_for_a_reader() {
    at_each_step(Model::new().preemptions(1), 24, a_writer_beside_a_reader);
}

/// A signal, or a broadcast, beside a thread that stops as it begins to wait, or ends its wait at its
/// deadline; before that, another one waits, which must get what was sent.
fn a_signal_beside_a_waiter(step: u32, all: bool) {
    let shared = Shared::new(Pair::default());
    let waiter = lead_in(|| {
        let waiter = shared.spawn(|shared| {
            let (mutex, condvar) = &shared.lock;
            mutex.lock();
            while shared.data.get() == 0 {
                condvar.wait(mutex, None);
            }
            mutex.unlock();
        });
        yield_now(); // it waits
        shared.lock.0.lock();
        shared.data.add();
        shared.lock.0.unlock();
        waiter
    });
    let stops = while_stopped(|| {
        let stops = stopping(&shared, step, |shared| {
            let (mutex, condvar) = &shared.lock;
            mutex.lock();
            condvar.wait(mutex, Some(spinpark_verify::after(0)));
            mutex.unlock();
        });
        yield_now(); // it comes to the place where it stops, or is through
        shared.lock.1.send(all);
        stops
    });
    stops.join().unwrap();
    waiter.join().unwrap();
    assert!(shared.lock.1.is_idle());
}

#[test]
fn a_signal_does_not_wait_for_a_waiter() {
    at_each_step(Model::new().preemptions(0), 24, |step| a_signal_beside_a_waiter(step, false));
    at_each_step(Model::new().preemptions(0), 24, |step| a_signal_beside_a_waiter(step, true));
}

/// What is wrong with the waiter that a signal has taken out as the last one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    IsRight,
    /// It leaves the references of those in the mutex' queue as they are.
    Forgets,
    /// Its own reference is not waited for.
    IsNotAwaited,
}

/// A signalled waiter sleeps in the mutex' queue, with a reference to the condition variable (C5). A signal,
/// or a broadcast, takes the last waiter out beside a thread that stops as it queues for the mutex. The
/// holder of the mutex then destroys the condition variable.
fn a_last_signal_beside_a_waiter_of_the_mutex(step: u32, all: bool, last: Last) {
    let (mutex, condvar) = (Mortal::new(Mutex::new()), Mortal::new(RawCondvar::<Loom>::new()));
    let refs = Mortal::new(WaiterRefs::<Loom>::new());
    let wait = move || {
        mutex.lock();
        let waiter = Waiter::with_mutex(&mutex).cancellable(&refs);
        condvar.enqueue(&waiter);
        mutex.unlock();
        waiter.sleep(None, <Loom>::futex_wait);
        let result = condvar.finish(&waiter);
        if last != Last::Forgets {
            condvar.settle(&waiter, false);
        }
        waiter.reacquire(result, &mutex);
        mutex.unlock();
    };
    let waiters = lead_in(|| {
        let waiters = [(); 2].map(|()| {
            let waiter = spawn(wait);
            yield_now(); // it waits
            waiter
        });
        mutex.lock();
        assert!(condvar.signal());
        waiters
    });
    let stops = while_stopped(|| {
        let stops = spawn(move || {
            stop_after(step);
            mutex.lock();
            mutex.unlock();
        });
        yield_now(); // it comes to the place where it stops, or sleeps
        assert!(if all { condvar.broadcast() == 1 } else { condvar.signal() });
        stops
    });
    let is_over = || if last == Last::IsNotAwaited { condvar.is_idle() } else { condvar.is_idle_with(&refs) };
    while !is_over() {
        yield_now();
    }
    condvar.destroy();
    mutex.unlock();
    join_all(waiters);
    stops.join().unwrap();
}

fn last_signals(last: Last) {
    for all in [false, true] {
        let body = move |step| a_last_signal_beside_a_waiter_of_the_mutex(step, all, last);
        reach(&at_each_step(Model::new().preemptions(0), 16, body), DeferredWake);
    }
}

#[test]
fn a_signal_does_not_wait_for_a_waiter_of_the_mutex() {
    last_signals(Last::IsRight);
}

// Mutants.

/// C5: the references of waiters in the mutex' queue are left to a waiter that does not end them.
#[test]
fn a_last_waiter_forgets_references() {
    rejected!("a_last_waiter_forgets_references", breaks("condvar.C5"), LIVELOCK, || last_signals(
        Last::Forgets
    ));
}

/// C5: the variable is destroyed before the last waiter has looked at it.
#[test]
fn a_last_waiter_is_not_awaited() {
    rejected!("a_last_waiter_is_not_awaited", breaks("condvar.C5"), "use after free", || last_signals(
        Last::IsNotAwaited
    ));
}

/// C6: a signal is left to the thread that has the queue locked, and is not recorded there.
#[test]
fn a_signal_that_is_left_to_another_is_lost() {
    let signals = |op: &Op| match op.is(Kind::CompareExchange, Release) && op.has(LOCKED) && op.lacks(ASKED) {
        true => PINS,
        false => 0,
    };
    rejected!("a_signal_that_is_left_to_another_is_lost", breaks("condvar.C6"), WAITS, || {
        let model = Model::new().preemptions(0).fault(Fault::Without(signals));
        at_each_step(model, 24, |step| a_signal_beside_a_waiter(step, false));
    });
}

/// A thread leaves the look to the one that has the queue locked.
fn asks(op: &Op) -> bool {
    op.is(Kind::CompareExchange, Release) && op.has(LOCKED | ASKED)
}

/// The queue is unlocked.
fn unlocks(op: &Op) -> bool {
    op.is(Kind::CompareExchange, Release) && op.lacks(!(CONTENDED | SERVED))
}

fn all_steps(model: Model) {
    at_each_step(model.preemptions(2), 24, an_unlock_beside_a_waiter::<1>);
}

/// A release can do nothing but try again until the queue is unlocked.
#[test]
fn a_release_that_waits_for_the_queue() {
    rejected!("a_release_that_waits_for_the_queue", breaks("core.V1"), LIVELOCK, || {
        all_steps(Model::new().fault(Fault::Refused(asks)));
    });
}

/// The queue is unlocked without a look at what was asked for.
#[test]
fn a_release_asks_and_is_not_heard() {
    rejected!("a_release_asks_and_is_not_heard", breaks("core.L1"), WAITS, || {
        all_steps(Model::new().fault(Fault::Blind(unlocks)));
    });
}

/// Without a stop: the releasing thread is overtaken between its steps.
fn overtaken(model: Model) {
    model.preemptions(3).check(|| an_unlock_beside_a_waiter::<1>(u32::MAX));
}

#[test]
fn a_release_that_is_waited_for() {
    overtaken(Model::new());
}

/// The other thread looks before the release is made.
#[test]
fn a_release_that_is_not_waited_for() {
    let pins = |op: &Op| match op.kind {
        Kind::CompareExchange if asks(op) => PINS,
        Kind::FetchSub if op.writes(PIN) => PIN,
        _ => 0,
    };
    rejected!("a_release_that_is_not_waited_for", breaks("core.L1"), WAITS, || {
        overtaken(Model::new().fault(Fault::Without(pins)));
    });
}

/// The other thread looks, and does not see the release.
#[test]
fn a_release_that_is_not_seen() {
    let unpins = |op: &Op| op.is(Kind::FetchSub, Release) && op.writes(PIN);
    rejected!("a_release_that_is_not_seen", breaks("core.L1"), WAITS, || {
        all_steps(Model::new().fault(Fault::Relaxed(unpins)));
    });
}
