//! A sentence about what a profile cannot be relied on for.

use spinpark_measure::text::units::count;

use super::Profile;

/// A sentence, and its kind. Back quotes enclose code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Records are missing: the summary could be wrong.
    Loss(String),
    /// Anything else, such as names that may be wrong.
    Note(String),
}

impl Warning {
    /// The sentence.
    #[must_use]
    pub fn text(&self) -> &str {
        let (Self::Loss(text) | Self::Note(text)) = self;
        text
    }

    /// Whether records are missing.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Loss(_))
    }
}

impl Profile {
    /// Whether records are missing that could change the summary.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.dropped > 0 || self.warnings.iter().any(Warning::is_loss)
    }

    /// What was not recorded: whole sentences, shown before the summary.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let dropped = (self.dropped > 0).then(|| {
            format!(
                "{} records did not fit (a full disk, or too many locks, threads or stacks): the numbers are too low.",
                count(self.dropped)
            )
        });
        let losses = self.warnings.iter().filter(|warning| warning.is_loss());
        dropped.into_iter().chain(losses.map(|warning| warning.text().to_owned())).collect()
    }

    /// The other warnings.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().filter(|warning| !warning.is_loss()).map(Warning::text)
    }
}

/// In JSON, two arrays of sentences: `warnings`, all of them, and `losses`, those of them that are losses.
pub(crate) mod in_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Warning;

    #[derive(Serialize)]
    struct Written<'a> {
        warnings: Vec<&'a str>,
        losses: Vec<&'a str>,
    }

    #[derive(Deserialize)]
    struct Read {
        warnings: Vec<String>,
        #[serde(default)]
        losses: Vec<String>,
    }

    pub(crate) fn serialize<S: Serializer>(warnings: &[Warning], serializer: S) -> Result<S::Ok, S::Error> {
        let losses = warnings.iter().filter(|warning| warning.is_loss());
        Written {
            warnings: warnings.iter().map(Warning::text).collect(),
            losses: losses.map(Warning::text).collect(),
        }
        .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Warning>, D::Error> {
        let Read { warnings, losses } = Read::deserialize(deserializer)?;
        let kind = |text: String| match losses.contains(&text) {
            true => Warning::Loss(text),
            false => Warning::Note(text),
        };
        Ok(warnings.into_iter().map(kind).collect())
    }
}
