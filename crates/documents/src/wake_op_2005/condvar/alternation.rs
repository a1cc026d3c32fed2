//! A signaller and a waiter in strict alternation under one mutex, for a fixed number of signals.
//!
//! ```text
//! signaller                                          waiter
//! lock; while it is not my turn, wait for an answer  lock; while it is not my turn, wait for a signal
//! turn over; unlock; signal                          turn over; unlock; answer
//! ```
//!
//! Document 003's own benchmark is lost; this is what its text describes. If the waiter runs as soon as it is
//! signalled, it has answered before the signaller looks: then the waiter waits each time and the signaller
//! never, and each iteration is one signal that wakes a waiter.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::counters::{Counters, Counts};
use spinpark_lockbench::locks::load::Signal;
use spinpark_lockbench::locks::primitives::{Apart, BenchCondvar, Guarded};
use spinpark_measure::start_gate::{self, NoThread, StartGate};

use super::counted;
use super::scheduling::{self, Cpus};
use crate::workloads::job::{JobError, expect};

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// How many signals.
    pub iterations: u64,
    /// Where the two threads run.
    pub cpus: Cpus,
    /// Where the signal is made.
    pub signal: Signal,
    /// Whether the waiter, once woken, runs before the signaller goes on.
    pub waiter_first: bool,
    /// Whether futex calls are counted; then nothing is worth timing.
    #[serde(default)]
    pub counts: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Done {
    /// From when both threads were there to when both were through.
    pub(crate) elapsed: Duration,
    /// What the kernel counted meanwhile.
    pub(crate) kernel: Counts,
    /// Futex calls of locks that count them themselves.
    pub(crate) calls: Option<Calls>,
}

/// Futex calls, counted where they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calls {
    /// On all words.
    pub(crate) all: u64,
    /// On words of condition variables; the others are the mutex'.
    pub(crate) on_condvars: u64,
}

/// Whose turn it is: the signaller's (0) if `turns` is even, the waiter's (1) if it is odd.
#[derive(Debug, Default)]
struct Table {
    turns: u64,
    /// Turns that were not taken in order.
    wrong: u64,
}

/// One of the two.
struct Player<'a, C: BenchCondvar> {
    me: u64,
    table: &'a Guarded<C::Mutex, Table>,
    /// What it waits for, and what it signals.
    mine: &'a C,
    other: &'a C,
}

impl<C: BenchCondvar> Player<'_, C> {
    #[inline]
    fn play(&self, setting: &Setting) {
        for iteration in 0..setting.iterations {
            let mut table = self.table.lock();
            while table.turns % 2 != self.me {
                table = table.wait(self.mine);
            }
            table.wrong += u64::from(table.turns != 2 * iteration + self.me);
            table.turns += 1;
            if setting.signal == Signal::UnderLock {
                self.other.signal();
                drop(table);
            } else {
                drop(table);
                self.other.signal();
            }
        }
    }
}

/// Takes turns on condition variables of the type `C`.
///
/// # Errors
///
/// If a thread cannot be put where it belongs, or the turns are not right.
pub(crate) fn run<C: BenchCondvar>(setting: &Setting) -> Result<Done, JobError> {
    let table = Guarded::<C::Mutex, Table>::new(Table::default());
    let [signalled, answered] = [Apart(C::default()), Apart(C::default())];
    let signaller = Player { me: 0, table: &table, mine: &answered.0, other: &signalled.0 };
    let waiter = Player { me: 1, table: &table, mine: &signalled.0, other: &answered.0 };
    let counters = Counters::open(setting.counts);
    let (players, gate) = ([&waiter, &signaller], StartGate::default());
    let (players, gate) = (&players, &gate);
    let work = move |number: usize| {
        let player = players[number];
        let placed = scheduling::place(setting.cpus, setting.waiter_first && player.me == 0);
        // Both come here, or the other one would wait for ever.
        let plays = gate.pass();
        if plays { placed.map(|()| player.play(setting)) } else { placed }
    };
    let (elapsed, kernel, played) = thread::scope(|scope| {
        let threads = start_gate::start(scope, gate, 2, work)?;
        gate.wait_for(2);
        counted::start();
        let running = counters.start();
        gate.open();
        let start = Instant::now();
        let played: Vec<_> = (threads.into_iter())
            .map(|thread| thread.join().unwrap_or_else(|_| std::process::abort()))
            .collect();
        let elapsed = start.elapsed();
        Ok::<_, NoThread>((elapsed, running.stop(), played))
    })
    .map_err(|error| JobError::Refused(error.to_string()))?;
    played.into_iter().collect::<Result<(), JobError>>()?;
    let calls = counted::all().map(|all| {
        let on_condvars = [&signalled, &answered].map(counted::inside).iter().sum();
        Calls { all, on_condvars }
    });
    let Table { turns, wrong } = table.into_inner();
    expect(turns == 2 * setting.iterations && wrong == 0, || {
        format!("{turns} turns, {wrong} of them out of order: the lock under test does not exclude")
    })?;
    Ok(Done { elapsed, kernel, calls })
}
