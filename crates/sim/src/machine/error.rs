//! What is said about a machine that cannot be had: which file, which key, what to do.

use std::io;

use thiserror::Error;

/// A machine that cannot be had.
#[derive(Debug, Error)]
pub enum MachineError {
    /// No machine has that name.
    #[error(
        "there is no machine `{name}`{} Known are {known} and plain-N, of N cores. A file of your own is named by its path: \
         ./{name}.toml",
        nearest.as_ref().map_or_else(|| ".".to_owned(), |_| did_you_mean(nearest.as_deref()))
    )]
    Unknown {
        /// The name.
        name: String,
        /// One like it.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// A machine with a number of CPUs that it does not have.
    #[error("there is no machine `{name}`: it has 1 CPU at least and {most} CPUs at most: {example}")]
    Cpus {
        /// The name.
        name: String,
        /// The most CPUs.
        most: u32,
        /// What can be written.
        example: String,
    },
    /// A machine with a quota that none can have.
    #[error(
        "there is no machine `{name}`: it has a quota of {least} CPUs at least, and of as many as it has at most: {example}"
    )]
    Quota {
        /// The name.
        name: String,
        /// The least quota, CPUs.
        least: f64,
        /// What can be written.
        example: String,
    },
    /// A plain machine of no number of cores.
    #[error(
        "there is no machine `{name}`: write plain-N, with a number of cores from 1 to {most}, as in plain-8"
    )]
    Plain {
        /// The name.
        name: String,
        /// The most cores.
        most: u32,
    },
    /// The file cannot be read.
    #[error(
        "cannot read the machine file {file}: {error}. Write the path of a file that `spinpark sim calibrate --output` has \
         written, or a machine by its name: {known}, or plain-N, of N cores"
    )]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        error: io::Error,
        /// All names.
        known: String,
    },
    /// The file is no TOML.
    #[error("{file} is not a TOML file: {error}")]
    Syntax {
        /// The file.
        file: String,
        /// Where, and why.
        error: String,
    },
    /// There is no such key.
    #[error("{file}: unknown key `{key}`{}", nearest.as_deref().map_or_else(
        || format!("; known here are {known}"),
        |_| did_you_mean(nearest.as_deref())
    ))]
    UnknownKey {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// A known one like it.
        nearest: Option<String>,
        /// All that may stand there.
        known: String,
    },
    /// A figure without a source.
    #[error(
        "{file}: `{key}` has no source. Add `source = \"…\"` beside the figure: its author and machine, or how it was \
         derived, or that it is a guess"
    )]
    NoSource {
        /// The file.
        file: String,
        /// The key.
        key: String,
    },
    /// A figure that is needed stands nowhere.
    #[error(
        "{file}: `{key}` is missing ({meaning}). Write {example}, or name with `based_on` a machine from which it is taken"
    )]
    Missing {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// What it means.
        meaning: String,
        /// How it is written.
        example: String,
    },
    /// A value that cannot be.
    #[error("{file}: `{key}` {what}")]
    Bad {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// What is wrong, and what to write.
        what: String,
    },
    /// A machine that is based on itself.
    #[error("{file}: `based_on` leads back to where it began: {way}. Take `based_on` out of one of them")]
    Circle {
        /// The file.
        file: String,
        /// The way.
        way: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}
