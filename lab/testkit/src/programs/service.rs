//! A server in the background and its clients.

use std::time::{Duration, Instant};

use super::{assert_configuration, verbose};
use crate::{Configuration, ProgramResult, Run, Running};

/// A server that runs until it is dropped or told to end.
#[derive(Debug)]
pub struct Service {
    running: Running,
}

impl Service {
    /// How long a server may take to come up, and to go down.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// Starts it on `configuration` and waits until `is_ready`.
    ///
    /// # Panics
    /// If it ends, or does not get ready in time.
    pub fn start(run: Run, configuration: Configuration, mut is_ready: impl FnMut() -> bool) -> Service {
        let mut running = verbose(run, configuration).spawn();
        let deadline = Instant::now() + Service::PATIENCE;
        while !is_ready() {
            if running.has_ended() || Instant::now() > deadline {
                panic!("the server does not get ready\n{}", running.wait(Duration::ZERO).report());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Service { running }
    }

    /// Runs a client to its end and asserts that it succeeds.
    ///
    /// # Panics
    /// If it does not; the message then says, too, what the server was doing.
    pub fn ask(&mut self, client: Run) -> ProgramResult {
        let outcome = client.outcome();
        if !outcome.success() {
            let server = self.running.wait(Duration::ZERO);
            panic!("{}\n=== meanwhile the server\n{}", outcome.report(), server.report());
        }
        outcome
    }

    /// Asks the server to end: `SIGTERM`.
    pub fn terminate(&self) {
        self.running.terminate();
    }

    /// Waits for the server's end and asserts that it exits with status 0, in time, and that it ran on the
    /// locks of its configuration.
    ///
    /// # Panics
    /// If not.
    pub fn join(mut self) -> ProgramResult {
        let outcome = self.running.wait(Service::PATIENCE).assert_success();
        assert_configuration(&outcome);
        outcome
    }
}
