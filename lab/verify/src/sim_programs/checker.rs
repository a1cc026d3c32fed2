//! Running programs by the thousand, and showing the one that fails.

use std::fmt::{self, Display, Write as _};
use std::ops::Range;

use rayon::prelude::*;
use spinpark_platform::Event;
use spinpark_sim::check::{Applied, Fault, Faults};
use spinpark_sim::{Counts, Failure, Record};

use super::case::Limits;
use super::program::{Program, Ran};
use crate::Breaks;

/// How many of the last steps of a run that fails are shown.
const SHOWN: usize = 400;

/// Programs of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Puts a program together.
    pub build: fn(&mut Program),
}

/// What became of a known-bad machine or lock: see [`Checker::judge`].
#[derive(Debug)]
#[must_use = "whether it was found is to be asked for"]
pub struct Verdict {
    /// How many seeds were run.
    pub judged: u64,
    /// Those that failed as expected.
    pub right: Vec<u64>,
    /// Those that failed otherwise, and how.
    pub others: Vec<(u64, Failure)>,
    /// Those of `others` that failed although no fault of the machine was applied: the lock is wrong without them, or
    /// the program is.
    pub without_fault: Vec<u64>,
    /// What was applied in all runs.
    pub applied: Applied,
    /// The first of `right`, else of `others`, recorded.
    pub shown: Option<Box<Failing>>,
}

/// Checks the programs of a family, on a machine that may have faults.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is checked before `run` or `sweep`"]
pub struct Checker {
    family: Family,
    faults: Faults,
    limits: Limits,
    shown: usize,
    test: Option<&'static str>,
}

/// A run that failed.
#[derive(Debug)]
pub struct Failing {
    /// Whose.
    pub family: &'static str,
    /// Its seed.
    pub seed: u64,
    /// How large it might be.
    pub limits: Limits,
    /// What it was.
    pub about: String,
    /// How it failed.
    pub failure: Failure,
    /// What happened last.
    pub interleaving: Vec<String>,
    /// The test that has the family, unless it is one of [`families()`](super::families()).
    test: Option<&'static str>,
}

/// What runs that held have been through.
#[derive(Debug, Default)]
pub struct Swept {
    /// How many they were.
    pub runs: u64,
    /// Steps of all their threads.
    pub steps: u64,
    /// The most steps of one.
    pub longest: u64,
    events: Vec<(Event, u64)>,
    applied: Applied,
}

/// The least number of seeds that are judged.
const LEAST_JUDGED: u64 = 60;

/// The seeds in parts that are run side by side: fewer at first, since what fails at all mostly fails soon.
fn chunks(seeds: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    /// How many runs at most are under way or over when one is found to have failed.
    const MOST: u64 = 128;
    let (mut start, mut many) = (seeds.start, 4);
    std::iter::from_fn(move || {
        let chunk = start..seeds.end.min(start + many);
        (start, many) = (chunk.end, MOST.min(2 * many));
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// What is counted.
const EVENTS: [Event; 19] = [
    Event::SpinAcquired,
    Event::SpinLeftOwnerChanged,
    Event::SpinLeftOffCpu,
    Event::SpinLeftBudget,
    Event::Parked,
    Event::WokeHead,
    Event::WokeUnmarked,
    Event::EarlyWake,
    Event::Appointed,
    Event::Probed,
    Event::GrantedReaders,
    Event::HandedOff,
    Event::RequestedHandoff,
    Event::WithdrewRequest,
    Event::MovedWaiter,
    Event::DeferredWake,
    Event::TimedOut,
    Event::EnabledBias,
    Event::RevokedBias,
];

impl Checker {
    /// On a machine without faults.
    pub fn new(family: Family) -> Self {
        Self { family, faults: Faults::default(), limits: Limits::default(), shown: SHOWN, test: None }
    }

    /// The machine has `fault`, beside at most one other.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.add(fault);
        self
    }

    /// Programs are not larger.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How many of the last steps of a run that fails are shown, instead of 400.
    pub fn shown(mut self, steps: usize) -> Self {
        self.shown = steps;
        self
    }

    /// The family belongs to the calling test, in the file that these arguments of `cargo` name: `-p
    /// spinpark-verify --test mutants`. It has to call [`Checker::replay`].
    pub fn of_test(mut self, file: &'static str) -> Self {
        self.test = Some(file);
        self
    }

    pub(super) fn family_name(&self) -> &'static str {
        self.family.name
    }

    fn ran(&self, seed: u64, record: Record) -> Ran {
        let mut program = Program::new(seed, self.limits, self.faults);
        (self.family.build)(&mut program);
        program.run(record)
    }

    /// Runs one program.
    ///
    /// # Errors
    ///
    /// It failed: it was run again, and recorded.
    pub fn run(&self, seed: u64) -> Result<Counts, Box<Failing>> {
        let ran = self.ran(seed, Record::default());
        if ran.failure.is_none() { Ok(ran.counts) } else { Err(Box::new(self.show(seed))) }
    }

    /// Runs it, and records what it does.
    fn show(&self, seed: u64) -> Failing {
        let ran = self.ran(seed, Record { last_steps: self.shown, ..Record::default() });
        let not_again = || {
            Failure::Check("it held when it was run again: a run depends on more than its seed".to_owned())
        };
        Failing {
            family: self.family.name,
            seed,
            limits: self.limits,
            about: ran.about,
            failure: ran.failure.unwrap_or_else(not_again),
            interleaving: ran.interleaving,
            test: self.test,
        }
    }

    /// Runs the programs of all seeds, on all CPUs, until one fails.
    ///
    /// # Errors
    ///
    /// One that failed; the first one, if several did.
    pub fn sweep(&self, seeds: Range<u64>) -> Result<Swept, Box<Failing>> {
        let run = |seed| match self.ran(seed, Record::default()) {
            Ran { failure: None, counts, applied, .. } => Ok(Swept::of(&counts, applied)),
            _ => Err(seed),
        };
        let mut swept = Swept::default();
        for chunk in chunks(seeds) {
            let results: Vec<_> = chunk.into_par_iter().map(run).collect();
            for result in results {
                match result {
                    Ok(one) => swept.add(&one),
                    Err(seed) => return Err(Box::new(self.show(seed))),
                }
            }
        }
        Ok(swept)
    }

    /// Runs the programs of these seeds, on a machine or with a lock that is known to be bad, until one fails
    /// as that has to: one for whose failure `is_right` holds. Looks at [`LEAST_JUDGED`] seeds at least, and
    /// on all CPUs at many at a time.
    ///
    /// A bad lock often fails in several ways, and the first one that a seed comes upon says little: what
    /// counts is that the expected one comes, in a run in which each fault of the machine was applied.
    pub fn judge(&self, seeds: Range<u64>, is_right: impl Fn(&Failure) -> bool + Sync) -> Verdict {
        let (mut right, mut others, mut without_fault) = (Vec::new(), Vec::new(), Vec::new());
        let (mut judged, mut all_applied) = (0, Applied::default());
        for chunk in chunks(seeds) {
            judged += chunk.end - chunk.start;
            let runs: Vec<_> =
                chunk.into_par_iter().map(|seed| (seed, self.ran(seed, Record::default()))).collect();
            for (seed, Ran { failure, applied, .. }) in runs {
                all_applied = all_applied.and(applied);
                match failure {
                    Some(failure) if applied.is_complete() && is_right(&failure) => right.push(seed),
                    Some(failure) => {
                        others.push((seed, failure));
                        without_fault.extend(applied.is_of_no_mutant().then_some(seed));
                    }
                    None => {}
                }
            }
            if !right.is_empty() && judged >= LEAST_JUDGED {
                break;
            }
        }
        let shown = right.first().copied().or_else(|| others.first().map(|(seed, _)| *seed));
        let shown = shown.map(|seed| Box::new(self.show(seed)));
        Verdict { judged, right, others, without_fault, applied: all_applied, shown }
    }

    /// Looks for a small program that fails: few threads, few rounds.
    #[must_use]
    pub fn smaller(&self) -> Option<Box<Failing>> {
        /// Seeds for each size.
        const SEEDS: u64 = 300;
        let sizes = (2..=4).flat_map(|threads| [1, 2, 4].map(|rounds| Limits { threads, rounds }));
        sizes.into_iter().find_map(|size| self.limits(size).sweep(0..SEEDS).err())
    }
}

impl Swept {
    fn of(counts: &Counts, applied: Applied) -> Self {
        let events = EVENTS.iter().map(|&event| (event, counts.of(event))).collect();
        Self { runs: 1, steps: counts.steps, longest: counts.steps, events, applied }
    }

    fn add(&mut self, one: &Self) {
        self.runs += one.runs;
        self.steps += one.steps;
        self.longest = self.longest.max(one.longest);
        self.applied = self.applied.and(one.applied);
        if self.events.is_empty() {
            self.events = EVENTS.iter().map(|&event| (event, 0)).collect();
        }
        for ((_, times), (_, more)) in self.events.iter_mut().zip(&one.events) {
            *times += more;
        }
    }

    /// Asserts that each fault of the machine was applied in some run: else runs that hold say nothing about it.
    ///
    /// # Panics
    ///
    /// One was not.
    pub fn applies(&self) {
        assert!(self.applied.is_complete(), "a fault was not applied in any run: {}", self.applied);
    }

    /// Asserts that some run came to each of `events`: too few runs prove nothing about them.
    ///
    /// # Panics
    ///
    /// None did.
    pub fn reaches(&self, events: &[Event]) {
        for event in events {
            let is_there = self.events.iter().any(|(known, times)| known == event && *times > 0);
            assert!(is_there, "no run reaches {event:?}: {self}");
        }
    }
}

impl Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs, {} steps ({} at most), events:", self.runs, self.steps, self.longest)?;
        self.events.iter().try_for_each(|(event, times)| write!(f, " {event:?} {times}"))
    }
}

impl Verdict {
    /// The seed that failed first as expected, of a mutant that breaks what `breaks` says.
    ///
    /// # Panics
    ///
    /// None did: the mutant was accepted, or rejected for other reasons only. Or a fault of the machine was never
    /// applied, or a run failed without any.
    #[must_use]
    pub fn found(self, breaks: Breaks) -> Box<Failing> {
        let told = self.to_string();
        let mutant = format!("the mutant, which breaks {breaks},");
        assert!(self.applied.is_complete(), "{mutant} has a fault that was not applied in any run: {told}");
        let Some(failing) = self.shown else {
            panic!("{mutant} was accepted: all of {} seeds held; {}", self.judged, self.applied)
        };
        assert!(
            self.without_fault.is_empty(),
            "a run failed in which no fault of {mutant} was applied: seeds {:?}: {told}\n{failing}",
            self.without_fault
        );
        assert!(!self.right.is_empty(), "{mutant} failed, and never as expected: {told}\n{failing}");
        failing
    }
}

impl Display for Verdict {
    /// As `found by 3 of 640 seeds, 527 first; 1 failed otherwise: seed 41: deadlock …; NoFence applied 70 times`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found by {} of {} seeds", self.right.len(), self.judged)?;
        if let Some(first) = self.right.first() {
            write!(f, ", {first} first")?;
        }
        if let Some((seed, failure)) = self.others.first() {
            write!(f, "; {} failed otherwise: seed {seed}: {failure}", self.others.len())?;
        }
        if self.applied.has_faults() { write!(f, "; {}", self.applied) } else { Ok(()) }
    }
}

impl Failing {
    /// All but the command.
    #[must_use]
    pub fn story(&self) -> String {
        let mut story = format!("seed {} of {}: {}\n\n", self.seed, self.family, self.failure);
        let _ = writeln!(story, "{}\n", self.about);
        let _ = writeln!(story, "the last {} steps:", self.interleaving.len());
        for line in &self.interleaving {
            let _ = writeln!(story, "{line}");
        }
        story
    }
}

impl Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { threads, rounds } = self.limits;
        let limits = if self.limits == Limits::default() {
            String::new()
        } else {
            format!(" SPINPARK_LIMITS={threads}x{rounds}")
        };
        writeln!(f, "{}", self.story())?;
        writeln!(f, "to run it again:")?;
        write!(f, "    SPINPARK_SEED={}{limits} ", self.seed)?;
        let Some(file) = self.test else {
            return write!(
                f,
                "cargo test -p spinpark-verify --test it -- --exact sim_programs::{}",
                self.family
            );
        };
        write!(f, "SPINPARK_FAMILY={} cargo test {file}", self.family)?;
        // A test runs on a thread of its name, unless it is the only one that runs.
        match std::thread::current().name() {
            Some(test) if test != "main" => write!(f, " -- --exact {test}"),
            _ => Ok(()),
        }
    }
}
