//! A sweep in parts: which runs a shard has, the lines that it writes, and how files of lines become the
//! whole again.
//!
//! One seed is one run, so a run has the same line wherever it is made: lines that are put in order are those
//! of the whole.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher as _};
use std::str::FromStr;
use std::{env, fs, io};

use serde::{Deserialize, Serialize};

use crate::SCHEMA;
use crate::estimate::weight;
use crate::sweep::Ladder;
use spinpark_sim::workload::{Report, Setting};

/// Part `number` of `of` parts of a sweep; the first one is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// None: there is no such part.
    #[must_use]
    pub fn new(number: u32, of: u32) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// The runs that it has, in the order of `settings`.
    ///
    /// Runs of about the same length are dealt out after each other, longest first. Among those, chance
    /// decides (the same for each shard): locks differ by a factor of ten, and by turns a shard could have
    /// the same lock each time.
    #[must_use]
    pub fn runs(self, settings: &[Setting]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..settings.len()).collect();
        order.sort_by(|&a, &b| {
            weight(&settings[b]).total_cmp(&weight(&settings[a])).then(mixed(a).cmp(&mixed(b)))
        });
        let mut mine: Vec<usize> =
            order.into_iter().skip(self.number as usize - 1).step_by(self.of as usize).collect();
        mine.sort_unstable();
        mine
    }
}

/// A bijection without a pattern (the finaliser of SplitMix64).
fn mixed(number: usize) -> u64 {
    let mut bits = (number as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            None => Err(String::from("write K/N, as in 3/8: the third of eight shards")),
            Some((_, 0)) => Err(String::from("a sweep has at least one shard: 1/1")),
            Some((0, of)) => Err(format!("shards count from 1: 1/{of} … {of}/{of}")),
            Some((number, of)) => Self::new(number, of)
                .ok_or_else(|| format!("there is no shard {number} of {of}: the last one is {of}/{of}")),
        }
    }
}

/// The field `format` of the first line.
pub const FORMAT: &str = "spinpark sim sweep lines";

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// The version of the documents' structure.
    pub schema: u32,
    /// Which build made it: a seed is the same run only with the same locks.
    pub build: String,
    /// How many runs the whole sweep has.
    pub runs: usize,
    /// Which part of the sweep follows, of how many; null: all of it.
    pub shard: Option<(u32, u32)>,
    /// What was asked for.
    pub sweep: Ladder,
}

impl Header {
    /// Of this sweep, or a shard of it, made by this program.
    ///
    /// # Errors
    ///
    /// The program's file cannot be read.
    pub fn new(sweep: &Ladder, shard: Option<Shard>) -> io::Result<Self> {
        Ok(Self {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            build: build()?,
            runs: sweep.settings().len(),
            shard: shard.map(|Shard { number, of }| (number, of)),
            sweep: sweep.clone(),
        })
    }
}

/// The version, and a hash of the program: two builds of one version may be of different sources.
fn build() -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(env::current_exe()?)?);
    Ok(format!("{} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish()))
}

/// A line for a run: its number in the sweep, from 0, and all that is known about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Made<R> {
    /// In the order of [`Ladder::settings`].
    pub run: usize,
    /// What it gave.
    pub report: R,
}

/// All lines, without those of runs that were not made.
///
/// # Errors
///
/// None that is known: a report can always be written.
pub fn text<'a>(
    header: &Header,
    runs: impl Iterator<Item = (usize, &'a Report)>,
) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(header)?;
    for (run, report) in runs {
        text.push('\n');
        text += &serde_json::to_string(&Made { run, report })?;
    }
    Ok(text)
}

/// The lines of a file; several shards may follow each other in it.
#[derive(Debug)]
pub struct Input {
    /// Its name, for messages.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// A whole sweep.
#[derive(Debug)]
pub struct Merged {
    /// That of a sweep that was made in one go.
    pub header: Header,
    /// All runs, in their order.
    pub reports: Vec<Option<Report>>,
    /// All lines: the bytes that such a sweep writes.
    pub text: String,
}

/// Why files are no whole sweep.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MergeError(String);

/// What the files have to be.
const MERGE_LINES: &str = "Merge files that `spinpark-lab sim sweep --json-lines FILE` has written";

impl MergeError {
    fn foreign(file: &str, line: usize) -> Self {
        Self(format!("{file}, line {line}: this is no line of a sweep\n{MERGE_LINES}"))
    }

    fn empty(file: &str) -> Self {
        Self(format!("{file} is empty\n{MERGE_LINES}"))
    }

    fn damaged(file: &str, line: usize) -> Self {
        Self(format!("{file}, line {line}: the line is cut off or damaged\nSimulate that shard again"))
    }
}

impl Merged {
    /// The sweep of which these are the shards; in any order, a run may be there more than once.
    ///
    /// # Errors
    ///
    /// They are no lines of one sweep, or not all of its runs are there.
    pub fn of(inputs: &[Input]) -> Result<Self, MergeError> {
        let mut parts = Parts::default();
        inputs.iter().try_for_each(|input| parts.read(input))?;
        parts.whole()
    }
}

/// What has been read.
#[derive(Default)]
struct Parts<'a> {
    /// The first header, and its file.
    first: Option<(Header, &'a str)>,
    /// The shards that were there.
    shards: Vec<(u32, u32)>,
    /// By number.
    runs: BTreeMap<usize, Found<'a>>,
}

/// A run, and where it was found.
struct Found<'a> {
    made: Made<Report>,
    line: &'a str,
    file: &'a str,
    line_number: usize,
}

/// How the line of a run begins.
const RUN: &str = "{\"run\":";

#[derive(Deserialize)]
struct Format {
    format: String,
    schema: u32,
}

impl<'a> Parts<'a> {
    fn read(&mut self, input: &'a Input) -> Result<(), MergeError> {
        let mut has_header = false;
        for (number, line) in input.text.lines().enumerate() {
            let line_number = number + 1;
            let damaged = || MergeError::damaged(&input.name, line_number);
            if has_header && line.starts_with(RUN) {
                let made = serde_json::from_str(line).map_err(|_| damaged())?;
                self.add(Found { made, line, file: &input.name, line_number })?;
                continue;
            }
            match serde_json::from_str::<Format>(line) {
                Ok(Format { format, .. }) if format != FORMAT => {
                    return Err(MergeError::foreign(&input.name, line_number));
                }
                Ok(Format { schema, .. }) if schema != SCHEMA => {
                    let what = format!("has schema {schema}, and this spinpark reads schema {SCHEMA}");
                    return Err(MergeError(format!(
                        "{} {what}\nMerge with the spinpark that made it",
                        input.name
                    )));
                }
                Ok(_) => {
                    self.header(serde_json::from_str(line).map_err(|_| damaged())?, &input.name)?;
                    has_header = true;
                }
                Err(_) if has_header => return Err(damaged()),
                Err(_) => return Err(MergeError::foreign(&input.name, line_number)),
            }
        }
        if has_header { Ok(()) } else { Err(MergeError::empty(&input.name)) }
    }

    fn header(&mut self, header: Header, file: &'a str) -> Result<(), MergeError> {
        self.shards.extend(header.shard);
        let Some((first, one)) = &self.first else {
            self.first = Some((header, file));
            return Ok(());
        };
        if let Some(what) = difference(first, &header) {
            return Err(MergeError(format!(
                "{one} and {file} are shards of different sweeps: they differ in {what}\nMerge shards of one request only"
            )));
        }
        if first.build != header.build {
            return Err(MergeError(format!(
                "{one} and {file} were made by different builds of spinpark ({}, {})\nA seed gives the same run only for one \
                 build: copy one `spinpark-lab` to all machines",
                first.build, header.build
            )));
        }
        Ok(())
    }

    fn add(&mut self, found: Found<'a>) -> Result<(), MergeError> {
        let (run, file, line) = (found.made.run, found.file, found.line);
        match self.runs.insert(run, found) {
            Some(known) if known.line != line => Err(MergeError(format!(
                "run {run} differs between {} and {file}\nOne of the files is damaged: simulate both shards again",
                known.file
            ))),
            _ => Ok(()),
        }
    }

    fn whole(self) -> Result<Merged, MergeError> {
        let Some((header, _)) = self.first else {
            return Err(MergeError::empty("the request"));
        };
        let header = Header { shard: None, ..header };
        let settings = header.sweep.settings();
        let missing: Vec<usize> = (0..header.runs).filter(|run| !self.runs.contains_key(run)).collect();
        if !missing.is_empty() {
            let at = |run: usize| settings.get(run);
            let shards = Self::lacking(&self.shards, &settings, &missing);
            let first = missing.first().and_then(|&run| at(run)).map(|setting| {
                let (lock, workload, threads, seed) =
                    (&setting.lock, &setting.workload, setting.threads, setting.seed);
                format!("{lock}, {workload} × {threads} on {}, seed {seed}", setting.machine.name)
            });
            let mut said = format!("{} of {} runs are missing", missing.len(), header.runs);
            let _ = match shards {
                Some(shards) => {
                    write!(said, ": those of --shard {shards}\nSimulate these shards, and merge again")
                }
                None => {
                    write!(said, ", the first is {}\nMerge all files of the sweep", first.unwrap_or_default())
                }
            };
            return Err(MergeError(said));
        }
        let mut text = serde_json::to_string(&header).unwrap_or_default();
        let mut reports = Vec::new();
        for (run, Found { made: Made { report, .. }, line, file, line_number }) in self.runs {
            let fits = settings.get(run).is_some_and(|setting| {
                (&setting.lock, &setting.workload, setting.threads, setting.seed)
                    == (&report.lock, &report.workload, report.threads, report.seed)
            });
            if !fits {
                return Err(MergeError::damaged(file, line_number));
            }
            reports.push(Some(report));
            text.push('\n');
            text += line;
        }
        Ok(Merged { header, reports, text })
    }

    /// Which shards have the missing runs, if all files are shards of the same division.
    fn lacking(shards: &[(u32, u32)], settings: &[Setting], missing: &[usize]) -> Option<String> {
        let &(_, of) = shards.first()?;
        if shards.iter().any(|&(_, other)| other != of) {
            return None;
        }
        let is_lacking =
            |shard: &Shard| shard.runs(settings).iter().any(|run| missing.binary_search(run).is_ok());
        let lacking = (1..=of).filter_map(|number| Shard::new(number, of)).filter(is_lacking);
        Some(lacking.map(|shard| shard.to_string()).collect::<Vec<_>>().join(", "))
    }
}

/// In which part of the request two sweeps differ.
fn difference(one: &Header, other: &Header) -> Option<String> {
    let (a, b) = (&one.sweep, &other.sweep);
    let of = |differs: bool, what: &str, said: &dyn Fn(&Ladder) -> String| {
        differs.then(|| format!("{what} ({}; {})", said(a), said(b)))
    };
    let machines = |sweep: &Ladder| {
        sweep.machines.iter().map(|machine| machine.name.as_str()).collect::<Vec<_>>().join(",")
    };
    let threads = |sweep: &Ladder| sweep.threads.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let seeds = |Ladder { seeds, .. }: &Ladder| {
        format!("{} from {}", seeds.len(), seeds.first().copied().unwrap_or_default())
    };
    let figures = || (a.machines != b.machines).then(|| format!("figures of the machine {}", machines(a)));
    of(machines(a) != machines(b), "--machine", &machines)
        .or_else(figures)
        .or_else(|| of(a.workloads != b.workloads, "--workload", &|sweep| sweep.workloads.join(",")))
        .or_else(|| of(a.locks != b.locks, "--locks", &|sweep| sweep.locks.join(",")))
        .or_else(|| of(a.threads != b.threads, "--threads", &threads))
        .or_else(|| of(a.seeds != b.seeds, "seeds", &seeds))
        .or_else(|| of(a.for_ns != b.for_ns, "--duration", &|sweep| format!("{} ns", sweep.for_ns)))
        .or_else(|| (one.runs != other.runs).then(|| String::from("the number of runs")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_sim::machine::Machine;

    #[test]
    fn every_run_is_in_one_shard_and_shards_weigh_the_same() {
        let mut settings = Vec::new();
        for threads in [1, 8, 64, 512] {
            for lock in ["a", "b", "c", "d", "e"] {
                for seed in 0..3 {
                    let setting = Setting::new(Machine::plain(64), lock, "long", threads);
                    settings.push(Setting { seed, ..setting });
                }
            }
        }
        for of in [1, 2, 3, 5, 7, 60, 100] {
            let shards: Vec<_> = (1..=of).map(|k| Shard::new(k, of).unwrap().runs(&settings)).collect();
            let mut all: Vec<_> = shards.concat();
            all.sort_unstable();
            assert_eq!(all, (0..60).collect::<Vec<_>>(), "{of}");
            assert!(shards.iter().all(|runs| runs.is_sorted()));
            let longest = weight(&settings[59]);
            let of_shard = |runs: &Vec<usize>| runs.iter().map(|&run| weight(&settings[run])).sum::<f64>();
            let weights: Vec<f64> = shards.iter().map(of_shard).collect();
            let (low, high) =
                weights.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), w| (l.min(*w), h.max(*w)));
            assert!(high - low <= longest, "{of}: {low} to {high}");
        }
        // Of eight shards none has one lock only.
        for number in 1..=8 {
            let runs = Shard::new(number, 8).unwrap().runs(&settings);
            assert!(
                runs.iter().any(|&run| settings[run].lock != settings[runs[0]].lock),
                "{number}: {runs:?}"
            );
        }
    }

    #[test]
    fn shards_in_words() {
        let said = |text: &str| text.parse::<Shard>().unwrap_err();
        assert_eq!("3/8".parse(), Ok(Shard { number: 3, of: 8 }));
        assert!(
            said("3").contains("as in 3/8") && said("-1/2").contains("K/N") && said("1/2/3").contains("K/N")
        );
        assert!(said("0/3").contains("from 1: 1/3 … 3/3"));
        assert!(said("4/3").contains("the last one is 3/3") && said("1/0").contains("at least one"));
    }
}
