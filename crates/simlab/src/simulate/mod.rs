//! The simulator's runs, and what follows from them.
//!
//! | question | where |
//! |---|---|
//! | what do several seeds of one setting say together? | [`summary`] |
//! | what limits that run? | [`limit`] |
//! | which lock is below the best by more than chance? | [`sweep`] |
//! | which runs has a shard of a sweep, and how are shards merged? | [`shards`] |
//! | what makes its figures weak? | [`weak`] |
//! | how long will the rest take? | [`estimate`] |
//! | how is it said? | [`report::sim`](crate::report::sim) |

pub mod estimate;
pub mod limit;
pub mod shards;
pub mod summary;
pub mod sweep;
pub mod weak;

/// Exported, so that a user of this needs no version of its own.
pub use spinpark_sim as sim;
