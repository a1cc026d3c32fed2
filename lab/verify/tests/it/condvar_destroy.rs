//! Models of a condition variable that is destroyed while a signalled waiter, perhaps cancelled, is on its
//! way out (C4, C5).

use loom::thread::{self, JoinHandle, yield_now};
use spinpark_locks::{RawCondvar, RawMutex, WaitResult, Waiter, WaiterRefs};
use spinpark_platform::Event::{DeferredWake, TimedOut};
use spinpark_platform::{Futex, Wait};
use spinpark_verify::model::Checked;
use spinpark_verify::platform::{Loom, advance, lead_in};
use spinpark_verify::{Breaks, Model, Mortal, Shared, after, breaks, join_all, rejected};

/// What is said of an access to memory that is not there any more.
const GONE: &str = "use after free";
/// What loom says of a thread that waits for ever, awake.
const LIVELOCK: &str = "Model exceeded maximum number of branches";

type Condvar = (RawCondvar<Loom>, WaiterRefs<Loom>);

/// How the second waiter's wait ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Broadcast,
    Signal,
    Deadline,
}

#[derive(Clone, Copy)]
struct Case {
    /// The first waiter is cancelled, before the signal or at any time after that.
    cancels: bool,
    end: End,
    mutant: Mutant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    None,
    /// The destroyer does not wait for references.
    IgnoresReferences,
    /// A waiter keeps its reference until it has the mutex.
    SettlesLate,
    /// The last waiter leaves the references of those in the mutex' queue as they are.
    LeavesReferences,
}

/// The first waiter: its sleep ends at the latest when the clock moves, which stands for its cancellation.
fn first(mutex: Mortal<RawMutex<Loom>>, condvar: Mortal<Condvar>, case: Case) -> JoinHandle<()> {
    thread::spawn(move || {
        let (condvar, refs) = &*condvar;
        mutex.lock();
        let waiter = Waiter::with_mutex(&mutex).cancellable(refs);
        condvar.enqueue(&waiter);
        mutex.unlock();
        let mut cancelled = false;
        waiter.sleep(None, |word, value, _| {
            let wait = <Loom>::futex_wait(word, value, Some(after(1)));
            cancelled = wait == Wait::TimedOut;
            wait
        });
        let result = condvar.finish(&waiter);
        let settle = || {
            if result == WaitResult::Signalled {
                condvar.settle(&waiter, cancelled);
            }
        };
        if case.mutant == Mutant::SettlesLate {
            waiter.reacquire(result, &mutex);
            settle();
        } else {
            settle();
            waiter.reacquire(result, &mutex);
        }
        mutex.unlock();
    })
}

/// The calling thread holds the mutex, is the second waiter itself, signals the first one, ends its own wait,
/// and destroys the variable.
fn destroyed_by_the_holder(case: Case) {
    let mutex = Mortal::new(RawMutex::<Loom>::new());
    let condvar = Mortal::new(Condvar::default());
    let second = Waiter::with_mutex(&mutex);
    let second =
        if case.mutant == Mutant::LeavesReferences { second } else { second.cancellable(&condvar.1) };
    let first = lead_in(|| {
        let first = first(mutex, condvar, case);
        yield_now(); // it waits
        mutex.lock();
        condvar.0.enqueue(&second);
        first
    });
    if case.cancels {
        advance(1);
    }
    condvar.0.signal();
    match case.end {
        End::Broadcast => drop(condvar.0.broadcast()),
        End::Signal => drop(condvar.0.signal()),
        End::Deadline => {}
    }
    let result = condvar.0.finish(&second);
    if result == WaitResult::Signalled {
        condvar.0.settle(&second, false);
    }
    let is_over = || match case.mutant {
        Mutant::IgnoresReferences => condvar.0.is_idle(),
        _ => condvar.0.is_idle_with(&condvar.1),
    };
    while !is_over() {
        yield_now();
    }
    condvar.destroy();
    mutex.unlock();
    waiter_is_told(&second, result, &mutex);
    first.join().unwrap();
    mutex.destroy();
}

fn waiter_is_told(waiter: &Waiter<Loom>, result: WaitResult, mutex: &RawMutex<Loom>) {
    waiter.reacquire(result, mutex);
    mutex.unlock();
}

/// With one CPU a signal leaves its waiter to the holder's release, with more it wakes it or does the same.
fn models() -> [Model; 3] {
    [Model::new(), Model::new().cpus(2), Model::new().defers()]
        .map(|model| model.moving_clock().preemptions(1))
}

fn right(end: End) -> [Checked; 3] {
    models().map(|model| {
        model.check(move || destroyed_by_the_holder(Case { cancels: true, end, mutant: Mutant::None }))
    })
}

#[test]
fn after_a_broadcast() {
    let [alone, wakes, defers] = right(End::Broadcast);
    alone.reaches(&[DeferredWake, TimedOut]);
    wakes.reaches(&[TimedOut]);
    defers.reaches(&[DeferredWake, TimedOut]);
}

#[test]
fn after_two_signals() {
    right(End::Signal);
}

#[test]
fn after_a_deadline() {
    right(End::Deadline);
}

#[test]
fn without_a_cancellation() {
    for end in [End::Broadcast, End::Signal, End::Deadline] {
        for model in models() {
            model.check(move || destroyed_by_the_holder(Case { cancels: false, end, mutant: Mutant::None }));
        }
    }
}

/// One signal for two waiters, the first of which is cancelled: the second one has it, whichever was
/// signalled first.
#[test]
fn a_cancelled_waiter_passes_its_signal_on() {
    for model in models() {
        model.check(|| {
            let shared = Shared::new((RawMutex::<Loom>::new(), Condvar::default()));
            let first = shared.spawn(|shared| {
                let (mutex, (condvar, refs)) = &shared.lock;
                mutex.lock();
                if shared.data.get() == 0 {
                    let waiter = Waiter::with_mutex(mutex).cancellable(refs);
                    condvar.enqueue(&waiter);
                    mutex.unlock();
                    waiter.sleep(None, |_, _, _| Wait::TimedOut);
                    let result = condvar.finish(&waiter);
                    if result == WaitResult::Signalled {
                        condvar.settle(&waiter, true);
                    }
                    waiter.reacquire(result, mutex);
                }
                mutex.unlock();
            });
            let second = shared.spawn(|shared| {
                let (mutex, (condvar, refs)) = &shared.lock;
                mutex.lock();
                if shared.data.get() == 0 {
                    let waiter = Waiter::with_mutex(mutex).cancellable(refs);
                    condvar.enqueue(&waiter);
                    mutex.unlock();
                    waiter.sleep(None, <Loom>::futex_wait);
                    let result = condvar.finish(&waiter);
                    condvar.settle(&waiter, false);
                    waiter.reacquire(result, mutex);
                }
                mutex.unlock();
            });
            let (mutex, (condvar, refs)) = &shared.lock;
            mutex.lock();
            shared.data.add();
            condvar.signal();
            mutex.unlock();
            join_all([first, second]);
            assert!(condvar.is_idle_with(refs));
        });
    }
}

fn rejects(test: &str, breaks: Breaks, reason: &str, model: fn() -> Model, cancels: bool, mutant: Mutant) {
    rejected!(test, breaks, reason, || {
        model().moving_clock().preemptions(1).check(move || {
            destroyed_by_the_holder(Case { cancels, end: End::Broadcast, mutant });
        });
    });
}

/// C4: the destroyer waits only for the waiters in the queue.
#[test]
fn references_are_ignored() {
    rejects(
        "references_are_ignored",
        breaks("condvar.C4"),
        GONE,
        || Model::new().cpus(2),
        true,
        Mutant::IgnoresReferences,
    );
}

/// C4: a waiter drops its reference when it has the mutex, which the destroyer holds.
#[test]
fn a_reference_is_dropped_under_the_mutex() {
    rejects(
        "a_reference_is_dropped_under_the_mutex",
        breaks("condvar.C4"),
        LIVELOCK,
        || Model::new().cpus(2),
        true,
        Mutant::SettlesLate,
    );
}

/// C5: the references of waiters that sleep in the mutex' queue stay.
#[test]
fn references_in_the_mutex_queue_stay() {
    rejects(
        "references_in_the_mutex_queue_stay",
        breaks("condvar.C5"),
        LIVELOCK,
        Model::new,
        false,
        Mutant::LeavesReferences,
    );
}
