//! The documents' workloads, and their figures next to the published ones.

mod delays;
mod documents;
mod workloads;
