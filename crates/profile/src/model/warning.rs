//! A sentence about what a profile cannot be relied on for.

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
