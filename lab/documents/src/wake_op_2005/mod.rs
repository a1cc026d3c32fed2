//! Document 003: a signal of a condition variable, in one system call.
//!
//! | what | where |
//! |---|---|
//! | what was published | `condvar_signal.csv` |
//! | which run is compared with what | `document.toml` |
//! | three ways to signal, as a program | [`condvar`] |
//! | the same on the simulator | `simulated` |

pub mod condvar;
pub(crate) mod simulated;
