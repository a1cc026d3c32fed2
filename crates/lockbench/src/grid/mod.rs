//! `spinpark bench grid`: locks over planes of parameters instead of in single workloads.
//!
//! A lock that is tuned for some points of a plane is often bad beside them; a plane shows it. Runs are those
//! of [`bench locks`](crate::locks): a fresh process each, all cells of all planes in the same shuffled
//! rounds.
//!
//! | what | where |
//! |---|---|
//! | planes and bounds, in a file | [`definition`] |
//! | the cells of a plane | [`cells`] |
//! | the runs | [`experiment`] |
//! | what a lock that costs nothing would do here | [`calibration`], [`ideal`] |
//! | one number of one cell | [`figure`] |
//! | ours and the peer to compare it with | [`comparison`], [`starvation`] |
//! | a plane in a line | [`summary`] |
//! | what is to hold | [`bounds`] |

pub mod bounds;
mod built_in;
pub mod calibration;
pub mod cells;
pub mod comparison;
pub mod definition;
pub mod experiment;
pub mod figure;
pub mod ideal;
pub mod starvation;
pub mod summary;
