//! Models of the mutex.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::atomic::AtomicU32;
use loom::thread;
use spinpark_locks::RawMutex;
use spinpark_platform::Event::{
    HandedOff, Parked, RequestedHandoff, SpinAcquired, SpinLeftBudget, SpinLeftOffCpu, TimedOut, WokeHead,
    WokeUnmarked,
};
use spinpark_platform::OnCpu;
use spinpark_verify::platform::{Loom, advance, lead_in, leave_next_sleep};
use spinpark_verify::{Model, Mortal, Shared, join_all};

type Mutex<const STARVATION_NS: u64, const SPIN_NS: u64 = 0> = RawMutex<Loom<STARVATION_NS, SPIN_NS>>;

fn mutex<const STARVATION_NS: u64>() -> Arc<Shared<Mutex<STARVATION_NS>>> {
    Shared::new(RawMutex::new())
}

/// `threads` threads with one critical section each, the calling one included.
fn sections<const STARVATION_NS: u64, const SPIN_NS: u64>(threads: u32) {
    let shared = Shared::new(Mutex::<STARVATION_NS, SPIN_NS>::new());
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

/// A thread guesses that the mutex is free, also behind waiters, and of one that is marked.
#[test]
fn three_threads_that_guess() {
    Model::new().never_reads().check(|| sections::<1, 0>(3)).reaches(&[WokeHead, Parked]);
    Model::new().never_reads().stays_contended().check(|| sections::<1, 0>(3)).reaches(&[WokeHead, Parked]);
}

/// A waiter leaves its call by unwinding: linked, woken or granted as that happens.
#[test]
fn a_waiter_leaves_by_unwinding() {
    Model::new().check(|| {
        let shared = mutex::<1>();
        let leaver = shared.spawn(|shared| {
            leave_next_sleep();
            // If it need not sleep, it stays.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.lock.lock())).is_ok() {
                shared.lock.unlock();
            }
        });
        shared.section();
        leaver.join().unwrap();
        assert_eq!(shared.finish(), 1);
    });
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
    // A spinner does not leave because the owner has changed: only its time, or an owner that is off its CPU,
    // ends the spin.
    for (answer, end) in [(OnCpu::Off, SpinLeftOffCpu), (OnCpu::Running, SpinLeftBudget)] {
        Model::new().spinning().oracle(answer).check(|| sections::<1, 2>(3)).reaches(&[end, SpinAcquired]);
    }
}

#[test]
fn everybody_starves_at_once() {
    Model::new().check(|| sections::<0, 0>(3)).reaches(&[RequestedHandoff, HandedOff]);
}

#[test]
fn everybody_starves_at_once_and_spins() {
    Model::new().spinning().preemptions(1).check(|| sections::<0, 0>(3)).reaches(&[SpinLeftBudget]);
}

#[test]
fn waits_that_end_for_no_reason() {
    Model::new().spurious().check(|| sections::<1, 0>(3));
}

#[test]
fn fair_unlock() {
    Model::new()
        .check(|| {
            let shared = mutex::<1>();
            shared.lock.lock();
            let other = shared.spawn(Shared::section);
            shared.data.add();
            shared.lock.unlock_fair();
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
            let shared = mutex::<1>();
            shared.lock.lock();
            let timed = shared.spawn(|shared| shared.timed_section(1));
            advance(1);
            shared.data.add();
            shared.lock.unlock();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[TimedOut, WokeHead]);
}

/// Two waiters, one with a deadline that passes as the lock is released.
fn a_timed_waiter_and_another() {
    let shared = mutex::<1>();
    shared.lock.lock();
    let others = [shared.spawn(|shared| shared.timed_section(1)), shared.spawn(Shared::section)];
    advance(1);
    shared.data.add();
    shared.lock.unlock();
    join_all(others);
    shared.finish();
}

#[test]
fn a_deadline_beside_a_waiter_without_one() {
    Model::new()
        .moving_clock()
        .preemptions(1)
        .check(a_timed_waiter_and_another)
        .reaches(&[TimedOut, WokeHead]);
}

/// L4: the waiter that was woken without a mark passes the lock on, also if it leaves.
#[test]
fn waiters_are_woken_without_a_mark() {
    let model = || Model::new().unmarked().preemptions(1);
    model().check(|| sections::<1, 0>(3)).reaches(&[WokeUnmarked, Parked]);
    // One that has lost is woken with a mark.
    Model::new().unmarked().check(|| sections::<0, 0>(3)).reaches(&[WokeUnmarked, WokeHead]);
    model().moving_clock().check(a_timed_waiter_and_another).reaches(&[TimedOut, WokeUnmarked]);
}

#[test]
fn a_deadline_against_a_hand_off() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = mutex::<0>();
            shared.lock.lock();
            let timed = shared.spawn(|shared| shared.timed_section(1));
            shared.lock.unlock();
            // Taken again from the waiter that was woken, which so requests a hand-off.
            shared.lock.lock();
            advance(1);
            shared.lock.unlock();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[TimedOut, HandedOff]);
}

/// A waiter that leaves takes its request and its timer with it.
#[test]
fn a_deadline_after_a_request() {
    Model::new()
        .moving_clock()
        .check(|| {
            let shared = mutex::<0>();
            let timed = lead_in(|| {
                shared.lock.lock();
                let timed = shared.spawn(|shared| shared.timed_section(1));
                thread::yield_now(); // it queues
                shared.lock.unlock(); // it is woken
                shared.lock.lock();
                thread::yield_now(); // it has lost, and requests the lock
                timed
            });
            advance(1);
            thread::yield_now();
            shared.lock.unlock();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[RequestedHandoff, TimedOut]);
}

#[test]
fn a_deadline_that_has_passed() {
    Model::new()
        .spinning()
        .check(|| {
            let shared = mutex::<1>();
            let timed = shared.spawn(|shared| shared.timed_section(0));
            shared.section();
            timed.join().unwrap();
            shared.finish();
        })
        .reaches(&[TimedOut]);
}

/// The thread that counts the users to zero knows that no other will lock, and frees the mutex right after
/// its own unlock.
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
