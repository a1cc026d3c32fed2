//! What a figure can be: what is outside of its range is a slip of the file's author, and would be simulated
//! without a word.
//!
//! The ranges hold every machine of the catalogue, and what a calibration finds on a loaded one.

use super::error::MachineError;
use super::figure::Quantity;
use super::keys::{KEYS, Key, Kind};
use super::sheet::Sheet;

/// The least and the most that a figure can be; of a time, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

const fn range(least: f64, most: f64) -> Range {
    Range { least, most }
}

impl Key {
    /// What its figure can be.
    #[must_use]
    pub fn range(&self) -> Range {
        match (self.kind, self.table, self.name) {
            // The clock, GHz.
            (Kind::Positive, ..) => range(0.01, 20.0),
            (Kind::Factor, ..) => range(1.0, 1_000.0),
            // A hardware thread does not stand still.
            (Kind::Share, _, "smt") => range(0.01, 1.0),
            (Kind::Share, ..) => range(0.0, 1.0),
            // Linux makes 256 for each CPU.
            (Kind::PowerOfTwo, ..) => range(1.0, 1_048_576.0),
            (Kind::Count, ..) => range(0.0, 1_024.0),
            (Kind::Flag, ..) => range(f64::NEG_INFINITY, f64::INFINITY),
            // What loops are made of: some time has to pass in them.
            (_, "memory" | "cpu", "hit" | "pause" | "work") => range(0.01, MS),
            (_, "memory" | "cpu", _) => range(0.0, MS),
            (_, "scheduler", "latency" | "min_slice" | "balance") => range(US, 100.0 * S),
            // As long as slices, or nothing.
            (_, _, "wakeup" | "deep_idle_after") => range(0.0, 100.0 * S),
            (Kind::Time | Kind::TimeOrNever | Kind::Times, ..) => range(0.0, S),
        }
    }
}

const US: f64 = 1e3;
const MS: f64 = 1e6;
const S: f64 = 1e9;

impl Range {
    fn holds(self, value: f64) -> bool {
        (self.least..=self.most).contains(&value)
    }

    /// `0.01 ns to 1 ms`, `0 to 1`.
    #[must_use]
    pub fn in_words(self, kind: Kind) -> String {
        match kind {
            Kind::Time | Kind::TimeOrNever | Kind::Times => {
                format!("{} to {}", time(self.least), time(self.most))
            }
            _ => format!("{} to {}", self.least, self.most),
        }
    }
}

/// A round time.
fn time(ns: f64) -> String {
    match ns {
        ns if ns >= S => format!("{} s", ns / S),
        ns if ns >= MS => format!("{} ms", ns / MS),
        ns if ns >= US => format!("{} us", ns / US),
        ns => format!("{ns} ns"),
    }
}

/// Whether every figure of a sheet can be. Cycles are those of a clock of `ghz`.
pub(super) fn check(sheet: &Sheet, ghz: f64) -> Result<(), MachineError> {
    for key in KEYS {
        let Some(figure) = sheet.figures.get(&(key.table, key.name)) else { continue };
        let range = key.range();
        let can_be = match &figure.quantity {
            Quantity::Number(number) => range.holds(*number) && is_whole_enough(key.kind, *number),
            quantity => quantity.to_ns(ghz).into_iter().all(|ns| range.holds(ns)),
        };
        if !can_be {
            let power = match key.kind {
                Kind::PowerOfTwo => "a power of two ",
                Kind::Count => "a whole number ",
                _ => "",
            };
            let value = figure.quantity.in_words(ghz);
            let what = format!(
                "is {value}, but can only be {power}from {} ({})",
                range.in_words(key.kind),
                key.meaning
            );
            return Err(MachineError::Bad { file: figure.file.clone(), key: key.path(), what });
        }
    }
    Ok(())
}

fn is_whole_enough(kind: Kind, number: f64) -> bool {
    match kind {
        Kind::PowerOfTwo => number.fract() == 0.0 && (number as u32).is_power_of_two(),
        Kind::Count => number.fract() == 0.0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::find;

    #[test]
    fn ranges_in_words() {
        let words = |table: &str, name: &str| {
            let key = find(table, name).unwrap();
            key.range().in_words(key.kind)
        };
        assert_eq!(words("clock", "ghz"), "0.01 to 20");
        assert_eq!(words("memory", "hit"), "0.01 ns to 1 ms");
        assert_eq!(words("memory", "hop"), "0 ns to 1 ms");
        assert_eq!(words("cpu", "smt"), "0.01 to 1");
        assert_eq!(words("kernel", "deep_idle_exit"), "0 ns to 1 s");
        assert_eq!(words("scheduler", "min_slice"), "1 us to 100 s");
        assert_eq!(words("scheduler", "wakeup"), "0 ns to 100 s");
    }
}
