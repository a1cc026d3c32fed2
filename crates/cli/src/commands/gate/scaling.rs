//! `spinpark gate scaling`: a program becomes faster with more threads.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::thread;

use anyhow::bail;
use serde::Serialize;
use spinpark_measure::process::executable::locate;
use spinpark_measure::report::gate::{Verdict, scaled, speed_up_of};
use spinpark_measure::report::{Printed, scaling_table};
use spinpark_measure::rounds::configuration::{Configuration, Environments};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::failure::{End, RunError};
use spinpark_measure::rounds::launch::{Launcher, OwnNumber};
use spinpark_measure::rounds::looks::Looks;
use spinpark_measure::rounds::machine::{Noise, Watch};
use spinpark_measure::rounds::sample::{Metric, Sample};
use spinpark_measure::rounds::scaling::{Run, Scaling, measure};
use spinpark_measure::rounds::warnings::{SHORT_RUN_S, Warning, of_machine};
use spinpark_measure::stats::median;
use spinpark_measure::text::units::counted;

use super::baseline::bound;
use super::outputs::Outputs;
use crate::cli::GateScaling;
use crate::commands::compare::{number, program};
use crate::exit;
use crate::own;
use crate::progress::Progress;
use crate::say::Say;
use crate::session::{Session, check_rounds};

/// What is replaced in the arguments.
const PLACE: &[u8] = b"{threads}";

/// All data.
#[derive(Serialize)]
struct Measurement<'a> {
    command: &'a [String],
    threads: &'a [usize],
    rounds: usize,
    seed: u64,
    metric_from_output: Option<&'a str>,
    printed: &'a Printed,
    environment: &'a Environment,
    noise: &'a Noise,
    scaling: &'a Scaling,
    runs: &'a [Run],
}

/// Measures, and judges the speed-up of the last number of threads.
pub(super) fn run(gate: &GateScaling) -> anyhow::Result<ExitCode> {
    let GateScaling { threads, measuring, .. } = gate;
    check(gate)?;
    let looks = gate.until.looks(measuring.rounds)?;
    let figure = speed_up_of(threads[0], threads[threads.len() - 1]);
    let bound =
        bound(gate.at_least, &gate.kept, &figure, |then| then.low, |then, worse| then * (1.0 - worse))?;
    let outputs = Outputs::open(&gate.out)?;
    let [name, args @ ..] = gate.program.as_slice() else { bail!("no program is named") };
    let (number, printed) = number(measuring, false)?;
    let program = program(measuring, locate(name)?, args.to_vec())?;
    let environments = Environments::of_programs(None, env::var_os("LD_PRELOAD"));
    let session = Session::start(measuring.seed)?;
    let command: Vec<String> = gate.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // The first line of standard output is the verdict.
    let before = Say { on_stderr: true };
    before.wrapped(&format!("Measuring at {} threads: {}", listed(threads), own::line(&command)), 2);
    let mut launcher = Launcher::new(program, environments, &number, &session.interrupt);
    let watch = Watch::start();
    let is_rate = printed.higher_is_better;
    let metric = if matches!(number, OwnNumber::None) { Metric::Wall } else { Metric::Printed };
    let scaling_of =
        |runs: &[Run]| Scaling::new(runs, threads, metric, is_rate, (session.seed, looks.error()));
    let is_decided = |runs: &[Run]| {
        scaled("", &scaling_of(runs), &printed, bound.is, Vec::new()).verdict != Verdict::Undecided
    };
    let measured = launcher
        .run_around("--setup")
        .and_then(|()| rounds(gate, args, &session, &mut launcher, &looks, &is_decided));
    let noise = watch.noise();
    let cleaned = launcher.clean_up();
    let (runs, end) = measured?;

    let scaling = scaling_of(&runs);
    let print = |say: Say| {
        say.line(format!("\n{}", scaling_table::render(&scaling, &printed, say.style())));
        say.wrapped(&session.environment.line(), 2);
    };
    if !matches!(end, End::Complete) {
        print(outputs.say);
        return exit::code_of_end(end);
    }
    cleaned?;
    let warnings = warnings(&runs, &noise).into_iter().map(|warning| format!("Warning: {warning}"));
    let notes = bound.note.into_iter().chain(warnings).collect();
    let judged = scaled(&own::line(&command), &scaling, &printed, bound.is, notes);
    let measurement = Measurement {
        command: &command,
        threads,
        rounds: scaling.rounds,
        seed: session.seed,
        metric_from_output: measuring.metric_from_output.as_deref(),
        printed: &printed,
        environment: &session.environment,
        noise: &noise,
        scaling: &scaling,
        runs: &runs,
    };
    outputs.report(&judged, &measurement, print)
}

/// Checks what the command line alone cannot.
fn check(gate: &GateScaling) -> anyhow::Result<()> {
    check_rounds(gate.measuring.rounds)?;
    let threads = &gate.threads;
    if threads.len() < 2 || !threads.is_sorted_by(|a, b| a < b) {
        bail!(
            "--threads {} has no numbers to compare\nName two or more, the smallest first: --threads 1,2",
            listed(threads)
        );
    }
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    if let Some(most) = threads.last().filter(|most| **most > cpus) {
        bail!(
            "--threads {most} is more than the {} that this command may use: the scheduler would be measured, not the program\n\
             Ask for at most {cpus}, or use a larger machine",
            counted(cpus, "CPU")
        );
    }
    let has_place = |arg: &OsString| arg.as_bytes().windows(PLACE.len()).any(|part| part == PLACE);
    if !gate.program.iter().skip(1).any(has_place) {
        bail!(
            "the program's arguments have no {{threads}}, so it would run with the same number each time\nWrite it where the \
             program takes the number: -- ./job --threads {{threads}}"
        );
    }
    Ok(())
}

/// `1, 2`.
fn listed(threads: &[usize]) -> String {
    threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn rounds(
    gate: &GateScaling,
    args: &[OsString],
    session: &Session,
    launcher: &mut Launcher<'_>,
    looks: &Looks,
    is_decided: &dyn Fn(&[Run]) -> bool,
) -> Result<(Vec<Run>, End), RunError> {
    let GateScaling { threads, measuring, .. } = gate;
    let mut make = |number: usize, padding: usize| -> Result<Sample, RunError> {
        launcher.set_args(args.iter().map(|arg| with_threads(arg, number)).collect());
        let made = launcher.run(Configuration::After, padding, None);
        made.map(|(sample, _)| sample).map_err(|error| with_number(number, error))
    };
    // One run each warms caches, and finds what cannot run.
    let mut trials = Vec::new();
    for number in threads {
        trials.push(make(*number, 0)?.wall_s);
    }
    let a_round = trials.iter().sum::<f64>() + trials.first().copied().unwrap_or_default();
    let seconds = |rounds: usize| (a_round * rounds as f64).ceil();
    Say { on_stderr: true }.wrapped(
        &format!(
            "{} of {} runs in shuffled order (seed {}), about {:.0} s. Ctrl-C ends it.",
            counted(measuring.rounds, "round"),
            threads.len() + 1,
            session.seed,
            seconds(measuring.rounds)
        ),
        0,
    );
    let (mut all, mut end) = (Vec::new(), End::Complete);
    for (part, more) in looks.parts().enumerate() {
        if part > 0 && (!matches!(end, End::Complete) || is_decided(&all)) {
            break;
        }
        if part > 0 {
            let rounds = counted(more, "more round");
            Say { on_stderr: true }
                .wrapped(&format!("Undecided so far: {rounds}, about {:.0} s.", seconds(more)), 0);
        }
        let progress = Progress::new(more * (threads.len() + 1), Some(seconds(more)));
        let seed = session.seed.wrapping_add(part as u64);
        let (runs, now) = measure(threads, more, seed, &mut |number, padding| {
            progress.now(counted(number, "thread"));
            let made = make(number, padding);
            progress.advance();
            made
        });
        let before = all.last().map_or(0, |run: &Run| run.round + 1);
        all.extend(runs.into_iter().map(|run| Run { round: run.round + before, ..run }));
        end = now;
    }
    Ok((all, end))
}

/// An argument with the number in the place of `{threads}`.
fn with_threads(arg: &OsStr, number: usize) -> OsString {
    let mut rest = arg.as_bytes();
    let mut replaced = Vec::with_capacity(rest.len());
    while let Some(at) = rest.windows(PLACE.len()).position(|part| part == PLACE) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(number.to_string().as_bytes());
        rest = &rest[at + PLACE.len()..];
    }
    replaced.extend_from_slice(rest);
    OsString::from_vec(replaced)
}

/// What went wrong, with the number of threads in the place of a configuration of `compare`.
fn with_number(threads: usize, error: RunError) -> RunError {
    let (what, tail) = match error {
        RunError::Failed { ended, tail, .. } => (format!("it {ended}"), tail),
        RunError::Process { error, tail, .. } => (error.to_string(), tail),
        RunError::NoNumber { reason, tail, .. } => (reason.to_string(), tail),
        other => return other,
    };
    RunError::Worker {
        cell: String::from("the program"),
        configuration: counted(threads, "thread"),
        what,
        tail,
    }
}

fn warnings(runs: &[Run], noise: &Noise) -> Vec<Warning> {
    let walls: Vec<f64> = runs.iter().map(|run| run.sample.wall_s).collect();
    let short = median(&walls).filter(|run_s| *run_s < SHORT_RUN_S);
    short.map(|run_s| Warning::ShortRun { run_s }).into_iter().chain(of_machine(noise)).collect()
}
