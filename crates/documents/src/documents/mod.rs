//! `spinpark documents run`: the tables of the four documents beside what this machine measures.
//!
//! | what | where |
//! |---|---|
//! | what is run, and what of it stands beside which published number: data files | [`definition`] |
//! | what a run gave: a measurement, or why there is none | [`outcome`] |
//! | the report that stands on them | [`report::documents`](crate::report::documents) |
//!
//! A run is a command line of `spinpark documents`, so each figure of a report can be measured again by
//! itself. The published tables are those of [`published`](crate::published).

pub mod definition;
pub mod outcome;
