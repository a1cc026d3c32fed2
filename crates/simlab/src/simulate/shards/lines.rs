//! A sweep as lines of JSON: what was asked for, then each run.

use std::hash::{DefaultHasher, Hasher as _};
use std::{env, fs, io};

use serde::{Deserialize, Serialize};
use spinpark_sim::workload::Report;

use super::Shard;
use crate::schema::SCHEMA;
use crate::simulate::sweep::Ladder;

/// The field `format` of the first line.
pub const FORMAT: &str = "spinpark sim sweep lines";

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// The version of the documents' structure.
    pub schema: u32,
    /// Which build made it: a seed is the same run only with the same locks.
    pub build: String,
    /// How many runs the whole sweep has.
    pub runs: usize,
    /// Which part of the sweep follows, of how many; null: all of it.
    pub shard: Option<(u32, u32)>,
    /// What was asked for.
    pub sweep: Ladder,
}

impl Header {
    /// Of this sweep, or a shard of it, made by this program.
    ///
    /// # Errors
    ///
    /// The program's file cannot be read.
    pub fn new(sweep: &Ladder, shard: Option<Shard>) -> io::Result<Self> {
        Ok(Self {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            build: build()?,
            runs: sweep.settings().len(),
            shard: shard.map(|Shard { number, of }| (number, of)),
            sweep: sweep.clone(),
        })
    }
}

/// The version, and a hash of the program: two builds of one version may be of different sources.
fn build() -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(env::current_exe()?)?);
    Ok(format!("{} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish()))
}

/// A line for a run: its number in the sweep, from 0, and all that is known about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Made<R> {
    /// In the order of [`Ladder::settings`].
    pub run: usize,
    /// What it gave.
    pub report: R,
}

/// All lines, without those of runs that were not made.
///
/// # Errors
///
/// None that is known: a report can always be written.
pub fn text<'a>(
    header: &Header,
    runs: impl Iterator<Item = (usize, &'a Report)>,
) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(header)?;
    for (run, report) in runs {
        text.push('\n');
        text += &serde_json::to_string(&Made { run, report })?;
    }
    Ok(text)
}
