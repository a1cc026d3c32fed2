//! Parts of a command line: the same in both commands.

pub mod documentation;
pub mod format;
pub mod help;
pub mod numbers;
pub mod tips;
pub mod units;
