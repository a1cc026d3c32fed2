//! Charts of locks.
//!
//! | what | where |
//! |---|---|
//! | a number over numbers of threads, or over another number, as SVG | [`plot`] |
//! | a ratio over two parameters, as SVG | [`heat`] |
//! | throughput and CPU time over all cells of a plane: which locks no other beats in both? | [`front`] |

pub mod front;
pub mod heat;
pub mod plot;
