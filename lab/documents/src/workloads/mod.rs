//! `spinpark-lab documents WORKLOAD`: the benchmarks of the four documents, as programs.
//!
//! | what | where |
//! |---|---|
//! | what a workload is | [`workload`], all of them: [`WORKLOADS`](crate::registry::WORKLOADS) |
//! | what one process is told, and what it says | [`job`] |
//! | its threads or processes | [`workers`]; a mutex around what they do: [`serial`] |
//! | where it may write | [`directory`] |
//! | whether the machine can do it at all | [`resources`] |
//! | cells (a variant at a number of tasks) with their configurations | [`experiment`] |
//! | one process per run | [`runner`] |
//! | what follows: mean, standard deviation, ratio, verdict, warnings; as one JSON document | [`result`] |
//! | whose locks a configuration has | [`locks`] |
//!
//! A workload is a file (or a directory) of its own in its document's folder: parameters, cells, a function
//! that runs it, and a [`Workload`] that describes it. It is added to the [`registry`](crate::registry). The
//! [`jobs`] are of two documents, so they are here.

pub mod directory;
pub mod experiment;
pub mod job;
pub mod jobs;
pub mod locks;
pub(crate) mod mapping;
pub mod resources;
pub mod result;
pub mod runner;
pub mod serial;
pub mod workers;
pub mod workload;

pub use self::experiment::{Cell, Configuration};
pub use self::job::{Figure, Job, JobError, Report, expect};
pub use self::resources::Requirements;
pub use self::workload::{Column, Workload};
