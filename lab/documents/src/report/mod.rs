//! Saying what was found about workloads and documents.

pub mod delays;
pub mod documents;
pub mod workloads;
