//! Document 004: a database becomes faster as its kernel's mutexes are profiled.
//!
//! | what | where |
//! |---|---|
//! | what was published | `freebsd_unp_mutex.csv` |
//! | which run is compared with what | `document.toml`: the runs are those of `spinpark-lab bench mtx` |
//! | its load on a database, as a program | [`select`] |
//! | the hot mutex on the simulator | `simulated` |
//! | where a delay makes it faster | [`delays`] |

pub mod delays;
pub mod select;
pub(crate) mod simulated;
