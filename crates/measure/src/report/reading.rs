//! Reading documents that this command wrote.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::rounds::warnings::Warning;

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
    /// The reason why there is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("not a record: {error}"))
    }
}

/// Reads a document that must be of `format` and `schema`.
///
/// # Errors
///
/// The reason why it is none: "not a record: …".
pub fn parse<T: DeserializeOwned>(text: &str, format: &str, schema: u32) -> Result<T, String> {
    let header = Header::parse(text)?;
    if header.format == format && header.schema == schema {
        return serde_json::from_str(text).map_err(|error| format!("not a record: {error}"));
    }
    Err(format!(
        "a document `{}` of schema {}, but only `{format}` of schema {schema} can be read; \
         measure again, or read it with the spinpark that wrote it",
        header.format, header.schema
    ))
}

/// What a document reports about its own weakness; nothing if this command does not know these words.
#[must_use]
pub fn warnings(text: &str) -> Vec<Warning> {
    #[derive(Deserialize)]
    struct Said {
        warnings: Vec<Warning>,
    }
    serde_json::from_str::<Said>(text).map(|said| said.warnings).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        parse(text, "spinpark x", 2)
    }

    #[test]
    fn other_documents_are_refused_with_what_to_do() {
        for (text, said) in [
            (r#"{"format":"spinpark y","schema":2}"#, "a document `spinpark y` of schema 2, "),
            (r#"{"format":"spinpark x","schema":1}"#, "a document `spinpark x` of schema 1, "),
            (r#"{"format":"spinpark x","schema":3}"#, "a document `spinpark x` of schema 3, "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said) && error.contains("; measure again, or read it with"), "{error}");
        }
        assert!(read("text").unwrap_err().starts_with("not a record: "));
    }
}
