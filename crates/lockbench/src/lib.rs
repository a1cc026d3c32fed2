//! Locks side by side: implementations by name, workloads that contend for them, what follows.
//!
//! | what | where |
//! |---|---|
//! | workloads of contention, and planes of them | [`locks`] |
//! | a small server on pthread locks, for demonstration | [`demo`], [`pthread_calls`] |
//! | saying it | [`report`] |

pub mod demo;
pub mod locks;
pub mod pthread_calls;
pub mod report;
