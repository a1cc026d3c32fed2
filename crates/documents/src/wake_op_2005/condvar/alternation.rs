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

use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use spinpark_classics::condvar_2003::Signalling;
use spinpark_classics::designs::{self, Use};
use spinpark_linux::Linux;
use spinpark_lockbench::locks::adapters::classics::Condvar2003;
use spinpark_lockbench::locks::adapters::{UseCondvar, with_condvar};
use spinpark_lockbench::locks::counters::{Counters, Counts};
use spinpark_lockbench::locks::load::Signal;
use spinpark_lockbench::locks::primitives::{Apart, BenchCondvar, Guarded};
use spinpark_measure::start_gate::{self, NoThread, StartGate};

use super::counted::{self, Counted};
use crate::workloads::job::{JobError, expect};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    pub iterations: u64,
    pub cpus: Cpus,
    pub signal: Signal,
    /// Whether the waiter, once woken, runs before the signaller goes on.
    pub waiter_first: bool,
    /// Whether futex calls are counted; then nothing is worth timing.
    #[serde(default)]
    pub counts: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Done {
    /// From when both threads were there to when both were through.
    pub(super) elapsed: Duration,
    /// What the kernel counted meanwhile.
    pub(super) kernel: Counts,
    /// Futex calls of locks that count them themselves.
    pub(super) calls: Option<Calls>,
}

/// Futex calls, counted where they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) all: u64,
    /// On words of condition variables; the others are the mutex'.
    pub(super) on_condvars: u64,
}

/// Whose turn it is: the signaller's (0) if `turns` is even, the waiter's (1) if it is odd.
#[derive(Debug, Default)]
struct Table {
    turns: u64,
    /// Turns that were not taken in order.
    wrong: u64,
}

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
fn run<C: BenchCondvar>(setting: &Setting) -> Result<Done, JobError> {
    let table = Guarded::<C::Mutex, Table>::new(Table::default());
    let [signalled, answered] = [Apart(C::default()), Apart(C::default())];
    let signaller = Player { me: 0, table: &table, mine: &answered.0, other: &signalled.0 };
    let waiter = Player { me: 1, table: &table, mine: &signalled.0, other: &answered.0 };
    let counters = Counters::open(setting.counts);
    let (players, gate) = ([&waiter, &signaller], StartGate::default());
    let (players, gate) = (&players, &gate);
    let work = move |number: usize| {
        let player = players[number];
        let placed = place(setting.cpus, setting.waiter_first && player.me == 0);
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpus {
    /// Both on one CPU: the document's machine has no other.
    One,
    /// Where the kernel puts them.
    All,
}

/// Puts the calling thread where it belongs. With `lets_others`, a thread that it wakes on its CPU runs at
/// once.
fn place(cpus: Cpus, lets_others: bool) -> Result<(), JobError> {
    if cpus == Cpus::One {
        let allowed = sched_getaffinity(None).map_err(JobError::failed("cannot ask for the allowed CPUs"))?;
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap_or_default();
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(None, &one).map_err(JobError::failed("cannot bind a thread to a CPU"))?;
    }
    if lets_others {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters live; the call changes the class of this thread only.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) } != 0 {
            return Err(JobError::failed("cannot use SCHED_IDLE")(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Takes turns on one kind of condition variable.
pub(super) type Alternate = fn(&Setting) -> Result<Done, JobError>;

/// The one for the condition variables of an adapter; none if it has none, or none in this process.
pub(super) fn by_name(adapter: &str) -> Option<Alternate> {
    let of_today = || with_condvar(adapter, TakeTurns);
    designs::with::<Linux, _>(adapter, TakeTurns).unwrap_or_else(of_today)
}

struct TakeTurns;

impl UseCondvar for TakeTurns {
    type Output = Alternate;

    fn with<C: BenchCondvar>(self) -> Alternate {
        run::<C>
    }
}

impl Use<Linux> for TakeTurns {
    type Output = Option<Alternate>;

    fn otherwise(self) -> Option<Alternate> {
        None
    }

    fn condvar_2003<S: Signalling + 'static>(self) -> Option<Alternate> {
        Some(of_2003::<S>)
    }
}

/// What is timed runs on Linux as it is.
fn of_2003<S: Signalling>(setting: &Setting) -> Result<Done, JobError> {
    match setting.counts {
        true => run::<Condvar2003<Counted<Linux>, S>>(setting),
        false => run::<Condvar2003<Linux, S>>(setting),
    }
}
