//! Locks side by side: implementations by name, workloads that contend for them, what follows.
//!
//! | what | where |
//! |---|---|
//! | one workload of contention at a time | [`locks`] |
//! | planes of parameters | [`grid`] |
//! | a small server on pthread locks, for demonstration | [`demo`], [`pthread_calls`] |
//! | saying it | [`report`] |

pub mod demo;
pub mod grid;
pub mod locks;
pub mod pthread_calls;
pub mod report;
