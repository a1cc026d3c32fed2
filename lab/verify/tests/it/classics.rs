//! Models of the classic spin locks and FreeBSD's mutex, and mutants.

use std::sync::Arc;

use loom::thread;
use spinpark_classics::mtx_2006::delays::{Delays, Place};
use spinpark_classics::mtx_2006::profiling::{AtomicAdd, BackOff, Delayed};
use spinpark_classics::mtx_2006::{Absent, Alone, Globals, Mtx, Profiled, Profiling};
use spinpark_classics::tas::{self, TasLock, TestAndSet, TestAndTestAndSet, Waiting};
use spinpark_classics::{RawLock, TicketLock};

use spinpark_platform::Ordering::{Acquire, Release};
use spinpark_platform::{Event, OnCpu};
use spinpark_verify::platform::{Fault, Kind, Loom};
use spinpark_verify::{Guarded, Model, Shared, breaks, breaks_rule, rejected, sections};

fn tas<W: Waiting>(threads: u32) {
    sections::<TasLock<Loom, W>>(threads, 1);
}

#[test]
fn test_and_set() {
    Model::new().preemptions(5).check(|| tas::<TestAndSet>(2));
    Model::new().preemptions(5).check(|| tas::<TestAndTestAndSet>(2));
    Model::new().preemptions(5).check(|| tas::<tas::BackOff>(2));
    Model::new().three_may_spin().check(|| tas::<TestAndTestAndSet>(3));
}

#[test]
fn mutant_tas_relaxed_unlock() {
    rejected!(
        "mutant_tas_relaxed_unlock",
        breaks_rule("of test-and-set: the release is a Release"),
        "Causality violation",
        || {
            let relaxed = Fault::Relaxed(|op| op.is(Kind::Store, Release));
            Model::new().fault(relaxed).check(|| tas::<TestAndSet>(2));
        }
    );
}

#[test]
fn mutant_tas_relaxed_lock() {
    rejected!(
        "mutant_tas_relaxed_lock",
        breaks_rule("of test-and-set: the swap acquires"),
        "Causality violation",
        || {
            let relaxed = Fault::Relaxed(|op| op.is(Kind::Swap, Acquire));
            Model::new().fault(relaxed).check(|| tas::<TestAndSet>(2));
        }
    );
}

#[test]
fn tickets() {
    Model::new().preemptions(5).check(|| sections::<TicketLock<Loom>>(2, 1));
    Model::new().three_may_spin().check(|| sections::<TicketLock<Loom>>(3, 1));
}

#[test]
fn mutant_ticket_relaxed_release() {
    rejected!(
        "mutant_ticket_relaxed_release",
        breaks_rule("of the ticket lock: the release is a Release"),
        "Causality violation",
        || {
            let relaxed = Fault::Relaxed(|op| op.is(Kind::Store, Release));
            Model::new().fault(relaxed).check(|| sections::<TicketLock<Loom>>(2, 1));
        }
    );
}

#[test]
fn mutant_ticket_relaxed_wait() {
    rejected!(
        "mutant_ticket_relaxed_wait",
        breaks_rule("of the ticket lock: the wait acquires"),
        "Causality violation",
        || {
            let relaxed = Fault::Relaxed(|op| op.is(Kind::Load, Acquire));
            Model::new().fault(relaxed).check(|| sections::<TicketLock<Loom>>(2, 1));
        }
    );
}

fn mtx<F: Profiling>(threads: u32) {
    sections::<Alone<Loom, F>>(threads, 1);
}

/// FreeBSD's mutex with a delay at each place.
struct Everywhere(Alone<Loom, Delayed>);

impl RawLock for Everywhere {
    fn new() -> Self {
        let delays = Place::ALL.into_iter().fold(Delays::NONE, |delays, place| delays.with(place, 16));
        Self(Alone::delayed(delays))
    }

    fn lock(&self) {
        self.0.lock();
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    fn unlock(&self) {
        self.0.unlock();
    }
}

#[test]
fn delays_at_each_place() {
    let sleep = Model::new().preemptions(2).oracle(OnCpu::Off);
    sleep.check(|| sections::<Everywhere>(2, 1)).reaches(&[Event::Parked]);
    Model::new().preemptions(2).oracle(OnCpu::Running).check(|| sections::<Everywhere>(2, 1));
}

#[test]
fn on_a_turnstile() {
    let sleep = Model::new().preemptions(5).oracle(OnCpu::Off);
    sleep.check(|| mtx::<Absent>(2)).reaches(&[Event::Parked]);
    sleep.spurious().check(|| mtx::<Absent>(2));
    // With two asleep, a release leaves the lock free and contested, and the next thread that comes claims
    // it.
    Model::new().two_may_spin().oracle(OnCpu::Off).check(|| mtx::<Absent>(3)).reaches(&[Event::Parked]);
}

#[test]
fn two_that_spin_on_the_owner() {
    let spin = Model::new().preemptions(5).oracle(OnCpu::Running);
    spin.check(|| mtx::<Absent>(2));
    spin.check(|| mtx::<BackOff>(2));
    spin.preemptions(2).check(|| mtx::<AtomicAdd>(2));
    spin.preemptions(2).check(|| mtx::<Profiled>(2));
}

/// Two mutexes share a chain, and each release wakes the waiter of its own, also if the other's is older.
#[test]
fn two_mutexes_on_a_chain() {
    struct Both {
        globals: Globals<Loom, 1>,
        mutexes: [Mtx<Loom>; 2],
        data: [Guarded; 2],
    }
    let both = || Both {
        globals: Globals::new(),
        mutexes: [Mtx::new(), Mtx::new()],
        data: [Guarded::new(), Guarded::new()],
    };
    Model::new()
        .two_may_spin()
        .oracle(OnCpu::Off)
        .check(move || {
            let both = Arc::new(both());
            both.mutexes.iter().for_each(|mutex| mutex.lock(&both.globals));
            let others = [1, 0].map(|mine| {
                let both = Arc::clone(&both);
                thread::spawn(move || {
                    both.mutexes[mine].lock(&both.globals);
                    both.data[mine].add();
                    both.mutexes[mine].unlock(&both.globals);
                })
            });
            for (mine, other) in [1, 0].into_iter().zip(others) {
                both.data[mine].add();
                both.mutexes[mine].unlock(&both.globals);
                other.join().unwrap(); // before the other mutex is free
            }
        })
        .reaches(&[Event::Parked]);
}

/// The globals are shared by racy counters and guarded records, and neither orders or breaks anything.
#[test]
fn two_that_are_profiled() {
    Model::new().preemptions(1).oracle(OnCpu::Off).check(|| {
        let shared = Shared::new(Alone::<Loom, Profiled>::new());
        shared.lock.globals.enable();
        let section = |shared: &Shared<Alone<Loom, Profiled>>| {
            shared.lock.lock();
            shared.data.add();
            shared.lock.unlock();
        };
        let other = shared.spawn(section);
        section(&shared);
        other.join().unwrap();
        assert_eq!(shared.lock.globals.holds().count, 2);
        assert!((1..=2).contains(&shared.lock.globals.acquisitions()));
    });
}

fn mtx_with(fault: Fault, threads: u32) {
    Model::new().oracle(OnCpu::Off).fault(fault).check(move || mtx::<Absent>(threads));
}

#[test]
fn mutant_mtx_no_wakes() {
    rejected!("mutant_mtx_no_wakes", breaks("mtx_2006.F2"), "deadlock", || mtx_with(Fault::NoWakes, 2));
}

/// F1: the mark is not made, so the owner releases past the turnstile.
#[test]
fn mutant_mtx_unmarked() {
    rejected!("mutant_mtx_unmarked", breaks("mtx_2006.F1"), "deadlock", || {
        mtx_with(Fault::NoWrite(|op| op.is_compare_exchange() && op.value % 2 == 1 && op.value > 1), 2);
    });
}

#[test]
fn mutant_mtx_relaxed_unlock() {
    rejected!(
        "mutant_mtx_relaxed_unlock",
        breaks_rule("of the mutex of 2006: the unlock is a Release"),
        "Causality violation",
        || {
            mtx_with(Fault::Relaxed(|op| op.is(Kind::CompareExchange, Release)), 2);
        }
    );
}

#[test]
fn mutant_mtx_relaxed_lock() {
    rejected!(
        "mutant_mtx_relaxed_lock",
        breaks_rule("of the mutex of 2006: the lock acquires"),
        "Causality violation",
        || {
            mtx_with(Fault::Relaxed(|op| op.is(Kind::CompareExchange, Acquire) && op.value > 1), 2);
        }
    );
}
