//! One figure of a machine file: a value, and where it comes from.

use toml::{Table, Value};

use super::error::MachineError;
use super::keys::{Key, Kind, nearest};

/// A unit of time in a file, and how many nanoseconds it is. Cycles depend on the clock rate.
const UNITS: [(&str, Option<f64>); 4] =
    [("ns", Some(1.0)), ("us", Some(1e3)), ("ms", Some(1e6)), ("cycles", None)];

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is.
    pub quantity: Quantity,
    /// Where it comes from.
    pub source: String,
    /// The file in which it stands.
    pub file: String,
}

/// What a figure is.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A time in one of [`UNITS`].
    Time(f64, &'static str),
    /// Times in one of [`UNITS`].
    Times(Vec<f64>, &'static str),
    /// A time that never comes.
    Never,
    /// A plain number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

impl Quantity {
    /// A time in nanoseconds.
    #[must_use]
    pub fn ns(ns: f64) -> Self {
        Self::Time(ns, "ns")
    }

    /// Its numbers, times in nanoseconds; a single one, for a figure that is no list.
    pub(super) fn numbers(&self, ghz: f64) -> Vec<f64> {
        let convert = |value: f64, unit: &str| {
            let factor = UNITS.iter().find(|(name, _)| *name == unit).and_then(|(_, factor)| *factor);
            factor.map_or(value / ghz, |factor| value * factor)
        };
        match self {
            Self::Time(value, unit) => vec![convert(*value, unit)],
            Self::Times(values, unit) => values.iter().map(|value| convert(*value, unit)).collect(),
            Self::Never => Vec::new(),
            Self::Number(value) => vec![*value],
            Self::Flag(value) => vec![f64::from(u8::from(*value))],
        }
    }

    /// As a reader likes it: `4 cycles = 1.762 ns`.
    #[must_use]
    pub fn in_words(&self, ghz: f64) -> String {
        match self {
            Self::Time(value, "cycles") => format!("{value} cycles = {}", rounded(value / ghz)),
            Self::Time(value, unit) => format!("{value} {unit}"),
            Self::Times(values, _) if values.is_empty() => "none".to_owned(),
            Self::Times(values, "cycles") => {
                let ns: Vec<_> = self.numbers(ghz).into_iter().map(|ns| format!("{ns:.0}")).collect();
                format!("{} cycles = {} ns", list(values), ns.join(", "))
            }
            Self::Times(values, unit) => format!("{} {unit}", list(values)),
            Self::Never => "never".to_owned(),
            Self::Number(value) => value.to_string(),
            Self::Flag(true) => "yes".to_owned(),
            Self::Flag(false) => "no".to_owned(),
        }
    }

    /// As it stands in a file, without the source.
    pub(super) fn to_toml(&self) -> String {
        match self {
            Self::Time(value, unit) => format!("{unit} = {value}"),
            Self::Times(values, unit) => format!("{unit} = [{}]", list(values)),
            Self::Never => "never = true".to_owned(),
            Self::Number(value) => format!("value = {value}"),
            Self::Flag(value) => format!("value = {value}"),
        }
    }
}

fn rounded(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.1} ns") } else { format!("{ns:.0} ns") }
}

fn list(values: &[f64]) -> String {
    values.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")
}

/// Reads the figure that stands at `key`.
pub(super) fn parse(file: &str, key: &Key, value: &Value) -> Result<Figure, MachineError> {
    let path = key.path();
    let bad = |what: String| MachineError::bad(file, &path, &what);
    let no_source = || MachineError::no_source(file, &path);
    let table = match value {
        Value::Table(table) => table,
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Array(_) => return Err(no_source()),
        _ => return Err(bad(format!("is no figure. Write {}", key.kind.example()))),
    };
    check_names(file, &path, key.kind, table)?;
    let source = match table.get("source") {
        Some(Value::String(source)) if !source.trim().is_empty() => source.clone(),
        _ => return Err(no_source()),
    };
    let mut values = table.iter().filter(|(name, _)| *name != "source");
    let (Some((unit, value)), None) = (values.next(), values.next()) else {
        return Err(bad(format!("needs exactly one value. Write {}", key.kind.example())));
    };
    let quantity = read(key.kind, unit, value)
        .ok_or_else(|| bad(format!("does not fit. Write {}", key.kind.example())))?;
    Ok(Figure { quantity, source, file: file.to_owned() })
}

/// Whether only known names stand beside a figure.
fn check_names(file: &str, path: &str, kind: Kind, table: &Table) -> Result<(), MachineError> {
    let mut known: Vec<&str> = match kind {
        Kind::Time | Kind::Times => UNITS.map(|(name, _)| name).to_vec(),
        Kind::TimeOrNever => UNITS.iter().map(|(name, _)| *name).chain(["never"]).collect(),
        _ => vec!["value"],
    };
    known.push("source");
    match table.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let (key, nearest) = (format!("{path}.{name}"), nearest(name, known.iter().copied()));
            Err(MachineError::unknown_key(file, &key, nearest, &known.join(", ")))
        }
    }
}

/// What stands there, whether it can be or not: see [`range`](super::range).
fn read(kind: Kind, unit: &str, value: &Value) -> Option<Quantity> {
    if unit == "never" {
        return (value == &Value::Boolean(true)).then_some(Quantity::Never);
    }
    let unit = UNITS.iter().map(|(name, _)| *name).find(|name| *name == unit).unwrap_or("value");
    match (kind, value) {
        (Kind::Time | Kind::TimeOrNever, _) => Some(Quantity::Time(number(value)?, unit)),
        (Kind::Times, Value::Array(values)) => {
            let values: Option<Vec<f64>> = values.iter().map(number).collect();
            Some(Quantity::Times(values?, unit))
        }
        (Kind::Flag, Value::Boolean(flag)) => Some(Quantity::Flag(*flag)),
        (Kind::Positive | Kind::Factor | Kind::Share | Kind::PowerOfTwo | Kind::Count, _) => {
            Some(Quantity::Number(number(value)?))
        }
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}
