//! All data of the simulator's commands as JSON. Nothing in it depends on the machine that simulates, or on
//! when it does.

use serde::Serialize;
use spinpark_documents::simulated::{Figure, Table};
use spinpark_measure::report::front::Front;
use spinpark_sim::workload::Report;

use super::sweep::fronts;
use crate::schema::SCHEMA;
use crate::simulate::limit::Limit;
use crate::simulate::summary::Summary;
use crate::simulate::sweep::Cell;
use crate::simulate::weak::Weak;

/// `spinpark sim run`.
#[derive(Debug, Serialize)]
pub struct Run<'a> {
    format: &'static str,
    schema: u32,
    end: &'a str,
    command: &'a str,
    limit: Limit,
    sentence: String,
    weak: Vec<Weak>,
    summary: &'a Summary,
    runs: &'a [Report],
}

impl<'a> Run<'a> {
    /// Of these runs, made by `command`; `end` is "complete" or "interrupted".
    #[must_use]
    pub fn new(end: &'a str, command: &'a str, summary: &'a Summary, runs: &'a [Report]) -> Self {
        let limit = Limit::of(summary);
        let sentence = super::answer::sentence(&limit);
        let weak = Weak::of(summary);
        Self {
            format: "spinpark sim run",
            schema: SCHEMA,
            end,
            command,
            limit,
            sentence,
            weak,
            summary,
            runs,
        }
    }
}

/// `spinpark sim sweep`.
#[derive(Debug, Serialize)]
pub struct Sweep<'a> {
    format: &'static str,
    schema: u32,
    end: &'a str,
    command: &'a str,
    cells: &'a [Cell],
    fronts: Vec<Beside>,
}

/// Throughput beside CPU time.
#[derive(Debug, Serialize)]
struct Beside {
    /// The cells, in words.
    of: String,
    #[serde(flatten)]
    front: Front,
}

impl<'a> Sweep<'a> {
    /// Of these cells.
    #[must_use]
    pub fn new(end: &'a str, command: &'a str, cells: &'a [Cell]) -> Self {
        let fronts = fronts(cells).into_iter().map(|(of, front)| Beside { of, front }).collect();
        Self { format: "spinpark sim sweep", schema: SCHEMA, end, command, cells, fronts }
    }
}

/// `spinpark sim tables`.
#[derive(Debug, Serialize)]
pub struct Tables<'a> {
    format: &'static str,
    schema: u32,
    end: &'a str,
    command: &'a str,
    is_quick: bool,
    tables: Vec<Named<'a>>,
}

#[derive(Debug, Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    table: &'a Table,
    /// What follows from each figure.
    judged: Vec<Judged>,
}

#[derive(Debug, Serialize)]
struct Judged {
    relative_error: Option<f64>,
    same_sign: Option<bool>,
    holds: Option<bool>,
}

impl From<&Figure> for Judged {
    fn from(figure: &Figure) -> Self {
        Self { relative_error: figure.relative_error(), same_sign: figure.same_sign(), holds: figure.holds() }
    }
}

impl<'a> Tables<'a> {
    /// Of these tables, by name.
    #[must_use]
    pub fn new(end: &'a str, command: &'a str, is_quick: bool, tables: &'a [(String, Table)]) -> Self {
        let named = |(name, table): &'a (String, Table)| Named {
            name,
            table,
            judged: table.figures.iter().map(Judged::from).collect(),
        };
        let tables = tables.iter().map(named).collect();
        Self { format: "spinpark sim tables", schema: SCHEMA, end, command, is_quick, tables }
    }
}
