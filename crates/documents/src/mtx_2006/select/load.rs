//! One run: clients in threads of this process, each on a connection of its own, with a number of rounds to
//! do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use spinpark_measure::failure::Tail;
use spinpark_measure::start_gate::{self, NoThread, StartGate};
use thiserror::Error;

use super::connection::{Connection, QueryError};
use super::server::{Server, ServerError, Usage};
use super::table::{DATABASE, Random, password, select, statements, update, word};
use crate::mariadb::Files;

/// Queries in a round of one client.
pub const QUERIES_PER_ROUND: u64 = 2;

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// How many.
    pub clients: usize,
    /// What each has to do.
    pub rounds: u64,
    /// Rows of the table.
    pub rows: u64,
    /// A round is a select and an update of the same row, and not two selects.
    pub updates: bool,
    /// Decides which rows.
    pub seed: u64,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// From the first query of all clients to the last answer.
    pub elapsed: Duration,
    /// The longest and the shortest query, and all between, in nanoseconds.
    pub times: Histogram<u64>,
    /// What the server used meanwhile.
    pub usage: Usage,
}

/// A run without a result.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The server does not do its work.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Not all clients could be started.
    #[error(transparent)]
    NoThread(#[from] NoThread),
    /// A query failed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A query failed, and the server may have said why.
    #[error("{error}{log}")]
    Meanwhile {
        /// How.
        error: QueryError,
        /// The end of the server's log.
        log: Tail,
    },
    /// The answer is not what it must be.
    #[error("wrong result: `{query}` {what}")]
    Mismatch {
        /// What was asked.
        query: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// The kernel does not tell about the server.
    #[error("cannot read what the database used: {0}")]
    Usage(#[from] std::io::Error),
    /// Another client failed first.
    #[error("another client failed")]
    Abandoned,
}

/// Makes the table, on a server that was started for it.
///
/// # Errors
///
/// If the server refuses.
pub(super) fn fill(server: Server, files: &Files, rows: u64) -> Result<(), LoadError> {
    let mut connection = Connection::open(&files.socket(), "root")?;
    for statement in statements(rows) {
        connection.query(&statement)?;
    }
    check_rows(&mut connection, rows)?;
    drop(connection);
    Ok(server.stop()?)
}

impl Load {
    /// Runs it against `server`, and checks every answer.
    ///
    /// # Errors
    ///
    /// If an answer is wrong or missing.
    pub fn run(&self, server: &Server, files: &Files) -> Result<Outcome, LoadError> {
        let start = StartGate::default();
        let failed = AtomicBool::new(false);
        let (before, after, results) = thread::scope(|scope| -> Result<_, NoThread> {
            let (start, failed) = (&start, &failed);
            let work = move |number| {
                let client = Client::new(self, number, files);
                let client = client.and_then(|mut client| client.warm_up().map(|()| client));
                // Every thread comes here, or the others would wait for ever.
                failed.fetch_or(client.is_err(), Ordering::Relaxed);
                if !start.pass() {
                    return Err(LoadError::Abandoned);
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
        })?;
        let done = first_error(results)?;
        let first = done.iter().map(|done| done.start).min();
        let last = done.iter().map(|done| done.start + done.elapsed).max();
        let mut outcome = Outcome {
            elapsed: first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first),
            times: histogram(),
            usage: after?.since(&before?),
        };
        for done in &done {
            // Cannot fail: they are all made alike.
            let _ = outcome.times.add(&done.times);
        }
        let mut connection = Connection::open(&files.socket(), "root")?;
        check_rows(&mut connection, self.rows)?;
        Ok(outcome)
    }
}

/// All results, or the error that came before the others gave up.
fn first_error(results: Vec<Result<Done, LoadError>>) -> Result<Vec<Done>, LoadError> {
    let is_cause = |result: &Result<Done, LoadError>| matches!(result, Err(error) if !matches!(error, LoadError::Abandoned));
    let cause = results.iter().position(is_cause);
    let mut results = results;
    match cause {
        Some(cause) => Err(results.swap_remove(cause).err().unwrap_or(LoadError::Abandoned)),
        None => results.into_iter().collect(),
    }
}

/// What a client did.
struct Done {
    start: Instant,
    elapsed: Duration,
    times: Histogram<u64>,
}

struct Client<'a> {
    load: &'a Load,
    connection: Connection,
    random: Random,
    number: u64,
    times: Histogram<u64>,
}

impl<'a> Client<'a> {
    fn new(load: &'a Load, number: usize, files: &Files) -> Result<Self, LoadError> {
        let connection = Connection::open(&files.socket(), "root")?;
        let number = number as u64;
        let random = Random::new(load.seed.wrapping_mul(0x1_0000).wrapping_add(number));
        Ok(Self { load, connection, random, number, times: histogram() })
    }

    /// A tenth of the rounds: afterwards the table is in the server's memory, and its threads are there.
    fn warm_up(&mut self) -> Result<(), LoadError> {
        (0..self.load.rounds.div_ceil(10)).try_for_each(|_| {
            let word = word(self.random.next() % self.load.rows);
            self.select(&word)
        })?;
        self.times.reset();
        Ok(())
    }

    fn run(&mut self, failed: &AtomicBool) -> Result<Done, LoadError> {
        let start = Instant::now();
        for round in 0..self.load.rounds {
            if failed.load(Ordering::Relaxed) {
                return Err(LoadError::Abandoned);
            }
            let mut next = || word(self.random.next() % self.load.rows);
            let (first, second) = (next(), next());
            self.select(&first)?;
            match self.load.updates {
                true => self.update(&first, round)?,
                false => self.select(&second)?,
            }
        }
        Ok(Done { start, elapsed: start.elapsed(), times: std::mem::replace(&mut self.times, histogram()) })
    }

    /// Asks for a row, and checks that it is that one, and the only one.
    fn select(&mut self, word: &str) -> Result<(), LoadError> {
        let query = select(word);
        let rows = self.timed(&query)?.rows;
        let is_right = |row: &Vec<Option<Vec<u8>>>| {
            row.len() == 4 && row[0].as_deref() == Some(word.as_bytes()) && row.iter().all(Option::is_some)
        };
        match &rows[..] {
            [row] if is_right(row) => Ok(()),
            [_] => Err(LoadError::Mismatch { query, what: String::from("returned another row") }),
            rows => {
                Err(LoadError::Mismatch { query, what: format!("returned {} rows and not one", rows.len()) })
            }
        }
    }

    fn update(&mut self, word: &str, round: u64) -> Result<(), LoadError> {
        // Zero is who filled the table.
        let query = update(word, &password(self.number + 1, round));
        match self.timed(&query)?.changed {
            1 => Ok(()),
            changed => {
                Err(LoadError::Mismatch { query, what: format!("changed {changed} rows and not one") })
            }
        }
    }

    fn timed(&mut self, query: &str) -> Result<super::connection::Result, LoadError> {
        let start = Instant::now();
        let result = self.connection.query(query)?;
        self.times.saturating_record(as_ns(start.elapsed()));
        Ok(result)
    }
}

/// Buckets 1 % wide, from a nanosecond to an hour; the extremes are as wide.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 2)
        .unwrap_or_else(|_| unreachable!("these bounds are fine"))
}

fn as_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn check_rows(connection: &mut Connection, rows: u64) -> Result<(), LoadError> {
    let query = format!("SELECT COUNT(*), COUNT(DISTINCT username) FROM {DATABASE}.http_auth");
    let found = connection.query(&query)?.rows;
    let expected = Some(rows.to_string().into_bytes());
    if found == [[expected.clone(), expected]] {
        return Ok(());
    }
    Err(LoadError::Mismatch { query, what: format!("does not find {rows} rows with as many names") })
}
