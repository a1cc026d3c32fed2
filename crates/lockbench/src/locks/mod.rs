//! `spinpark bench locks`: many locks side by side, one workload of contention at a time.
//!
//! | what | where |
//! |---|---|
//! | what a workload needs from a lock | [`primitives`], `mutex_in_data` |
//! | whose locks | [`adapters`] |
//! | what threads do with them | [`load`], [`workloads`] |
//! | one process | [`worker`], started by [`workers`], perhaps with the recorder of profiles: [`recording`] |
//! | what there is to measure | [`definitions`], [`implementations`], [`selection`] |
//! | the order of runs | [`experiment`] |
//! | what follows | [`result`], [`bounds`] |

pub mod adapters;
pub mod any_mutex;
pub mod bounds;
pub mod counters;
pub mod definitions;
pub mod experiment;
pub mod implementations;
pub mod load;
mod mutex_in_data;
pub mod peers;
pub mod primitives;
pub mod recording;
pub mod result;
pub mod selection;
pub mod warnings;
pub mod worker;
pub mod workers;
pub mod workloads;
