//! Reading documents that this command wrote.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// Keys of the schema before this one, and what they are called now.
pub type Renamed = &'static [(&'static str, &'static str)];

/// Reads a document that must be of `format` and `schema`; or of the schema before it, whose keys `renamed` has.
///
/// # Errors
///
/// A phrase that says why it is none: "not a record: …".
pub fn parse<T: DeserializeOwned>(
    text: &str,
    format: &str,
    schema: u32,
    renamed: Renamed,
) -> Result<T, String> {
    let no_record = |error: serde_json::Error| format!("not a record: {error}");
    let header = Header::parse(text)?;
    if header.format == format && header.schema == schema {
        return serde_json::from_str(text).map_err(no_record);
    }
    if header.format == format && header.schema + 1 == schema && !renamed.is_empty() {
        let mut document = serde_json::from_str(text).map_err(no_record)?;
        rename_keys(&mut document, renamed);
        return T::deserialize(document).map_err(no_record);
    }
    Err(format!(
        "a document `{}` of schema {}, but only `{format}` of schema {schema} can be read; \
         measure again, or read it with the spinpark that wrote it",
        header.format, header.schema
    ))
}

fn rename_keys(document: &mut Value, renamed: Renamed) {
    match document {
        Value::Array(items) => items.iter_mut().for_each(|item| rename_keys(item, renamed)),
        Value::Object(fields) => {
            for (old, new) in renamed {
                if let Some(value) = fields.remove(*old) {
                    fields.insert((*new).to_owned(), value);
                }
            }
            fields.values_mut().for_each(|value| rename_keys(value, renamed));
        }
        _ => {}
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const RENAMED: Renamed = &[("side", "role"), ("target", "name")];

    fn read(text: &str) -> Result<Value, String> {
        parse(text, "spinpark x", 2, RENAMED)
    }

    #[test]
    fn the_schema_before_is_read_by_its_keys() {
        let old = r#"{"format":"spinpark x","schema":1,"runs":[{"target":"a","of":{"side":1}}]}"#;
        assert_eq!(read(old).unwrap()["runs"][0].to_string(), r#"{"name":"a","of":{"role":1}}"#);
        let new = r#"{"format":"spinpark x","schema":2,"target":"a"}"#;
        assert_eq!(read(new).unwrap()["target"], "a", "keys of this schema are what they are");
    }

    #[test]
    fn other_documents_are_refused_with_what_to_do() {
        for (text, said) in [
            (r#"{"format":"spinpark y","schema":2}"#, "a document `spinpark y` of schema 2, "),
            (r#"{"format":"spinpark x","schema":0}"#, "a document `spinpark x` of schema 0, "),
            (r#"{"format":"spinpark x","schema":3}"#, "a document `spinpark x` of schema 3, "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said) && error.contains("; measure again, or read it with"), "{error}");
        }
        let old = r#"{"format":"spinpark x","schema":1}"#;
        assert!(parse::<Value>(old, "spinpark x", 2, &[]).is_err(), "no keys are known");
        assert!(read("text").unwrap_err().starts_with("not a record: "));
    }
}
