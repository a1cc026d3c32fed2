//! A recording of a program that forks: only processes that wait have a file, and all files together have a
//! bound.

use std::mem::offset_of;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spinpark_recorder::format::{CAUSES, QUOTA_FILE, QuotaCount, Role};
use spinpark_testkit::profiled::{read_all, recordings};
use spinpark_testkit::{Configuration, ProgramResult, Run, both_configurations};

fn program() -> PathBuf {
    spinpark_fixtures::compile_c("forks.c", &[])
}

/// Recorded as where the environment of a whole service or login says so: no program is the main one.
fn recorded(run: Run, directory: &Path, configuration: Configuration, detail: &str) -> Run {
    run.configuration(configuration).profiled(directory, detail).env_remove("SPINPARK_PROFILE_PARENT")
}

fn forks(directory: &Path, configuration: Configuration, detail: &str, scene: &str) -> Run {
    recorded(Run::new(program()).arg(scene), directory, configuration, detail)
}

/// The two numbers of each line.
fn numbers(outcome: &ProgramResult) -> Vec<[u64; 2]> {
    let numbers = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        <[u64; 2]>::try_from(numbers).expect("two numbers")
    };
    outcome.stdout_text().lines().map(numbers).collect()
}

/// What all files of a directory have on the disk, bytes.
fn bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").metadata().expect("a file").blocks() * 512).sum()
}

/// How many processes were refused, and how many could not create a file.
fn refused(directory: &Path) -> [u32; 2] {
    let count = std::fs::read(directory.join(QUOTA_FILE.to_str().expect("a name"))).expect("a count");
    let number = |at: usize| u32::from_le_bytes(count[at..at + 4].try_into().expect("four bytes"));
    let failed = (0..CAUSES).map(|cause| number(offset_of!(QuotaCount, failed) + 4 * cause));
    [number(offset_of!(QuotaCount, refused)), failed.sum()]
}

both_configurations! {
    processes_that_never_wait_leave_no_file = |directory, configuration| {
        forks(directory, configuration, "contended", "idle").succeed();
        assert_eq!(recordings(directory), Vec::<PathBuf>::new());
    };
    nor_do_they_by_what_their_parent_has_waited_for = |directory, configuration| {
        let outcome = forks(directory, configuration, "contended", "idle-after-wait").succeed();
        let read = read_all(directory);
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].use_of(numbers(&outcome)[0][0], Role::Write).contended, 1);
    };
    programs_that_never_wait_leave_no_file = |directory, configuration| {
        let script = "i=0; while [ $i -lt 20 ]; do \"$0\" idle; i=$((i + 1)); done > /dev/null";
        let run = Run::new("sh").args(["-c", script]).arg(program());
        recorded(run, directory, configuration, "contended").succeed();
        assert_eq!(recordings(directory), Vec::<PathBuf>::new());
    };
    a_child_that_waits_has_what_came_before = |directory, configuration| {
        let outcome = forks(directory, configuration, "contended", "made").succeed();
        let ([mutex, maker], read) = (numbers(&outcome)[0], read_all(directory));
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].use_of(mutex, Role::Write).contended, 1);
        let lock = read[0].locks.iter().find(|lock| lock.address == mutex).expect("the mutex");
        assert!(lock.is_created);
        // The function that made it, before there was a recording.
        let caller = read[0].stacks[&lock.stack][0];
        assert!((maker..maker + 200).contains(&caller), "{caller:x} {maker:x}");
    };
    a_parent_says_who_begins_at_the_start = |directory, configuration| {
        let parent = std::process::id().to_string();
        forks(directory, configuration, "contended", "idle").env("SPINPARK_PROFILE_PARENT", parent).succeed();
        assert_eq!(read_all(directory).len(), 1);
    };
    files_have_a_bound = |directory, configuration| {
        const MOST: u64 = 1 << 20;
        let run = forks(directory, configuration, "contended", "crowd");
        run.env("SPINPARK_PROFILE_MAX_SIZE", MOST.to_string()).succeed();
        let (read, [refused, failed]) = (read_all(directory), refused(directory));
        assert!(bytes(directory) <= MOST, "{}", bytes(directory));
        assert!(read.len() >= 4 && refused >= 4, "{} and {refused}", read.len());
        assert_eq!((read.len() + refused as usize, failed), (64, 0));
        assert!(read.iter().all(|one| one.threads.len() <= 2));
    };
    what_waits_has_half_of_the_room = |directory, configuration| {
        const MOST: u64 = 1 << 20;
        let run = |detail, scene| {
            forks(directory, configuration, detail, scene).env("SPINPARK_PROFILE_MAX_SIZE", MOST.to_string()).succeed();
        };
        // Counts all acquisitions, so children without waits have files, too: as long as there is room.
        run("full", "idle");
        let (idle, used) = (recordings(directory).len(), bytes(directory));
        assert!(idle >= 4 && used <= MOST / 2, "{idle} have {used}");
        assert_eq!(idle + refused(directory)[0] as usize, 401);
        run("contended", "crowd");
        assert!(recordings(directory).len() > idle);
        assert!(bytes(directory) <= MOST, "{}", bytes(directory));
    };
}

/// As tests in build sandboxes do: each has a PID namespace of its own, and so the same number.
#[test]
fn processes_with_one_number_have_files_of_their_own() {
    const PROCESSES: usize = 12;
    let directory = tempfile::tempdir().expect("a directory");
    let script = "for i in $(seq $2); do unshare -r --pid --fork --mount-proc \"$0\" \"$1\" > /dev/null || exit 77; done";
    let run = Run::new("sh").args(["-c", script]).arg(program()).args(["crowd", &PROCESSES.to_string()]);
    let outcome = recorded(run, directory.path(), Configuration::Glibc, "contended").outcome();
    if outcome.status.code() == Some(77) {
        eprintln!("skipped: no PID namespace can be made here: {}", outcome.stderr_text());
        return;
    }
    outcome.assert_success();
    let read = read_all(directory.path());
    let starts: std::collections::BTreeSet<u64> = read.iter().map(|one| one.start_realtime).collect();
    assert_eq!(starts.len(), read.len());
    assert_eq!(read.len(), PROCESSES * 64, "{:?}", refused(directory.path()));
    let first = read.iter().map(|one| one.pid).min().expect("a recording");
    assert_eq!(read.iter().filter(|one| one.pid == first).count(), PROCESSES);
}

/// A process that was killed holds nothing that others need; what it has counts on.
#[test]
fn a_count_that_says_too_much_is_a_bound_still() {
    let directory = tempfile::tempdir().expect("a directory");
    let count = directory.path().join(QUOTA_FILE.to_str().expect("a name"));
    std::fs::write(&count, [0xff; 4096]).expect("written");
    forks(directory.path(), Configuration::Glibc, "contended", "crowd").succeed();
    assert_eq!(recordings(directory.path()), Vec::<PathBuf>::new());
}
