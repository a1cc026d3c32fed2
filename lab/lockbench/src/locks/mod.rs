//! `spinpark-lab bench`: many locks side by side, in single workloads (`bench locks`) or over planes of
//! parameters (`bench grid`).
//!
//! A lock that is tuned for some points of a plane is often bad at others; a plane shows it. A run is a fresh
//! process in both; all cells are in the same shuffled rounds.
//!
//! | what | where |
//! |---|---|
//! | what a workload needs from a lock | [`primitives`] |
//! | whose locks | [`adapters`] |
//! | what threads do with them | [`load`], [`workloads`] |
//! | one process | [`worker`], started by [`workers`], perhaps with the recorder of profiles: [`recording`] |
//! | what there is to measure | [`definitions`], [`planes`], [`implementations`], [`selection`] |
//! | the order of runs | [`experiment`] |
//! | one number of one cell; ours ÷ a peer, or ÷ a lock that costs nothing | [`figure`], [`comparison`], [`ideal`] |
//! | what follows | [`result`], a plane in a line: [`summary`], [`bounds`] |

pub mod adapters;
pub mod bounds;
pub mod comparison;
pub mod counters;
pub mod definitions;
pub mod experiment;
pub mod figure;
pub mod ideal;
pub mod implementations;
pub mod load;
pub mod peers;
pub mod planes;
pub mod primitives;
pub mod recording;
pub mod result;
pub mod selection;
pub mod summary;
pub mod warnings;
pub mod worker;
pub mod workers;
pub mod workloads;
