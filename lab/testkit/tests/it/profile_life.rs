//! A recording outlives what programs do: fork, exec, kill, signals, closed libraries, full disks.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use spinpark_recorder::format::{Detail, Header, MAGIC, Role};
use spinpark_testkit::profiled::{Recording, read_all, recordings};
use spinpark_testkit::{Configuration, ProgramResult, Run, both_configurations, compile_c, profiler};

fn program() -> PathBuf {
    compile_c("profile/life.c", &["-rdynamic"])
}

/// Lines of numbers that the program printed: process, mutex, how often it was taken.
fn lines(outcome: &ProgramResult) -> Vec<[u64; 3]> {
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        <[u64; 3]>::try_from(numbers).ok()
    };
    outcome.stdout_text().lines().filter_map(line).collect()
}

fn run(directory: &Path, configuration: Configuration, arguments: &[&str]) -> ProgramResult {
    Run::new(program()).args(arguments).configuration(configuration).profiled(directory, "full").outcome()
}

both_configurations! {
    forked_children_have_files_of_their_own = |directory, configuration| {
        let outcome = run(directory, configuration, &["fork"]).assert_success();
        let (said, read) = (lines(&outcome), read_all(directory));
        assert_eq!((said.len(), read.len()), (4, 4));
        for [pid, mutex, times] in said {
            let one = read.iter().find(|one| u64::from(one.pid) == pid).expect("a file of this process");
            assert_eq!(one.use_of(mutex, Role::Write).acquisitions, times);
            assert!(one.exited && one.dropped == 0);
        }
    };
    a_program_that_becomes_another_has_two_files = |directory, configuration| {
        let outcome = run(directory, configuration, &["exec"]).assert_success();
        let (said, read) = (lines(&outcome), read_all(directory));
        assert_eq!((said.len(), read.len()), (2, 2));
        assert!(read.iter().all(|one| u64::from(one.pid) == said[0][0]));
        for [_, mutex, times] in said {
            let uses: Vec<u64> = read.iter().map(|one| one.use_of(mutex, Role::Write).acquisitions).collect();
            assert!(uses.contains(&times), "{uses:?}");
        }
        let ends: Vec<bool> = read.iter().map(|one| one.exited).collect();
        assert!(ends == [true, false] || ends == [false, true]);
    };
    a_killed_program_leaves_what_it_had = |directory, configuration| {
        let outcome = run(directory, configuration, &["killed"]);
        assert_eq!(outcome.status.signal(), Some(9));
        let (said, read) = (lines(&outcome), read_all(directory));
        assert!(!read[0].exited);
        assert_eq!(read[0].use_of(said[0][1], Role::Write).acquisitions, 1000);
    };
    a_handler_is_recorded_or_counted = |directory, configuration| {
        let outcome = run(directory, configuration, &["signals"]).assert_success();
        let (said, read) = (lines(&outcome), read_all(directory));
        let text = outcome.stdout_text();
        let handler: Vec<u64> =
            text.lines().last().expect("a line").split(' ').skip(1).map(|it| it.parse().expect("a number")).collect();
        assert_eq!(read[0].use_of(said[0][1], Role::Write).acquisitions, said[0][2]);
        let recorded = read[0].use_of(handler[0], Role::Write).acquisitions;
        assert!(recorded > 0 && recorded <= handler[1], "{recorded} of {}", handler[1]);
        assert!(recorded + read[0].nested >= handler[1], "{recorded} and {} of {}", read[0].nested, handler[1]);
    };
    a_closed_library_leaves_its_stacks = |directory, configuration| {
        let plugin = compile_c("profile/life.c", &["-shared", "-fPIC", "-DPLUGIN"]);
        let outcome = run(directory, configuration, &["dlclose", plugin.to_str().expect("a path")]).assert_success();
        let (said, read) = (lines(&outcome), read_all(directory));
        assert_eq!(read[0].use_of(said[0][1], Role::Write).acquisitions, said[0][2]);
        // The library was not there when the program started: a later snapshot has it.
        let name = plugin.file_name().expect("a name").to_str().expect("text").to_owned();
        let (first, rest) = read[0].maps.split_once("\n@ 1 ").expect("two snapshots");
        assert!(!first.contains(&name) && rest.contains(&name));
    };
    the_detail_changes_while_it_runs = |directory, configuration| {
        let sign = directory.join("looked");
        let mut running = Run::new(program()).arg("looked-at").arg(&sign).configuration(configuration)
            .profiled(directory, "off").spawn();
        let give_up = Instant::now() + Duration::from_secs(100);
        let file = loop {
            if let Some(file) = recordings(directory).pop() { break file; }
            assert!(Instant::now() < give_up, "no file");
            std::thread::sleep(Duration::from_millis(5));
        };
        let header = std::fs::OpenOptions::new().read(true).write(true).open(&file).expect("the recording");
        // Once it is a profile; until then the start writes there.
        let mut magic = [0; 8];
        while header.read_exact_at(&mut magic, 0).is_err() || u64::from_le_bytes(magic) != MAGIC {
            assert!(Instant::now() < give_up, "no profile");
            std::thread::sleep(Duration::from_millis(5));
        }
        let at = std::mem::offset_of!(Header, detail) as u64;
        header.write_all_at(&(Detail::Full as u32).to_ne_bytes(), at).expect("written");
        std::fs::write(&sign, "").expect("written");
        let outcome = running.wait(Duration::from_secs(100)).assert_success();
        let said = lines(&outcome);
        let found = Recording::read(&file).use_of(said[1][1], Role::Write).acquisitions;
        // What came after it looked: the wait before that may count, too.
        assert!(found >= said[1][2] && found <= said[1][2] + 3, "{found}");
    };
    a_file_is_as_long_as_it_may_be = |directory, configuration| {
        let outcome = limited(directory, configuration, "ulimit -f 1000");
        assert!(outcome.success(), "{}", outcome.report());
        assert_eq!(recordings(directory).len(), 5, "the shell's, from before, and four");
        let outcome = limited(directory, configuration, "ulimit -f 40");
        assert!(outcome.success(), "{}", outcome.report());
        assert_eq!(recordings(directory).len(), 6, "the shell's");
    };
    a_recording_that_has_ended_has_no_hole_at_its_end = |directory, configuration| {
        run(directory, configuration, &["fork"]).assert_success();
        for path in recordings(directory) {
            let metadata = std::fs::metadata(&path).expect("a file");
            assert!(metadata.len() <= metadata.blocks() * 512 + (16 << 10), "{} bytes", metadata.len());
            assert!(metadata.len() < 1 << 20, "{} bytes", metadata.len());
        }
    };
    an_umask_leaves_its_owner_the_recording = |directory, configuration| {
        let kept = directory.join("kept");
        let outcome = limited(&kept, configuration, "umask 0777");
        assert!(outcome.success(), "{}", outcome.report());
        let mode = |path: &Path| std::fs::metadata(path).expect("a file").mode() & 0o777;
        let shells = 0o600;
        let modes: Vec<u32> = recordings(&kept).iter().map(|path| mode(path)).collect();
        assert!(modes.contains(&shells) && modes.iter().all(|mode| mode & 0o600 == 0o600), "{modes:?}");
    };
    a_directory_that_is_not_there_does_not_end_the_program = |directory, configuration| {
        run(&directory.join("none"), configuration, &["killed"]).status.signal().expect("its own end");
    };
}

/// The program, after a command of the shell.
fn limited(directory: &Path, configuration: Configuration, command: &str) -> ProgramResult {
    let script = format!("{command}; exec \"$0\" \"$@\"");
    Run::new("sh")
        .args(["-c", &script])
        .arg(program())
        .arg("fork")
        .configuration(configuration)
        .profiled(directory, "full")
        .outcome()
}

/// A file system of 400 KB, in a name space of mounts where one may make such things.
#[test]
fn a_full_disk_is_a_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let small = directory.path().join("small");
    std::fs::create_dir(&small).expect("a directory");
    let script = "mount -t tmpfs -o size=400k none \"$1\" || exit 77; \
        LD_PRELOAD=\"$2\" SPINPARK_PROFILE_DIR=\"$1\" SPINPARK_PROFILE_DETAIL=full \"$3\" large || exit 1; \
        cp --sparse=always \"$1\"/*.spinprof \"$4\"";
    let outcome = Run::new("unshare")
        .args(["-r", "-m", "sh", "-c", script, "sh"])
        .args([
            small.as_os_str(),
            profiler().as_os_str(),
            program().as_os_str(),
            directory.path().as_os_str(),
        ])
        .outcome();
    if matches!(outcome.status.code(), Some(77 | 126 | 127)) || outcome.stderr_text().contains("unshare") {
        eprintln!("skipped: no file system can be mounted here: {}", outcome.stderr_text());
        return;
    }
    let outcome = outcome.assert_success();
    let recording = &read_all(directory.path())[0];
    assert!(recording.dropped > 0 && recording.exited, "{}", recording.dropped);
    let found = recording.use_of(lines(&outcome)[0][1], Role::Write);
    assert!(found.acquisitions > 0 && found.acquisitions <= 120_001);
}
