//! Measuring programs the honest way: fresh processes, shuffled blocks, an A/A configuration, intervals
//! instead of single numbers.
//!
//! The unit of replication is a *process*. One [block](rounds::blocks) starts every
//! [configuration](rounds::configuration) once, in shuffled order; what is compared is the ratio of two
//! configurations inside one block, so that drift of the machine cancels. A configuration that is glibc once more
//! (A/A) shows how large a difference is that means nothing.
//!
//! | room        | what is in it                                                                    |
//! |-------------|----------------------------------------------------------------------------------|
//! | [`process`] | one process: started, watched, interrupted, captured; which programs can be run on our locks |
//! | [`rounds`]  | many of them: plans, blocks, samples, the machine's noise, verdicts, warnings    |
//! | [`stats`]   | medians, bootstrap intervals, what an interval allows to say                     |
//! | [`report`]  | results as tables, charts, pages and JSON                                        |
//! | [`text`]    | sentences, numbers, dates, terminals                                             |
//!
//! Everything after [`Executor`](rounds::measure::Executor) works without a clock and without processes, and is
//! tested that way.

pub mod process;
pub mod report;
pub mod rounds;
pub mod stats;
pub mod text;
