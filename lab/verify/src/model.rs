//! How a model is run.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use spinpark_platform::{Event, OnCpu};
use spinpark_sim::check::Applied;

use crate::platform::{Config, Fault, begin, take_noted};

/// Replaces every model's bound on preemptions, but for those with a limit.
const PREEMPTIONS: &str = "SPINPARK_LOOM_PREEMPTIONS";

/// Explored by default: executions with at most this many switches away from a thread that could have gone
/// on.
const DEFAULT_PREEMPTIONS: usize = 2;

/// Longest execution, in decisions; longer ones are taken for a livelock and rejected.
const MAX_DECISIONS: usize = 3_000;

/// A model: the machine's configuration and the bounds of the exploration.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked before `check`"]
pub struct Model {
    config: Config,
    preemptions: usize,
    limit: usize,
}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Model {
    /// A machine without faults, whose clock stands and on which lock cores do not spin.
    pub fn new() -> Self {
        Self { config: Config::default(), preemptions: DEFAULT_PREEMPTIONS, limit: usize::MAX }
    }

    /// Lock cores spin.
    pub fn spinning(mut self) -> Self {
        self.config.can_spin = true;
        self
    }

    /// The scheduler wants every CPU for another thread.
    pub fn need_resched(mut self) -> Self {
        self.config.need_resched = true;
        self
    }

    /// The oracle says this of every owner, right or wrong.
    pub fn oracle(mut self, answer: OnCpu) -> Self {
        self.config.oracle = answer;
        self
    }

    /// The model moves the clock.
    pub fn moving_clock(mut self) -> Self {
        self.config.clock_moves = true;
        self
    }

    /// The first wait of each thread ends for no reason.
    pub fn spurious(mut self) -> Self {
        self.config.spurious = true;
        self
    }

    /// The machine has no restartable steps: a release is a compare-exchange, and the asymmetric barrier does
    /// nothing.
    pub fn without_steps(mut self) -> Self {
        self.config.restartable = false;
        self
    }

    /// The first restartable step of each thread fails for no reason.
    pub fn aborted(mut self) -> Self {
        self.config.aborted = true;
        self
    }

    /// The process is told that it has this many CPUs; one unless told otherwise.
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.config.cpus = cpus;
        self
    }

    /// A lock stays contended when its queue has become empty.
    pub fn stays_contended(mut self) -> Self {
        self.config.stays_contended = true;
        self
    }

    /// Two CPUs, and a thread that signals while it holds the mutex leaves the wake to its release.
    pub fn defers(mut self) -> Self {
        self.config.defers = true;
        self.cpus(2)
    }

    /// Waiters are woken without a mark, as on one CPU.
    pub fn unmarked(mut self) -> Self {
        self.config.unmarked = true;
        self
    }

    /// Threads that acquire a lock to write guess that it is free, also one that they have waited for.
    pub fn never_reads(mut self) -> Self {
        self.config.never_reads = true;
        self
    }

    /// Two CPUs, on which waiters leave the lock to its owner, and owners come back for it. Every turn of a
    /// thread that waited for it asks to be timed, so that the lock's holder marks it as contended.
    pub fn backing_off(mut self) -> Self {
        self.config.backs_off = true;
        self.cpus(2)
    }

    /// The machine has `fault`, beside at most one other.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.config.faults.add(fault);
        self
    }

    /// A bound on preemptions other than the default, for a state space that is too large (or small enough).
    pub fn preemptions(mut self, bound: usize) -> Self {
        self.preemptions = bound;
        self
    }

    /// The largest bound that makes sense: beyond two preemptions, loom lets two threads that spin take turns
    /// for ever while a third one could go on, which no scheduler does.
    pub fn two_may_spin(mut self) -> Self {
        self.limit = 2;
        self
    }

    /// The same for threads that spin in one loop inside another: beyond one preemption.
    pub fn three_may_spin(mut self) -> Self {
        self.limit = 1;
        self
    }

    /// Runs `body` in every order within the bounds. Panics at the first one that fails.
    ///
    /// An execution fails if it panics, if every thread sleeps for ever, if two accesses to a cell are not
    /// ordered, or if memory is given back while it may still be accessed.
    pub fn check(self, body: impl Fn() + Send + Sync + 'static) -> Checked {
        let bound = std::env::var(PREEMPTIONS).ok().map_or(self.preemptions, |bound| {
            bound
                .parse()
                .unwrap_or_else(|_| panic!("{PREEMPTIONS} is a number of preemptions, not {bound:?}"))
        });
        let bound = bound.min(self.limit);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(bound);
        builder.max_branches = MAX_DECISIONS;
        builder.max_permutations = None;
        builder.max_duration = None;
        let executions = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&executions);
        let all = Arc::new(Mutex::new(Applied::default()));
        let gathered = Arc::clone(&all);
        let start = Instant::now();
        builder.check(move || {
            counter.fetch_add(1, Relaxed);
            begin(self.config);
            body();
            let mut all = gathered.lock().expect("no other thread has it");
            *all = all.and(Applied::in_run());
        });
        let applied = *all.lock().expect("no other thread has it");
        let checked = Checked { events: take_noted(), applied };
        let name = std::thread::current().name().unwrap_or("model").to_owned();
        let executions = executions.load(Relaxed);
        eprintln!("{name}: {executions} executions, {bound} preemptions, {:.1?}, {checked}", start.elapsed());
        checked
    }
}

/// What a model that holds has been through.
#[derive(Debug)]
pub struct Checked {
    events: Vec<(Event, u64)>,
    applied: Applied,
}

impl Checked {
    /// Asserts that each fault of the machine was applied in some execution: else a model that holds says nothing
    /// about it.
    ///
    /// # Panics
    ///
    /// One was not.
    pub fn applies(self) {
        assert!(self.applied.is_complete(), "a fault was not applied in any execution: {self}");
    }

    /// Asserts that some execution came to each of `events`: a bound that is too small proves nothing about
    /// them.
    pub fn reaches(self, events: &[Event]) {
        for event in events {
            assert!(
                self.events.iter().any(|(known, _)| known == event),
                "no execution reaches {event:?}: {self}"
            );
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("events:")?;
        self.events.iter().try_for_each(|(event, times)| write!(f, " {event:?} {times}"))?;
        if self.applied.has_faults() { write!(f, "; {}", self.applied) } else { Ok(()) }
    }
}
