//! `spinpark why CORE`: what a process waited for, by its core dump.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use spinpark_fixtures::command::{Said, compiled, said};
use spinpark_fixtures::{compile_c, dropin, scratch_dir};

use crate::fixtures::spinpark;
use crate::why::{has, until_asleep, until_at_rest};

/// Whether gdb's `gcore` is there. How the kernel names its own cores, and whether it writes any, is up to the
/// machine.
pub(crate) fn has_gcore() -> bool {
    let is_there = Command::new("gcore").output().is_ok();
    if !is_there {
        let is_required = std::env::var("SPINPARK_REQUIRE_PROGRAMS").is_ok_and(|value| value == "1");
        assert!(!is_required, "gcore is not installed: it is in the package gdb");
        eprintln!("skipped: gcore (gdb) is not installed");
    }
    is_there
}

/// Core dumps of a program, in a directory of their own.
struct Dumped {
    directory: tempfile::TempDir,
    process: Child,
}

impl Dumped {
    /// A program, once it is as it stays.
    fn start(program: &Path, scene: &str, preload: Option<&Path>) -> Self {
        // Stacks are written in full: small ones will do.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -s 256; exec \"$0\" \"$1\""]).arg(program).arg(scene);
        command.envs(preload.map(|library| ("LD_PRELOAD", library)));
        let mut process = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(process.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        until_asleep(process.id());
        Self { directory: tempfile::tempdir().expect("a directory"), process }
    }

    fn scene(scene: &str, preload: Option<&Path>) -> Self {
        Self::start(&compile_c("hangs.c", &["-O1"]), scene, preload)
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Has a core written.
    fn core(&self) -> PathBuf {
        let prefix = self.directory.path().join("core");
        let pid = self.pid().to_string();
        let gcore = Command::new("gcore").arg("-o").arg(&prefix).arg(&pid).output().expect("it starts");
        let core = prefix.with_extension(pid);
        assert!(core.is_file(), "{gcore:?}");
        until_at_rest(self.pid(), 0);
        core
    }
}

impl Drop for Dumped {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn why(core: &Path) -> Said {
    said(spinpark(["why"]).arg(core))
}

/// What `why` says of a scene's core, on glibc's locks and on ours: it has these words.
#[track_caller]
fn both(scene: &str, words: &[&str]) {
    for preload in [None, Some(dropin())] {
        let why = why(&Dumped::scene(scene, preload).core());
        why.succeeds(&["(core of process", "Threads"]);
        has(&why.stdout, words);
    }
}

#[test]
fn cores_tell_what_processes_do() {
    if !has_gcore() {
        return;
    }
    both(
        "deadlock",
        &[
            "7 threads Deadlock: thread",
            "in `first_then_second (hangs.c:",
            "for the mutex `audit`, which thread",
            "for the mutex `accounts`, which thread",
            "1 more thread waits for one of these.",
            "signal of the condvar jobs",
        ],
    );
    both(
        "sleeper",
        &[
            "2 threads wait in `wants_accounts",
            "for the mutex `accounts`, held by thread",
            "which is in `clock_nanosleep` in `has_accounts",
        ],
    );
    both(
        "chain",
        &[
            "waits in `wants_accounts",
            "which waits in `has_accounts",
            "for the rwlock `table`, to read, held by thread",
            "which is in `read` in `writes_table",
        ],
    );
    both("readers", &["waits in `wants_table", "for the rwlock `table`, held by 2 readers"]);
    both(
        "ended",
        &[
            "2 threads wait in",
            "which has ended: nobody will release it",
            "only a signal's handler could have woken one.",
        ],
    );
    both("semaphores", &["All 4 threads wait for each other, none with a deadline", "semaphore slots"]);
    both("stream", &["glibc's lock of stdout, held by thread", "which is in `clock_nanosleep`"]);
    both("idle", &["No thread waits for a lock: 6 wait for work, events or threads' ends.", "in epoll_wait"]);
}

/// Their page and their data are those of the process, but for the names of its threads.
#[test]
fn a_core_is_as_its_process() {
    if !has_gcore() {
        return;
    }
    let dumped = Dumped::scene("deadlock", None);
    let json = |of: &Path| {
        let said = said(spinpark(["why"]).arg(of).arg("--json"));
        assert_eq!(said.code, Some(0), "{said:#?}");
        serde_json::from_str::<Value>(&said.stdout).expect("JSON")
    };
    let without_names = |mut it: Value| {
        it["headline"].take();
        it["threads"].as_array_mut().expect("threads").iter_mut().for_each(|thread| {
            thread["name"].take();
        });
        it
    };
    let process = json(Path::new(&dumped.pid().to_string()));
    let core = dumped.core();
    let of_core = json(&core);
    assert_eq!(without_names(of_core), without_names(process));
    // `report` shows its page.
    let report = said(spinpark(["report"]).arg(&core));
    assert_eq!((report.code, &report.stdout), (Some(0), &why(&core).stdout));
    said(spinpark(["report"]).arg(&core).arg("--json")).fails(2, &["this is a core dump", "spinpark why"]);
    // The stop for the first core has interrupted the sleep: it goes on by another call.
    let sleeper = Dumped::scene("sleeper", None);
    sleeper.core();
    why(&sleeper.core()).succeeds(&["which is in `clock_nanosleep` in `has_accounts"]);
    let running = said(spinpark(["why"]).arg(sleeper.pid().to_string()));
    running.succeeds(&["which is in `clock_nanosleep` in `has_accounts"]);
}

/// The program's file has another place, or another build has its name.
#[test]
fn programs_that_are_not_where_they_were() {
    if !has_gcore() {
        return;
    }
    let directory = tempfile::tempdir_in(scratch_dir()).expect("a directory");
    let (program, moved) = (directory.path().join("hangs"), directory.path().join("moved"));
    fs::hard_link(compile_c("hangs.c", &["-O1"]), &program).expect("a link");
    let dumped = Dumped::start(&program, "deadlock", None);
    let core = dumped.core();
    fs::rename(&program, &moved).expect("it moves");
    let with = |executable: &Path| said(spinpark(["why"]).arg(&core).arg(executable));
    // The stacks are there, without names of functions.
    let missing =
        ["Deadlock: thread", "in `hangs+0x", "not here as when the core was written", "CORE EXECUTABLE"];
    why(&core).succeeds(&missing);
    with(&moved).succeeds(&["Deadlock: thread", "in `first_then_second", "for the mutex `audit`"]);
    let report = said(spinpark(["report"]).arg(&core).arg(&moved));
    report.succeeds(&["Deadlock: thread", "in `first_then_second"]);
    let other = compile_c("glibc_locks.c", &[]);
    fs::hard_link(&other, &program).expect("a link");
    why(&core).succeeds(&missing);
    with(&other).fails(2, &["is not the program of", "its build id is another one"]);
    with(&core).fails(2, &["is no program"]);
    with(&directory.path().join("nothing")).fails(2, &["cannot be read"]);
}

/// Whatever is in a file, there is a sentence about it, or a page.
#[test]
fn files_that_are_no_cores() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("core");
    let bad = |bytes: &[u8], words: &[&str]| {
        fs::write(&path, bytes).expect("it is written");
        why(&path).fails(2, words);
    };
    bad(b"", &["is empty", "ulimit -c unlimited"]);
    bad(b"hello\n", &["is no core dump", "gcore 4711"]);
    bad(b"\x28\xb5\x2f\xfd and so on", &["is compressed by zstd", "coredumpctl"]);
    bad(b"\x7fELF", &["is cut short"]);
    bad(b"\x7fELF\x01\x01\x01", &["is of a 32-bit program", "gdb"]);
    let head = head(&[]);
    bad(&head[..40], &["is cut short"]);
    bad(&head, &["has no threads in it"]);
    bad(&changed(&head, 18, &[183]), &["is of another kind of CPU", "gdb"]);
    bad(&changed(&head, 5, &[2]), &["is of another kind of CPU"]);
    bad(&changed(&head, 16, &[3]), &["is a program or a library", "CORE EXECUTABLE"]);
    // Its table is behind its end.
    bad(&changed(&head, 56, &[1]), &["is damaged"]);
    const LOAD: u32 = 1;
    bad(&self::head(&[(LOAD, 4096, 1 << 40)]), &["is cut short: it has 120 of", "ulimit -c unlimited"]);
    bad(&self::head(&[(LOAD, u64::MAX, u64::MAX)]), &["is cut short"]);
    why(directory.path()).fails(2, &["is no file"]);
    why(&directory.path().join("nothing")).fails(2, &["is no file"]);
    why(Path::new("nothing")).fails(2, &["is no file, and no process id", "Write a whole number"]);
    said(&mut spinpark(["why", "1", "program"])).fails(2, &["Leave `program` out"]);
    let program = compiled("program.c", "program", &["-O1"]);
    why(&program).fails(2, &["is a program or a library"]);
    said(spinpark(["report"]).arg(&program).arg("x")).fails(2, &["nothing can be added up of 2 recordings"]);
}

/// Bytes of a core that are not what they were, in its head and in its notes, end nothing.
#[test]
fn damaged_cores() {
    if !has_gcore() {
        return;
    }
    let dumped = Dumped::scene("sleeper", None);
    let core = dumped.core();
    let bytes = fs::read(&core).expect("it is there");
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    // The first segment is that of the notes.
    let (notes, end) = (number(64 + 8), number(64 + 8) + number(64 + 32));
    let file = fs::OpenOptions::new().write(true).open(&core).expect("it opens");
    let mut seed = 1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    for round in 0..24 {
        let (from, to) = if round % 3 == 0 { (64, 1024) } else { (notes, end) };
        let places: Vec<u64> = (0..200).map(|_| from + next() % (to - from)).collect();
        for place in &places {
            file.write_all_at(&[[0, 0xff, next() as u8][next() as usize % 3]], *place)
                .expect("it is written");
        }
        let why = why(&core);
        assert!(matches!(why.code, Some(0 | 2)), "{why:#?}");
        for place in places {
            let at = usize::try_from(place).expect("it is in the file");
            file.write_all_at(&bytes[at..=at], place).expect("it is written");
        }
    }
    why(&core).succeeds(&["which is in `clock_nanosleep` in `has_accounts"]);
    file.set_len(bytes.len() as u64 / 2).expect("it is cut");
    why(&core).fails(2, &["is cut short", "gcore PID"]);
}

/// A core's head, with segments: type, offset, and how many bytes are in the file.
fn head(segments: &[(u32, u64, u64)]) -> Vec<u8> {
    const HEADER: u64 = 64;
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    // A core, of x86-64.
    bytes.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    bytes.extend([0, HEADER, 0].map(u64::to_le_bytes).concat());
    bytes.extend([0; 4]);
    bytes.extend([64, 56, segments.len() as u16, 0, 0, 0].map(u16::to_le_bytes).concat());
    for (kind, offset, in_file) in segments {
        bytes.extend([*kind, 4].map(u32::to_le_bytes).concat());
        bytes.extend([*offset, 0x1000, 0, *in_file, *in_file, 0x1000].map(u64::to_le_bytes).concat());
    }
    bytes
}

fn changed(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}
