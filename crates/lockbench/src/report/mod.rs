//! Saying what was found about locks: tables of workloads, heat maps of planes, bounds, JSON.

pub mod bounds;
pub mod document;
pub mod grid;
pub mod locks;
