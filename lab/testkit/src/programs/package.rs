//! Which programs the tests need, and what happens if one is missing.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::{Run, find_program};

/// A program and the Debian package that it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    command: &'static str,
    package: &'static str,
}

macro_rules! programs {
    ($($name:ident = $command:literal in $package:literal),+ $(,)?) => {
        $(#[doc = concat!("`", $command, "` in the Debian package `", $package, "`.")]
        pub const $name: Program = Program { command: $command, package: $package };)+
    };
}

programs! {
    EXIM = "exim4" in "exim4-daemon-light",
    FFMPEG = "ffmpeg" in "ffmpeg",
    GO = "go" in "golang-go",
    KCCACHETEST = "kccachetest" in "kyotocabinet-utils",
    KCGRASSTEST = "kcgrasstest" in "kyotocabinet-utils",
    MARIADB = "mariadb" in "mariadb-client",
    MARIADBD = "mariadbd" in "mariadb-server",
    MARIADB_ADMIN = "mariadb-admin" in "mariadb-client",
    MARIADB_INSTALL_DB = "mariadb-install-db" in "mariadb-server",
    MEMCACHED = "memcached" in "memcached",
    MEMCASLAP = "memcaslap" in "libmemcached-tools",
    MEMCSLAP = "memcslap" in "libmemcached-tools",
    MEMCSTAT = "memcstat" in "libmemcached-tools",
    PERL = "perl" in "perl",
    PIGZ = "pigz" in "pigz",
    PYTHON = "/usr/bin/python3" in "python3",
    RUBY = "ruby" in "ruby",
    STRESS_NG = "stress-ng" in "stress-ng",
    SYSBENCH = "sysbench" in "sysbench",
    TCHMTTEST = "tchmttest" in "tokyocabinet-bin",
    X264 = "x264" in "x264",
    XZ = "xz" in "xz-utils",
    ZSTD = "zstd" in "zstd",
}

impl Program {
    /// Prepares a run of it.
    ///
    /// # Panics
    /// If it is not installed.
    pub fn run(self) -> Run {
        let Some(path) = find_program(self.command) else { panic!("{}", not_installed(self)) };
        Run::new(path)
    }
}

/// Whether all `programs` are installed. Those that are not are named on standard error, even where the test
/// harness captures what tests print.
///
/// # Panics
/// If one is missing while the environment says `SPINPARK_REQUIRE_PROGRAMS=1`.
pub fn installed(programs: &[Program]) -> bool {
    let is_missing = |program: &&Program| find_program(program.command).is_none();
    let missing: Vec<&Program> = programs.iter().filter(is_missing).collect();
    for program in &missing {
        skipped(&not_installed(**program));
    }
    missing.is_empty()
}

/// Says, once, what is missing, so that a test is skipped.
///
/// # Panics
/// If the environment says `SPINPARK_REQUIRE_PROGRAMS=1`.
pub fn skipped(why: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    assert!(std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none_or(|value| value != "1"), "{why}");
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(why.to_owned()) {
        // Not `eprintln`, which the test harness captures. It is only a note: it may get lost.
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
    }
}

fn not_installed(program: Program) -> String {
    format!("{} is not installed (apt-get install {})", program.command, program.package)
}
