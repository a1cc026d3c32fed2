//! Measuring programs the honest way: fresh processes, shuffled blocks, an A/A configuration, intervals
//! instead of single numbers.
//!
//! The unit of replication is a *process*. One [block](blocks) starts every [configuration] once, in shuffled
//! order; what is compared is the ratio of two configurations inside one block, so that drift of the machine
//! cancels. A configuration that is glibc once more (A/A) shows how large a difference is that means nothing.
//!
//! | step | where |
//! |---|---|
//! | can the program be measured at all? | [`executable`] |
//! | run it once, and watch what it uses | [`process`], [`launch`] |
//! | run it many times | [`blocks`], [`measure`], [`rounds`] |
//! | start threads together | [`start_gate`] |
//! | what follows from the numbers | [`stats`], [`compare`], [`warnings`] |
//! | say it | [`report`] |
//!
//! Everything after [`measure::Executor`] works without a clock and without processes, and is tested that
//! way.

pub mod blocks;
pub mod compare;
pub mod configuration;
pub mod date;
pub mod environment;
pub mod executable;
pub mod failure;
pub mod launch;
pub mod machine;
pub mod measure;
pub mod metric;
pub mod nearest;
pub mod page;
pub mod process;
pub mod report;
pub mod rounds;
pub mod sample;
pub mod start_gate;
pub mod stats;
pub mod terminal;
pub mod text;
pub mod units;
pub mod warnings;
pub mod worker;
