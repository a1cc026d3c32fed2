//! A small server on pthread locks, for demonstration.
//!
//! | what | where |
//! |---|---|
//! | the server | [`server`] |
//! | pthread locks as they are, also for the benchmark | [`pthread_calls`] |

pub mod pthread_calls;
pub mod server;
