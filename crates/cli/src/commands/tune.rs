//! `spinpark tune`: policies for single locks that are better than the default beyond the noise.
//!
//! Three steps: one run is recorded, on the drop-in, for the locks that threads wait for; each policy of each of those is
//! tried; the best of each lock is measured again. The second measurement is the evidence: the best of many trials is
//! partly luck, and fresh rounds know nothing of that. What is kept was measured as it is kept: if several locks have a
//! better policy, all of them together.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use spinpark_measure::process::executable::preload_list::prepend;
use spinpark_measure::process::executable::{Executable, Library};
use spinpark_measure::report::{self, Goodness, Printed, interval, metric_name, table, verdict_word};
use spinpark_measure::rounds::blocks::Plan;
use spinpark_measure::rounds::configuration::{
    Baseline, Configuration, DETAIL, DIRECTORY, Environments, POLICY,
};
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::launch::Launcher;
use spinpark_measure::rounds::measure::{End, Observer as _, Run};
use spinpark_measure::rounds::sample::Metric;
use spinpark_measure::rounds::trials::{Judged, Trial, judged, trials};
use spinpark_measure::stats::verdict::Verdict;
use spinpark_measure::text::units::{change, counted, percent, time};
use spinpark_profile::load;
use spinpark_profile::model::{CallSiteId, Kind, Lock as SeenLock, Profile, Role};
use spinpark_profile::symbols::Symbols;

use super::compare::{number, program};
use super::prepare::on_spinpark;
use crate::cli::Tune;
use crate::files::open;
use crate::policy::{Evidence, Hex, Lock, Module, Place, Policy, PolicyFile};
use crate::progress::Progress;
use crate::say::Say;
use crate::session::{Session, check_rounds};
use crate::{exit, libraries, own};

/// The first field of the JSON document.
const FORMAT: &str = "spinpark tune";
/// Changes when a field changes its meaning or goes.
const FORMAT_VERSION: u32 = 1;

/// A lock with less of all waiting for locks is not worth the runs, unless it is asked for.
const LEAST_SHARE: f64 = 0.01;

/// Locks that have one name, and get one policy.
#[derive(Clone, Debug, Serialize)]
struct Subject {
    name: String,
    is_rwlock: bool,
    waited_ns: u64,
    /// Where they are, or what creates them.
    #[serde(skip)]
    places: Vec<(Module, Place)>,
}

/// A policy for one of the subjects, by its index.
type Candidate = (usize, Policy);

/// What was measured of some policies at once.
#[derive(Clone, Debug, Serialize)]
struct Row {
    locks: Vec<String>,
    policies: Vec<&'static str>,
    #[serde(flatten)]
    judged: Judged,
    is_better: bool,
    #[serde(skip)]
    candidates: Vec<Candidate>,
}

/// All data.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    format_version: u32,
    end: &'static str,
    command: &'a [String],
    metric: Metric,
    rounds: usize,
    seed: u64,
    environment: &'a Environment,
    locks: &'a [Subject],
    tried: &'a [Row],
    confirmed: &'a [Row],
    kept: Option<&'a Row>,
    file: Option<&'a Path>,
}

/// Checks the request, measures, reports, writes the file.
pub(crate) fn run(tune: &Tune) -> Result<ExitCode> {
    check_rounds(tune.measuring.rounds)?;
    check_output(&tune.output)?;
    let json = open(&tune.out.json)?;
    let say = Say::apart_from(&[&tune.out.json]);
    let (name, args) = tune.program.split_first().ok_or_else(|| anyhow!("name a program"))?;
    let executable = Executable::find_with(name, args)?;
    let drop_in = libraries::find(Library::DropIn)?;
    drop_in.check_machine(executable.machine)?;
    let profiler = libraries::find(Library::Profiler)?.path;
    let (number, printed) = number(&tune.measuring, false)?;
    let metric = match tune.metric {
        Some(metric) => metric.into(),
        None if tune.measuring.metric_from_output.is_some() => Metric::Printed,
        None => Metric::Wall,
    };
    let session = Session::start(tune.measuring.seed)?;
    let environments = Environments::new(&drop_in.path, env::var_os("LD_PRELOAD"), Baseline::Glibc);
    let program = program(&tune.measuring, executable.path.clone(), args.to_vec())?;
    let launcher = Launcher::new(program, environments, &number, &session.interrupt);
    let command: Vec<String> = tune.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let tuning =
        Tuning { tune, say, session: &session, metric, printed, executable: executable.path, command };
    launcher.run_around("--setup")?;
    let found = tuning.measure(&launcher, &profiler);
    let cleaned = launcher.clean_up();
    let found = found?;
    let file = tuning.report(&found)?;
    if let Some(json) = json {
        json.write(&tuning.document(&found, file.as_deref()))?;
    }
    let code = exit::code_of_end(found.end)?;
    cleaned?;
    Ok(code)
}

/// What is there already is replaced only if `tune` has written it.
fn check_output(path: &Path) -> Result<()> {
    if path.exists() && PolicyFile::read(path).is_err() {
        bail!(
            "--output: {} is there, and is no file of policies\nGive --output another name",
            path.display()
        );
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .tempfile_in(parent)
        .map(drop)
        .with_context(|| format!("--output: cannot write to {}", parent.display()))
}

struct Tuning<'a> {
    tune: &'a Tune,
    say: Say,
    session: &'a Session,
    metric: Metric,
    printed: Printed,
    executable: PathBuf,
    command: Vec<String>,
}

/// What was found out.
struct Found {
    subjects: Vec<Subject>,
    tried: Vec<Row>,
    confirmed: Vec<Row>,
    kept: Option<Row>,
    end: End,
}

impl Tuning<'_> {
    fn measure(&self, launcher: &Launcher<'_>, profiler: &Path) -> Result<Found> {
        let say = self.say;
        say.wrapped(&format!("Tuning the locks of {}", own::line(&self.command)), 2);
        let (first, _) = on_spinpark(launcher)?;
        let profiles = record(launcher, profiler)?;
        let subjects = self.choose(&profiles)?;
        let mut found =
            Found { subjects, tried: Vec::new(), confirmed: Vec::new(), kept: None, end: End::Complete };
        if found.subjects.is_empty() {
            return Ok(found);
        }
        for Subject { name, waited_ns, .. } in &found.subjects {
            say.wrapped(&format!("{name}: threads waited {} for it.", time(*waited_ns as f64)), 2);
        }
        let candidates: Vec<Vec<Candidate>> = found
            .subjects
            .iter()
            .enumerate()
            .flat_map(|(at, subject)| {
                let policies = if subject.is_rwlock { &Policy::OF_RWLOCK[..] } else { &Policy::OF_MUTEX[..] };
                let asked_for =
                    (self.tune.writers_first && subject.is_rwlock).then_some(Policy::WritersFirst);
                policies.iter().copied().chain(asked_for).map(move |policy| vec![(at, policy)])
            })
            .collect();
        (found.tried, found.end) =
            self.rounds(launcher, &found.subjects, candidates, "trial", first.wall_s, 0)?;
        let best = self.best_of_each(&found);
        if best.is_empty() || !matches!(found.end, End::Complete) {
            return Ok(found);
        }
        let mut again: Vec<Vec<Candidate>> = best.iter().map(|candidate| vec![*candidate]).collect();
        if best.len() > 1 {
            again.push(best);
        }
        (found.confirmed, found.end) =
            self.rounds(launcher, &found.subjects, again, "fresh", first.wall_s, 1)?;
        if matches!(found.end, End::Complete) {
            found.kept = self.kept(&found.confirmed);
        }
        Ok(found)
    }

    /// The locks to try: those that were asked for, or that threads waited for most.
    fn choose(&self, profiles: &[Profile]) -> Result<Vec<Subject>> {
        let mut subjects = subjects(profiles);
        let all: u64 = profiles.iter().map(Profile::waited).sum();
        let names = || {
            let named: Vec<String> = subjects.iter().take(8).map(|it| format!("`{}`", it.name)).collect();
            if named.is_empty() { String::from("none") } else { named.join(", ") }
        };
        for wanted in &self.tune.lock {
            if !subjects.iter().any(|subject| subject.is_called(wanted)) {
                bail!(
                    "--lock `{wanted}`: threads waited for no such lock that can be named in a file\nThere are: {}",
                    names()
                );
            }
        }
        if self.tune.lock.is_empty() {
            subjects.retain(|subject| subject.waited_ns as f64 >= LEAST_SHARE * all as f64);
            subjects.truncate(self.tune.top);
        } else {
            subjects.retain(|subject| self.tune.lock.iter().any(|wanted| subject.is_called(wanted)));
        }
        Ok(subjects)
    }

    /// Measures each of `candidates`, some policies at once, against the default.
    fn rounds(
        &self,
        launcher: &Launcher<'_>,
        subjects: &[Subject],
        candidates: Vec<Vec<Candidate>>,
        what: &str,
        run_s: f64,
        step: u64,
    ) -> Result<(Vec<Row>, End)> {
        let tables: Vec<String> = candidates
            .iter()
            .map(|candidates| self.file(subjects, candidates, None).table(&self.executable))
            .collect::<Result<_>>()?;
        let (rounds, variants, seed) =
            (self.tune.measuring.rounds, candidates.len() + 2, self.session.seed.wrapping_add(step));
        let estimate = run_s * (rounds * variants) as f64;
        self.say.wrapped(
            &format!(
                "{} of {variants} runs in shuffled order (seed {seed}), about {:.0} s. Ctrl-C: the result so far.",
                counted(rounds, &format!("{what} round")),
                estimate.ceil()
            ),
            0,
        );
        let mut progress = Progress::new(rounds * variants, Some(estimate));
        let (mut block, mut order) = (0, 0);
        let (made, end) = trials(variants, rounds, seed, |variant, padding| {
            let plan = Plan { block, order, configuration: Configuration::Spinpark, padding };
            order += 1;
            (block, order) = if order == variants { (block + 1, 0) } else { (block, order) };
            progress.starting(&plan);
            let table = variant.checked_sub(2).and_then(|at| tables.get(at));
            let (sample, _) = launcher.run_with(Configuration::Spinpark, padding, |command| {
                if let Some(table) = table {
                    command.env(POLICY, table);
                }
            })?;
            progress.finished(&Run { plan, sample: sample.clone() });
            Ok(sample)
        });
        drop(progress);
        let row =
            |(at, candidates): (usize, Vec<Candidate>)| self.row(subjects, candidates, &made, at + 2, seed);
        Ok((candidates.into_iter().enumerate().map(row).collect(), end))
    }

    fn row(
        &self,
        subjects: &[Subject],
        candidates: Vec<Candidate>,
        made: &[Trial],
        variant: usize,
        seed: u64,
    ) -> Row {
        let it = judged(made, variant, self.metric, seed);
        let (_, goodness) = verdict_word(self.metric, it.verdict, &self.printed);
        // Less CPU time, or fewer switches, at the price of a longer run is no gain.
        let is_paid = !matches!(self.metric, Metric::Wall | Metric::Printed)
            && judged(made, variant, Metric::Wall, seed).verdict == Verdict::Higher;
        Row {
            locks: candidates.iter().map(|(at, _)| subjects[*at].name.clone()).collect(),
            policies: candidates.iter().map(|(_, policy)| policy.name()).collect(),
            judged: it,
            is_better: goodness == Goodness::Good && !is_paid,
            candidates,
        }
    }

    /// The gain of a row: how much better the median is.
    fn gain(&self, row: &Row) -> f64 {
        let median = row.judged.change.map_or(1.0, |change| change.median);
        let higher_is_better = self.metric == Metric::Printed && self.printed.higher_is_better;
        if higher_is_better { median } else { 1.0 / median }
    }

    /// The best policy of each lock that has a better one than the default.
    fn best_of_each(&self, found: &Found) -> Vec<Candidate> {
        let of = |at: usize| {
            let rows = found.tried.iter().filter(|row| row.is_better && row.candidates[0].0 == at);
            rows.max_by(|one, other| self.gain(one).total_cmp(&self.gain(other)))
        };
        (0..found.subjects.len()).filter_map(of).map(|row| row.candidates[0]).collect()
    }

    /// Of what was confirmed, the best: all policies together only if each is better by itself, too.
    fn kept(&self, confirmed: &[Row]) -> Option<Row> {
        let alone = || confirmed.iter().filter(|row| row.candidates.len() == 1);
        let all = alone().all(|row| row.is_better);
        let rows = confirmed.iter().filter(|row| row.is_better && (all || row.candidates.len() == 1));
        rows.max_by(|one, other| self.gain(one).total_cmp(&self.gain(other))).cloned()
    }

    /// The file that gives these policies.
    fn file(
        &self,
        subjects: &[Subject],
        candidates: &[Candidate],
        evidence: Option<&Evidence>,
    ) -> PolicyFile {
        let mut modules: Vec<Module> = Vec::new();
        let mut locks = Vec::new();
        for (at, policy) in candidates {
            let subject = &subjects[*at];
            let mut places = Vec::new();
            for (module, place) in &subject.places {
                let number = modules.iter().position(|known| known == module).unwrap_or_else(|| {
                    modules.push(module.clone());
                    modules.len() - 1
                });
                places.push(Place { module: number, ..place.clone() });
            }
            let name = subject.name.clone();
            locks.push(Lock { name, policy: *policy, places, evidence: evidence.cloned() });
        }
        PolicyFile::new(modules, locks)
    }

    // ---- the result

    /// Prints the tables, and writes the file if there is something to keep; its path then.
    fn report(&self, found: &Found) -> Result<Option<PathBuf>> {
        let say = self.say;
        if found.subjects.is_empty() {
            say.wrapped(
                "No thread waited for a lock that can be named in a file: there is nothing to tune.",
                0,
            );
            return Ok(None);
        }
        if found.tried.iter().any(|row| row.judged.change.is_some()) {
            say.line(format!("\n{}", self.table(&found.tried)));
        }
        if found.confirmed.iter().any(|row| row.judged.change.is_some()) {
            say.line(format!("In fresh rounds:\n\n{}", self.table(&found.confirmed)));
        }
        say.wrapped(&self.session.environment.line(), 2);
        if !matches!(found.end, End::Complete) {
            say.wrapped("Not all rounds were measured: nothing is written.", 0);
            return Ok(None);
        }
        let Some(kept) = &found.kept else {
            say.wrapped("No policy is better than the default beyond the noise: nothing is written.", 0);
            return Ok(None);
        };
        let evidence = self.evidence(kept);
        let comment = format!(
            "Policies of single locks, found by `spinpark tune`; for this build of the program only.\n\
             spinpark run --policy {} -- {}",
            own::quoted(&self.tune.output.to_string_lossy()),
            own::line(&self.command)
        );
        let text = self.file(&found.subjects, &kept.candidates, evidence.as_ref()).to_toml(&comment);
        write(&self.tune.output, &text)?;
        let named: Vec<String> = kept
            .locks
            .iter()
            .zip(&kept.policies)
            .map(|(lock, policy)| format!("`{policy}` for {lock}"))
            .collect();
        let gain = kept.judged.change.map(|it| format!("{} {}", change(it.median), interval(&it)));
        say.wrapped(
            &format!(
                "Better than the default: {}: {} {}.",
                named.join(", "),
                metric_name(self.metric, &self.printed),
                gain.unwrap_or_default()
            ),
            0,
        );
        say.wrapped(
            &format!(
                "Written to {path}. Use it: spinpark run --policy {path} -- {command}",
                path = own::quoted(&self.tune.output.to_string_lossy()),
                command = own::line(&self.command)
            ),
            0,
        );
        Ok(Some(self.tune.output.clone()))
    }

    fn table(&self, rows: &[Row]) -> String {
        let style = self.say.style();
        let metric = metric_name(self.metric, &self.printed);
        let mut shown = table(style, &["lock", "policy", &metric, "95 % interval", "noise", "verdict"]);
        for row in rows {
            let Judged { change: found, again, verdict } = row.judged;
            let (word, goodness) = match found {
                Some(_) => verdict_word(self.metric, verdict, &self.printed),
                None => ("–", Goodness::Neither),
            };
            let is_longer = goodness == Goodness::Good && !row.is_better;
            let (word, goodness) = if is_longer { ("slower", Goodness::Bad) } else { (word, goodness) };
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| String::from("–"));
            shown.add_row(vec![
                row.locks.join(", ").into(),
                row.policies.join(", ").into(),
                or_dash(found.map(|ratio| change(ratio.median))).into(),
                or_dash(found.map(|ratio| interval(&ratio))).into(),
                or_dash(again.map(|again| format!("±{}", percent(again.reach())))).into(),
                style.verdict(word, goodness),
            ]);
        }
        report::text(&shown)
    }

    fn evidence(&self, row: &Row) -> Option<Evidence> {
        let (found, again) = (row.judged.change?, row.judged.again?);
        let environment = &self.session.environment;
        Some(Evidence {
            metric: metric_name(self.metric, &self.printed),
            change: change(found.median),
            interval: interval(&found),
            noise: format!("±{}", percent(again.reach())),
            rounds: self.tune.measuring.rounds,
            date: environment.date.clone(),
            machine: environment.line(),
            command: own::line(&self.command),
        })
    }

    fn document<'a>(&'a self, found: &'a Found, file: Option<&'a Path>) -> Document<'a> {
        Document {
            format: FORMAT,
            format_version: FORMAT_VERSION,
            end: found.end.name(),
            command: &self.command,
            metric: self.metric,
            rounds: self.tune.measuring.rounds,
            seed: self.session.seed,
            environment: &self.session.environment,
            locks: &found.subjects,
            tried: &found.tried,
            confirmed: &found.confirmed,
            kept: found.kept.as_ref(),
            file,
        }
    }
}

/// Only a complete file gets the name.
fn write(path: &Path, text: &str) -> Result<()> {
    let failed = || format!("--output: cannot write {}", path.display());
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished =
        tempfile::Builder::new().prefix(".spinpark-policy-").tempfile_in(parent).with_context(failed)?;
    std::fs::write(unfinished.path(), text).with_context(failed)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    unfinished.as_file().set_permissions(mode).with_context(failed)?;
    unfinished.persist(path).map(drop).with_context(failed)
}

// ---- the locks that threads wait for

/// Records a run on the drop-in, with the default policy.
fn record(launcher: &Launcher<'_>, profiler: &Path) -> Result<Vec<Profile>> {
    let directory = tempfile::Builder::new().prefix("spinpark-tune-").tempdir();
    let directory = directory.context("cannot create a temporary directory; is TMPDIR writable?")?;
    launcher.run_with(Configuration::Spinpark, 0, |command| {
        let set = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD").and_then(|(_, value)| value);
        let before = set.map(OsString::from).unwrap_or_default();
        command
            .env("LD_PRELOAD", prepend(profiler, &before))
            .env(DIRECTORY, directory.path())
            .env(DETAIL, "contended");
    })?;
    let loaded =
        load::load(directory.path(), &mut Symbols::new()).context("the recorded run cannot be read")?;
    Ok(loaded.profiles)
}

/// Locks that can be named in a file, by name; the longest waiting first.
fn subjects(profiles: &[Profile]) -> Vec<Subject> {
    let mut found: BTreeMap<(String, bool), Subject> = BTreeMap::new();
    for profile in profiles {
        for lock in profile.locks.iter().filter(|lock| is_served(lock)) {
            let places = places(profile, lock);
            let waited_ns = lock.lock_wait() + lock.role(Role::Back).map_or(0, |it| it.wait.total);
            if places.is_empty() || waited_ns == 0 {
                continue;
            }
            let (name, is_rwlock) = (lock.class().into_owned(), lock.kind == Kind::RwLock);
            let subject = found.entry((name.clone(), is_rwlock)).or_insert_with(|| Subject {
                name,
                is_rwlock,
                waited_ns: 0,
                places: Vec::new(),
            });
            subject.waited_ns += waited_ns;
            places.into_iter().for_each(|place| subject.add(place));
        }
    }
    let mut found: Vec<Subject> = found.into_values().collect();
    found.sort_by(|one, other| other.waited_ns.cmp(&one.waited_ns).then_with(|| one.name.cmp(&other.name)));
    found
}

/// Whether the drop-in serves it.
fn is_served(lock: &SeenLock) -> bool {
    let kind = matches!(
        lock.kind,
        Kind::Mutex | Kind::Recursive | Kind::ErrorChecking | Kind::Adaptive | Kind::RwLock
    );
    kind && lock.type_name.is_none() && lock.sampled.is_none() && !lock.is_several && !lock.is_made
}

/// Where it is; of a lock that is no variable, what creates it; else, the calls that wait for it.
fn places(profile: &Profile, lock: &SeenLock) -> Vec<(Module, Place)> {
    if let Some(place) = &lock.place {
        let Some(build_id) = &place.build_id else { return Vec::new() };
        let module = Module { path: place.path.clone().into(), build_id: Some(build_id.clone()) };
        return vec![(module, Place { addresses: vec![Hex(place.address)], ..Place::default() })];
    }
    let sites = lock.roles.iter().filter(|stats| stats.role.is_lock()).flat_map(|stats| &stats.sites);
    let calls: Vec<CallSiteId> = match lock.creation_site {
        Some(created) if lock.is_created => vec![created],
        _ => sites.filter(|site| site.contended > 0).map(|site| site.call_site).collect(),
    };
    calls.into_iter().filter_map(|call| site(profile, call)).collect()
}

/// The return address of a call, in a module that is known.
fn site(profile: &Profile, call: CallSiteId) -> Option<(Module, Place)> {
    // Without a symbol, the frame has no address as the file has it.
    let frame = profile.call_sites.get(call)?.frames.first().filter(|frame| frame.function.is_some())?;
    let is_it = |path: &str| path.rsplit('/').next() == Some(frame.module.as_str());
    let module = profile.modules.iter().find(|module| is_it(&module.path))?;
    let build_id = Some(module.build_id.clone()?);
    let place = Place { sites: vec![Hex(frame.offset)], ..Place::default() };
    Some((Module { path: module.path.clone().into(), build_id }, place))
}

impl Subject {
    /// Adds a place, to those in the same module.
    fn add(&mut self, (module, place): (Module, Place)) {
        let Some((_, known)) = self.places.iter_mut().find(|(known, _)| *known == module) else {
            return self.places.push((module, place));
        };
        let union = |known: &mut Vec<Hex>, more: Vec<Hex>| {
            known.extend(more);
            known.sort_unstable();
            known.dedup();
        };
        union(&mut known.addresses, place.addresses);
        union(&mut known.sites, place.sites);
    }

    /// Whether `name` means it: all of its name, or a part that the user sees in a report.
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.name.contains(name)
    }
}
