//! Reading documents that this command wrote.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::warnings::Warning;

/// What all documents begin with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Header {
    /// Which kind of document.
    pub format: String,
    /// The version of its structure.
    #[serde(alias = "format_version")]
    pub schema: u32,
}

impl Header {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// A phrase that says why there is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("not a record: {error}"))
    }
}

/// Reads a document that must be of `format` and `schema`.
///
/// # Errors
///
/// A phrase that says why it is none: "not a record: …".
pub fn parse<T: DeserializeOwned>(text: &str, format: &str, schema: u32) -> Result<T, String> {
    let header = Header::parse(text)?;
    if header.format != format || header.schema != schema {
        return Err(format!(
            "a document `{}` of schema {}, but only `{format}` of schema {schema} can be read",
            header.format, header.schema
        ));
    }
    serde_json::from_str(text).map_err(|error| format!("not a record: {error}"))
}

/// What a document says about its own weakness; nothing if this command does not know these words.
#[must_use]
pub fn warnings(text: &str) -> Vec<Warning> {
    #[derive(Deserialize)]
    struct Said {
        warnings: Vec<Warning>,
    }
    serde_json::from_str::<Said>(text).map(|said| said.warnings).unwrap_or_default()
}
