//! A machine file: what stands in it, before it is known whether a machine can be made of it.

use std::collections::BTreeMap;
use std::fmt;

use toml::{Table, Value};

use super::error::MachineError;
use super::figure::{self, Figure};
use super::keys::{KEYS, SHAPE, find, nearest};

/// CPUs of a machine, and each count of which they are the product: tables in the simulator are made for so
/// many.
pub(super) const CPUS: std::ops::RangeInclusive<u32> = 1..=1024;

/// What stands at the top of a file, beside the tables.
const TOP: [&str; 4] = ["name", "about", "notes", "based_on"];

/// A machine file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Where it was read.
    pub file: String,
    /// The name by which the machine is chosen.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// What is known about it, and what is not.
    pub notes: String,
    /// The machine from which all is taken that does not stand here.
    pub based_on: Option<String>,
    /// The shape, as far as it stands here.
    pub shape: ShapeSheet,
    /// All figures that stand here, by table and name.
    pub figures: BTreeMap<(&'static str, &'static str), Figure>,
}

/// The table `shape`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShapeSheet {
    /// Sockets, caches, cores, threads.
    pub counts: BTreeMap<&'static str, u32>,
    /// How the sockets are linked.
    pub topology: Option<Topology>,
    /// Where that comes from.
    pub source: String,
}

/// How the sockets are linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One of [`super::topology::TOPOLOGIES`].
    Named(String),
    /// For each pair of sockets, how many links lie between them.
    Matrix(Vec<Vec<u32>>),
}

impl Sheet {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// An unknown key, a figure without a source, or a value that cannot be.
    pub fn parse(file: &str, text: &str) -> Result<Self, MachineError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            MachineError(format!("{file} is not a TOML file: {}", error.to_string().trim_end()))
        })?;
        let mut sheet = Self { file: file.to_owned(), ..Self::default() };
        for (name, value) in &table {
            match (name.as_str(), value) {
                ("name", Value::String(text)) => sheet.name.clone_from(text),
                ("about", Value::String(text)) => sheet.about.clone_from(text),
                ("notes", Value::String(text)) => text.trim().clone_into(&mut sheet.notes),
                ("based_on", Value::String(text)) => sheet.based_on = Some(text.clone()),
                ("name" | "about" | "notes" | "based_on", _) => {
                    return Err(sheet.bad(name, "has to be a text in quotes"));
                }
                ("shape", Value::Table(shape)) => sheet.shape = sheet.parse_shape(shape)?,
                (table, Value::Table(figures)) if tables().any(|known| known == table) => {
                    sheet.parse_figures(table, figures)?;
                }
                (table, _) if table == "shape" || tables().any(|known| known == table) => {
                    return Err(sheet.bad(table, &format!("has to be a table: [{table}]")));
                }
                _ => return Err(sheet.unknown(name, name, TOP.into_iter().chain(["shape"]).chain(tables()))),
            }
        }
        for (key, value) in [("name", &sheet.name), ("about", &sheet.about)] {
            if value.trim().is_empty() {
                return Err(
                    sheet.bad(key, &format!("is missing. Write {key} = \"…\" at the top of the file"))
                );
            }
        }
        Ok(sheet)
    }

    fn parse_figures(&mut self, table: &str, figures: &Table) -> Result<(), MachineError> {
        for (name, value) in figures {
            let path = format!("{table}.{name}");
            let Some(key) = find(&path) else {
                let known = KEYS.iter().filter(|key| key.table == table).map(|key| key.name);
                return Err(self.unknown(&path, name, known));
            };
            let figure = figure::parse(&self.file, key, value)?;
            self.figures.insert((key.table, key.name), figure);
        }
        Ok(())
    }

    fn parse_shape(&self, shape: &Table) -> Result<ShapeSheet, MachineError> {
        let mut found = ShapeSheet::default();
        for (name, value) in shape {
            match (name.as_str(), value) {
                ("source", Value::String(source)) => source.trim().clone_into(&mut found.source),
                ("topology", value) => {
                    let topology = read_topology(value).ok_or_else(|| {
                        self.bad(
                            "shape.topology",
                            "has to be a name or a matrix of whole numbers: [[0, 1], [1, 0]]",
                        )
                    })?;
                    found.topology = Some(topology);
                }
                (name, value) => {
                    let known = SHAPE.iter().map(|(name, _)| *name);
                    let Some((key, meaning)) = SHAPE.iter().find(|(known, _)| *known == name) else {
                        return Err(self.unknown(&format!("shape.{name}"), name, known.chain(["source"])));
                    };
                    let count = value.as_integer().and_then(|count| u32::try_from(count).ok());
                    let count = count.filter(|count| CPUS.contains(count)).ok_or_else(|| {
                        let (least, most) = (CPUS.start(), CPUS.end());
                        let what = format!(
                            "is {value}, but can only be a whole number from {least} to {most} ({meaning})"
                        );
                        self.bad(&format!("shape.{name}"), &what)
                    })?;
                    found.counts.insert(key, count);
                }
            }
        }
        if found.source.is_empty() {
            return Err(MachineError::no_source(&self.file, "shape"));
        }
        Ok(found)
    }

    pub(super) fn bad(&self, key: &str, what: &str) -> MachineError {
        MachineError::bad(&self.file, key, what)
    }

    fn unknown<'a>(
        &self,
        key: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> MachineError {
        let nearest = nearest(name, known.clone());
        MachineError::unknown_key(&self.file, key, nearest, &known.collect::<Vec<_>>().join(", "))
    }

    /// What stands in `base` and not here is taken from there.
    pub(super) fn complete_from(&mut self, base: &Self) {
        for (key, figure) in &base.figures {
            self.figures.entry(*key).or_insert_with(|| figure.clone());
        }
        for (name, count) in &base.shape.counts {
            self.shape.counts.entry(name).or_insert(*count);
        }
        if self.shape.topology.is_none() {
            self.shape.topology.clone_from(&base.shape.topology);
        }
        if self.shape.source.is_empty() {
            self.shape.source.clone_from(&base.shape.source);
        }
    }
}

/// The tables of figures.
fn tables() -> impl Iterator<Item = &'static str> + Clone {
    ["clock", "memory", "cpu", "kernel", "scheduler"].into_iter()
}

fn read_topology(value: &Value) -> Option<Topology> {
    let links = |value: &Value| u32::try_from(value.as_integer()?).ok();
    match value {
        Value::String(name) => Some(Topology::Named(name.clone())),
        Value::Array(rows) => {
            let rows = rows.iter().map(|row| row.as_array()?.iter().map(links).collect());
            rows.collect::<Option<_>>().map(Topology::Matrix)
        }
        _ => None,
    }
}

/// The text of the file.
impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "name = {}\nabout = {}", quoted(&self.name), quoted(&self.about))?;
        if let Some(base) = &self.based_on {
            writeln!(f, "based_on = {}", quoted(base))?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "notes = {}", quoted(&self.notes))?;
        }
        if !self.shape.source.is_empty() {
            writeln!(f, "\n[shape]")?;
            for (name, _) in SHAPE {
                if let Some(count) = self.shape.counts.get(name) {
                    writeln!(f, "{name} = {count}")?;
                }
            }
            match &self.shape.topology {
                Some(Topology::Named(name)) => writeln!(f, "topology = {}", quoted(name))?,
                Some(Topology::Matrix(hops)) => writeln!(f, "topology = {hops:?}")?,
                None => {}
            }
            writeln!(f, "source = {}", quoted(&self.shape.source))?;
        }
        for table in tables() {
            let mut is_first = true;
            for key in KEYS.iter().filter(|key| key.table == table) {
                let Some(figure) = self.figures.get(&(key.table, key.name)) else { continue };
                if is_first {
                    writeln!(f, "\n[{table}]")?;
                    is_first = false;
                }
                let (value, source) = (figure.quantity.to_toml(), quoted(&figure.source));
                writeln!(f, "{} = {{ {value}, source = {source} }}", key.name)?;
            }
        }
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
