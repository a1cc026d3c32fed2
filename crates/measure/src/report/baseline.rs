//! A bound from an earlier result of the same gate: the file of `spinpark gate … --json FILE`, checked in beside the
//! sources. A share or a speed-up can be kept so; a time cannot, since the next machine is another one.

use serde::Deserialize;

use super::gate::{FORMAT, VERSION};

/// What an earlier result says of its figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// [`Figure::name`](super::gate::Figure::name).
    pub figure: String,
    /// The ends of its interval; none if they were not known.
    pub low: Option<f64>,
    /// The upper one.
    pub high: Option<f64>,
}

/// Why a file is no baseline: a sentence, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoBaseline(pub &'static str);

impl Baseline {
    /// Reads the text of a result.
    ///
    /// # Errors
    /// If it is none, or of another version.
    pub fn read(text: &str) -> Result<Self, NoBaseline> {
        #[derive(Deserialize)]
        struct Start {
            format: String,
            version: u32,
        }
        #[derive(Deserialize)]
        struct Document {
            figure: Figure,
        }
        #[derive(Deserialize)]
        struct Figure {
            name: String,
            low: Option<f64>,
            high: Option<f64>,
        }
        let other = NoBaseline("is no result of `spinpark gate`");
        let start: Start = serde_json::from_str(text).map_err(|_| other.clone())?;
        if start.format != FORMAT {
            return Err(other);
        }
        if start.version != VERSION {
            return Err(NoBaseline("is of another version of spinpark"));
        }
        let Document { figure } = serde_json::from_str(text).map_err(|_| other)?;
        Ok(Self { figure: figure.name, low: figure.low, high: figure.high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read() {
        let text = r#"{"format": "spinpark gate", "version": 1, "gate": "waits", "other": [],
            "figure": {"name": "share", "value": 0.05, "low": 0.04, "high": null, "noise": null, "bound": 0.1}}"#;
        let expected = Baseline { figure: String::from("share"), low: Some(0.04), high: None };
        assert_eq!(Baseline::read(text), Ok(expected));
        for (from, to, why) in [
            ("\"version\": 1", "\"version\": 99", "is of another version of spinpark"),
            ("spinpark gate", "spinpark compare", "is no result of `spinpark gate`"),
            ("\"figure\"", "\"figures\"", "is no result of `spinpark gate`"),
            ("{", "", "is no result of `spinpark gate`"),
        ] {
            assert_eq!(Baseline::read(&text.replacen(from, to, 1)), Err(NoBaseline(why)), "{to}");
        }
    }
}
