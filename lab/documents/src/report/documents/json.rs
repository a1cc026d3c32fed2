//! All data of a report as one JSON document: the results of all runs, each as its own command writes it; and
//! the report again from it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spinpark_lockbench::locks;
use spinpark_lockbench::locks::result::fronts;
use spinpark_lockbench::report::document as of_locks;
use spinpark_measure::report::reading;
use spinpark_measure::rounds::environment::Environment;
use spinpark_measure::rounds::machine::Noise;
use spinpark_measure::rounds::warnings::Warning;

use super::page::{Page, section};
use crate::documents::{RunReport, What, documents};
use crate::registry::by_name;
use crate::workloads::{self, result as of_workloads};

/// The version of the document's structure. It grows when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench documents";

#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    format: String,
    schema: u32,
    end: String,
    command: String,
    #[serde(default)]
    quick: bool,
    environment: Environment,
    documents: Vec<OfDocument>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OfDocument {
    number: String,
    runs: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    command: String,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
    /// What went wrong, if a run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// The document that the command itself would have written.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

impl Document {
    /// All data of a page, whose documents' outcomes are `outcomes`.
    pub fn new(page: &Page, outcomes: &[Vec<RunReport>]) -> Self {
        let documents = page.documents.iter().zip(outcomes).map(|(section, outcomes)| OfDocument {
            number: section.number.clone(),
            runs: outcomes.iter().map(Entry::new).collect(),
        });
        Self {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            end: page.end.clone(),
            command: page.command.clone(),
            quick: page.is_quick,
            environment: page.environment.clone(),
            documents: documents.collect(),
        }
    }
}

impl Entry {
    fn new(outcome: &RunReport) -> Self {
        let warnings = &outcome.warnings;
        let result = match &outcome.what {
            What::Nothing(_) => None,
            What::Workload { record, results, noise, .. } => {
                serde_json::to_value(of_workloads::Document { record, noise, warnings, results }).ok()
            }
            What::Locks { record, results, noise } => {
                let fronts = &fronts(results);
                let document = of_locks::Document {
                    record,
                    noise,
                    warnings,
                    results,
                    summaries: &[],
                    fronts,
                    bounds: &[],
                };
                serde_json::to_value(document).ok()
            }
        };
        let (name, command) = (outcome.name.clone(), outcome.command.clone());
        Self { name, command, obstacle: outcome.obstacle(), failure: outcome.failure.clone(), result }
    }
}

/// What a command's own document has besides its record.
#[derive(Default, Deserialize)]
struct Around {
    #[serde(default)]
    noise: Noise,
    #[serde(default)]
    warnings: Vec<Warning>,
}

/// The page of a document; all conclusions are drawn again.
pub fn parse(text: &str) -> Result<Page, String> {
    let document: Document = reading::parse(text, FORMAT, SCHEMA)?;
    let of_document = |of: OfDocument| {
        let definition = documents(std::slice::from_ref(&of.number)).map_err(|error| error.to_string())?;
        let (number, definition) = definition.into_iter().next().ok_or("a report of no document")?;
        let title = |name: &str| {
            let run = definition.runs.iter().find(|run| run.name == name);
            run.map_or_else(|| name.to_owned(), |run| run.title.clone())
        };
        let outcomes = of.runs.into_iter().map(|entry| {
            let title = title(&entry.name);
            outcome(entry, title)
        });
        let outcomes = outcomes.collect::<Result<Vec<_>, String>>()?;
        Ok(section(number, &definition, &outcomes, &document.environment))
    };
    let documents = document.documents.into_iter().map(of_document).collect::<Result<_, String>>()?;
    Ok(Page {
        environment: document.environment.clone(),
        command: document.command,
        end: document.end,
        is_quick: document.quick,
        documents,
    })
}

fn outcome(entry: Entry, title: String) -> Result<RunReport, String> {
    let Entry { name, command, obstacle, failure, result } = entry;
    let (what, warnings) = match result {
        None => (What::Nothing(obstacle.unwrap_or_default()), Vec::new()),
        Some(result) => what(&result)?,
    };
    Ok(RunReport { name, title, command, what, failure, warnings })
}

fn what(result: &Value) -> Result<(What, Vec<Warning>), String> {
    // Warnings that a newer command wrote may have other words; the numbers are worth showing all the same.
    let Around { noise, warnings } = Around::deserialize(result).unwrap_or_default();
    let text = result.to_string();
    if result["format"] == of_locks::FORMAT {
        let record = Box::new(of_locks::Record::parse(&text)?);
        let cells = record.cells.iter();
        let results =
            cells.filter_map(|cell| locks::result::CellResult::new(cell, record.head.seed)).collect();
        return Ok((What::Locks { record, results, noise }, warnings));
    }
    let record = Box::new(of_workloads::Record::parse(&text)?);
    let workload = by_name(&record.workload);
    let workload = workload.ok_or_else(|| format!("a report with the workload `{}`", record.workload))?;
    let cells = record.cells.iter();
    let results = cells
        .filter_map(|cell| workloads::result::CellResult::new(cell, workload.figure, record.head.seed))
        .collect();
    Ok((What::Workload { workload, record, results, noise }, warnings))
}
