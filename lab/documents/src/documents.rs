//! `spinpark-lab documents run`: the tables of the four documents and what this machine measures.
//!
//! What is run, and what of it stands next to which published number, is in each document's `document.toml`.
//! A run is a command line of `spinpark-lab documents`, so each figure of a report can be measured again by
//! itself. The published tables are those of [`published`](crate::published); the report that stands on a
//! run's outcome is [`report::documents`](crate::report::documents).

use std::collections::BTreeMap;

use serde::Deserialize;
use spinpark_lockbench::locks;
use spinpark_lockbench::report::document as of_locks;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::warnings::Warning;
use thiserror::Error;

use crate::workloads::{self, Workload, result as of_workloads};

/// The files, by the document's number.
const FILES: [(&str, &str); 4] = [
    ("001", include_str!("mutex_2010/document.toml")),
    ("002", include_str!("rwsem_2013/document.toml")),
    ("003", include_str!("wake_op_2005/document.toml")),
    ("004", include_str!("mtx_2006/document.toml")),
];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub title: String,
    /// Where it can be read, if it is still there.
    pub link: Option<String>,
    pub machine: String,
    pub claim: String,
    /// What our own counterpart is, and is not.
    #[serde(default, rename = "note")]
    pub notes: Vec<CounterpartNote>,
    #[serde(rename = "run")]
    pub runs: Vec<Run>,
    #[serde(rename = "table")]
    pub tables: Vec<Table>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterpartNote {
    pub text: String,
    /// The first kernel that it is about.
    #[serde(default)]
    pub since: Option<[u32; 2]>,
    /// The first kernel that it is not about any more.
    #[serde(default)]
    pub before: Option<[u32; 2]>,
}

/// A command line of `spinpark-lab documents`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub name: String,
    pub title: String,
    /// Its words, without how long and how often.
    pub command: String,
    /// How long and how often.
    pub full: String,
    /// The same for `--quick`.
    pub quick: String,
    /// About how long a run takes, in seconds, where the amount of work is fixed.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The same for `--quick`.
    #[serde(default)]
    pub quick_seconds: Option<f64>,
}

impl Run {
    /// The words after `spinpark-lab documents`, with another number of rounds if there is one.
    pub fn words(&self, is_quick: bool, rounds: Option<usize>) -> Vec<String> {
        let length = if is_quick { &self.quick } else { &self.full };
        let words = self.command.split_whitespace().chain(length.split_whitespace());
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        let place = words.iter().position(|word| word == "--rounds");
        if let (Some(rounds), Some(value)) = (rounds, place.and_then(|place| words.get_mut(place + 1))) {
            *value = rounds.to_string();
        }
        words
    }

    /// About how long one run takes, if that is not in the words.
    pub fn seconds(&self, is_quick: bool) -> Option<f64> {
        if is_quick { self.quick_seconds.or(self.seconds) } else { self.seconds }
    }
}

/// A published table, with what its numbers are compared with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name among the published ones.
    pub published: String,
    pub title: String,
    /// Headers of published columns, where their names do not say enough.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What a reader must know about it.
    #[serde(default)]
    pub note: Option<String>,
    /// Said where a row needs more CPUs than there are; `{cpus}` is their number.
    #[serde(default)]
    pub beyond: Option<String>,
    /// The column that has the number of tasks of a row.
    #[serde(default)]
    pub tasks: Option<String>,
    /// Columns that follow from the published ones.
    #[serde(default)]
    pub extra: Vec<Extra>,
    #[serde(default)]
    pub ours: Vec<Ours>,
}

/// A column that follows from published ones.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extra {
    pub column: String,
    /// A value per row; none of them if it is only ours.
    #[serde(default)]
    pub values: Vec<String>,
}

/// What the numbers of a column are compared with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ours {
    pub column: String,
    /// The header of ours; "here" unless it says something else.
    #[serde(default)]
    pub header: Option<String>,
    /// The rows, from 0; all of them if there are none.
    #[serde(default)]
    pub rows: Vec<usize>,
    pub run: String,
    #[serde(default)]
    pub variant: Option<String>,
    /// The configuration; of locks: the implementation.
    pub configuration: String,
    /// The number of tasks, where rows do not say.
    #[serde(default)]
    pub tasks: Option<usize>,
    /// CPUs that it needs; as many as there are tasks, unless said otherwise.
    #[serde(default)]
    pub cpus: Option<usize>,
    pub show: Show,
}

/// What is shown of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// The mean of the workload's figure, and its standard deviation.
    Mean,
    /// The change against the baseline; of locks: the change of the throughput.
    Change,
    /// The figure ÷ the baseline's.
    Ratio,
    /// The baseline's figure ÷ this one's: for times.
    SpeedUp,
    Tasks,
    /// A column of the workload, a time.
    Seconds(String),
    /// A column of the workload, a number.
    Number(String),
}

/// Something that does not fit together.
#[derive(Debug, Error)]
pub enum Invalid {
    #[error("there is no document {0}; there are: 001, 002, 003, 004")]
    Unknown(String),
    #[error("the definition of document {number} is wrong: {error}")]
    Toml { number: &'static str, error: toml::de::Error },
}

/// The documents with these numbers, in their order; all of them if there are none.
pub fn documents(numbers: &[String]) -> Result<Vec<(&'static str, Definition)>, Invalid> {
    if let Some(unknown) = numbers.iter().find(|number| FILES.iter().all(|(known, _)| known != number)) {
        return Err(Invalid::Unknown(unknown.clone()));
    }
    let wanted = |number: &str| numbers.is_empty() || numbers.iter().any(|wanted| wanted == number);
    let read = |(number, text): (&'static str, &str)| {
        let definition = toml::from_str(text).map_err(|error| Invalid::Toml { number, error })?;
        Ok((number, definition))
    };
    FILES.into_iter().filter(|(number, _)| wanted(number)).map(read).collect()
}

#[derive(Debug)]
pub struct RunReport {
    pub name: String,
    pub title: String,
    pub command: String,
    pub what: What,
    /// Why it ended early, if a run failed.
    pub failure: Option<String>,
    pub warnings: Vec<Warning>,
}

#[derive(Debug)]
pub enum What {
    Workload {
        workload: &'static Workload,
        record: Box<of_workloads::Record>,
        results: Vec<workloads::result::CellResult>,
        noise: Noise,
    },
    Locks {
        record: Box<of_locks::Record>,
        results: Vec<locks::result::CellResult>,
        noise: Noise,
    },
    Nothing(String),
}

impl RunReport {
    /// Why there are no numbers, or fewer than were asked for.
    pub fn obstacle(&self) -> Option<String> {
        let failed = |end: &str| match (end, &self.failure) {
            ("complete", _) => None,
            ("interrupted", _) => Some(String::from("Interrupted: these are the rounds until then.")),
            (_, None) => Some(String::from("A run failed: these are the rounds before it.")),
            (_, Some(why)) => Some(format!("A run failed: these are the rounds before it.\n{why}")),
        };
        match &self.what {
            What::Nothing(why) => Some(why.clone()),
            What::Workload { record, .. } => failed(&record.head.end),
            What::Locks { record, .. } => failed(&record.head.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::{PUBLISHED, by_name};

    #[test]
    fn every_published_table_is_there_once() {
        let documents = documents(&[]).unwrap();
        let tables = documents.iter().flat_map(|(_, document)| &document.tables);
        let mut names: Vec<&str> = tables.map(|table| table.published.as_str()).collect();
        names.sort_unstable();
        let mut published: Vec<&str> = PUBLISHED.iter().map(|published| published.name).collect();
        published.sort_unstable();
        assert_eq!(names, published);
    }

    #[test]
    fn columns_rows_and_runs_are_there() {
        for (number, document) in documents(&[]).unwrap() {
            for table in &document.tables {
                let published = by_name(&table.published).unwrap().table();
                let has = |column: &String| published.header.contains(&column.as_str());
                assert!(table.headers.keys().all(has), "{number} {}: {:?}", table.published, table.headers);
                assert!(table.tasks.iter().all(has), "{number} {}", table.published);
                for extra in &table.extra {
                    let values = extra.values.len();
                    assert!(values == 0 || values == published.rows.len(), "{number} {}", extra.column);
                }
                for ours in &table.ours {
                    let is_extra = table.extra.iter().any(|extra| extra.column == ours.column);
                    assert!(is_extra || has(&ours.column), "{number}: {ours:?}");
                    assert!(ours.rows.iter().all(|&row| row < published.rows.len()), "{number}: {ours:?}");
                    assert!(ours.tasks.is_some() || table.tasks.is_some(), "{number}: {ours:?}");
                    assert!(document.runs.iter().any(|run| run.name == ours.run), "{number}: {ours:?}");
                }
            }
        }
    }

    #[test]
    fn every_run_says_how_often() {
        for (number, document) in documents(&[]).unwrap() {
            for (run, is_quick) in document.runs.iter().flat_map(|run| [(run, true), (run, false)]) {
                let words = run.words(is_quick, Some(77));
                assert!(words.iter().any(|word| word == "77"), "{number}: {words:?}");
            }
        }
    }

    #[test]
    fn numbers_that_are_none() {
        let two = documents(&[String::from("003"), String::from("001")]).unwrap();
        assert_eq!(two.iter().map(|(number, _)| *number).collect::<Vec<_>>(), ["001", "003"]);
        assert!(documents(&[String::from("005")]).unwrap_err().to_string().contains("there are: 001"));
    }
}
