//! A program to be checked: its threads, what its memory is called, and what has to hold at its end.

use std::rc::Rc;

use spinpark_platform::Event;
use spinpark_sim::check::{Applied, Checks, Faults, Field};
use spinpark_sim::{Counts, Failure, Record, Simulation};

use super::case::{Case, Limits};
use super::memory::Mortal;

/// A check after the end: the error, if there is one.
type After = Box<dyn FnOnce() -> Result<(), String>>;

/// A program that is being put together for one seed.
pub struct Program {
    pub(crate) case: Case,
    checks: Checks,
    threads: Vec<Box<dyn FnOnce()>>,
    after: Vec<After>,
    about: String,
    most_steps: u64,
}

/// How a run went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) about: String,
    pub(crate) failure: Option<Failure>,
    pub(crate) interleaving: Vec<String>,
    pub(crate) counts: Counts,
    /// What the machine has done wrong.
    pub(crate) applied: Applied,
}

impl Program {
    pub(crate) fn new(seed: u64, limits: Limits, faults: Faults) -> Self {
        let case = Case::draw(seed, limits);
        // Many spinners on one word take turns at it.
        let most_steps = 200_000 + u64::from(case.threads * (case.rounds * 2_000 + case.threads * 500));
        Self {
            case,
            checks: Checks::new(faults),
            threads: Vec::new(),
            after: Vec::new(),
            about: String::new(),
            most_steps,
        }
    }

    /// How many threads it is to have.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.case.threads
    }

    /// How often each of them is to do what it does.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.case.rounds
    }

    /// A random number below `bound`, from the seed.
    pub fn random(&mut self, bound: usize) -> usize {
        self.case.rng.usize(0..bound)
    }

    /// What is to be said of it: which lock, and what it does.
    pub fn about(&mut self, words: impl Into<String>) {
        self.about = words.into();
    }

    /// A run that takes more steps than this is one without an end.
    pub fn most_steps(&mut self, steps: u64) {
        self.most_steps = steps;
    }

    /// Adds a thread.
    pub fn thread(&mut self, body: impl FnOnce() + 'static) {
        self.threads.push(Box::new(body));
    }

    /// Checks something after the end.
    pub fn after(&mut self, check: impl FnOnce() -> Result<(), String> + 'static) {
        self.after.push(Box::new(check));
    }

    /// Calls an object by `name` in what is shown of a run that fails.
    pub fn name<T: ?Sized>(&mut self, name: &'static str, object: &Mortal<T>) {
        self.name_fields(name, object, &[]);
    }

    pub(crate) fn name_fields<T: ?Sized>(
        &mut self,
        name: &'static str,
        object: &Mortal<T>,
        fields: &'static [Field],
    ) {
        self.checks.named.push(object.named(name, fields));
    }

    /// Takes each swap of something that is not 0 into a word of this object for an arrival: see
    /// [`Line`](super::Line).
    pub fn watch_order<T: ?Sized>(&mut self, object: &Mortal<T>) {
        self.checks.watch_order(object.place());
    }

    /// The same for an object that was named.
    pub(crate) fn watch_named(&mut self, name: &str) {
        self.checks.watch_named(name);
    }

    /// `act` is told, with the thread's number, of what locks do.
    pub fn on_event(&mut self, act: impl Fn(u32, Event) + 'static) {
        self.checks.on_event = Some(Rc::new(act));
    }

    pub(crate) fn run(self, record: Record) -> Ran {
        let Self { case, mut checks, threads, after, about, most_steps } = self;
        checks.realtime = case.realtime;
        let about = format!("{about}\n{case}");
        let mut simulation = Simulation::new(&case.machine)
            .seed(case.seed)
            .chaos(case.chaos)
            .record(record)
            .most_steps(most_steps);
        if case.without_steps {
            simulation = simulation.without_steps();
        }
        let mut simulation = simulation.checks(checks);
        for thread in threads {
            simulation.thread(thread);
        }
        let outcome = simulation.run().expect("there is memory for the stacks of a few threads");
        let (mut failure, applied) = (outcome.failure, Applied::in_run());
        for check in after {
            if failure.is_none() {
                failure = check().err().map(Failure::Check);
            }
        }
        Ran { about, failure, interleaving: outcome.interleaving, counts: outcome.counts, applied }
    }
}
