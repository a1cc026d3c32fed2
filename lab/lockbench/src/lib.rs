//! Locks side by side: implementations by name, workloads that contend for them, what follows.
//!
//! | what | where |
//! |---|---|
//! | workloads of contention, and planes of them | [`locks`] |
//! | saying it | [`report`] |

pub mod locks;
pub mod report;
