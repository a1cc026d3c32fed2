//! What the simulator's runs say, and how far that is from the machine at hand.
//!
//! | what | where |
//! |---|---|
//! | what do several seeds of one setting say together, and what makes that weak? | [`summary`] |
//! | what limits that run? | [`limit`] |
//! | a run as text | [`run_report`] |
//! | which lock is below the best by more than chance? | [`sweep`] |
//! | which runs has a shard of a sweep, and how are shards merged? | [`shards`] |
//! | how long will the rest take? | [`estimate`] |
//! | the documents' tables, published beside simulated | [`tables`] |
//! | a sweep, or those tables, as a page | [`page`] |
//! | machines, locks and workloads | [`lists`] |
//! | a recorded program as a workload, and what follows for another machine | [`recording`], [`prediction`] |
//! | this machine as a file for the simulator | [`calibrate`] |
//! | how far the simulator is from this machine | [`accuracy`] |

pub mod accuracy;
pub mod calibrate;
pub mod estimate;
mod formats;
pub mod limit;
pub mod lists;
pub mod page;
pub mod prediction;
pub mod recording;
pub mod run_report;
pub mod shards;
pub mod summary;
pub mod sweep;
pub mod tables;

use serde::Serialize;

/// The version of the documents' structure. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// What a command writes as JSON. Nothing in it depends on the machine that simulates, or on when it does.
#[derive(Debug, Serialize)]
pub struct Document<'a, T> {
    format: &'static str,
    schema: u32,
    end: &'a str,
    command: &'a str,
    #[serde(flatten)]
    content: T,
}

impl<'a, T: Serialize> Document<'a, T> {
    /// Made by `command`; `end` is "complete", "interrupted" or "failed".
    fn new(format: &'static str, end: &'a str, command: &'a str, content: T) -> Self {
        Self { format, schema: SCHEMA, end, command, content }
    }
}
