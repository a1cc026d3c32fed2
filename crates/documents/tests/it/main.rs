//! The documents' workloads, and their figures beside the published ones.

mod documents;
mod workloads;
