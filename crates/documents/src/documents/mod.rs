//! `spinpark documents run`: the tables of the four documents beside what this machine measures.
//!
//! | what | where |
//! |---|---|
//! | what is run, and what of it stands beside which published number: data files | [`definition`] |
//! | what a run gave: a measurement, or why there is none | [`outcome`] |
//! | a published number's counterpart | [`counterpart`] |
//! | the report, before it is Markdown or HTML | [`page`] |
//!
//! A run is a command line of `spinpark documents`, so each figure of a report can be measured again by itself. The published
//! tables are those of [`published`](crate::published).

pub mod counterpart;
pub mod definition;
pub mod outcome;
pub mod page;
