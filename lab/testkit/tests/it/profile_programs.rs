//! Recordings of real programs, and of programs of ours in C++ and Rust: the report names the lock that
//! matters.
//!
//! A program that is not installed is skipped and named; with `SPINPARK_REQUIRE_PROGRAMS=1` its test fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use spinpark_profile::model::{Profile, RecordingEnd};
use spinpark_profile::summary::summary;
use spinpark_profile::symbols::Symbols;
use spinpark_profile::{load, pprof};
use spinpark_testkit::programs::*;
use spinpark_testkit::{Configuration, Run, compile_c, find_program, scratch_dir};

/// The one profile in a directory, of a program that ended in order.
#[track_caller]
fn only_profile(directory: &Path) -> Profile {
    let loaded = load::load(directory, &mut Symbols::new()).expect("a recording");
    assert_eq!((loaded.profiles.len(), loaded.broken.len()), (1, 0));
    let profile = loaded.profiles.into_iter().next().expect("one");
    assert_eq!((profile.ended, profile.dropped), (RecordingEnd::Exited, 0));
    profile
}

/// Runs a program to its end, recorded.
#[track_caller]
fn profile_of(run: Run, configuration: Configuration, detail: &str) -> Profile {
    let directory = private_dir();
    run.configuration(configuration).profiled(directory.path(), detail).succeed();
    only_profile(directory.path())
}

/// Whether some thread waited, or made others wait, in a function whose name has `part`.
fn has_call_site(profile: &Profile, part: &str) -> bool {
    let functions = profile
        .call_sites
        .iter()
        .flat_map(|call_site| &call_site.frames)
        .filter_map(|frame| frame.function.as_deref());
    functions.into_iter().any(|function| function.contains(part))
}

#[test]
fn cpp() {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| String::from("c++"));
    if find_program(&compiler).is_none() {
        return skipped(&format!("no C++ compiler: {compiler} (apt-get install g++)"));
    }
    for configuration in Configuration::BOTH {
        let profile =
            profile_of(Run::new(compile_c("../../examples/store.cpp", &[])), configuration, "contended");
        let summary = summary(&profile).headline;
        assert!(summary.contains("held by `shop::Store::rebuild_index`"), "{summary}");
        assert!(summary.contains("`shop::Store::price_of` waits"), "{summary}");
    }
}

/// `profile/queue.rs`, by the compiler that compiles us.
fn rust_program() -> PathBuf {
    let program = scratch_dir().join(format!("queue-{}", std::process::id()));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("profile/queue.rs");
    let status = Command::new(rustc)
        .args(["--edition", "2024", "-O", "-g", "-o"])
        .arg(&program)
        .arg(source)
        .status()
        .expect("a Rust compiler");
    assert!(status.success());
    program
}

#[test]
fn rust() {
    let program = rust_program();
    for configuration in Configuration::BOTH {
        let profile = profile_of(Run::new(&program), configuration, "contended");
        let summary = summary(&profile).headline;
        for words in ["JOURNAL", "held by `queue::journal::sync_to_disk`", "`queue::journal::append` waits"] {
            assert!(
                summary.contains(words),
                "{configuration:?}: no `{words}` in: {summary}\n{:#?}\n{:#?}",
                profile.call_sites,
                profile.modules
            );
        }
    }
    std::fs::remove_file(program).expect("our program");
}

/// Unwinding takes a lock, in a program that has registered unwind tables: it must not be unwound for.
/// (sysbench, whose LuaJIT does so, hung.)
#[test]
fn the_unwinders_own_lock() {
    let program = compile_c("profile/tables.c", &["-lgcc_s"]);
    for detail in ["contended", "sampled", "full"] {
        for configuration in Configuration::BOTH {
            let directory = private_dir();
            let outcome =
                Run::new(&program).configuration(configuration).profiled(directory.path(), detail).succeed();
            assert_eq!(outcome.stdout_text(), "ok\n");
        }
    }
}

#[test]
fn sysbench() {
    let Some(_turn) = turn(&[SYSBENCH]) else { return };
    for detail in ["contended", "full"] {
        profile_of(
            SYSBENCH.run().args(["mutex", "--threads=8", "--mutex-num=1", "run"]),
            Configuration::Glibc,
            detail,
        );
    }
}

#[test]
fn kyoto_cabinet() {
    let Some(_turn) = turn(&[KCCACHETEST]) else { return };
    for configuration in Configuration::BOTH {
        let wicked = KCCACHETEST.run().args(["wicked", "-th", "4", "100000"]);
        let profile = profile_of(wicked, configuration, "contended");
        let lock = profile.locks.first().expect("four threads on one database wait");
        assert!(lock.label.starts_with("rwlock of "), "{}", lock.label);
        assert!(has_call_site(&profile, "kyotocabinet::"), "{:?}", profile.call_sites);
        read_by_go(&profile);
    }
}

#[test]
fn memcached() {
    let Some(_turn) = turn(&[MEMCACHED, MEMCASLAP, MEMCSTAT]) else { return };
    for configuration in Configuration::BOTH {
        let directory = private_dir();
        let mut server = Memcached::start_profiled(configuration, directory.path());
        let client = MEMCASLAP.run().args(["--threads=4", "--concurrency=16", "--execute_number=200000"]);
        server.ask(client.arg("--fixed_size=200"));
        server.shut_down();
        let profile = only_profile(directory.path());
        assert!(!profile.locks.is_empty(), "four threads wait for the locks of its lists");
        assert!(has_module(&profile, "memcached"));
    }
}

#[test]
fn mariadb() {
    let Some(_turn) = turn(&[MARIADBD, MARIADB_INSTALL_DB, MARIADB, MARIADB_ADMIN, SYSBENCH]) else { return };
    let db = MariaDb::install();
    for configuration in Configuration::BOTH {
        let directory = private_dir();
        let mut server = db.start_profiled(configuration, directory.path());
        if configuration == Configuration::Glibc {
            server.prepare();
        }
        // Whether a thread has to wait there is a matter of luck, which is tried a few times.
        let is_seen = || {
            let loaded = load::load(directory.path(), &mut Symbols::new()).expect("a recording");
            loaded.profiles.iter().any(|profile| has_call_site(profile, "tc_acquire_table"))
        };
        for _ in 0..5 {
            server.load("oltp_point_select", 100_000);
            if is_seen() {
                break;
            }
        }
        server.shut_down();
        let profile = only_profile(directory.path());
        assert!(profile.locks.iter().any(|lock| lock.lock_wait() > 0), "eight clients wait");
        assert!(has_call_site(&profile, "tc_acquire_table"), "its table cache is used by all clients");
        read_by_go(&profile);
    }
}

fn has_module(profile: &Profile, name: &str) -> bool {
    profile.modules.iter().any(|module| module.path.ends_with(name))
}

/// Lets `go tool pprof` read the profile, if there is Go.
#[track_caller]
fn read_by_go(profile: &Profile) {
    if !installed(&[GO]) {
        return;
    }
    let directory = private_dir();
    let path = directory.path().join("waits.pb.gz");
    pprof::write(std::slice::from_ref(profile), std::fs::File::create(&path).expect("a file"))
        .expect("written");
    // Go may compile the tool when it is first used: once for all tests, which may take long on a busy
    // machine.
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/go");
    for sample in ["contentions", "delay"] {
        let top = GO.run().args(["tool", "pprof", "-top"]).arg(format!("-sample_index={sample}")).arg(&path);
        let top = top.env("HOME", directory.path()).env("GOCACHE", cache).timeout(Duration::from_secs(600));
        let text = top.succeed().stdout_text();
        assert!(text.contains("flat%"), "{text}");
    }
}
