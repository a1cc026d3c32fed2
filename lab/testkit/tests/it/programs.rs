//! Real programs give the same results with and without the drop-in.
//!
//! A program that is not installed is skipped and named; with `SPINPARK_REQUIRE_PROGRAMS=1` its test fails.

use spinpark_testkit::programs::*;
use spinpark_testkit::{Configuration, Run};

#[test]
fn sysbench_mutex() {
    let Some(_turn) = turn(&[SYSBENCH]) else { return };
    for mutexes in [1, 4] {
        same_results(|configuration| {
            let run = SYSBENCH.run().args(["mutex", "--threads=8"]).arg(format!("--mutex-num={mutexes}"));
            let report = prove(run.arg("run"), configuration).stdout_text();
            assert_eq!(field(&report, "total number of events:"), "8", "{report}");
            // Every thread did its one event.
            field(&report, "events (avg/stddev):").to_owned()
        });
    }
}

#[test]
fn kyoto_cabinet_cache_hash() {
    let Some(_turn) = turn(&[KCCACHETEST]) else { return };
    same_results(|configuration| {
        cabinet(KCCACHETEST.run().args(["order", "-th", "4", "400000"]), configuration)
    });
    same_results(|configuration| {
        cabinet(KCCACHETEST.run().args(["order", "-th", "4", "-etc", "20000"]), configuration)
    });
    same_results(|configuration| {
        // Random operations: how they end depends on their order.
        cabinet(KCCACHETEST.run().args(["wicked", "-th", "4", "-it", "4", "100000"]), configuration);
    });
}

#[test]
fn kyoto_cabinet_cache_tree() {
    let Some(_turn) = turn(&[KCGRASSTEST]) else { return };
    same_results(|configuration| {
        cabinet(KCGRASSTEST.run().args(["order", "-th", "4", "200000"]), configuration)
    });
    same_results(|configuration| {
        cabinet(KCGRASSTEST.run().args(["order", "-th", "4", "-etc", "20000"]), configuration)
    });
}

#[test]
fn tokyo_cabinet_hash() {
    let Some(_turn) = turn(&[TCHMTTEST]) else { return };
    same_results(|configuration| {
        let dir = private_dir();
        let run = |args: &[&str]| cabinet(TCHMTTEST.run().current_dir(dir.path()).args(args), configuration);
        let written = run(&["write", "ordered.tch", "4", "200000"]);
        let read = run(&["read", "ordered.tch", "4"]);
        run(&["wicked", "random.tch", "4", "30000"]);
        [written, read]
    });
}

/// Runs a test command of a Cabinet database and returns how many records it says there are.
fn cabinet(run: Run, configuration: Configuration) -> Vec<String> {
    let outcome = prove(run, configuration);
    assert!(ends_with_ok(&outcome), "{}", outcome.report());
    lines_with(&outcome.stdout_text(), &["count:", "record number:", "cnt_writerec:"])
}

#[test]
fn mariadb() {
    let programs = [MARIADBD, MARIADB_INSTALL_DB, MARIADB, MARIADB_ADMIN, SYSBENCH];
    let Some(_turn) = turn(&programs) else { return };
    same_results(|configuration| {
        let db = MariaDb::install();
        let mut server = db.start(configuration);
        server.prepare();
        server.load("oltp_point_select", 200_000);
        server.load("oltp_read_write", 8_000);
        let rows = server.rows();
        server.shut_down();

        let mut server = db.start(configuration);
        assert_eq!(server.rows(), rows, "before and after a restart");
        server.shut_down();
        // What is in the rows depends on the order of the transactions, how many there are does not.
        rows.into_iter().map(|(count, _checksum)| count).collect::<Vec<_>>()
    });
}

#[test]
fn memcached() {
    let Some(_turn) = turn(&[MEMCACHED, MEMCSLAP, MEMCASLAP, MEMCSTAT]) else { return };
    same_results(|configuration| {
        let mut server = Memcached::start(configuration);
        for load in ["set", "get"] {
            let client = MEMCSLAP.run().args(["--concurrency=16", "--execute-number=5000"]);
            server.ask(client.arg(format!("--test={load}")));
        }
        let counts = server.counts(&["cmd_set", "cmd_get", "get_hits", "get_misses", "curr_connections"]);

        // One in ten is a set; what a get returns is compared with what was set.
        let client = MEMCASLAP.run().args(["--threads=4", "--concurrency=16", "--execute_number=200000"]);
        let report = server.ask(client.args(["--verify=1.0", "--fixed_size=200"])).stdout_text();
        for error in ["get_misses:", "verify_misses:", "verify_failed:"] {
            assert_eq!(field(&report, error), "0", "{report}");
        }
        server.shut_down();
        counts
    });
}

#[test]
fn xz() {
    compressor(XZ, &["-T4", "-1", "--block-size=256KiB"], &["-T4", "-d"]);
}

#[test]
fn zstd() {
    compressor(ZSTD, &["-T4", "-6", "-B512KB"], &["-T4", "-d"]);
}

#[test]
fn pigz() {
    // It would write its input's name and time into the output.
    compressor(PIGZ, &["-p4", "-b", "32", "--no-name", "--no-time"], &["-p4", "-d"]);
}

/// Compresses and decompresses the text.
fn compressor(program: Program, pack: &[&str], unpack: &[&str]) {
    let Some(_turn) = turn(&[program]) else { return };
    same_results(|configuration| {
        let packed = prove(program.run().args(pack).arg("-c").input(text()), configuration).stdout;
        let unpacked =
            prove(program.run().args(unpack).arg("-c").input(packed.clone()), configuration).stdout;
        assert!(unpacked == text(), "not what was compressed");
        Digest::of(&packed)
    });
}

#[test]
fn x264() {
    let Some(_turn) = turn(&[X264]) else { return };
    same_results(|configuration| {
        let dir = private_dir();
        let output = dir.path().join("video.264");
        let x264 = X264
            .run()
            .args(["--threads", "4", "--preset", "medium", "--quiet", "--no-progress"])
            .args(["--demuxer", "raw", "--input-res", "640x360", "--fps", "30", "-", "-o"]);
        prove(x264.arg(&output).input(video(48)), configuration);
        Digest::of(&std::fs::read(output).expect("an encoded video"))
    });
}

#[test]
fn ffmpeg() {
    let Some(_turn) = turn(&[FFMPEG]) else { return };
    same_results(|configuration| {
        let ffmpeg = FFMPEG
            .run()
            .args(["-hide_banner", "-nostdin", "-loglevel", "error", "-filter_threads", "4"])
            .args(["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30:duration=8"])
            .args(["-vf", "scale=480:270,hqdn3d,gblur", "-pix_fmt", "yuv420p"])
            .args(["-threads", "4", "-c:v", "mpeg4", "-b:v", "1M", "-bitexact", "-f", "framemd5", "-"]);
        let frames = prove(ffmpeg, configuration).stdout_text();
        assert_eq!(frames.lines().filter(|line| !line.starts_with('#')).count(), 8 * 30, "{frames}");
        frames
    });
}

#[test]
fn stress_ng_mutex() {
    let Some(_turn) = turn(&[STRESS_NG]) else { return };
    const OPERATIONS: u64 = 400_000;
    same_results(|configuration| {
        let stress_ng = STRESS_NG
            .run()
            .args(["--mutex", "4", "--verify", "--metrics-brief"])
            .arg(format!("--mutex-ops={OPERATIONS}"));
        let outcome = without_realtime(move || prove(stress_ng, configuration));
        let report = outcome.stdout_text() + &outcome.stderr_text();
        assert!(report.contains("successful run completed"), "{report}");
        // The header's line comes first and has no number.
        let done = report.lines().find_map(|line| line.split_once("] mutex ")?.1.split_whitespace().next());
        let done: u64 = done.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{report}"));
        assert!(done >= OPERATIONS, "{report}");
    });
}

/// Calls `load` in a thread whose children cannot get a real-time priority, not even as root.
///
/// stress-ng gives its threads one if it can. With fewer processors than threads, the thread that creates the
/// others may then not run again before all operations are done, which stress-ng reports as a failure, on any
/// locks.
fn without_realtime<R: Send>(load: impl FnOnce() -> R + Send) -> R {
    use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
    std::thread::scope(|scope| {
        let load = || {
            // Refused to a user without the privilege.
            let _ = remove_capability_from_bounding_set(CapabilitySet::SYS_NICE);
            load()
        };
        scope.spawn(load).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn cpython() {
    if !installed(&[PYTHON]) {
        return;
    }
    if !PYTHON.run().args(["-c", "import test.test_threading"]).outcome().success() {
        return skipped("CPython's test suite is not installed (apt-get install libpython3.11-testsuite)");
    }
    // They mostly sleep: let them do so together, and take no turn.
    std::thread::scope(|scope| {
        for suite in ["test_threading", "test_queue", "test_thread"] {
            for configuration in Configuration::BOTH {
                scope.spawn(move || cpython_suite(suite, configuration));
            }
        }
    });
}

fn cpython_suite(suite: &str, configuration: Configuration) {
    // As `python3 -m test`, but its children, whose output it compares, shall not announce the drop-in; and
    // Ctrl-C works as its tests want it, also in a job that a shell started in the background, where it is
    // ignored.
    const MAIN: &str = "import os, signal; del os.environ['SPINPARK_VERBOSE']; \
        signal.signal(signal.SIGINT, signal.default_int_handler); import test.__main__";
    let dir = private_dir();
    let python = PYTHON.run().current_dir(dir.path()).env("TMPDIR", dir.path());
    // `-w`: once more what failed. Some of CPython's own tests rely on time, and fail on a busy machine with
    // either library.
    let outcome = prove(python.args(["-c", MAIN, "-w", suite]), configuration);
    let last =
        outcome.stdout_text().lines().rfind(|line| line.starts_with("Tests result: ")).map(str::to_owned);
    assert!(last.is_some_and(|last| last.ends_with("SUCCESS")), "{}", outcome.report());
}
