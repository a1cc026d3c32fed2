//! The benchmarks of the four documents, as programs and on simulated machines, and what was
//! published.
//!
//! | what | where |
//! |---|---|
//! | a document: its workloads, its figures, its simulated model | [`mutex_2010`], [`rwsem_2013`], [`wake_op_2005`], [`mtx_2006`] |
//! | what the workloads share | [`workloads`] |
//! | what the documents publish | [`published`] |
//! | what the simulated models share | [`simulated`] |
//! | all workloads and simulated tables, by name | [`registry`] |
//! | a process that runs one configuration of a workload | [`worker`] |
//! | their figures and the published ones | [`documents`] |
//! | programs of the system that workloads need | [`installed`], [`mariadb`] |
//! | saying it | [`report`] |

#![allow(missing_docs, reason = "the command is the only user: a name that says all has no comment")]

pub mod documents;
pub mod installed;
pub mod mariadb;
pub mod mtx_2006;
pub mod mutex_2010;
pub mod published;
pub mod registry;
pub mod report;
pub mod rwsem_2013;
pub mod simulated;
pub mod wake_op_2005;
pub mod worker;
pub mod workloads;
