//! Users that each have a list of small jobs — arithmetic, files, directories, pipes, sockets, processes,
//! memory — and do them in an order of their own: the multi-user benchmark of documents 001 and 002, with
//! operations of our own.
//!
//! A user is a process with a directory of its own. All start together; jobs per minute = jobs of a user ÷
//! elapsed time in seconds × 60 × users, where the time ends with the last user.

pub mod mix;
pub mod operations;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use self::mix::Mix;
use self::operations::Context;
use super::experiment::{Cell, Configuration};
use super::job::{Figure, Job, JobError, Report};
use super::resources::Requirements;
use super::workers;
use super::workload::{Column, Kind, Workload};

/// Jobs of a user unless told otherwise.
pub const JOBS: usize = 100;

pub static WORKLOAD: Workload = Workload {
    name: "jobs",
    about: "users that do small jobs of many kinds, in mixes with published weights",
    source: "001: AIM7 fserver; 002: AIM7 alltests, custom, disk, high_systime, shared, short",
    variants: "--mix fserver,alltests,custom,disk,high_systime,shared,short",
    tasks: "users",
    thread_counts: &[1, 2, 4, 8, 16],
    figure: Figure::PerMinute("jobs"),
    uses_directory: true,
    columns: &[
        Column { key: "jobs_per_user", header: "jobs/user", kind: Kind::Number },
        Column { key: "elapsed_s", header: "elapsed", kind: Kind::Seconds },
        Column { key: "file_bytes", header: "file size", kind: Kind::Bytes },
    ],
    table: None,
    run,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    pub mix: String,
    /// Jobs of a user; every operation of the mix is done at least once.
    pub jobs: usize,
    /// The size of a file, in bytes.
    pub file_bytes: u64,
    /// Whether files are flushed to the disk where the mix says so.
    pub sync: bool,
}

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub mixes: Vec<String>,
    pub jobs: usize,
    /// The size of a file, in bytes, instead of the mix' own.
    pub file_size: Option<u64>,
    /// What all files share, in bytes, instead of the mix' own.
    pub pool_size: Option<u64>,
    pub sync: bool,
}

/// Files that an operation has at a time.
const FILES_AT_A_TIME: u64 = 2;

/// The cells for a request, and a sentence about each file size that was reduced to fit in `space` bytes. A
/// size that the user chose is never reduced.
pub fn cells(
    request: &Request,
    thread_counts: &[usize],
    space: u64,
) -> Result<(Vec<Cell>, Vec<String>), String> {
    let (mut cells, mut notes) = (Vec::new(), Vec::new());
    for name in &request.mixes {
        let mix = mix::by_name(name)?;
        for &tasks in thread_counts {
            let wanted = file_bytes(mix, request, tasks);
            // Half of the space: the machine has others to serve.
            let most = space / 2 / FILES_AT_A_TIME / tasks.max(1) as u64;
            let is_chosen = request.file_size.is_some() || request.pool_size.is_some();
            let file_bytes = if is_chosen { wanted } else { wanted.min(most) };
            if file_bytes < wanted {
                notes.push(format!(
                    "{name} × {tasks}: files of {} instead of {}, so that they fit",
                    spinpark_measure::text::units::bytes(file_bytes as f64),
                    spinpark_measure::text::units::bytes(wanted as f64)
                ));
            }
            cells.push(cell(mix, request, tasks, file_bytes));
        }
    }
    Ok((cells, notes))
}

/// File size + pool size ÷ users.
fn file_bytes(mix: &Mix, request: &Request, tasks: usize) -> u64 {
    let pool = request.pool_size.unwrap_or(mix.pool_size);
    request.file_size.unwrap_or(mix.file_size) + pool / tasks.max(1) as u64
}

fn cell(mix: &Mix, request: &Request, tasks: usize, file_bytes: u64) -> Cell {
    let parameters = Parameters { mix: mix.name.clone(), jobs: request.jobs, file_bytes, sync: request.sync };
    let users = tasks as u64;
    Cell {
        variant: mix.name.clone(),
        tasks,
        configurations: vec![Configuration::new("users", &parameters)],
        needs: Requirements {
            descriptors: 16,
            // A user, its shell, and what the shell starts.
            processes: users * 4,
            memory: users * (8 << 20),
            space: users * file_bytes * FILES_AT_A_TIME,
            files: users * 100,
            ..Requirements::default()
        },
    }
}

fn run(job: &Job) -> Result<Report, JobError> {
    let parameters: Parameters = job.parameters()?;
    let mix = mix::by_name(&parameters.mix).map_err(JobError::Refused)?;
    let directory = job.directory()?;
    operations::check(mix, directory)?;
    let names: Vec<&str> = mix.operations().map(|(name, _)| name).collect();
    let prepare = |number| {
        let own = directory.join(format!("user-{number}"));
        let context = context(&own, number, job.seed, &parameters)?;
        Ok((mix.order(parameters.jobs, job.seed, number), context))
    };
    let (report, words) = workers::once(job.tasks, names.len(), prepare, |(order, mut context), words| {
        order.into_iter().try_for_each(|name| timed(name, &names, &mut context, words))
    })?;
    let jobs = mix.counts(parameters.jobs).iter().map(|(_, count)| count).sum::<usize>();
    let columns = [
        ("jobs_per_user", jobs as f64),
        ("elapsed_s", report.elapsed_s),
        ("file_bytes", parameters.file_bytes as f64),
    ];
    Ok(Report {
        operations: (jobs * job.tasks) as u64,
        columns: columns.map(|(key, value)| (key.to_owned(), value)).into(),
        breakdown: breakdown(&names, &words),
        ..report
    })
}

/// Makes a user's directory, and goes there.
fn context(own: &Path, number: usize, seed: u64, parameters: &Parameters) -> Result<Context, JobError> {
    let failed = || JobError::failed(format!("cannot use the directory {}", own.display()));
    fs::create_dir(own).map_err(failed())?;
    std::env::set_current_dir(own).map_err(failed())?;
    Ok(Context::new(own, number, seed, parameters.file_bytes, parameters.sync))
}

/// Does one job, and adds the time that it took to the word of its operation.
fn timed(name: &str, names: &[&str], context: &mut Context, words: &[AtomicU64]) -> Result<(), JobError> {
    let run = operations::by_name(name);
    let run = run.ok_or_else(|| JobError::Refused(format!("there is no operation `{name}`")))?;
    let start = Instant::now();
    run(context).map_err(|trouble| match trouble {
        JobError::Mismatch(what) => JobError::Mismatch(format!("{name}: {what}")),
        JobError::Failed { what, error } => JobError::Failed { what: format!("{name}: {what}"), error },
        other => other,
    })?;
    let place = names.iter().position(|known| *known == name);
    if let Some(word) = place.and_then(|place| words.get(place)) {
        word.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Shares of all users' time.
fn breakdown(names: &[&str], words: &[Vec<u64>]) -> BTreeMap<String, f64> {
    let of = |place: usize| words.iter().map(|words| words[place] as f64).sum::<f64>();
    let all: f64 = (0..names.len()).map(of).sum();
    names.iter().enumerate().map(|(place, name)| ((*name).to_owned(), of(place) / all.max(1.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(mix: &str) -> Request {
        Request { mixes: vec![mix.to_owned()], jobs: JOBS, file_size: None, pool_size: None, sync: true }
    }

    #[test]
    fn files_have_their_part_of_the_pool_and_fit() {
        let sizes = |request: &Request, space: u64| {
            let (cells, notes) = cells(request, &[1, 10], space).unwrap();
            let of = |cell: &Cell| cell.configurations[0].parameters["file_bytes"].as_u64().unwrap();
            (cells.iter().map(of).collect::<Vec<_>>(), notes)
        };
        let (all, notes) = sizes(&request("shared"), u64::MAX / 8);
        assert_eq!((all, notes.len()), (vec![11 << 20, 2 << 20], 0));
        let (few, notes) = sizes(&request("shared"), 40 << 20);
        assert_eq!((few, notes.len()), (vec![10 << 20, 1 << 20], 2));
        assert!(notes[0].contains("10.0 MiB instead of 11.0 MiB"), "{notes:?}");
        let chosen = Request { file_size: Some(1 << 30), pool_size: Some(0), ..request("shared") };
        assert_eq!(sizes(&chosen, 1), (vec![1 << 30, 1 << 30], vec![]));
    }

    #[test]
    fn shares_add_up() {
        let shares = breakdown(&["a", "b"], &[vec![1, 2], vec![3, 2]]);
        assert_eq!(shares, BTreeMap::from([(String::from("a"), 0.5), (String::from("b"), 0.5)]));
    }
}
