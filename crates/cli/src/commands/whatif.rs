//! `spinpark whatif`: what a lock costs, by delaying it.
//!
//! One run is recorded, for the lock and the length of its sections; one run with all of the delay checks whether
//! the lock is met again. Then come the rounds. Of those runs only the delay differs: in each, the recorder's
//! library is in front of the locks, records nothing, and counts at which lock it was.

use std::cell::RefCell;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, anyhow, bail};
use serde::Serialize;
use spinpark_measure::process::executable::preload_list::prepend;
use spinpark_measure::process::executable::{DropIn, Executable, Library};
use spinpark_measure::report::Printed;
use spinpark_measure::report::whatif::{FORMAT, Place, Question, VERSION, answer, bound, render};
use spinpark_measure::rounds::configuration::{Configuration, DELAY, DETAIL, DIRECTORY, Environments};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::failure::{End, RunError};
use spinpark_measure::rounds::launch::{Launcher, OwnNumber};
use spinpark_measure::rounds::machine::{Noise, Watch};
use spinpark_measure::rounds::sample::{Metric, Sample};
use spinpark_measure::rounds::warnings::{SHORT_RUN_S, Warning, of_machine};
use spinpark_measure::rounds::whatif::{Arm, Doubt, Effect, LOCK_ARMS, Made, Run, measure};
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;
use spinpark_measure::stats::median;
use spinpark_measure::stats::verdict::MARGIN;
use spinpark_measure::text::units::{counted, percent, seconds, time};
use spinpark_profile::load::load;
use spinpark_profile::model::Profile;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::whatif::delay::{Counted, Obstacle, Plan};
use spinpark_profile::whatif::{Subject, control, has_locks, most_waited, named, phases};
use tempfile::TempDir;

use super::compare::{number, program};
use crate::cli::{LocksChoice, Whatif};
use crate::files::open;
use crate::line::units::nanos;
use crate::progress::Progress;
use crate::say::Say;
use crate::session::{Session, check_rounds};
use crate::{exit, libraries, own};

/// A delay is exact to some 10 ns: a quarter of this is.
const SHORTEST_NS: u64 = 400;
/// A run that is shorter is the start of a process, and nothing else, s.
const TOO_SHORT_S: f64 = 0.01;
/// If all delays of a run are a smaller part of it, the noise hides them.
const LITTLE: f64 = 0.005;
/// Of the delays outside of locks, at least so many must have been made.
const MOST_PAID: f64 = 0.9;
/// The delay at the other lock is between these, ns.
const OTHER_NS: (f64, f64) = (50.0, 1e10);

/// All data.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    end: &'static str,
    command: &'a [String],
    rounds: usize,
    seed: u64,
    #[serde(rename = "where")]
    place: String,
    metric_from_output: Option<&'a str>,
    printed: &'a Printed,
    environment: &'a Environment,
    noise: &'a Noise,
    locks: &'a [Answered],
}

/// A lock that was asked about.
#[derive(Serialize)]
struct Answered {
    #[serde(flatten)]
    subject: Subject,
    delay_ns: u64,
    other_lock: Option<String>,
    other_delay_ns: Option<u64>,
    answer: String,
    effect: Effect,
    notes: Vec<String>,
    runs: Vec<Run>,
}

/// What is delayed.
struct Experiment {
    subject: Subject,
    /// Its identities; point and delay are those of each run.
    plan: RefCell<Box<Plan>>,
    delay_ns: u64,
    /// The lock of the control, with its identities and its delay.
    other: Option<(Subject, RefCell<Box<Plan>>, u64)>,
    arms: Vec<Arm>,
    notes: Vec<String>,
}

/// Checks the request, measures, reports.
pub(crate) fn run(whatif: &Whatif) -> anyhow::Result<ExitCode> {
    check_rounds(whatif.measuring.rounds)?;
    let json = open(&whatif.out.json)?;
    let say = Say::apart_from(&[&whatif.out.json]);
    let (number, printed) = number(&whatif.measuring, false)?;
    let [name, args @ ..] = whatif.program.as_slice() else { bail!("no program is named") };
    let executable = Executable::find_with(name, args)?;
    let find = |library| -> anyhow::Result<DropIn> {
        let found = libraries::find(library)?;
        found.check_machine(executable.machine)?;
        Ok(found)
    };
    let profiler = find(Library::Profiler)?.path;
    let is_on_drop_in = whatif.locks == LocksChoice::Spinpark;
    let drop_in = is_on_drop_in.then(|| find(Library::DropIn)).transpose()?;
    let environments =
        Environments::of_programs(drop_in.as_ref().map(|drop_in| &*drop_in.path), env::var_os("LD_PRELOAD"));
    let program = program(&whatif.measuring, executable.path, args.to_vec())?;
    let command: Vec<String> =
        whatif.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let session = Session::start(whatif.measuring.seed)?;
    say.wrapped(&format!("Recording a run: {}", own::line(&command)), 2);
    let scratch = tempfile::Builder::new()
        .prefix("spinpark-whatif-")
        .tempdir()
        .context("cannot create a temporary directory; is TMPDIR writable?")?;
    let asked = Asked {
        whatif,
        say,
        printed: &printed,
        metric: if matches!(number, OwnNumber::None) { Metric::Wall } else { Metric::Printed },
        launcher: Launcher::new(program, environments, &number, &session.interrupt),
        profiler,
        scratch,
        session: &session,
    };
    let watch = Watch::start();
    let answered =
        asked.launcher.run_around("--setup").map_err(anyhow::Error::from).and_then(|()| asked.answer_all());
    let noise = watch.noise();
    let cleaned = asked.launcher.clean_up();
    let (answered, end) = answered?;
    of_machine(&noise).iter().for_each(|warning| say.wrapped(&format!("Warning: {warning}"), 2));
    say.wrapped(&session.environment.line(), 2);
    if let Some(json) = json.filter(|_| answered.iter().any(|lock| !lock.runs.is_empty())) {
        json.write(&Document {
            format: FORMAT,
            version: VERSION,
            end: end.name(),
            command: &command,
            rounds: whatif.measuring.rounds,
            seed: session.seed,
            place: format!("{:?}", whatif.place).to_lowercase(),
            metric_from_output: whatif.measuring.metric_from_output.as_deref(),
            printed: &printed,
            environment: &session.environment,
            noise: &noise,
            locks: &answered,
        })?;
    }
    let exit = exit::code_of_end(end)?;
    cleaned?;
    Ok(exit)
}

/// A request that can be carried out.
struct Asked<'a> {
    whatif: &'a Whatif,
    say: Say,
    printed: &'a Printed,
    metric: Metric,
    launcher: Launcher<'a>,
    /// The library that delays.
    profiler: PathBuf,
    /// The recording, and plans.
    scratch: TempDir,
    session: &'a Session,
}

impl Asked<'_> {
    /// Answers for each lock that was asked about, or for those that threads wait for most.
    fn answer_all(&self) -> anyhow::Result<(Vec<Answered>, End)> {
        let (profiles, recorded) = self.record()?;
        let point = self.whatif.place.point();
        let subjects = match &self.whatif.lock {
            Some(name) => vec![named(&profiles, name, point).map_err(|why| anyhow!("{why}"))?],
            None => most_waited(&profiles, point, self.whatif.top).map_err(|why| anyhow!("{why}"))?,
        };
        let mut answered = Vec::new();
        let is_one = subjects.len() == 1;
        for subject in subjects {
            let experiment = match self.prepare(subject, &profiles, &recorded) {
                Ok(experiment) => experiment,
                Err(error) if is_one || error.is::<RunError>() => return Err(error),
                // Of several locks, one that cannot be delayed does not keep the others from it.
                Err(error) => {
                    self.say.wrapped(&format!("No answer: {}", exit::in_full(&error)), 0);
                    continue;
                }
            };
            let changes = phases(&profiles, &experiment.subject);
            let (one, end) = self.answer(experiment, changes)?;
            answered.push(one);
            if !matches!(end, End::Complete) {
                return Ok((answered, end));
            }
        }
        if answered.is_empty() {
            bail!("none of these locks can be delayed");
        }
        Ok((answered, End::Complete))
    }

    /// Records a run.
    fn record(&self) -> anyhow::Result<(Vec<Profile>, Sample)> {
        let directory = self.recordings();
        let recorded = self.launcher.run_with(Configuration::After, 0, |command| {
            self.put_library_before(command);
            command.env(DIRECTORY, &directory).env(DETAIL, "full");
        });
        let (sample, _) = recorded.map_err(|error| named_arm("recorded run", error))?;
        let nothing = || {
            anyhow!(
                "the program used no lock that is seen: static programs, and locks that are no library's, are not\n\
                 `spinpark profile` says more"
            )
        };
        let loaded = load(&directory, &mut Symbols::new()).map_err(|_| nothing())?;
        if !has_locks(&loaded.profiles) {
            return Err(nothing());
        }
        if sample.wall_s < TOO_SHORT_S {
            bail!(
                "the program ran for {}: that is the start of a process, and delays would be lost in its noise\nGive it more \
                 work: {} or longer",
                seconds(sample.wall_s),
                seconds(SHORT_RUN_S)
            );
        }
        Ok((loaded.profiles, sample))
    }

    fn recordings(&self) -> PathBuf {
        self.scratch.path().join("recording")
    }

    fn put_library_before(&self, command: &mut Command) {
        let of_command = command.get_envs().find(|(known, _)| *known == "LD_PRELOAD");
        let before = of_command.and_then(|(_, value)| value.map(OsString::from)).unwrap_or_default();
        command.env("LD_PRELOAD", prepend(&self.profiler, &before));
    }

    /// What is to be delayed, and a run that shows that it can be.
    fn prepare(
        &self,
        subject: Subject,
        profiles: &[Profile],
        recorded: &Sample,
    ) -> anyhow::Result<Experiment> {
        let place = self.whatif.place.place();
        let point = self.whatif.place.point();
        let mut notes = Vec::new();
        let delay_ns = match (self.whatif.delay, subject.section_ns) {
            (Some(delay), _) => nanos(delay),
            (None, Some(section)) if section < SHORTEST_NS as f64 => {
                notes.push(format!(
                    "A section of `{}` takes {} on average: a delay is {SHORTEST_NS} ns, since shorter ones are not exact.",
                    subject.name,
                    time(section)
                ));
                SHORTEST_NS
            }
            (None, Some(section)) => section.round() as u64,
            (None, None) => bail!(
                "`{}` ({}) has no sections that say how long a delay should be\nName one: --delay 20us",
                subject.name,
                subject.noun
            ),
        };
        let identified = |subject: &Subject| -> anyhow::Result<RefCell<Box<Plan>>> {
            let mut plan = Box::new(Plan::new(point, 0, false));
            subject.identify(&self.recordings(), &mut plan)?;
            Ok(RefCell::new(plan))
        };
        let plan = identified(&subject)?;
        let mut arms = LOCK_ARMS.to_vec();
        if place == Place::After {
            notes.push(String::from(
                "A delay after the release is outside of the lock: there is no such control.",
            ));
        } else {
            arms.push(Arm::Outside);
        }
        let other = match place {
            Place::Wake | Place::Retry => None,
            _ => control(profiles, &subject).and_then(|other| {
                let delay = delay_ns as f64 * subject.uses as f64 / other.uses.max(1) as f64;
                let plan = identified(&other).ok()?;
                Some((other, plan, delay.clamp(OTHER_NS.0, OTHER_NS.1) as u64))
            }),
        };
        match &other {
            Some(_) => arms.push(Arm::OtherLock),
            None => notes.push(String::from(
                "No control at another lock: the program has none that is used about as often and waited for by no thread.",
            )),
        }
        let share = delay_ns as f64 * subject.uses as f64 / 1e9 / recorded.wall_s.max(1e-9);
        if share < LITTLE {
            notes.push(format!(
                "All delays of a run together are {} of it: the noise may hide that. --delay asks about longer ones.",
                percent(share)
            ));
        }
        let experiment = Experiment { subject, plan, delay_ns, other, arms, notes };
        let (made, counted) = self.make(&experiment, Arm::Whole, 0)?;
        self.check_met(&experiment, &made, counted)?;
        Ok(experiment)
    }

    /// The lock was met in the run that checks that.
    fn check_met(&self, experiment: &Experiment, made: &Made, counted: Counted) -> anyhow::Result<()> {
        let Experiment { subject, .. } = experiment;
        if made.reached > 0 {
            return Ok(());
        }
        let why = if counted.has(Obstacle::Modules) {
            "glibc before 2.35 does not say where locks are: use a newer one"
        } else if counted.has(Obstacle::Version) {
            "the library is another version's: see `spinpark libraries`"
        } else if counted.has(Obstacle::Detector) {
            "nothing is delayed under a race detector: build the program without"
        } else if counted.has(Obstacle::Memory) {
            "there was no memory for the library's table"
        } else if counted.locks > 0 {
            "it was used, but not at this point: see --where"
        } else {
            "the program did not use it in this run, or code that was not recorded did: give the program the same work in each run"
        };
        bail!("`{}` ({}) was not met in a second run: {why}", subject.name, subject.noun)
    }

    /// Makes one run.
    fn make(&self, experiment: &Experiment, arm: Arm, padding: usize) -> Result<(Made, Counted), RunError> {
        let (from, delay_ns) = match (arm, &experiment.other) {
            (Arm::OtherLock, Some((_, plan, delay))) => (plan, *delay),
            (Arm::Outside | Arm::OtherLock, _) => (&experiment.plan, experiment.delay_ns),
            _ => {
                let part = arm.factor().unwrap_or_default();
                (&experiment.plan, (part * experiment.delay_ns as f64).round() as u64)
            }
        };
        let path = self.scratch.path().join("plan");
        let mut plan = from.borrow_mut();
        plan.begin_run(delay_ns, arm == Arm::Outside);
        fs::write(&path, plan.bytes()).map_err(|error| RunError::Input(path.clone(), error))?;
        let made = self.launcher.run_with(Configuration::After, padding, |command| {
            self.put_library_before(command);
            command.env(DELAY, &path);
        });
        let (sample, _) = made.map_err(|error| named_arm(arm.name(), error))?;
        let counted = counted_in(&path);
        Ok((Made { delay_ns, reached: counted.reached, delayed: counted.delayed, sample }, counted))
    }

    /// Measures the rounds of one lock, and prints what they have shown.
    fn answer(&self, experiment: Experiment, changes: Option<String>) -> anyhow::Result<(Answered, End)> {
        let (say, rounds, seed) = (self.say, self.whatif.measuring.rounds, self.session.seed);
        let arms = experiment.arms.clone();
        // The run that checked the lock had all of the delay.
        let (trial, _) = self.make(&experiment, Arm::None, 0)?;
        let a_round = trial.sample.wall_s * arms.len() as f64;
        say.wrapped(
            &format!(
                "`{}` ({}): {} of {} runs in shuffled order (seed {seed}), about {:.0} s or longer. Ctrl-C: the result so far.",
                experiment.subject.name,
                experiment.subject.noun,
                counted(rounds, "round"),
                arms.len(),
                (a_round * rounds as f64).ceil()
            ),
            0,
        );
        let progress = Progress::new(arms.len() * rounds, Some(a_round * rounds as f64));
        let mut unknown = 0;
        let (runs, end) = measure(&arms, rounds, seed, &mut |arm, padding| {
            progress.now(arm.name().to_owned());
            let made = self.make(&experiment, arm, padding);
            progress.advance();
            let (made, counted) = made?;
            unknown = unknown.max(counted.unknown);
            Ok(made)
        });
        drop(progress);
        // Of a delay that is shorter than a section, less is little.
        let whole = experiment.subject.section_ns.map_or(1.0, |section| experiment.delay_ns as f64 / section);
        let margin = MARGIN * whole.min(1.0);
        let kind = (self.metric, self.printed.higher_is_better);
        let effect = Effect::new((&runs, &arms), kind, margin, seed);
        let other = experiment.other.as_ref().map(|(other, _, delay)| (other.name.clone(), *delay));
        let question = Question {
            lock: &experiment.subject.name,
            place: self.whatif.place.place(),
            delay_ns: experiment.delay_ns,
            section_ns: experiment.subject.section_ns,
            held: experiment.subject.held,
            other: other.as_ref().map(|(name, _)| name.as_str()),
            printed: self.printed,
        };
        let said = answer(&question, &effect);
        let mut notes = experiment.notes.clone();
        if matches!(end, End::Interrupted) {
            notes.push(Warning::Interrupted { blocks: effect.rounds, rounds }.to_string());
        }
        notes.extend(of_rounds(&effect, &runs, unknown, rounds));
        notes.extend(changes.map(|changes| format!("{changes} The answer is about all of the run.")));
        if !runs.is_empty() {
            say.line(format!("\n{}", render(&effect, self.printed, say.style())));
            say.wrapped(&said, 0);
            if let Some(bound) = bound(&question, experiment.subject.waited) {
                say.wrapped(&bound, 0);
            }
        }
        notes.iter().for_each(|note| say.wrapped(&format!("Note: {note}"), 2));
        let answered = Answered {
            delay_ns: experiment.delay_ns,
            other_lock: other.as_ref().map(|(name, _)| name.clone()),
            other_delay_ns: other.map(|(_, delay)| delay),
            answer: said,
            effect,
            notes,
            runs,
            subject: experiment.subject,
        };
        Ok((answered, end))
    }
}

/// What weakens the answer.
fn of_rounds(effect: &Effect, runs: &[Run], unknown: u64, rounds: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if effect.failed > 0 {
        notes.push(format!(
            "{} of {} failed: the lock was not met in one of their runs. They do not count.",
            effect.failed,
            counted(rounds, "round")
        ));
    }
    if let Some(paid) = effect.paid().filter(|paid| *paid < MOST_PAID) {
        notes.push(format!(
            "Outside of locks only {} of the delays were made: threads hold a lock nearly always. That control is weak.",
            percent(paid)
        ));
    }
    if unknown > 0 {
        notes.push(format!(
            "The program has more locks than the table: {unknown} uses of a run were of locks that may have been this one."
        ));
    }
    let walls: Vec<f64> = runs.iter().map(|run| run.made.sample.wall_s).collect();
    let short = median(&walls).filter(|run_s| *run_s < SHORT_RUN_S);
    notes.extend(short.map(|run_s| Warning::ShortRun { run_s }.to_string()));
    let is_wide =
        effect.reasons.iter().any(|doubt| matches!(doubt, Doubt::ContainsZero | Doubt::WithinNoise));
    if is_wide || effect.rounds < MIN_BLOCKS {
        notes.push(String::from(
            "More --rounds make the interval narrower; a longer --delay has a larger effect.",
        ));
    }
    notes
}

/// What the processes of a run have counted.
fn counted_in(plan: &Path) -> Counted {
    fs::read(plan).ok().and_then(|file| Plan::counted(&file)).unwrap_or_default()
}

/// What went wrong, with the run's name in the place of a configuration of `compare`.
fn named_arm(arm: &str, error: RunError) -> RunError {
    let (what, tail) = match error {
        RunError::Failed { ended, tail, .. } => (format!("it {ended}"), tail),
        RunError::Process { error, tail, .. } => (error.to_string(), tail),
        RunError::NoNumber { reason, tail, .. } => (reason.to_string(), tail),
        other => return other,
    };
    RunError::Worker { cell: String::from("the program"), configuration: arm.to_owned(), what, tail }
}
