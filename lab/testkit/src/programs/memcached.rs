//! memcached on a loopback port that the kernel chooses.

use std::path::Path;

use tempfile::TempDir;

use super::package::{MEMCACHED, MEMCSTAT};
use super::{Service, assert_configuration, field, private_dir, verbose};
use crate::{Configuration, ProgramResult, Run};

/// A running server; `Drop` kills it.
#[derive(Debug)]
pub struct Memcached {
    service: Service,
    configuration: Configuration,
    address: String,
    _dir: TempDir,
}

impl Memcached {
    /// Starts it on `configuration`, with 4 threads.
    pub fn start(configuration: Configuration) -> Memcached {
        Memcached::start_as(configuration, |run| run)
    }

    /// The same, recorded into `directory`.
    pub fn start_profiled(configuration: Configuration, directory: &Path) -> Memcached {
        Memcached::start_as(configuration, |run| run.profiled(directory, "contended"))
    }

    fn start_as(configuration: Configuration, prepared: impl FnOnce(Run) -> Run) -> Memcached {
        let dir = private_dir();
        let port_file = dir.path().join("port");
        let mut memcached = MEMCACHED
            .run()
            .args(["--listen=127.0.0.1", "--port=-1", "--udp-port=0", "--threads=4", "--memory-limit=64"])
            .env("MEMCACHED_PORT_FILENAME", &port_file);
        if rustix::process::geteuid().is_root() {
            memcached = memcached.arg("--user=root");
        }
        let mut port = None;
        let service = Service::start(prepared(memcached), configuration, || {
            port = read_port(&port_file);
            port.is_some()
        });
        let address = format!("127.0.0.1:{}", port.expect("ready means that the port is known"));
        Memcached { service, configuration, address, _dir: dir }
    }

    /// Runs a client on the same configuration and asserts that it succeeds.
    pub fn ask(&mut self, client: Run) -> ProgramResult {
        let client = client.arg(format!("--servers={}", self.address));
        let outcome = self.service.ask(verbose(client, self.configuration));
        assert_configuration(&outcome);
        outcome
    }

    /// What the server has counted of each of `names`.
    pub fn counts<'name>(&mut self, names: &[&'name str]) -> Vec<(&'name str, u64)> {
        let statistics = self.ask(MEMCSTAT.run()).stdout_text();
        let count = |name: &str| field(&statistics, &format!("\t{name}:")).parse().expect("a number");
        names.iter().map(|&name| (name, count(name))).collect()
    }

    /// Orderly shutdown.
    pub fn shut_down(self) {
        self.service.terminate();
        self.service.join();
    }
}

/// The server writes `TCP INET: 12345` once it listens; it renames the file, so that it is never seen half
/// written.
fn read_port(file: &Path) -> Option<u16> {
    let text = std::fs::read_to_string(file).ok()?;
    field(&text, "TCP INET:").parse().ok()
}
