//! Measuring locks the honest way: fresh processes, shuffled blocks, an A/A arm, intervals instead of single numbers.
//!
//! The unit of replication is a *process*. One [block](blocks) starts every [arm] once, in shuffled order; what is
//! compared is the ratio of two arms inside one block, so that drift of the machine cancels. An arm that is glibc once
//! more (A/A) shows how large a difference is that means nothing.
//!
//! | step | where |
//! |---|---|
//! | can the program be measured at all? | [`target`] |
//! | run it once, and watch what it uses | [`process`], [`launch`] |
//! | run it many times | [`blocks`], [`measure`], [`rounds`] |
//! | what follows from the numbers | [`stats`], [`compare`], [`warnings`] |
//! | say it | [`report`] |
//! | programs of the system that workloads need | [`installed`], [`mariadb`] |
//! | locks over planes of parameters | [`grid`] |
//! | workloads of our own | [`demo`], [`locks`], [`workloads`] |
//! | the four documents beside them | [`documents`] |
//! | this machine as a file for the simulator | [`calibrate`] |
//! | the simulator's runs | [`simulate`] |
//! | how far the simulator is from this machine | [`accuracy`] |
//!
//! Everything after [`measure::Executor`] works without a clock and without processes, and is tested that way.

pub mod accuracy;
pub mod arm;
pub mod blocks;
pub mod calibrate;
pub mod compare;
pub mod demo;
pub mod documents;
pub mod environment;
pub mod failure;
pub mod gate;
pub mod grid;
pub mod installed;
pub mod launch;
pub mod locks;
pub mod machine;
pub mod mariadb;
pub mod measure;
pub mod metric;
pub mod process;
pub mod pthread;
pub mod report;
pub mod rounds;
pub mod sample;
pub mod simulate;
pub mod stats;
pub mod target;
pub mod warnings;
pub mod workloads;

pub use spinpark_show::units;
