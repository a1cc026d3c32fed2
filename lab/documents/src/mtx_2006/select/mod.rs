//! `spinpark-lab documents select`: document 004's super-smack benchmark against a real database.
//!
//! Clients ask MariaDB for rows of one table, by key, over a socket; what is compared is the locks *inside
//! the server*. The server is the one of the system's package, started for this benchmark alone: in a private
//! directory, without a port, as the user that runs the benchmark, and gone afterwards.
//!
//! The table, super-smack's `http_auth`, is made once, by a worker of its own (`Parameters::Prepare`); each
//! run starts a server on a copy, so that no run finds what another has left. Its rows are made up, the same
//! in every run: the word of row `n` can be computed, so no list is kept.

mod connection;
mod server;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use spinpark_lockbench::locks::definitions::Implementation;
use spinpark_measure::process::start_gate::{self, NoThread, StartGate};

use self::connection::{Answer, Connection, Row};
use self::server::{Server, Start, Usage};
use crate::mariadb::{Files, Programs};
use crate::workloads::workload::Kind;
use crate::workloads::{
    Cell, Column, Configuration, Figure, Job, JobError, Report, Requirements, Workload, expect,
};

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
            fill(Server::start(&start, &files, 1)?, &files, rows)?;
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

/// Rows, unless told otherwise: at least as many as super-smack wants.
pub const ROWS: u64 = 90_000;

/// Queries in a round of one client.
const QUERIES_PER_ROUND: u64 = 2;

const DATABASE: &str = "spinpark";

/// Rows per statement when the table is filled.
const ROWS_PER_STATEMENT: u64 = 1_000;

/// Statements that make the table with `rows` rows.
fn statements(rows: u64) -> impl Iterator<Item = String> {
    let make = [
        format!("CREATE DATABASE {DATABASE}"),
        format!(
            "CREATE TABLE {DATABASE}.http_auth (username CHAR(25) NOT NULL PRIMARY KEY, pass CHAR(25), uid INT NOT NULL, \
             gid INT NOT NULL)"
        ),
    ];
    let starts = (0..rows).step_by(ROWS_PER_STATEMENT as usize);
    make.into_iter().chain(starts.map(move |start| {
        let row = |row| format!("('{}','{}',{row},{})", word(row), password(0, row), row % 1_000);
        let values: Vec<String> = (start..rows.min(start + ROWS_PER_STATEMENT)).map(row).collect();
        format!("INSERT INTO {DATABASE}.http_auth VALUES {}", values.join(","))
    }))
}

/// The key of row `row`: twelve letters, and the number of the row, so that it is the only one.
fn word(row: u64) -> String {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(row);
    let letters: String = (0..12).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
    format!("{letters}{row}")
}

/// A password that no other round of no other client has. Client 0 fills the table.
fn password(client: u64, round: u64) -> String {
    format!("p{client}x{round}")
}

/// Makes the table, on a server that was started for it.
fn fill(server: Server, files: &Files, rows: u64) -> Result<(), JobError> {
    let mut connection = Connection::open(&files.socket(), "root")?;
    for statement in statements(rows) {
        connection.query(&statement)?;
    }
    check_rows(&mut connection, rows)?;
    drop(connection);
    server.stop()
}

fn check_rows(connection: &mut Connection, rows: u64) -> Result<(), JobError> {
    let query = format!("SELECT COUNT(*), COUNT(DISTINCT username) FROM {DATABASE}.http_auth");
    let found = connection.query(&query)?.rows;
    let expected = Some(rows.to_string().into_bytes());
    let is_right = found == [[expected.clone(), expected]];
    expect(is_right, || format!("`{query}` does not find {rows} rows with as many names"))
}

/// What clients do.
#[derive(Debug, Clone, Copy)]
struct Load {
    clients: usize,
    /// Of each client.
    rounds: u64,
    /// Of the table.
    rows: u64,
    /// A round is a select and an update of the same row, and not two selects.
    updates: bool,
    /// Decides which rows.
    seed: u64,
}

/// What clients did, one or all of them.
#[derive(Debug)]
struct Done {
    start: Instant,
    /// From the first query to the last answer.
    elapsed: Duration,
    /// Of queries, in nanoseconds.
    times: Histogram<u64>,
}

impl Load {
    /// Runs it against `server`, and checks every answer. Also returns what the server used meanwhile.
    fn run(&self, server: &Server, files: &Files) -> Result<(Done, Usage), JobError> {
        let start = StartGate::default();
        let failed = AtomicBool::new(false);
        let started = thread::scope(|scope| -> Result<_, NoThread> {
            let (start, failed) = (&start, &failed);
            let work = move |number| {
                let client = Client::new(self, number, files);
                let client = client.and_then(|mut client| client.warm_up().map(|()| client));
                // Every thread comes here, or the others would wait for ever.
                failed.fetch_or(client.is_err(), Ordering::Relaxed);
                if !start.pass() {
                    return Ok(None);
                }
                let result = client.and_then(|mut client| client.run(failed));
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                result
            };
            let clients = start_gate::start(scope, start, self.clients, work)?;
            start.wait_for(self.clients);
            // All clients are there, and none has begun.
            let before = server.usage();
            start.open();
            let results: Vec<_> = clients
                .into_iter()
                .map(|client| client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect();
            Ok((before, server.usage(), results))
        });
        let (before, after, results) = started.map_err(|error| JobError::Refused(error.to_string()))?;
        // Clients that gave up have nothing, since another one failed.
        let done = results.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>, JobError>>()?;
        let usage = after?.since(&before?);
        let all = done.into_iter().reduce(|mut all, done| {
            let end = (all.start + all.elapsed).max(done.start + done.elapsed);
            all.start = all.start.min(done.start);
            all.elapsed = end - all.start;
            // Cannot fail: they are all made alike.
            let _ = all.times.add(&done.times);
            all
        });
        let all = all.ok_or_else(|| JobError::Refused(String::from("there was no client")))?;
        check_rows(&mut Connection::open(&files.socket(), "root")?, self.rows)?;
        Ok((all, usage))
    }
}

struct Client<'a> {
    load: &'a Load,
    connection: Connection,
    random: Xoshiro256PlusPlus,
    number: u64,
    times: Histogram<u64>,
}

impl<'a> Client<'a> {
    fn new(load: &'a Load, number: usize, files: &Files) -> Result<Self, JobError> {
        let connection = Connection::open(&files.socket(), "root")?;
        let number = number as u64;
        let seed = load.seed.wrapping_mul(0x1_0000).wrapping_add(number);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Buckets 1 % wide, from a nanosecond to an hour; the extremes are as wide.
        let times = Histogram::new_with_bounds(1, 3_600_000_000_000, 2);
        let times = times.unwrap_or_else(|_| unreachable!("these bounds are fine"));
        Ok(Self { load, connection, random, number, times })
    }

    fn next_word(&mut self) -> String {
        word(self.random.random_range(0..self.load.rows))
    }

    /// A tenth of the rounds: afterwards the table is in the server's memory, and its threads are there.
    fn warm_up(&mut self) -> Result<(), JobError> {
        for _ in 0..self.load.rounds.div_ceil(10) {
            let word = self.next_word();
            self.select(&word)?;
        }
        self.times.reset();
        Ok(())
    }

    /// None if another client has failed.
    fn run(&mut self, failed: &AtomicBool) -> Result<Option<Done>, JobError> {
        let start = Instant::now();
        for round in 0..self.load.rounds {
            if failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let (first, second) = (self.next_word(), self.next_word());
            self.select(&first)?;
            match self.load.updates {
                true => self.update(&first, round)?,
                false => self.select(&second)?,
            }
        }
        Ok(Some(Done { start, elapsed: start.elapsed(), times: self.times.clone() }))
    }

    /// Asks for a row, and checks that it is that one, and the only one.
    fn select(&mut self, word: &str) -> Result<(), JobError> {
        let query = format!("SELECT * FROM {DATABASE}.http_auth WHERE username = '{word}'");
        let rows = self.timed(&query)?.rows;
        let is_right = |row: &Row| {
            row.len() == 4 && row[0].as_deref() == Some(word.as_bytes()) && row.iter().all(Option::is_some)
        };
        expect(rows.len() == 1, || format!("`{query}` returned {} rows and not one", rows.len()))?;
        expect(rows.iter().all(is_right), || format!("`{query}` returned another row"))
    }

    fn update(&mut self, word: &str, round: u64) -> Result<(), JobError> {
        let password = password(self.number + 1, round);
        let query = format!("UPDATE {DATABASE}.http_auth SET pass = '{password}' WHERE username = '{word}'");
        let changed = self.timed(&query)?.changed;
        expect(changed == 1, || format!("`{query}` changed {changed} rows and not one"))
    }

    fn timed(&mut self, query: &str) -> Result<Answer, JobError> {
        let start = Instant::now();
        let answer = self.connection.query(query)?;
        self.times.saturating_record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use spinpark_lockbench::locks::definitions::Definitions;

    use super::*;

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

    #[test]
    fn words_are_different_and_fit() {
        let words: HashSet<String> = (0..2_000).map(word).collect();
        assert_eq!(words.len(), 2_000);
        assert!(word(999_999_999).len() <= 25 && word(0).starts_with(char::is_alphabetic));
        assert_eq!(word(17), word(17));
    }

    #[test]
    fn all_rows_are_inserted() {
        let statements: Vec<String> = statements(2_500).collect();
        assert_eq!(statements.len(), 2 + 3);
        let rows: usize = statements[2..].iter().map(|statement| statement.matches("('").count()).sum();
        assert_eq!(rows, 2_500);
        assert!(statements[4].contains(&format!("'{}'", word(2_499))));
        assert_eq!(super::statements(1).count(), 3);
    }
}
