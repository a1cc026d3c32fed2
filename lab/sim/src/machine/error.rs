//! What is said about a machine that cannot be had: which file, which key, what to do.

use thiserror::Error;

/// A machine that cannot be had.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct MachineError(pub(super) String);

impl MachineError {
    /// No machine has that name.
    pub(super) fn unknown(name: &str, nearest: Option<&str>, known: &str) -> Self {
        let hint = nearest.map_or_else(|| ".".to_owned(), did_you_mean);
        Self(format!(
            "there is no machine `{name}`{hint} Known are {known} and plain-N, of N cores. A file of your own is named by its \
             path: ./{name}.toml"
        ))
    }

    /// There is no such key.
    pub(super) fn unknown_key(file: &str, key: &str, nearest: Option<&str>, known: &str) -> Self {
        let hint = nearest.map_or_else(|| format!("; known here are {known}"), did_you_mean);
        Self(format!("{file}: unknown key `{key}`{hint}"))
    }

    /// A figure without a source.
    pub(super) fn no_source(file: &str, key: &str) -> Self {
        Self(format!(
            "{file}: `{key}` has no source. Add `source = \"…\"` beside the figure: its author and machine, or how it was \
             derived, or that it is a guess"
        ))
    }

    /// A figure that is needed stands nowhere.
    pub(super) fn missing(file: &str, key: &str, meaning: &str, example: &str) -> Self {
        Self(format!(
            "{file}: `{key}` is missing ({meaning}). Write {example}, or name with `based_on` a machine from which it is taken"
        ))
    }

    /// A value that cannot be: the error, and what to write.
    pub(super) fn bad(file: &str, key: &str, what: &str) -> Self {
        Self(format!("{file}: `{key}` {what}"))
    }
}

fn did_you_mean(nearest: &str) -> String {
    format!("; did you mean `{nearest}`?")
}
