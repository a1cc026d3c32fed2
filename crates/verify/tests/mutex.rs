//! Models of the mutex.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::atomic::AtomicU32;
use loom::thread::{self, JoinHandle};
use spinpark_locks::RawMutex;
use spinpark_platform::Event::{
    DemandedHandoff, HandedOff, Parked, SpinAcquired, SpinLeftBudget, SpinLeftOffCpu, SpinLeftOwnerChanged,
    TimedOut, WokeHead,
};
use spinpark_platform::{Clock, Deadline, OnCpu};
use spinpark_verify::platform::{EPOCH_NS, Loom, advance, lead_in};
use spinpark_verify::{Guarded, Model, Mortal};

struct Shared<const STARVATION_NS: u64 = 1, const SPIN_NS: u64 = 0> {
    mutex: RawMutex<Loom<STARVATION_NS, SPIN_NS>>,
    data: Guarded,
}

impl<const STARVATION_NS: u64, const SPIN_NS: u64> Shared<STARVATION_NS, SPIN_NS> {
    fn new() -> Arc<Self> {
        Arc::new(Self { mutex: RawMutex::new(), data: Guarded::new() })
    }

    fn spawn(self: &Arc<Self>, run: impl FnOnce(&Self) + 'static) -> JoinHandle<()> {
        let shared = Arc::clone(self);
        thread::spawn(move || run(&shared))
    }

    fn section(&self) {
        self.mutex.lock();
        self.data.add();
        self.mutex.unlock();
    }

    fn timed_section(&self, deadline: u64) {
        if self.mutex.lock_until(Deadline { clock: Clock::Monotonic, at: EPOCH_NS + deadline }) {
            self.data.add();
            self.mutex.unlock();
        }
    }

    /// Everybody else is done: the mutex is free, and no flag was left behind.
    fn finish(&self) -> u32 {
        assert!(self.mutex.try_lock(), "held by nobody");
        let sum = self.data.get();
        assert!(self.mutex.unlock_alone(), "a flag was left behind");
        sum
    }
}

fn join_all(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// `threads` threads with one critical section each, the calling one included.
fn sections<const STARVATION_NS: u64, const SPIN_NS: u64>(threads: u32) {
    let shared = Shared::<STARVATION_NS, SPIN_NS>::new();
    let others: Vec<_> = (1..threads).map(|_| shared.spawn(Shared::section)).collect();
    shared.section();
    join_all(others);
    assert_eq!(shared.finish(), threads);
}

#[test]
fn two_threads() {
    Model::new().preemptions(4).check(|| sections::<1, 0>(2));
}

#[test]
fn three_threads() {
    Model::new().check(|| sections::<1, 0>(3)).reaches(&[WokeHead, Parked]);
}

#[test]
fn two_threads_one_poll_each() {
    Model::new().spinning().preemptions(4).check(|| sections::<1, 0>(2));
}

#[test]
fn two_threads_that_spin_longer() {
    Model::new().spinning().preemptions(4).check(|| sections::<1, 2>(2));
}

#[test]
fn three_threads_one_poll_each() {
    Model::new().spinning().check(|| sections::<1, 0>(3)).reaches(&[SpinAcquired, SpinLeftBudget, WokeHead]);
}

#[test]
fn the_oracle_is_wrong() {
    for (answer, end) in [(OnCpu::Off, SpinLeftOffCpu), (OnCpu::Running, SpinLeftOwnerChanged)] {
        Model::new().spinning().oracle(answer).check(|| sections::<1, 2>(3)).reaches(&[end, SpinAcquired]);
    }
}

#[test]
fn everybody_starves_at_once() {
    Model::new().check(|| sections::<0, 0>(3)).reaches(&[DemandedHandoff, HandedOff]);
}

#[test]
fn everybody_starves_at_once_and_spins() {
    Model::new().spinning().check(|| sections::<0, 0>(3)).reaches(&[
        DemandedHandoff,
        HandedOff,
        SpinLeftBudget,
    ]);
}

#[test]
fn waits_that_end_for_no_reason() {
    Model::new().spurious().check(|| sections::<1, 0>(3));
}

#[test]
fn fair_unlock() {
    Model::new()
        .check(|| {
            let shared = Shared::<1>::new();
            shared.mutex.lock();
            let other = shared.spawn(Shared::section);
            shared.data.add();
            shared.mutex.unlock_fair();
            shared.section();
            other.join().unwrap();
            assert_eq!(shared.finish(), 3);
        })
        .reaches(&[HandedOff]);
}

#[test]
fn a_deadline_against_an_unlock() {
    Model::new()
        .moving_clock()
        .preemptions(3)
        .check(|| {
            let shared = Shared::<1>::new();
            shared.mutex.lock();
            let timed = shared.spawn(|shared| shared.timed_section(1));
            advance(1);
            shared.data.add();
            shared.mutex.unlock();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[TimedOut, WokeHead]);
}

#[test]
fn a_deadline_beside_a_waiter_without_one() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = Shared::<1>::new();
            shared.mutex.lock();
            let others = [shared.spawn(|shared| shared.timed_section(1)), shared.spawn(Shared::section)];
            advance(1);
            shared.data.add();
            shared.mutex.unlock();
            join_all(others);
            shared.finish();
        })
        .reaches(&[TimedOut, WokeHead]);
}

#[test]
fn a_deadline_against_a_hand_off() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = Shared::<0>::new();
            shared.mutex.lock();
            let timed = shared.spawn(|shared| shared.timed_section(1));
            shared.mutex.unlock();
            // Taken again from the waiter that was woken, which so demands a hand-off.
            shared.mutex.lock();
            advance(1);
            shared.mutex.unlock();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[TimedOut, HandedOff]);
}

/// A waiter that leaves takes its demand and its timer with it.
#[test]
fn a_deadline_after_a_demand() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = Shared::<0>::new();
            let timed = lead_in(|| {
                shared.mutex.lock();
                let timed = shared.spawn(|shared| shared.timed_section(1));
                thread::yield_now(); // it queues
                shared.mutex.unlock(); // it is woken
                shared.mutex.lock();
                thread::yield_now(); // it has lost, and demands the lock
                timed
            });
            advance(1);
            thread::yield_now();
            shared.mutex.unlock();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[DemandedHandoff, TimedOut]);
}

#[test]
fn a_deadline_that_has_passed() {
    Model::new()
        .spinning()
        .check(|| {
            let shared = Shared::<1>::new();
            let timed = shared.spawn(|shared| shared.timed_section(0));
            shared.section();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[TimedOut]);
}

/// Whoever counts the users to zero knows that nobody else will lock, and frees the mutex right after its own unlock.
fn last_one_frees<const STARVATION_NS: u64, const SPIN_NS: u64>(threads: u32) {
    let mutex = Mortal::new(RawMutex::<Loom<STARVATION_NS, SPIN_NS>>::new());
    let users = Mortal::new(AtomicU32::new(threads));
    let run = move || {
        mutex.lock();
        // Relaxed: only the mutex orders what the others did before.
        let is_last = users.fetch_sub(1, Relaxed) == 1;
        mutex.unlock();
        if is_last {
            mutex.destroy();
        }
    };
    let others: Vec<_> = (1..threads).map(|_| thread::spawn(run)).collect();
    run();
    join_all(others);
}

#[test]
fn the_last_one_out_frees_the_mutex() {
    Model::new().preemptions(4).check(|| last_one_frees::<1, 0>(2));
    Model::new().preemptions(4).spinning().check(|| last_one_frees::<1, 0>(2));
    Model::new().preemptions(4).check(|| last_one_frees::<0, 0>(2));
    Model::new().check(|| last_one_frees::<1, 0>(3));
}

#[test]
fn the_last_one_out_frees_the_mutex_it_was_handed() {
    Model::new().check(|| last_one_frees::<0, 0>(3)).reaches(&[HandedOff]);
}
