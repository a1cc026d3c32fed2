//! MariaDB in a directory of its own, reached by a socket in it.

use std::path::Path;

use spinpark_documents::mariadb::Files;
use tempfile::TempDir;

use super::package::{MARIADB, MARIADB_ADMIN, MARIADB_INSTALL_DB, MARIADBD, SYSBENCH};
use super::{Service, field, private_dir};
use crate::{Configuration, Run};

/// An installed database; a server can be started on it again and again.
#[derive(Debug)]
pub struct MariaDb {
    dir: TempDir,
}

/// A running server; `Drop` kills it.
#[derive(Debug)]
pub struct MariaDbServer<'db> {
    service: Service,
    db: &'db MariaDb,
}

/// Tables of the loads, and rows in each.
const TABLES: [&str; 2] = ["sbtest1", "sbtest2"];
const ROWS: &str = "10000";

impl MariaDb {
    /// Makes an empty database.
    pub fn install() -> MariaDb {
        let db = MariaDb { dir: private_dir() };
        MARIADB_INSTALL_DB.run().current_dir(db.dir.path()).args(db.files().install_args()).succeed();
        db
    }

    /// Starts a server on it, the only program here that runs on `configuration`.
    pub fn start(&self, configuration: Configuration) -> MariaDbServer<'_> {
        self.start_as(configuration, |run| run)
    }

    /// The same, recorded into `directory`.
    pub fn start_profiled(&self, configuration: Configuration, directory: &Path) -> MariaDbServer<'_> {
        self.start_as(configuration, |run| run.profiled(directory, "contended"))
    }

    fn start_as(&self, configuration: Configuration, prepared: impl FnOnce(Run) -> Run) -> MariaDbServer<'_> {
        let mariadbd = MARIADBD
            .run()
            .current_dir(self.dir.path())
            .args(self.files().server_args())
            .arg("--innodb-buffer-pool-size=32M");
        let service = Service::start(prepared(mariadbd), configuration, || {
            self.client(MARIADB_ADMIN.run()).arg("ping").outcome().success()
        });
        MariaDbServer { service, db: self }
    }

    fn client(&self, run: Run) -> Run {
        run.args(self.files().client_args())
    }

    fn files(&self) -> Files {
        Files::at(self.dir.path())
    }
}

impl MariaDbServer<'_> {
    /// Makes the tables of the loads.
    pub fn prepare(&mut self) {
        self.query("CREATE DATABASE sbtest");
        self.service.ask(self.sysbench("oltp_read_write").arg("prepare"));
    }

    /// Runs sysbench's load `name` with 8 threads for `events` transactions and asserts that it did them all,
    /// without a broken connection.
    pub fn load(&mut self, name: &str, events: u32) {
        let run = self.sysbench(name).arg(format!("--events={events}")).args(["--time=0", "run"]);
        let report = self.service.ask(run).stdout_text();
        assert_eq!(field(&report, "transactions:"), events.to_string(), "{report}");
        assert_eq!(field(&report, "total number of events:"), events.to_string(), "{report}");
        assert_eq!(field(&report, "reconnects:"), "0", "{report}");
    }

    /// Number and checksum of the rows of each table, the latter after a check of the table.
    pub fn rows(&mut self) -> Vec<(String, String)> {
        TABLES.map(|table| self.rows_of(table)).into()
    }

    fn rows_of(&mut self, table: &str) -> (String, String) {
        let check = self.query(&format!("CHECK TABLE sbtest.{table} EXTENDED"));
        assert_eq!(check.trim().split('\t').next_back(), Some("OK"), "{check}");
        let count = self.query(&format!("SELECT COUNT(*), SUM(id) FROM sbtest.{table}"));
        let checksum = self.query(&format!("CHECKSUM TABLE sbtest.{table} EXTENDED"));
        (count, checksum)
    }

    /// Orderly shutdown, on request of a client.
    pub fn shut_down(mut self) {
        self.service.ask(self.db.client(MARIADB_ADMIN.run()).arg("shutdown"));
        let outcome = self.service.join();
        let log = outcome.stderr_text();
        assert!(log.contains("Shutdown complete") && !log.contains("[ERROR]"), "{}", outcome.report());
    }

    fn query(&mut self, sql: &str) -> String {
        let client = self.db.client(MARIADB.run()).args(["--skip-column-names", "--batch", "--execute", sql]);
        self.service.ask(client).stdout_text()
    }

    fn sysbench(&self, load: &str) -> Run {
        SYSBENCH
            .run()
            .args([load, "--threads=8", "--db-driver=mysql", "--mysql-user=root", "--mysql-db=sbtest"])
            .arg(format!("--mysql-socket={}", self.db.files().socket().display()))
            .arg(format!("--tables={}", TABLES.len()))
            .arg(format!("--table-size={ROWS}"))
    }
}
