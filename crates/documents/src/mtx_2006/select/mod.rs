//! `spinpark documents select`: document 004's super-smack benchmark against a real database.
//!
//! Clients ask MariaDB for rows of one table, by key, over a socket; what is compared is the locks *inside
//! the server*. The server is the one of the system's package, started for this benchmark alone: in a private
//! directory, without a port, as the user that runs the benchmark, and gone afterwards.
//!
//! The table is made once, by a worker of its own (`Parameters::Prepare`); each run starts a server on a
//! copy, so that no run finds what another has left.

mod connection;
mod load;
mod server;

pub use self::load::ROWS;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;

use self::load::{Load, QUERIES_PER_ROUND};
use self::server::{Server, Start};
use crate::mariadb::{Files, Programs};
use crate::workloads::experiment::{Cell, Configuration};
use crate::workloads::job::{Figure, Job, JobError, Report};
use crate::workloads::resources::Requirements;
use crate::workloads::workload::{Column, Kind, Workload};

pub static WORKLOAD: Workload = Workload {
    name: "select",
    about: "clients ask MariaDB for rows by key; glibc's locks and ours inside the server",
    source: "004: MySQL with super-smack's select-key, and its update-select",
    variants: "--update, --table-rows, --server-option",
    tasks: "clients",
    thread_counts: &[1, 4, 10, 20],
    figure: Figure::PerSecond("queries"),
    uses_directory: true,
    columns: &[
        Column { key: SHORTEST, header: "shortest", kind: Kind::Seconds },
        Column { key: P99, header: "p99", kind: Kind::Seconds },
        Column { key: LONGEST, header: "longest", kind: Kind::Seconds },
    ],
    table: None,
    run,
};

const SHORTEST: &str = "shortest_s";
const P99: &str = "p99_s";
const LONGEST: &str = "longest_s";

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Parameters {
    /// Makes the table in `template`, by the program `install` and a server.
    Prepare { template: PathBuf, rows: u64, install: PathBuf, start: Start },
    /// Measures on a copy of `template`; `updates`: a round has a select and an update, not two selects.
    Measure { template: PathBuf, rows: u64, rounds: u64, updates: bool, start: Start },
}

#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub clients: &'a [usize],
    pub rounds: u64,
    pub rows: u64,
    /// A select and an update in each round, not two selects.
    pub updates: bool,
    /// Options of the server, after ours.
    pub options: &'a [String],
    /// Whose locks the server has.
    pub locks: &'a [Implementation],
}

impl Request<'_> {
    /// The run that makes the table in `template`, before all others.
    pub fn preparation(&self, programs: &Programs, template: &Path) -> Cell {
        let prepare = Parameters::Prepare {
            template: template.to_path_buf(),
            rows: self.rows,
            install: programs.install.clone(),
            start: self.start(programs),
        };
        let configurations = vec![Configuration::new("the table", &prepare)];
        Cell { variant: String::from("to begin with"), tasks: 1, configurations, needs: self.needs(1) }
    }

    /// The cells. `preload` is `LD_PRELOAD` for an implementation.
    pub fn cells(
        &self,
        programs: &Programs,
        template: &Path,
        preload: impl Fn(&Implementation) -> Option<String>,
    ) -> Vec<Cell> {
        let configuration = |lock: &Implementation| {
            let mut start = self.start(programs);
            start.preload = preload(lock);
            start.variables = lock.env.clone().into_iter().collect();
            let measure = Parameters::Measure {
                template: template.to_path_buf(),
                rows: self.rows,
                rounds: self.rounds,
                updates: self.updates,
                start,
            };
            Configuration::new(&*lock.name, &measure)
        };
        let variant = if self.updates { "a select and an update" } else { "two selects" };
        let cell = |&tasks: &usize| Cell {
            variant: variant.to_owned(),
            tasks,
            configurations: self.locks.iter().map(configuration).collect(),
            needs: self.needs(tasks as u64),
        };
        self.clients.iter().map(cell).collect()
    }

    fn start(&self, programs: &Programs) -> Start {
        Start { program: programs.server.clone(), options: self.options.to_vec(), ..Start::default() }
    }

    fn needs(&self, clients: u64) -> Requirements {
        /// An empty database, with its logs.
        const EMPTY: u64 = 64 << 20;
        /// A row, with its key, in pages that are not full.
        const ROW: u64 = 400;
        /// The server, with its buffers.
        const SERVER: u64 = 256 << 20;
        let files = EMPTY + self.rows * ROW;
        Requirements {
            // A server has as many connections as there are clients, and the files of its own tables.
            descriptors: clients + 256,
            processes: 2 * clients + 64,
            threads: clients,
            memory: SERVER + clients * (1 << 20),
            // What was prepared, and a copy.
            space: 2 * files,
            files: 1_000,
        }
    }
}

fn run(job: &Job) -> Result<Report, JobError> {
    match job.parameters()? {
        Parameters::Prepare { template, rows, install, start } => {
            let files = Files::at(&template);
            server::make_empty(&files, &install)?;
            load::fill(Server::start(&start, &files, 1)?, &files, rows)?;
            Ok(Report::default())
        }
        Parameters::Measure { template, rows, rounds, updates, start } => {
            let files = Files::at(job.directory()?);
            server::copy(&Files::at(&template).data(), &files.data())
                .map_err(JobError::failed("cannot copy the database"))?;
            measure(&Load { clients: job.tasks, rounds, rows, updates, seed: job.seed }, &files, &start)
        }
    }
}

fn measure(load: &Load, files: &Files, start: &Start) -> Result<Report, JobError> {
    let server = Server::start(start, files, load.clients)?;
    let (done, usage) = load.run(&server, files).map_err(|error| match error {
        // A query failed, and the server may have said why.
        JobError::Refused(what) => JobError::Refused(format!("{what}{}", server.log())),
        error => error,
    })?;
    server.stop()?;
    let times = &done.times;
    let columns = [(SHORTEST, times.min()), (P99, times.value_at_quantile(0.99)), (LONGEST, times.max())];
    Ok(Report {
        operations: load.clients as u64 * load.rounds * QUERIES_PER_ROUND,
        elapsed_s: done.elapsed.as_secs_f64(),
        user_s: usage.user_s,
        system_s: usage.system_s,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        columns: columns.map(|(key, ns)| (key.to_owned(), ns as f64 / 1e9)).into(),
        // All clients do the same amount of work: there is no spread.
        ..Report::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinpark_lockbench::locks::definitions::Definitions;

    #[test]
    fn configurations_differ_by_their_locks_only() {
        let definitions = Definitions::built_in().unwrap();
        let locks = ["glibc", "drop-in", "drop-in-disabled"]
            .map(|name| definitions.implementation(name).unwrap().clone());
        let options = [String::from("--x")];
        let request =
            Request { clients: &[1, 4], rounds: 5, rows: 9, updates: true, options: &options, locks: &locks };
        let programs = Programs { server: "/s".into(), install: "/i".into() };
        let preload = |lock: &Implementation| lock.preload.then(|| String::from("/ours.so"));
        let cells = request.cells(&programs, Path::new("/t"), preload);
        assert_eq!(cells.iter().map(|cell| cell.tasks).collect::<Vec<_>>(), [1, 4]);
        let starts: Vec<Start> = cells[0]
            .configurations
            .iter()
            .map(|configuration| match Parameters::deserialize(&configuration.parameters).unwrap() {
                Parameters::Measure { start, rounds: 5, rows: 9, updates: true, .. } => start,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(starts.iter().all(|start| start.options == ["--x"] && start.program == Path::new("/s")));
        assert_eq!(starts[0].preload, None);
        assert_eq!((&starts[1].preload, starts[1].variables.len()), (&Some(String::from("/ours.so")), 0));
        assert_eq!(starts[2].variables, [(String::from("SPINPARK_DISABLE"), String::from("1"))]);
        assert!(
            cells[0].configurations.iter().all(|configuration| configuration.lock.is_none()),
            "the clients are the same for all"
        );
    }
}
