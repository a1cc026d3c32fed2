//! Condition variables: handing something over, and waking many.

use std::time::Duration;

use super::crew::{self, Phase, Tally};
use super::{Outcome, Shape, Wrong, expect};
use crate::pthread::{Condvar, Kind, Mutex, Protected};

/// Two threads in strict alternation.
#[derive(Debug)]
pub(super) struct PingPong {
    name: &'static str,
    about: &'static str,
    signal_under_lock: bool,
}

pub(super) static PING_PONG: PingPong = PingPong {
    name: "condvar-ping-pong",
    about: "two threads in strict alternation, signal while holding the mutex",
    signal_under_lock: true,
};
pub(super) static AFTER: PingPong = PingPong {
    name: "condvar-after",
    about: "two threads in strict alternation, signal after unlocking",
    signal_under_lock: false,
};

/// Whose turn it is: the parity of `turns`.
#[derive(Default)]
struct Table {
    turns: u64,
    over: bool,
}

impl Shape for PingPong {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn threads(&self) -> &'static [usize] {
        &[2]
    }

    fn run(&self, threads: usize, duration: Duration) -> Result<Outcome, Wrong> {
        let mutex = Mutex::new(Kind::Normal);
        let your_turn = [Condvar::default(), Condvar::default()];
        let table = Protected::new(Table::default());
        let (turns, elapsed) = crew::run(threads.min(2), duration, |me, phase| {
            let mut tally = Tally::default();
            while self.turn(me, phase, &mutex, &your_turn, &table) {
                tally.count(phase);
            }
            tally
        });
        expect("the number of turns", table.into_inner().turns, turns.iter().map(|tally| tally.all).sum())?;
        let operations = turns.iter().map(|tally| tally.measured).sum();
        Ok(Outcome { operations, elapsed, fairness: None })
    }
}

impl PingPong {
    /// Waits for my turn and passes it on; false when it is over.
    #[inline]
    fn turn(
        &self,
        me: usize,
        phase: &Phase,
        mutex: &Mutex,
        your_turn: &[Condvar; 2],
        table: &Protected<Table>,
    ) -> bool {
        let other = &your_turn[1 - me];
        mutex.lock();
        // SAFETY: the mutex is held whenever the table is touched; the reference ends before `wait` gives it up.
        while unsafe { !is_mine(table.get(), me) } {
            your_turn[me].wait(mutex);
        }
        // SAFETY: the mutex is held, and `wait` is not called any more while this reference lives.
        let state = unsafe { &mut *table.get() };
        state.over |= phase.is_over();
        let over = state.over;
        if !over {
            state.turns += 1;
        }
        if self.signal_under_lock {
            other.signal();
            mutex.unlock();
        } else {
            mutex.unlock();
            other.signal();
        }
        !over
    }
}

/// # Safety
///
/// The caller has exclusive access.
unsafe fn is_mine(table: *mut Table, me: usize) -> bool {
    // SAFETY: exclusive access, by this function's contract.
    let table = unsafe { &*table };
    table.over || table.turns % 2 == me as u64
}

/// One thread wakes 64, and waits until each has seen it.
#[derive(Debug)]
pub(super) struct Broadcast;

/// What the waiters wait for.
#[derive(Default)]
struct Call {
    number: u64,
    missing: usize,
    over: bool,
}

/// Everything that the threads share.
struct Hall {
    mutex: Mutex,
    called: Condvar,
    answered: Condvar,
    call: Protected<Call>,
}

impl Shape for Broadcast {
    fn name(&self) -> &'static str {
        "broadcast-64"
    }

    fn about(&self) -> &'static str {
        "one thread wakes 64 waiters and waits until all have answered"
    }

    fn threads(&self) -> &'static [usize] {
        &[65]
    }

    fn run(&self, threads: usize, duration: Duration) -> Result<Outcome, Wrong> {
        let hall = Hall {
            mutex: Mutex::new(Kind::Normal),
            called: Condvar::default(),
            answered: Condvar::default(),
            call: Protected::new(Call::default()),
        };
        let (counts, elapsed) = crew::run(threads, duration, |number, phase| {
            if number == 0 { hall.caller(threads - 1, phase) } else { hall.waiter() }
        });
        let calls = counts[0];
        for heard in &counts[1..] {
            expect("the number of calls that a waiter heard", heard.all, calls.all)?;
        }
        Ok(Outcome { operations: calls.measured, elapsed, fairness: None })
    }
}

impl Hall {
    /// Calls until it is over; returns how often.
    fn caller(&self, waiters: usize, phase: &Phase) -> Tally {
        let mut calls = Tally::default();
        self.mutex.lock();
        while !phase.is_over() {
            self.next_call(waiters, false);
            // SAFETY: the mutex is held; the value is copied out before `wait` gives it up.
            while unsafe { (*self.call.get()).missing } > 0 {
                self.answered.wait(&self.mutex);
            }
            calls.count(phase);
        }
        self.next_call(0, true);
        self.mutex.unlock();
        calls
    }

    /// Makes a call; the mutex is held.
    fn next_call(&self, waiters: usize, over: bool) {
        // SAFETY: the mutex is held, and nobody waits while this reference lives.
        let call = unsafe { &mut *self.call.get() };
        call.number += 1;
        call.missing = waiters;
        call.over = over;
        self.called.broadcast();
    }

    /// Answers every call until it is over; returns how many.
    fn waiter(&self) -> Tally {
        let mut heard = Tally::default();
        self.mutex.lock();
        loop {
            // SAFETY: the mutex is held; the value is copied out before `wait` gives it up.
            while unsafe { (*self.call.get()).number } == heard.all {
                self.called.wait(&self.mutex);
            }
            // SAFETY: the mutex is held, and `wait` is not called while this reference lives.
            let call = unsafe { &mut *self.call.get() };
            if call.over {
                break;
            }
            heard.all += 1;
            call.missing -= 1;
            if call.missing == 0 {
                self.answered.signal();
            }
        }
        self.mutex.unlock();
        heard
    }
}
