//! The benchmarks of the four documents, as programs of ours, beside what was published.
//!
//! | what | where |
//! |---|---|
//! | the workloads | [`workloads`] |
//! | their figures beside the published ones | [`documents`] |
//! | programs of the system that workloads need | [`installed`], [`mariadb`] |
//! | saying it | [`report`] |

pub mod documents;
pub mod installed;
pub mod mariadb;
pub mod report;
pub mod workloads;
