//! Files of lines, put together.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use spinpark_sim::workload::{Report, Setting};

use super::Shard;
use super::lines::{FORMAT, Header, Made};
use crate::schema::SCHEMA;
use crate::simulate::sweep::Ladder;

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
#[non_exhaustive]
pub enum MergeError {
    /// See the message.
    #[error(
        "{file}, line {line}: this is no line of a sweep\nMerge files that `spinpark sim sweep --json-lines FILE` has written"
    )]
    Foreign {
        /// The file.
        file: String,
        /// From 1.
        line: usize,
    },
    /// See the message.
    #[error("{0} is empty\nMerge files that `spinpark sim sweep --json-lines FILE` has written")]
    Empty(String),
    /// See the message.
    #[error("{file}, line {line}: the line is cut off or damaged\nSimulate that shard again")]
    Damaged {
        /// The file.
        file: String,
        /// From 1.
        line: usize,
    },
    /// See the message.
    #[error(
        "{file} has schema {schema}, and this spinpark reads schema {SCHEMA}\nMerge with the spinpark that made it"
    )]
    Schema {
        /// The file.
        file: String,
        /// Its schema.
        schema: u32,
    },
    /// See the message.
    #[error(
        "{one} and {other} are shards of different sweeps: they differ in {what}\nMerge shards of one request only"
    )]
    Different {
        /// A file.
        one: String,
        /// Another one.
        other: String,
        /// In what.
        what: String,
    },
    /// See the message.
    #[error(
        "{one} and {other} were made by different builds of spinpark ({builds})\nA seed gives the same run only for one \
         build: copy one `spinpark` to all machines"
    )]
    Builds {
        /// A file.
        one: String,
        /// Another one.
        other: String,
        /// Which.
        builds: String,
    },
    /// See the message.
    #[error(
        "run {run} differs between {one} and {other}\nOne of the files is damaged: simulate both shards again"
    )]
    Conflict {
        /// Its number.
        run: usize,
        /// A file.
        one: String,
        /// Another one.
        other: String,
    },
    /// See the message.
    #[error("{0}")]
    Missing(String),
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
        let file = || input.name.clone();
        let mut has_header = false;
        for (number, line) in input.text.lines().enumerate() {
            let line_number = number + 1;
            let damaged = || MergeError::Damaged { file: file(), line: line_number };
            if has_header && line.starts_with(RUN) {
                let made = serde_json::from_str(line).map_err(|_| damaged())?;
                self.add(Found { made, line, file: &input.name, line_number })?;
                continue;
            }
            match serde_json::from_str::<Format>(line) {
                Ok(Format { format, .. }) if format != FORMAT => {
                    return Err(MergeError::Foreign { file: file(), line: line_number });
                }
                Ok(Format { schema, .. }) if schema != SCHEMA => {
                    return Err(MergeError::Schema { file: file(), schema });
                }
                Ok(_) => {
                    self.header(serde_json::from_str(line).map_err(|_| damaged())?, &input.name)?;
                    has_header = true;
                }
                Err(_) if has_header => return Err(damaged()),
                Err(_) => return Err(MergeError::Foreign { file: file(), line: line_number }),
            }
        }
        if has_header { Ok(()) } else { Err(MergeError::Empty(file())) }
    }

    fn header(&mut self, header: Header, file: &'a str) -> Result<(), MergeError> {
        self.shards.extend(header.shard);
        let Some((first, one)) = &self.first else {
            self.first = Some((header, file));
            return Ok(());
        };
        let (one, other) = (String::from(*one), file.to_owned());
        if let Some(what) = difference(first, &header) {
            return Err(MergeError::Different { one, other, what });
        }
        if first.build != header.build {
            return Err(MergeError::Builds {
                one,
                other,
                builds: format!("{}, {}", first.build, header.build),
            });
        }
        Ok(())
    }

    fn add(&mut self, found: Found<'a>) -> Result<(), MergeError> {
        let (run, file, line) = (found.made.run, found.file, found.line);
        match self.runs.insert(run, found) {
            Some(known) if known.line != line => {
                Err(MergeError::Conflict { run, one: known.file.to_owned(), other: file.to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn whole(self) -> Result<Merged, MergeError> {
        let Some((header, _)) = self.first else {
            return Err(MergeError::Empty(String::from("the request")));
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
            return Err(MergeError::Missing(said));
        }
        let mut text = serde_json::to_string(&header).unwrap_or_default();
        let mut reports = Vec::new();
        for (run, Found { made: Made { report, .. }, line, file, line_number }) in self.runs {
            let fits = settings.get(run).is_some_and(|setting| {
                (&setting.lock, &setting.workload, setting.threads, setting.seed)
                    == (&report.lock, &report.workload, report.threads, report.seed)
            });
            if !fits {
                return Err(MergeError::Damaged { file: file.to_owned(), line: line_number });
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
    let list = |names: &[String]| names.join(",");
    let numbers = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let seeds =
        |seeds: &[u64]| format!("{} from {}", seeds.len(), seeds.first().copied().unwrap_or_default());
    let machines = |sweep: &Ladder| {
        sweep.machines.iter().map(|machine| machine.name.as_str()).collect::<Vec<_>>().join(",")
    };
    let said = |what: &str, one: String, other: String| Some(format!("{what} ({one}; {other})"));
    if machines(a) != machines(b) {
        said("--machine", machines(a), machines(b))
    } else if a.machines != b.machines {
        Some(format!("figures of the machine {}", machines(a)))
    } else if a.workloads != b.workloads {
        said("--workload", list(&a.workloads), list(&b.workloads))
    } else if a.locks != b.locks {
        said("--locks", list(&a.locks), list(&b.locks))
    } else if a.threads != b.threads {
        said("--threads", numbers(&a.threads), numbers(&b.threads))
    } else if a.seeds != b.seeds {
        said("seeds", seeds(&a.seeds), seeds(&b.seeds))
    } else if a.for_ns != b.for_ns {
        said("--duration", format!("{} ns", a.for_ns), format!("{} ns", b.for_ns))
    } else {
        (one.runs != other.runs).then(|| String::from("the number of runs"))
    }
}
