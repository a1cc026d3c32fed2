//! The documents' workloads, and their figures next to the published ones.

mod documents;
mod workloads;
