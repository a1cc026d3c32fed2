//! Saying what was found about workloads and documents.

pub mod documents;
pub mod workloads;
