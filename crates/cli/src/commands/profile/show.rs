//! The outputs of a recording: tables, a page, files for other tools.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use anyhow::{Context, bail};
use spinpark_measure::report::json::Output;
use spinpark_measure::text::one_line;
use spinpark_profile::classes::by_class;
use spinpark_profile::load::Loaded;
use spinpark_profile::model::{Detail, LocksOf, Profile};
use spinpark_profile::read::EXTENSION;
use spinpark_profile::text::{self, Style, wrap};
use spinpark_profile::{folded, html, pprof, slow, summary};

use crate::cli::{Showing, ViewChoice};
use crate::files::open;
use crate::say::Say;

/// Rows in a table.
const ROWS: usize = 10;
/// Lines of the summary: with those of the command itself they are 45.
const SCREEN: usize = 43;
/// Of them, those of the table of all processes, and of the sentence on the others.
const OTHERS: usize = 12;

/// The requested outputs. Their files are opened before anything runs, so that an unwritable name is an error
/// at once.
pub(crate) struct Shower<'a> {
    showing: &'a Showing,
    html: Option<Output>,
    pprof: Option<Output>,
    folded: Option<Output>,
    slow: Option<Output>,
    perfetto: Option<Output>,
    speedscope: Option<Output>,
    json: Option<Output>,
    /// The part of the run that is wanted, ns after the start.
    part: Option<(u64, u64)>,
    say: Say,
    /// Data goes to standard output, and nothing else.
    is_taken: bool,
    /// A recording that was shown before is written to files, and not shown again.
    only_converts: bool,
}

impl<'a> Shower<'a> {
    /// Opens what is to be written.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    pub(crate) fn new(showing: &'a Showing, on_stderr: bool) -> anyhow::Result<Self> {
        let named = [
            ("--json", &showing.json),
            ("--folded", &showing.folded),
            ("--pprof", &showing.pprof),
            ("--html", &showing.html),
            ("--slow", &showing.slow),
            ("--perfetto", &showing.perfetto),
            ("--speedscope", &showing.speedscope),
        ];
        let taken: Vec<&str> = named
            .iter()
            .filter(|(_, file)| file.as_deref().is_some_and(Output::is_stdout))
            .map(|(name, _)| *name)
            .collect();
        if let [one, other, ..] = taken[..] {
            bail!("{one} and {other} cannot both go to standard output; name a file for one of them");
        }
        Ok(Self {
            showing,
            html: open(&showing.html)?,
            pprof: open(&showing.pprof)?,
            folded: open(&showing.folded)?,
            slow: open(&showing.slow)?,
            perfetto: open(&showing.perfetto)?,
            speedscope: open(&showing.speedscope)?,
            json: open(&showing.json)?,
            part: None,
            say: Say { on_stderr },
            is_taken: !taken.is_empty(),
            only_converts: !on_stderr
                && showing.view == ViewChoice::Summary
                && showing.process.is_none()
                && named.iter().any(|(_, file)| file.is_some()),
        })
    }

    /// Whether standard output is needed for data.
    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Only what threads waited for in a part of the run.
    pub(crate) fn of_part(self, part: Option<(u64, u64)>) -> Self {
        Self { part, ..self }
    }

    /// Shows `loaded`.
    ///
    /// # Errors
    ///
    /// If there is no such process, or something cannot be written.
    pub(crate) fn show(self, loaded: &Loaded) -> anyhow::Result<()> {
        let Chosen { shown, is_asked } = self.chosen(&loaded.profiles)?;
        // Of a part of the run only its longest waits are written, see `part`.
        let written = |profile: &Profile| match self.part {
            Some(part) => slow::of_part(profile, part),
            None => profile.clone(),
        };
        let all: Vec<Profile> = match is_asked {
            true => shown.iter().map(|profile| written(profile)).collect(),
            false => loaded.profiles.iter().map(written).collect(),
        };
        for error in &loaded.broken {
            Say { on_stderr: true }.line(format_args!("Warning: {error}"));
        }
        if !self.is_taken && (!self.only_converts || self.part.is_some()) {
            let style = match self.say.on_stderr {
                true => Style::of(&io::stderr()),
                false => Style::of_stdout(),
            };
            let style = Style { rows: self.showing.rows.unwrap_or(ROWS), ..style };
            let is_screen = self.showing.view == ViewChoice::Summary && self.showing.rows.is_none();
            let lines = if loaded.profiles.len() > 1 { SCREEN - OTHERS } else { SCREEN };
            for (number, profile) in shown.iter().enumerate() {
                if shown.len() > 1 {
                    let which = format!("Recording {} of {} of process", number + 1, shown.len());
                    self.say.line(format_args!("{which} {}: {}\n", profile.pid, file_name(profile)));
                }
                self.say.line(match self.part {
                    Some(part) => text::part(profile, part, style),
                    None if is_screen => text::overview(profile, style, lines),
                    None => view(profile, self.showing.view, style),
                });
            }
            let is_sum = loaded.profiles.iter().any(|profile| profile.merged.is_some());
            if is_sum && self.showing.process.is_none() && loaded.profiles.len() > 1 {
                let rows = if is_screen { style.rows.min(OTHERS - 6) } else { style.rows };
                self.say.line(text::sums(&loaded.profiles, Style { rows, ..style }));
                let hint = "The first of these is above: it has the longest total wait. `--process NAME` shows another one.";
                self.say.line(wrap(hint, style.width, 0));
            } else if let (None, [shown], None) = (&self.showing.process, shown.as_slice(), self.part) {
                let rows = if is_screen { style.rows.min(OTHERS - 7) } else { style.rows };
                others(&loaded.profiles, shown, Style { rows, ..style }, self.say);
            }
        }
        let mut outputs: Vec<(Output, Vec<u8>)> = Vec::new();
        if let Some(output) = self.html {
            outputs.push((output, page(&all)?.into_bytes()));
        }
        if let Some(output) = self.pprof {
            let mut bytes = Vec::new();
            pprof::write(&all, &mut bytes).context("cannot write to memory")?;
            outputs.push((output, bytes));
        }
        if let Some(output) = self.folded {
            let stacks = all.iter().map(|profile| folded::folded(profile, folded::Options::default()));
            outputs.push((output, stacks.collect::<String>().into_bytes()));
        }
        type Written = fn(&[Profile]) -> String;
        let waits: [(Option<Output>, Written); 3] =
            [(self.slow, slow::lines), (self.perfetto, slow::perfetto), (self.speedscope, slow::speedscope)];
        for (output, text) in waits {
            outputs.extend(output.map(|output| (output, text(&all).into_bytes())));
        }
        // One that cannot be written does not keep the others from being written.
        let mut failed = self.json.and_then(|json| json.write(&all).err());
        for (output, bytes) in outputs {
            let path = output.path().to_owned();
            match output.write_bytes(&bytes) {
                Ok(()) if Output::is_stdout(&path) => {}
                Ok(()) => Say { on_stderr: true }.line(format_args!("Wrote {}", path.display())),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// The process that is wanted, or the one that waited most. It has several recordings if it became
    /// another program, or if its pthread locks and those of the library were recorded.
    fn chosen<'p>(&self, profiles: &'p [Profile]) -> anyhow::Result<Chosen<'p>> {
        let most = most(profiles).context("there is no process in the recording")?;
        let Some(wanted) = &self.showing.process else {
            return Ok(Chosen { shown: vec![most], is_asked: false });
        };
        let file = Path::new(wanted).file_name().unwrap_or_default().to_string_lossy();
        let name = file.strip_suffix(&format!(".{EXTENSION}")).unwrap_or(&file);
        let named: Vec<&Profile> = profiles.iter().filter(|profile| profile.recording == name).collect();
        let numbered: Vec<&Profile> =
            profiles.iter().filter(|profile| profile.pid.to_string() == *wanted).collect();
        let text = match (named.is_empty(), numbered.as_slice()) {
            (false, _) => return Ok(Chosen { shown: named, is_asked: true }),
            (true, [first, rest @ ..]) if rest.iter().all(|other| first.is_of_process(other)) => {
                return Ok(Chosen { shown: numbered, is_asked: true });
            }
            (true, []) => format!("no process {wanted} is in the recording; {}", processes(profiles)),
            (true, several) => format!(
                "{} recordings are of processes with the number {wanted}, in PID namespaces of their own or one after the other: \
                 {}; name one of them with `--process NAME`",
                several.len(),
                recordings(several)
            ),
        };
        // The program has run already: nothing is lost because of a slip.
        if self.say.on_stderr {
            let which = which(most, profiles);
            self.say.line(format_args!("Warning: {text}; this is process {which}."));
            return Ok(Chosen { shown: vec![most], is_asked: false });
        }
        bail!(text)
    }
}

/// What is shown.
struct Chosen<'p> {
    shown: Vec<&'p Profile>,
    /// Because it was named.
    is_asked: bool,
}

/// The first of `items`, and how many more there are.
fn few(items: &[String]) -> String {
    /// More are counted.
    const NAMED: usize = 8;
    let more = match items.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", items[..items.len().min(NAMED)].join(", "))
}

/// What names a process among all: its number, or its recording if another process has that number, too.
fn which<'a>(profile: &'a Profile, all: &[Profile]) -> Cow<'a, str> {
    let is_double = |other: &Profile| other.pid == profile.pid && !other.is_of_process(profile);
    match all.iter().any(is_double) {
        true => Cow::Borrowed(&profile.recording),
        false => Cow::Owned(profile.pid.to_string()),
    }
}

/// Recordings, those that waited most first.
fn recordings(profiles: &[&Profile]) -> String {
    let mut sorted = profiles.to_vec();
    sorted.sort_by_key(|profile| std::cmp::Reverse((profile.waited(), profile.signal_wait())));
    let name = |profile: &&Profile| format!("{} ({})", profile.recording, one_line(&file_name(profile)));
    few(&sorted.iter().map(name).collect::<Vec<_>>())
}

/// Which there are.
fn processes(profiles: &[Profile]) -> String {
    let mut known: Vec<(Cow<'_, str>, String)> =
        profiles.iter().map(|profile| (which(profile, profiles), one_line(&file_name(profile)))).collect();
    known.dedup_by(|one, other| one.0 == other.0);
    let named: Vec<String> =
        known.iter().map(|(process, program)| format!("{process} ({program})")).collect();
    match named.as_slice() {
        [one] => format!("recorded is {one}"),
        named => format!("recorded are {}", few(named)),
    }
}

/// The process that waited most.
pub(crate) fn most(profiles: &[Profile]) -> Option<&Profile> {
    profiles.iter().max_by_key(|profile| (profile.waited(), profile.signal_wait()))
}

/// The program's, and whose locks were recorded if they were those of the library.
fn file_name(profile: &Profile) -> String {
    let program = Path::new(&profile.program).file_name().unwrap_or_default().to_string_lossy();
    match profile.locks_of {
        LocksOf::Library => format!("{program}, locks of the Rust library"),
        _ => program.into_owned(),
    }
}

/// A message that other recordings exist.
fn others(all: &[Profile], shown: &Profile, style: Style, say: Say) {
    let others: Vec<String> = all
        .iter()
        .filter(|profile| !std::ptr::eq(*profile, shown) && profile.waited() + profile.signal_wait() > 0)
        .map(|profile| format!("{} ({})", which(profile, all), one_line(&file_name(profile))))
        .collect();
    if !others.is_empty() {
        let locks = text::processes(all, style);
        if !locks.is_empty() {
            say.line(format_args!("{locks}\n"));
        }
        let text = format!(
            "This is the process that waited most. Other processes waited less: {}. `--process PID` shows one of them.",
            few(&others)
        );
        say.line(wrap(&text, style.width, 0));
    }
}

/// The page.
fn page(profiles: &[Profile]) -> anyhow::Result<String> {
    let summaries: Vec<Vec<String>> = profiles
        .iter()
        .map(|profile| {
            let summary = summary::summary(profile);
            std::iter::once(summary.headline).chain(summary.details).collect()
        })
        .collect();
    let mut shown: Vec<html::Shown<'_>> =
        profiles.iter().zip(&summaries).map(|(profile, summary)| html::Shown { profile, summary }).collect();
    shown.sort_by_key(|shown| std::cmp::Reverse((shown.profile.waited(), shown.profile.signal_wait())));
    html::html(&shown).context("cannot make the page")
}

/// The tables of a view, or a line that says why there are none.
fn view(profile: &Profile, view: ViewChoice, style: Style) -> String {
    let shown = tables(profile, view, style);
    if !shown.is_empty() {
        return shown;
    }
    let has_waited = profile.lock_wait() > 0;
    let why = match view {
        _ if profile.detail == Detail::Off => "Nothing is known: recording was off.",
        ViewChoice::Condvars => "No thread waited for a condition variable.",
        ViewChoice::Others => "No thread waited for anything but locks and condition variables.",
        ViewChoice::Slow => "No wait was longer than 0.1 ms.",
        ViewChoice::Outcomes if has_waited && profile.locks_of == LocksOf::Glibc => {
            "The outcomes of waits are not known: glibc's locks do not report them. Record with `--locks spinpark`, or with \
             `--detail full` to see whether threads slept."
        }
        ViewChoice::Outcomes if has_waited => "The outcomes of waits are not known.",
        ViewChoice::Processes if profile.merged.is_none() => {
            "This is one process. `spinpark report A B` adds several recordings up, `--merge` the processes of one."
        }
        ViewChoice::Steps if has_waited => {
            "Nothing stands out: threads waited little, or what is known does not decide what to do. The summary says more."
        }
        ViewChoice::Steps => "No thread waited for a lock.",
        ViewChoice::HeldWaits => "No thread blocked while holding a contended lock.",
        ViewChoice::Split if has_waited => {
            "Whether these locks were held or free while threads waited is not known."
        }
        ViewChoice::Blocking | ViewChoice::Outcomes | ViewChoice::Split => "No thread waited for a lock.",
        _ => "No lock was waited for or counted.",
    };
    wrap(why, style.width, 0)
}

fn tables(profile: &Profile, view: ViewChoice, style: Style) -> String {
    match view {
        ViewChoice::Summary => text::overview(profile, style, usize::MAX),
        ViewChoice::All => text::report(profile, style),
        ViewChoice::Steps => text::steps(profile, style),
        ViewChoice::Locks => text::locks(profile, style),
        ViewChoice::Classes => text::locks(&by_class(profile), style),
        ViewChoice::Split => text::split(profile, style),
        ViewChoice::Blocking => text::blocking(profile, style),
        ViewChoice::HeldWaits => text::held_waits(profile, style),
        ViewChoice::Processes => {
            let tables = [text::spread(profile, style), text::places(profile, style)];
            tables.into_iter().filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
        }
        ViewChoice::Sites => text::sites(profile, style),
        ViewChoice::Freebsd => text::freebsd(profile, style),
        ViewChoice::Condvars => text::condvars(profile, style),
        ViewChoice::Outcomes => text::outcomes(profile, style),
        ViewChoice::Others => text::other_waits(profile, style),
        ViewChoice::Slow => text::slow(profile, style),
    }
}
