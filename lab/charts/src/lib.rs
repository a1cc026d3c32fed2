//! Charts of locks.
//!
//! | what | where |
//! |---|---|
//! | a number over numbers of threads, or over another number, as SVG | [`plot`] |
//! | throughput and CPU time over all cells of a plane: which locks no other beats in both? | [`front`] |

pub mod front;
pub mod plot;
