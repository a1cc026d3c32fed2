//! Cells: a variant of a workload at a number of tasks, with configurations to be compared.

use std::fmt;

use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;
use spinpark_measure::rounds::cells::{self, Plan};

use super::job::Report;
use super::resources::Requirements;

/// One of the things that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Its name in tables.
    pub name: String,
    /// What it does; the workload knows.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub parameters: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Implementation>,
}

impl Configuration {
    /// A configuration without locks.
    pub fn new(name: impl Into<String>, parameters: &impl Serialize) -> Self {
        // Parameters have only strings and numbers in them, so this cannot fail.
        let parameters = serde_json::to_value(parameters).unwrap_or_default();
        Self { name: name.into(), parameters, lock: None }
    }

    /// The same with the locks of `lock`.
    pub fn with_lock(mut self, lock: &Implementation) -> Self {
        self.lock = Some(lock.clone());
        self
    }
}

/// A variant of a workload at a number of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The variant; empty if there is only one.
    pub variant: String,
    pub tasks: usize,
    /// What is compared; the first one is the baseline and runs twice.
    pub configurations: Vec<Configuration>,
    #[serde(skip)]
    pub needs: Requirements,
}

impl Cell {
    /// The configuration of that name.
    pub fn configuration(&self, name: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|configuration| configuration.name == name)
    }

    /// Makes the configuration `name` the baseline.
    pub fn set_baseline(&mut self, name: &str) -> Result<(), String> {
        let Some(place) = self.configurations.iter().position(|configuration| configuration.name == name)
        else {
            let names: Vec<&str> =
                self.configurations.iter().map(|configuration| configuration.name.as_str()).collect();
            return Err(format!(
                "there is no configuration `{name}` to be the baseline; there are: {}",
                names.join(", ")
            ));
        };
        self.configurations[..=place].rotate_right(1);
        Ok(())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variant, tasks, .. } = self;
        let blank = if variant.is_empty() { "" } else { " " };
        write!(f, "{variant}{blank}× {tasks}")
    }
}

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The round, from 0.
    pub round: usize,
    /// The place in the block, from 0.
    pub order: usize,
    pub configuration: String,
    /// Whether it is the baseline once more (A/A).
    pub again: bool,
    /// Bytes of environment that mean nothing.
    pub padding: usize,
    #[serde(flatten)]
    pub report: Report,
}

/// A cell with its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    #[serde(flatten)]
    pub cell: Cell,
    pub runs: Vec<Run>,
}

impl Measured {
    pub fn new(cell: Cell) -> Self {
        Self { cell, runs: Vec::new() }
    }
}

impl cells::Cell for Measured {
    type Report = Report;

    fn configurations(&self) -> Vec<String> {
        self.cell.configurations.iter().map(|configuration| configuration.name.clone()).collect()
    }

    fn add(&mut self, plan: Plan, report: Report) {
        let Plan { round, order, configuration, again, padding } = plan;
        self.runs.push(Run { round, order, configuration, again, padding, report });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_first_and_the_others_keep_their_order() {
        let configurations = ["a", "b", "c"].map(|name| Configuration::new(name, &())).to_vec();
        let mut cell =
            Cell { variant: String::new(), tasks: 2, configurations, needs: Requirements::default() };
        cell.set_baseline("c").unwrap();
        assert_eq!(
            cell.configurations.iter().map(|configuration| configuration.name.as_str()).collect::<String>(),
            "cab"
        );
        assert!(cell.set_baseline("d").unwrap_err().contains("there are: c, a, b"));
        assert_eq!(cell.to_string(), "× 2");
    }
}
