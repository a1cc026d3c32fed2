//! All data of a report as one JSON document: the results of all runs, each as its own command writes it.

use serde::Serialize;
use spinpark_measure::environment::Environment;

use super::page::Page;
use crate::documents::outcome::{Entry, Outcome};

/// The version of the document's structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// What the document is called in its field `format`.
pub const FORMAT: &str = "spinpark bench documents";

/// Everything.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    format: &'static str,
    schema: u32,
    end: &'a str,
    command: &'a str,
    quick: bool,
    environment: &'a Environment,
    documents: Vec<OfDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct OfDocument<'a> {
    number: &'a str,
    runs: Vec<Entry>,
}

impl<'a> Document<'a> {
    /// All data of a page, whose documents' outcomes are `outcomes`.
    #[must_use]
    pub fn new(page: &'a Page, outcomes: &[Vec<Outcome>]) -> Self {
        let documents = page.documents.iter().zip(outcomes).map(|(section, outcomes)| OfDocument {
            number: &section.number,
            runs: outcomes.iter().map(Outcome::entry).collect(),
        });
        Self {
            format: FORMAT,
            schema: SCHEMA,
            end: &page.end,
            command: &page.command,
            quick: page.is_quick,
            environment: &page.environment,
            documents: documents.collect(),
        }
    }
}
