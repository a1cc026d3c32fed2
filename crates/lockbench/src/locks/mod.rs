//! `spinpark bench locks`: many locks side by side, one shape of contention at a time.
//!
//! | what | where |
//! |---|---|
//! | what a shape needs from a lock | [`primitives`], `beside` |
//! | whose locks | [`families`] |
//! | what threads do with them | [`load`], [`shapes`] |
//! | one process | [`worker`], started by [`workers`], perhaps with the recorder of profiles: [`recording`] |
//! | what there is to measure | [`definitions`], [`targets`], [`selection`] |
//! | the order of runs | [`experiment`] |
//! | what follows | [`result`], [`bounds`] |

pub mod any_mutex;
mod beside;
pub mod bounds;
pub mod counters;
pub mod definitions;
pub mod experiment;
pub mod families;
pub mod load;
pub mod peers;
pub mod primitives;
pub mod recording;
pub mod result;
pub mod selection;
pub mod shapes;
pub mod targets;
pub mod warnings;
pub mod worker;
pub mod workers;
