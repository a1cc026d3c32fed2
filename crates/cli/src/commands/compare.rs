//! `spinpark compare`: glibc's locks against spinpark's, on an unchanged program; or one program against
//! another.
//!
//! What can be wrong with a request is found before anything runs ([`Request`]); then the rounds are
//! measured, and one run is recorded, since what a program waits for decides what other locks can bring.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use spinpark_demo::server::LABEL;
use spinpark_measure::process::executable::preload_list::prepend;
use spinpark_measure::process::executable::{DropIn, Executable, Library, locate};
use spinpark_measure::process::service;
use spinpark_measure::report::json::{
    Against, Document, FORMAT, FORMAT_VERSION, Record, RecordedSettings, Settings, metrics,
};
use spinpark_measure::report::reading::{self, Header};
use spinpark_measure::report::{Printed, compare_table};
use spinpark_measure::rounds::compare::{Comparison, Summary};
use spinpark_measure::rounds::configuration::{Baseline, Configuration, Environments, Subject};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::failure::RunError;
use spinpark_measure::rounds::launch::{Around, Launcher, OwnNumber, Program};
use spinpark_measure::rounds::looks::Looks;
use spinpark_measure::rounds::machine::{Noise, Watch, own_peak_bytes};
use spinpark_measure::rounds::measure::{End, Measurement, Run, measure};
use spinpark_measure::rounds::metric::OutputMetric;
use spinpark_measure::rounds::sample::Metric;
use spinpark_measure::rounds::warnings::{self, Warning};
use spinpark_measure::text::units::counted;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::{load, swap};
use tempfile::TempDir;

use super::prepare::{Prepared, prepare, prepare_programs};
use crate::cli::{Compare, DEMO_OPERATIONS, LocksChoice, Measuring, Report};
use crate::files::open;
use crate::progress::Progress;
use crate::say::{self, Say};
use crate::session::{Session, check_rounds};
use crate::{exit, libraries, own};

/// How long one run of the demonstration should take on the faster locks, in seconds.
const DEMO_RUN_S: f64 = 0.6;

/// What was measured, and around it.
struct Measured {
    prepared: Prepared,
    measurement: Measurement,
    noise: Noise,
    /// Whether the program brings spinpark's locks itself; they were off in the baseline.
    had_drop_in: bool,
    /// The recording of a run; none if it could not be made.
    waiting: Option<TempDir>,
}

/// Checks the request, measures, reports.
pub(crate) fn run(compare: &Compare) -> anyhow::Result<ExitCode> {
    let json = open(&compare.out.json)?;
    let compared = Compared::new(compare, Say::apart_from(&[&compare.out.json]), None, None)?;
    compared.print();
    if let Some(json) = json.filter(|_| compared.has_runs()) {
        json.write(&compared.document())?;
    }
    compared.end()
}

/// How long is measured.
pub(crate) struct Until<'a> {
    /// When the runs are looked at.
    pub(crate) looks: &'a Looks,
    /// Whether no more are needed.
    pub(crate) is_decided: &'a dyn Fn(&Summary, &Printed) -> bool,
}

/// A comparison that was measured, and what follows from it.
pub(crate) struct Compared {
    request: Request,
    session: Session,
    measured: Measured,
    pub(crate) comparison: Comparison,
    pub(crate) warnings: Vec<Warning>,
    /// A sentence on waits for locks that the drop-in does not replace.
    waiting: Option<String>,
    /// Least peak memory that can be seen, in bytes.
    memory_floor: u64,
    /// How the command of --cleanup ended.
    cleaned: Result<(), RunError>,
}

impl Compared {
    /// Checks the request, measures and compares. The comparison is about the metric `about`, or the program's own
    /// number, or wall time. With `until`, more rounds are measured while it is not decided.
    pub(crate) fn new(
        compare: &Compare,
        say: Say,
        about: Option<Metric>,
        until: Option<Until<'_>>,
    ) -> anyhow::Result<Self> {
        let request = Request::new(compare, say)?;
        let session = Session::start(compare.measuring.seed)?;
        let mut metrics = metrics(!matches!(request.number, OwnNumber::None));
        metrics.sort_by_key(|metric| about.is_some_and(|about| *metric != about));
        let once = Looks::new(request.rounds, request.rounds);
        let looks = until.as_ref().map_or(&once, |until| until.looks);
        let comparison_of = |runs: &[Run], metrics: &[Metric]| {
            Comparison::with_error(runs, metrics, session.seed, looks.error())
        };
        let is_decided = |runs: &[Run]| {
            let judged = comparison_of(runs, &metrics[..1]);
            let summary = judged.primary().zip(until.as_ref());
            summary.is_none_or(|(summary, until)| (until.is_decided)(summary, &request.printed))
        };
        let (measured, cleaned) = measure_around(&request, &session, looks, &is_decided)?;
        // Taken before the statistics, which need memory of their own.
        let memory_floor = own_peak_bytes();
        let comparison = comparison_of(&measured.measurement.runs, &metrics);
        let warnings = warnings_of(&request, &comparison, &measured);
        let waiting = measured.waiting.as_ref().and_then(sentence_on);
        Ok(Self { request, session, measured, comparison, warnings, waiting, memory_floor, cleaned })
    }

    /// What the program's own number means.
    pub(crate) fn printed(&self) -> &Printed {
        &self.request.printed
    }

    /// The command that is compared, as a shell reads it.
    pub(crate) fn command_line(&self) -> String {
        own::line(&self.request.command)
    }

    fn has_runs(&self) -> bool {
        !self.measured.measurement.runs.is_empty()
    }

    /// Whether all rounds were measured.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.measured.measurement.end, End::Complete) && self.cleaned.is_ok()
    }

    /// The exit code; the error, if a run or the command of --cleanup failed.
    pub(crate) fn end(self) -> anyhow::Result<ExitCode> {
        let exit = exit::code_of_end(self.measured.measurement.end)?;
        self.cleaned?;
        Ok(exit)
    }

    /// The table, and the machine.
    pub(crate) fn print_tables(&self, say: Say) {
        let printed = &self.request.printed;
        tables(say, &self.comparison, printed, self.memory_floor, &self.session.environment);
    }
}

/// Measures, between the commands of --setup and --cleanup; and how the latter ended.
fn measure_around(
    request: &Request,
    session: &Session,
    looks: &Looks,
    is_decided: &dyn Fn(&[Run]) -> bool,
) -> anyhow::Result<(Measured, Result<(), RunError>)> {
    print_intro(request);
    if service::has_notify_socket() {
        note!(
            "Note: NOTIFY_SOCKET is set. Without NotifyAccess=all, the service manager refuses the program's messages, since each \
             run has a process id of its own."
        );
    }
    say::check()?;
    let mut launcher = Launcher::new(
        request.program.clone(),
        request.environments.clone(),
        &request.number,
        &session.interrupt,
    );
    let measured = launcher
        .run_around("--setup")
        .map_err(anyhow::Error::from)
        .and_then(|()| measure_all(request, session, &mut launcher, looks, is_decided));
    let cleaned = launcher.clean_up();
    Ok((measured?, cleaned))
}

fn print_intro(request: &Request) {
    if request.is_demo {
        request.say.wrapped(
            "Demonstration: 8 threads share one hot mutex, one read-mostly table (rwlock) and one condvar queue.",
            0,
        );
    } else if let Some(against) = &request.against {
        print_programs(request.say, &request.command, against);
    } else {
        request
            .say
            .wrapped(&format!("Comparing glibc's locks with spinpark's: {}", request.command.join(" ")), 2);
    }
}

fn print_programs(say: Say, command: &[String], against: &Against) {
    let locks = match against.on_drop_in {
        true => "both on spinpark's locks",
        false => "both on their own locks, without the drop-in (--locks spinpark changes that)",
    };
    say.wrapped(&format!("Comparing two commands, {locks}:"), 0);
    say.wrapped(&format!("`before`: {}", own::line(&against.command)), 4);
    say.wrapped(&format!("`after`: {}", own::line(command)), 4);
}

fn measure_all(
    request: &Request,
    session: &Session,
    launcher: &mut Launcher<'_>,
    looks: &Looks,
    is_decided: &dyn Fn(&[Run]) -> bool,
) -> anyhow::Result<Measured> {
    let (mut prepared, notes) = match &request.against {
        Some(against) => prepare_programs(launcher, against.on_drop_in)?,
        None => (prepare(launcher)?, Vec::new()),
    };
    let is_recorded = request.against.is_none() && !request.is_demo;
    let waiting = if is_recorded { record_waiting(launcher) } else { None };
    if request.is_demo {
        prepared = adjust_demo(launcher, prepared);
    }
    notes.iter().for_each(|note| request.say.wrapped(note, 0));
    if launcher.switches_off_drop_in() {
        request.say.wrapped(
            "The program runs on spinpark's locks by itself (linked with the drop-in, or preloaded on the way). They are off in \
             the runs on glibc's locks (SPINPARK_DISABLE=1).",
            0,
        );
    }
    request.say.wrapped(
        &format!(
            "{} of 3 runs in shuffled order (seed {}), about {:.0} s. Ctrl-C: the result so far.",
            counted(request.rounds, "round"),
            session.seed,
            prepared.estimate_s(request.rounds).ceil()
        ),
        0,
    );
    let watch = Watch::start();
    let subject = if request.against.is_some() { Subject::Programs } else { Subject::Locks };
    let mut measurement = Measurement { runs: Vec::new(), end: End::Complete };
    for (part, rounds) in looks.parts().enumerate() {
        if part > 0 && (!matches!(measurement.end, End::Complete) || is_decided(&measurement.runs)) {
            break;
        }
        let expected_s = prepared.estimate_s(rounds).ceil();
        if part > 0 {
            let more = counted(rounds, "more round");
            request.say.wrapped(&format!("Undecided so far: {more}, about {expected_s:.0} s."), 0);
        }
        let mut progress = Progress::new(rounds * 3, Some(expected_s));
        measurement.add(measure(
            subject,
            rounds,
            session.seed.wrapping_add(part as u64),
            launcher,
            &mut progress,
        ));
    }
    Ok(Measured {
        prepared,
        measurement,
        noise: watch.noise(),
        had_drop_in: launcher.switches_off_drop_in(),
        waiting,
    })
}

/// Gives the demonstration so much work that a run takes about [`DEMO_RUN_S`] on this machine.
fn adjust_demo(launcher: &mut Launcher<'_>, prepared: Prepared) -> Prepared {
    let fastest = [&prepared.baseline, &prepared.candidate].into_iter().filter_map(|sample| sample.printed);
    let per_second = fastest.fold(1.0, f64::max);
    let operations = per_second * DEMO_RUN_S;
    launcher.set_args(demo_args(operations as u64));
    let scale = operations / DEMO_OPERATIONS as f64;
    let mut prepared = prepared;
    prepared.baseline.wall_s *= scale;
    prepared.candidate.wall_s *= scale;
    prepared
}

// ---- what is to be compared

/// A request that can be carried out.
struct Request {
    /// The command line that the user typed; in a demonstration, the one that runs.
    command: Vec<String>,
    /// Whether no program was given.
    is_demo: bool,
    /// The command to compare with, if two programs are compared.
    against: Option<Against>,
    program: Program,
    /// None if neither of two programs runs on it.
    drop_in: Option<DropIn>,
    baseline: Baseline,
    environments: Environments,
    number: OwnNumber,
    printed: Printed,
    rounds: usize,
    say: Say,
}

/// The arguments that make this command the demonstration.
fn demo_args(operations: u64) -> Vec<OsString> {
    vec!["__demo".into(), "--operations".into(), operations.to_string().into()]
}

impl Request {
    /// Checks it all.
    fn new(compare: &Compare, say: Say) -> anyhow::Result<Self> {
        check_rounds(compare.measuring.rounds)?;
        let is_demo = compare.program.is_empty();
        let (name, args) = match compare.program.split_first() {
            Some((name, args)) => (name.clone(), args.to_vec()),
            None => (own::path()?.into_os_string(), demo_args(DEMO_OPERATIONS)),
        };
        let (number, printed) = number(&compare.measuring, is_demo)?;
        let before = compare.against.as_deref().map(words).transpose()?;
        if before.is_some() && is_demo {
            bail!(
                "--against needs a program to compare with: spinpark compare --against './old --arg' -- ./new --arg"
            );
        }
        let is_preloaded = before.is_none() || compare.locks == LocksChoice::Spinpark;
        let drop_in = is_preloaded.then(|| libraries::find(Library::DropIn)).transpose()?;
        let find = |(name, args): &(OsString, Vec<OsString>)| -> anyhow::Result<PathBuf> {
            let Some(drop_in) = &drop_in else { return Ok(locate(name)?) };
            let executable = Executable::find_with(name, args)?;
            drop_in.check_machine(executable.machine)?;
            Ok(executable.path)
        };
        let in_text = |(name, args): &(OsString, Vec<OsString>)| -> Vec<String> {
            std::iter::once(name).chain(args).map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let baseline = compare.baseline.into();
        let inherited = env::var_os("LD_PRELOAD");
        let environments = match (&drop_in, &before) {
            (Some(drop_in), None) => Environments::new(&drop_in.path, inherited, baseline),
            _ => Environments::of_programs(drop_in.as_ref().map(|drop_in| &*drop_in.path), inherited),
        };
        let named = (name, args);
        let path = find(&named)?;
        let path_before = before.as_ref().map(|before| find(before).context("--against")).transpose()?;
        let command = in_text(&named);
        let against =
            before.as_ref().map(|before| Against { command: in_text(before), on_drop_in: drop_in.is_some() });
        let mut program = program(&compare.measuring, path, named.1)?;
        program.against = path_before.zip(before.map(|(_, args)| args));
        let rounds = compare.measuring.rounds;
        Ok(Self {
            command,
            is_demo,
            against,
            program,
            drop_in,
            baseline,
            environments,
            number,
            printed,
            rounds,
            say,
        })
    }
}

/// The words of the command of `--against`: a program and its arguments.
fn words(command: &OsStr) -> anyhow::Result<(OsString, Vec<OsString>)> {
    let shown = command.to_string_lossy();
    let Some(words) = shlex::bytes::split(command.as_bytes()) else {
        bail!(
            "--against `{shown}` ends within quotes, or with a backslash\nQuote the whole command once more: --against \
             \"./old 'two words'\""
        )
    };
    let mut words = words.into_iter().map(OsString::from_vec);
    match words.next().filter(|name| !name.is_empty()) {
        Some(name) => Ok((name, words.collect())),
        None => bail!("--against is empty; name a command: --against './old --arg'"),
    }
}

/// The program's own number, and what it means.
pub(super) fn number(measuring: &Measuring, is_demo: bool) -> anyhow::Result<(OwnNumber, Printed)> {
    let given = measuring.metric_from_output.as_deref();
    let unit = measuring.unit.as_deref().unwrap_or_default();
    let metric = match given {
        Some(_) if is_demo => {
            bail!("--metric-from-output needs a program; the demonstration has a number of its own")
        }
        Some(expression) => OutputMetric::new(expression, measuring.higher_is_better, unit)?,
        None if is_demo => OutputMetric::new(&format!("{LABEL}: ([0-9]+)"), true, "operations/s")?,
        None => return Ok((OwnNumber::None, Printed::default())),
    };
    let printed = Printed { unit: metric.unit.clone(), higher_is_better: metric.higher_is_better };
    Ok((OwnNumber::Output(metric), printed))
}

/// A program with what is around its runs.
pub(super) fn program(measuring: &Measuring, path: PathBuf, args: Vec<OsString>) -> anyhow::Result<Program> {
    let Measuring { input, setup, prepare, cleanup, timeout, ignore_failure, .. } = measuring.clone();
    if let Some(input) = &input {
        File::open(input).with_context(|| format!("--input: cannot read {}", input.display()))?;
    }
    let around = Around { setup, prepare, cleanup };
    Ok(Program { path, args, against: None, input, timeout, ignore_failure, around })
}

// ---- one run under the recorder

/// Records a run on glibc's locks. `None` if it cannot be recorded: the comparison goes on.
fn record_waiting(launcher: &Launcher<'_>) -> Option<TempDir> {
    let profiler = libraries::find(Library::Profiler).ok()?.path;
    let directory = tempfile::Builder::new().prefix("spinpark-waits-").tempdir().ok()?;
    let recorded = launcher.run_with(Configuration::Glibc, 0, |command| {
        let set = |name: &str| {
            let of_command = command.get_envs().find(|(known, _)| *known == name);
            of_command.map_or_else(|| env::var_os(name), |(_, value)| value.map(OsString::from))
        };
        let before = set("LD_PRELOAD").unwrap_or_default();
        command
            .env("LD_PRELOAD", prepend(&profiler, &before))
            .env("SPINPARK_PROFILE_DIR", directory.path())
            .env("SPINPARK_PROFILE_DETAIL", "contended");
    });
    recorded.ok()?;
    Some(directory)
}

/// A sentence on the share of the waiting that is not for locks that the drop-in replaces; none if it is
/// small.
///
/// Not before the last run: reading takes memory, and each run begins as a copy of this process, so that
/// smaller peaks could not be seen.
fn sentence_on(recording: &TempDir) -> Option<String> {
    let loaded = load::load(recording.path(), &mut Symbols::new()).ok()?;
    swap::sentence(&loaded.profiles)
}

// ---- the result, on standard output and in the file

fn warnings_of(request: &Request, comparison: &Comparison, measured: &Measured) -> Vec<Warning> {
    let interrupted = matches!(measured.measurement.end, End::Interrupted)
        .then_some(Warning::Interrupted { blocks: comparison.blocks, rounds: request.rounds });
    let others = warnings::of(
        comparison,
        &measured.noise,
        request.drop_in.as_ref().is_some_and(DropIn::is_debug_build),
    );
    interrupted.into_iter().chain(others).collect()
}

impl Compared {
    /// Prints the table, and what is to be said of it.
    fn print(&self) {
        let say = self.request.say;
        self.print_tables(say);
        if let Some(waiting) = self.waiting.as_ref().filter(|_| self.comparison.blocks > 0) {
            say.wrapped(waiting, 0);
        }
        let warnings = compare_table::warnings(&self.warnings, say.style());
        if !warnings.is_empty() {
            say.line(warnings.trim_end());
        }
        if self.request.is_demo {
            say.line(
                "\nNow your own program, as it is, without a rebuild:\n\n    spinpark compare -- PROGRAM ARGUMENTS…\n",
            );
            say.wrapped(
                "`spinpark compare --help` has examples; `spinpark run -- PROGRAM` just runs it on these locks.",
                0,
            );
        }
    }

    /// All data.
    pub(crate) fn document(&self) -> Document<'_> {
        let Self { request, session, measured, comparison, warnings, memory_floor, .. } = self;
        let metric_from_output = match &request.number {
            OwnNumber::Output(metric) => Some(metric.expression()),
            OwnNumber::None => None,
        };
        let baseline = if measured.had_drop_in { Baseline::Disabled } else { request.baseline };
        Document {
            format: FORMAT,
            format_version: FORMAT_VERSION,
            end: measured.measurement.end.name(),
            command: request.command.clone(),
            against: request.against.as_ref(),
            drop_in: request.drop_in.as_ref().map(|drop_in| drop_in.path.display().to_string()),
            settings: Settings {
                rounds: request.rounds,
                seed: session.seed,
                baseline: request.against.is_none().then_some(baseline),
                metric_from_output,
                printed: &request.printed,
                memory_floor_bytes: *memory_floor,
            },
            environment: &session.environment,
            noise: &measured.noise,
            usage: measured.prepared.usage,
            comparison,
            warnings,
            runs: &measured.measurement.runs,
        }
    }
}

/// Prints an earlier comparison again, if `report` names a file of one.
pub(crate) fn earlier(report: &Report) -> anyhow::Result<Option<ExitCode>> {
    let [path] = report.recordings.as_slice() else { return Ok(None) };
    // A recording is large, and no text.
    let mut first = [0];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    if read.is_err() || first != *b"{" {
        return Ok(None);
    }
    let Ok(text) = fs::read_to_string(path) else { return Ok(None) };
    if !Header::parse(&text).is_ok_and(|header| header.format == FORMAT) {
        return Ok(None);
    }
    if let Some(option) = report.only_for_recordings() {
        bail!("{option} is for recordings of `spinpark profile`, and this is a comparison: leave it out");
    }
    let shown = show(&text, Say { on_stderr: false });
    shown.map_err(|what| anyhow!("{} is {what}", path.display()))?;
    Ok(Some(ExitCode::SUCCESS))
}

/// Prints an earlier comparison again; `text` is all of its file.
///
/// # Errors
///
/// What the file is instead.
pub fn show(text: &str, say: Say) -> Result<(), String> {
    let record = Record::parse(text)?;
    let RecordedSettings { printed, memory_floor_bytes, .. } = &record.settings;
    if let Some(against) = &record.against {
        print_programs(say, &record.command, against);
    }
    tables(say, &record.comparison(), printed, *memory_floor_bytes, &record.environment);
    say::warnings(&reading::warnings(text));
    Ok(())
}

fn tables(
    say: Say,
    comparison: &Comparison,
    printed: &Printed,
    memory_floor: u64,
    environment: &Environment,
) {
    if comparison.blocks == 0 {
        return; // a warning says so
    }
    say.line(format!("\n{}", compare_table::render(comparison, printed, memory_floor as f64, say.style())));
    if let Some(sentence) = compare_table::conclusion(comparison, printed, say.style()) {
        say.line(sentence);
    }
    say.wrapped(&environment.line(), 2);
}
