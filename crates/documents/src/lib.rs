//! The benchmarks of the four documents, as programs of ours and on simulated machines, beside what was published.
//!
//! | what | where |
//! |---|---|
//! | a document: its workloads, its figures, its simulated model | [`d001`], [`d002`], [`d003`], [`d004`] |
//! | what the workloads share | [`workloads`] |
//! | what the documents publish | [`published`] |
//! | what the simulated models share | [`simulated`] |
//! | all workloads and simulated tables, by name | [`registry`] |
//! | a process that runs one configuration of a workload | [`worker`] |
//! | their figures beside the published ones | [`documents`] |
//! | programs of the system that workloads need | [`installed`], [`mariadb`] |
//! | saying it | [`report`] |

pub mod d001;
pub mod d002;
pub mod d003;
pub mod d004;
pub mod documents;
pub mod installed;
pub mod mariadb;
pub mod published;
pub mod registry;
pub mod report;
pub mod simulated;
pub mod worker;
pub mod workloads;
