//! The table, super-smack's `http_auth`, and one run on it: clients in threads of this process, each on a
//! connection of its own, with a number of rounds to do.
//!
//! The table is made up, the same in every run: the word of row `n` can be computed, so no list is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use spinpark_measure::start_gate::{self, NoThread, StartGate};

use super::connection::{Answer, Connection, Row};
use super::server::{Server, Usage};
use crate::mariadb::Files;
use crate::workloads::job::{JobError, expect};

/// Rows, unless told otherwise: at least as many as super-smack wants.
pub const ROWS: u64 = 90_000;

/// Queries in a round of one client.
pub(super) const QUERIES_PER_ROUND: u64 = 2;

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
    let mut random = Random::new(row);
    let letters: String = (0..12).map(|_| char::from(b'a' + (random.next() % 26) as u8)).collect();
    format!("{letters}{row}")
}

/// A password that no other round of no other client has. Client 0 fills the table.
fn password(client: u64, round: u64) -> String {
    format!("p{client}x{round}")
}

/// Marsaglia's xorshift, started by a number that may be anything (splitmix64's step spreads it).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((state ^ (state >> 31)) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Makes the table, on a server that was started for it.
pub(super) fn fill(server: Server, files: &Files, rows: u64) -> Result<(), JobError> {
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
pub(super) struct Load {
    pub(super) clients: usize,
    /// Of each client.
    pub(super) rounds: u64,
    /// Of the table.
    pub(super) rows: u64,
    /// A round is a select and an update of the same row, and not two selects.
    pub(super) updates: bool,
    /// Decides which rows.
    pub(super) seed: u64,
}

/// What clients did, one or all of them.
#[derive(Debug)]
pub(super) struct Done {
    start: Instant,
    /// From the first query to the last answer.
    pub(super) elapsed: Duration,
    /// Of queries, in nanoseconds.
    pub(super) times: Histogram<u64>,
}

impl Load {
    /// Runs it against `server`, and checks every answer. Also returns what the server used meanwhile.
    pub(super) fn run(&self, server: &Server, files: &Files) -> Result<(Done, Usage), JobError> {
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
    random: Random,
    number: u64,
    times: Histogram<u64>,
}

impl<'a> Client<'a> {
    fn new(load: &'a Load, number: usize, files: &Files) -> Result<Self, JobError> {
        let connection = Connection::open(&files.socket(), "root")?;
        let number = number as u64;
        let random = Random::new(load.seed.wrapping_mul(0x1_0000).wrapping_add(number));
        // Buckets 1 % wide, from a nanosecond to an hour; the extremes are as wide.
        let times = Histogram::new_with_bounds(1, 3_600_000_000_000, 2);
        let times = times.unwrap_or_else(|_| unreachable!("these bounds are fine"));
        Ok(Self { load, connection, random, number, times })
    }

    fn next_word(&mut self) -> String {
        word(self.random.next() % self.load.rows)
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

    use super::*;

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
