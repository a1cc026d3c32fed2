//! A recorded program on a machine that it has not run on: its recording becomes a workload of the simulator.
//!
//! | question | where |
//! |---|---|
//! | what of a recording can be simulated, and what does it lack? | [`recorded`] |
//! | when were its threads at work? | [`phase`] |
//! | does it make what was recorded, simulated as it was recorded? | [`proof`] |
//! | what follows for each lock, with which interval? | [`prediction`] |

pub mod phase;
pub mod prediction;
pub mod proof;
pub mod recorded;
