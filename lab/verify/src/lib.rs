//! All model checking: loom models of the locks, random programs on the simulator, and known-bad mutants that
//! both must reject.
//!
//! | module           | what it is                                                                                 |
//! |------------------|--------------------------------------------------------------------------------------------|
//! | [`platform`]     | `P = Loom`: atomics, cells, futexes and a clock that loom explores                         |
//! | [`model`]        | how a model is run: bounds, counting, faults                                               |
//! | [`rejected!`]    | how a mutant's failure is observed: in a child process, with the reason                    |
//! | [`breaks`]       | which invariant a mutant breaks                                                            |
//! | [`mutants`]      | faults in the machine under unchanged locks, and copies of functions with one line wrong   |
//! | [`policies`]     | policies that answer by a coin                                                             |
//! | [`sim_programs`] | random programs on the simulator, and the checker that runs them                           |
//! | [`stacks`]       | loom's stacks, kept from one execution to the next                                         |
//!
//! The models themselves are in `tests/it`, one file per primitive; what they cover and what loom cannot see
//! is in `notes/verification.md`.

pub mod model;
pub mod mutants;
pub mod platform;
pub mod policies;
mod rejected;
mod shared;
pub mod sim_programs;
mod spin_lines;
pub mod stacks;
mod tokens;
mod track;

pub use model::Model;
pub use platform::Loom;
pub use rejected::assert_rejected;
pub use shared::{Shared, after, join_all, sections};
pub use spin_lines::SpinLines;
pub use spinpark_sim::check::{Breaks, breaks, breaks_rule};
pub use tokens::{Signals, Tokens};
pub use track::{Guarded, Mortal};
