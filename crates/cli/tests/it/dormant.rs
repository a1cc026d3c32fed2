//! `spinpark profile --dormant` and `spinpark record`: a process that records when it is asked to.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use spinpark_fixtures::command::{Said, flat, said};
use spinpark_fixtures::{compile_c, profiler};

use crate::fixtures::spinpark;
use crate::profile::recording;

/// A server that is dormant, with a directory for all that it and the command write.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
}

impl Server {
    /// By the library in the environment, as a service has it.
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Self::command(directory.path());
        command.args(arguments);
        Self::started(command, directory)
    }

    fn command(directory: &Path) -> Command {
        let mut command = Command::new(compile_c("dormant.c", &["-O1", "-g"]));
        command.env("LD_PRELOAD", profiler()).env("SPINPARK_PROFILE_DORMANT", directory.join("d"));
        command.env_remove("SPINPARK_PROFILE_DIR");
        command
    }

    /// The same, with the files of others, in the directory of another one.
    fn in_directory(base: &Path) -> Self {
        Self::started(Self::command(base), tempfile::tempdir().expect("a directory"))
    }

    fn started(mut command: Command, directory: tempfile::TempDir) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server = Self { input: child.stdin.take().expect("a pipe"), child, output, directory };
        assert_eq!(server.line(), "ready");
        server
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Lets it do something; returns what it says.
    fn does(&mut self, what: &str) -> String {
        self.asks(what);
        self.line()
    }

    fn asks(&mut self, what: &str) {
        writeln!(self.input, "{what}").expect("it reads");
    }

    /// Waits until its two threads have each had the lock `table` some times more, as they do in some ten milliseconds: on a
    /// busy machine they may have no CPU for long. Nearly each time one waits for the other.
    fn goes_on(&mut self) {
        let mut rounds = || -> u64 {
            let answer = self.does("rounds");
            answer.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
        };
        let (begun, first) = (Instant::now(), rounds());
        while rounds() < first + 10 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not go on");
            sleep(Duration::from_millis(5));
        }
    }

    /// Records a process of it for `time`, and for longer if that is too short for these words: on a busy machine no thread
    /// may have waited meanwhile.
    #[track_caller]
    fn records(&self, pid: &str, to: &str, time: &str, words: &[&str]) -> Said {
        for time in [time, "2s"] {
            let result = said(&mut self.record_process(pid, to, &["--for", time]));
            let text = flat(&result.stdout);
            if result.code == Some(0) && words.iter().all(|words| text.contains(words)) {
                return result;
            }
            // Or no thread had a CPU.
            let is_none = result.code == Some(2) && result.stderr.contains("nothing was recorded: no thread");
            assert!(is_none || result.code == Some(0), "{result:#?}");
            let _ = fs::remove_dir_all(self.directory.path().join(to));
        }
        let result = said(&mut self.record_process(pid, to, &["--for", "20s"]));
        assert_eq!(result.code, Some(0), "{result:#?}");
        has(&result.stdout, words);
        result
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The command that records it; the recording is kept in `to`.
    fn record(&self, to: &str, options: &[&str]) -> Command {
        self.record_process(&self.pid(), to, options)
    }

    fn record_process(&self, pid: &str, to: &str, options: &[&str]) -> Command {
        let mut command = recording(self.directory.path(), ["record"]);
        command.arg(pid).args(["--output", to]).args(options);
        command
    }

    /// Lets it fork a worker; returns the worker's number.
    fn forks(&mut self, how: &str) -> String {
        self.does(how).split(' ').next().expect("a number").to_owned()
    }

    /// Begins to record it without an end, and waits until it does.
    fn being_recorded(&self, to: &str) -> Child {
        let mut command = self.record(to, &[]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        self.await_state(true);
        child
    }

    /// Waits until it records, or does not.
    fn await_state(&self, is_on: bool) {
        let begun = Instant::now();
        while self.is_recorded() != is_on {
            assert!(begun.elapsed() < Duration::from_secs(60), "it has not changed");
            sleep(Duration::from_millis(5));
        }
    }

    fn is_recorded(&self) -> bool {
        // Of the first request of the page, the number of the latest wish that was fulfilled.
        fs::read(self.file("dormant")).expect("its page")[28] % 2 == 1
    }

    /// Its file with this extension.
    fn file(&self, extension: &str) -> PathBuf {
        let is_it = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
        let own = files(&self.directory.path().join("d"));
        let own = own.first().expect("a directory of its own");
        files(own).into_iter().find(is_it).expect("a file of its own")
    }

    /// What its files are: lengths, blocks on the disk, and the beginning.
    fn traces(&self) -> Vec<(u64, u64, Vec<u8>)> {
        use std::os::unix::fs::MetadataExt;
        let of = |path: PathBuf| {
            let metadata = fs::metadata(&path).expect("a file");
            let mut start = fs::read(&path).expect("a file");
            start.truncate(metadata.blocks() as usize * 512);
            (metadata.len(), metadata.blocks(), start)
        };
        ["dormant", "spinprof"].map(|extension| of(self.file(extension))).into()
    }

    fn ended(mut self) {
        drop(self.input);
        self.child.wait().expect("it ends");
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect()
}

#[track_caller]
fn has(text: &str, words: &[&str]) {
    let flat = flat(text);
    for words in words {
        assert!(flat.contains(words), "no `{words}` in {text}");
    }
}

fn json(server: &Server, of: &str) -> Value {
    let json = said(&mut recording(server.directory.path(), ["report", of, "--json"]));
    assert_eq!(json.code, Some(0), "{json:#?}");
    serde_json::from_str::<Value>(&json.stdout).expect("JSON")[0].take()
}

/// What a lock has of waits: their number, their time and the longest of them, ns.
fn waits_for(profile: &Value, lock: &str) -> (u64, u64, u64) {
    let locks = profile["locks"].as_array().expect("locks");
    let is_it = |found: &&Value| found["label"].as_str().is_some_and(|label| label.contains(lock));
    let Some(found) = locks.iter().find(is_it) else { return (0, 0, 0) };
    let role = &found["roles"][0];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    (number(&role["contended"]), number(&role["wait"]["total"]), number(&role["wait"]["longest"]))
}

/// Words of each recording.
const TABLE: [&str; 2] = ["one mutex, `table`, held by `rebuilds` while `looks_up` waits.", "still running"];

#[test]
fn three_times() {
    let mut server = Server::new();
    for number in ["1", "2", "3"] {
        let before = server.traces();
        server.goes_on();
        assert_eq!(server.traces(), before, "nothing is written");
        let result = server.records(&server.pid(), number, "600ms", &TABLE);
        has(
            &result.stderr,
            &[&format!("spinpark report {}", server.directory.path().join(number).display())],
        );
        has(&said(&mut recording(server.directory.path(), ["report", number])).stdout, &TABLE[..1]);
        let profile = json(&server, number);
        let duration = profile["duration"].as_u64().expect("a time");
        let (waits, waited, longest) = waits_for(&profile, "table");
        // Of this recording alone: one thread waits.
        assert!(duration >= 500_000_000, "{duration}");
        assert!(
            waits > 0 && waited <= duration && longest <= waited,
            "{waits} {waited} {longest} {duration}"
        );
        server.await_state(false);
    }
    server.ended();
}

/// Waits of other times are in no recording, nor is what is left of them.
#[test]
fn only_while_it_records() {
    let mut server = Server::new();
    // Before, one waits for `journal`, and a wait for it is under way at the beginning.
    server.does("hold");
    server.does("hold");
    let first = server.being_recorded("first");
    server.goes_on();
    server.does("release");
    server.goes_on();
    interrupt(&first);
    let result = Said::from(first.wait_with_output().expect("it ends"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(&result.stdout, &TABLE);
    let profile = json(&server, "first");
    assert_eq!(waits_for(&profile, "journal"), (0, 0, 0), "no beginning of it is known: {profile:#}");
    server.ended();
}

/// A lock that was taken before, and is waited for afterwards: the wait is counted from its own beginning to
/// the end of the recording, and the lock's holder is not made up.
#[test]
fn a_lock_taken_before() {
    let mut server = Server::new();
    server.does("hold");
    let recorded = server.being_recorded("one");
    server.does("hold");
    sleep(Duration::from_millis(600));
    interrupt(&recorded);
    let result = Said::from(recorded.wait_with_output().expect("it ends"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(&result.stdout, &["Waiting now", "writes_journal"]);
    let profile = json(&server, "one");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert_eq!(profile["host"], host.trim(), "for a report of many");
    let duration = profile["duration"].as_u64().expect("a time");
    let waiting = profile["waiting"].as_array().expect("waits");
    let time = waiting.iter().filter_map(|wait| wait["time"].as_u64().or(wait["waited"].as_u64())).max();
    let time = time.expect("a wait that has not ended");
    assert!((100_000_000..=duration).contains(&time), "{time} of {duration}");
    // It ends while nothing is recorded, and is in no other recording.
    server.does("release");
    server.records(&server.pid(), "two", "300ms", &[]);
    let profile = json(&server, "two");
    assert_eq!(waits_for(&profile, "journal"), (0, 0, 0), "{profile:#}");
    server.ended();
}

/// A lock that was waited for, and is held still at the end: the wait is counted, and the hold is not made up.
#[test]
fn a_lock_held_at_the_end() {
    let mut server = Server::new();
    server.does("hold");
    let recorded = server.being_recorded("one");
    server.does("hold");
    sleep(Duration::from_millis(400));
    server.does("release");
    sleep(Duration::from_millis(400));
    interrupt(&recorded);
    let result = Said::from(recorded.wait_with_output().expect("it ends"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    let profile = json(&server, "one");
    let (waits, waited, longest) = waits_for(&profile, "journal");
    assert_eq!((waits, waited), (1, longest), "{profile:#}");
    assert!(waited >= 100_000_000, "{waited}");
    server.kill();
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().expect("kill").success());
}

/// A process that goes on after the command is not one that the command has left behind.
#[test]
fn no_waiting() {
    let mut server = Server::new();
    assert_eq!(server.does("calm"), "done");
    sleep(Duration::from_millis(100));
    let words = ["still running", "No thread waited for a pthread lock"];
    let result = server.records(&server.pid(), "x", "400ms", &words);
    assert!(!flat(&result.stdout).contains("left this process running"), "{result:#?}");
    server.kill();
}

#[test]
fn by_the_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = recording(directory.path(), ["profile", "--dormant", "--"]);
    command
        .arg(compile_c("dormant.c", &["-O1", "-g"]))
        .env("TMPDIR", directory.path())
        .env_remove("XDG_RUNTIME_DIR");
    let server = Server::started(command, directory);
    // It is the process that the command was.
    let result = said(&mut server.record("x", &["--for", "2s", "--slower-than", "1ms"]));
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(&result.stdout, &TABLE);
    let slow = said(&mut recording(server.directory.path(), ["report", "x", "--slow"]));
    assert!(slow.stdout.lines().count() > 8, "each wait of 1 ms or more: {slow:#?}");
    let common =
        files(server.directory.path()).into_iter().find(|path| path.to_string_lossy().contains("spinpark-"));
    let common = common.expect("a directory for all of the user's");
    assert_eq!(files(&common).len(), 1);
    let directory = server.directory.path().to_owned();
    let pid = server.pid();
    // What it has made goes with it.
    let mut server = server;
    server.asks("exit");
    server.child.wait().expect("it ends");
    assert_eq!(files(&common), Vec::<PathBuf>::new());
    said(recording(&directory, ["record"]).arg(pid)).fails(2, &["there is no process"]);
    for options in [["--detail", "full"], ["--html", "x.html"], ["--duration", "1s"]] {
        said(recording(&directory, ["profile", "--dormant"]).args(options).args(["--", "true"]))
            .fails(2, &["cannot be used with"]);
    }
}

#[test]
fn a_second_one_is_refused() {
    let mut server = Server::new();
    let mut first = server.being_recorded("first");
    said(&mut server.record("second", &["--for", "1s"]))
        .fails(2, &["is being recorded by another `spinpark record`"]);
    // Killed: it has no chance to end the recording. The next one does, if the process has not.
    first.kill().expect("it runs");
    first.wait().expect("it has ended");
    assert!(server.is_recorded());
    server.records(&server.pid(), "third", "400ms", &TABLE);
    let duration = json(&server, "third")["duration"].as_u64().expect("a time");
    let since = Duration::from_nanos(duration);
    assert!(since < Duration::from_secs(60), "it is a recording of its own: {since:?}");
    server.await_state(false);
    server.kill();
}

/// Without a sign of life of the command, the process goes back to sleep by itself.
#[test]
fn a_killed_command() {
    let mut server = Server::new();
    let mut command = server.being_recorded("x");
    command.kill().expect("it runs");
    command.wait().expect("it has ended");
    // After 5 s, at a wait.
    server.await_state(false);
    let before = server.traces();
    sleep(Duration::from_millis(100));
    assert_eq!(server.traces(), before, "nothing is written");
    server.records(&server.pid(), "y", "300ms", &TABLE);
    server.kill();
}

#[test]
fn it_ends_meanwhile() {
    for (how, words) in [
        ("exit", "has ended while it was recorded"),
        ("abort", "has ended while it was recorded"),
        ("exec", "has become another program (exec) while it was recorded"),
    ] {
        let mut server = Server::new();
        let command = server.being_recorded("x");
        server.goes_on();
        server.asks(how);
        if how != "exec" {
            server.child.wait().expect("it ends");
        }
        let result = Said::from(command.wait_with_output().expect("it ends"));
        assert_eq!(result.code, Some(0), "{how}: {result:#?}");
        has(&result.stderr, &[words, "this is what was recorded"]);
        has(&result.stdout, &TABLE[..1]);
        server.kill();
    }
}

/// Processes with one page: a server and a worker that it forks while it is recorded, which is recorded
/// meanwhile.
#[test]
fn a_child_and_its_parent() {
    let mut server = Server::new();
    let parent = server.being_recorded("parent");
    let child = server.forks("fork");
    let result = server.records(&child, "child", "600ms", &TABLE);
    has(&result.stdout, &[&format!("process {child}")]);
    // By itself, it is not recorded any more, and its parent is still.
    assert!(server.is_recorded());
    server.goes_on();
    interrupt(&parent);
    let result = Said::from(parent.wait_with_output().expect("it ends"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(&result.stdout, &TABLE);
    has(&result.stderr, &[&format!("has started process {child} meanwhile, which is not recorded with it")]);
    server.await_state(false);
    for (of, pid) in [("child", &child), ("parent", &server.pid())] {
        let profile = json(&server, of);
        assert_eq!(profile["pid"].as_u64().map(|pid| pid.to_string()), Some(pid.clone()), "{profile:#}");
        let duration = profile["duration"].as_u64().expect("a time");
        let (waits, waited, _) = waits_for(&profile, "table");
        assert!(waits > 0 && waited <= duration, "{of}: {waits} {waited} {duration}");
    }
    // Both at once, again.
    let mut both = [&child, &server.pid()].map(|pid| {
        let mut command = server.record_process(pid, &format!("again-{pid}"), &["--for", "2s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    });
    assert!(both.iter_mut().all(|command| command.wait().expect("it ends").success()));
    server.kill();
}

/// A child costs its fork no file, no mapping and no descriptor, and after the recording has one descriptor
/// more.
#[test]
fn what_a_child_has() {
    let mut server = Server::new();
    let before = server.traces();
    let child = server.forks("fork");
    let files = |pid: &str| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
        let own = maps.lines().filter(|line| line.contains("/control.dormant") || line.contains("memfd:"));
        let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors").count();
        (own.count(), open)
    };
    let (mappings, open) = files(&server.pid());
    assert_eq!(files(&child), (mappings, open));
    assert_eq!(server.traces(), before, "nothing is written");
    for number in ["1", "2"] {
        server.records(&child, number, "300ms", &TABLE);
        assert_eq!(files(&child).1, open + 1, "one descriptor, however often");
    }
    assert_eq!(files(&server.pid()), (mappings, open), "its parent has nothing of that");
    server.records(&server.pid(), "parent", "300ms", &[]);
    server.kill();
}

/// Of a child that was recorded, and of one that was not.
#[test]
fn a_grandchild() {
    let mut server = Server::new();
    let grandchild = server.forks("fork twice");
    server.records(&grandchild, "x", "400ms", &TABLE);
    server.kill();
}

/// Workers that have given up their rights: one has closed all that it had open, one has another root
/// directory.
#[test]
fn a_child_without_rights() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: no process can become another user's");
        return;
    }
    let mut server = Server::new();
    for how in ["fork nobody", "fork jailed"] {
        let child = server.forks(how);
        for again in 0..2 {
            // Without the file of the program, as in the other root directory, its functions have no names
            // here.
            let words = if how == "fork jailed" { "`table`" } else { TABLE[0] };
            server.records(&child, &format!("{child}-{again}"), "400ms", &[words]);
        }
    }
    server.kill();
}

/// A child in a sandbox that kills it for any system call hears that its parent is asked, and makes none.
#[test]
fn a_child_in_a_sandbox() {
    let mut server = Server::new();
    let child = server.forks("fork strict");
    for number in ["1", "2"] {
        server.records(&server.pid(), number, "300ms", &[]);
    }
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).expect("it is there");
    assert!(!stat.contains(") Z"), "it goes on: {stat}");
    server.kill();
}

/// A server that forks itself into the background, and ends: the child has its page and its files. They go with
/// the next command once the child has gone.
#[test]
fn a_daemon() {
    let mut server = Server::new();
    let child = server.forks("fork a daemon");
    server.asks("exit");
    server.child.wait().expect("it ends");
    let directory = server.file("dormant").parent().expect("a directory").to_owned();
    server.records(&child, "x", "400ms", &TABLE);
    let other = Server::in_directory(server.directory.path());
    age(&directory);
    other.records(&other.pid(), "y", "100ms", &[]);
    assert!(directory.exists(), "the child has it");
    assert!(Command::new("kill").args(["-s", "KILL", &child]).status().expect("kill").success());
    let begun = Instant::now();
    while fs::read(format!("/proc/{child}/maps")).is_ok_and(|maps| !maps.is_empty()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it has not ended");
        sleep(Duration::from_millis(5));
    }
    other.records(&other.pid(), "z", "100ms", &[]);
    assert!(!directory.exists(), "no process has it");
    other.ended();
}

/// The files of a process that was killed go with the next command, and those of one that runs stay.
#[test]
fn files_of_a_killed_process() {
    let mut killed = Server::new();
    let directory = killed.file("dormant").parent().expect("a directory").to_owned();
    let other = Server::in_directory(killed.directory.path());
    killed.kill();
    let all = files(&killed.directory.path().join("d"));
    assert_eq!(all.len(), 2, "{all:?}");
    all.iter().for_each(|directory| age(directory));
    other.records(&other.pid(), "x", "100ms", &[]);
    let left = files(&killed.directory.path().join("d"));
    assert!(left.len() == 1 && !left.contains(&directory), "{left:?}");
    other.records(&other.pid(), "y", "100ms", &[]);
    other.ended();
    assert_eq!(files(&killed.directory.path().join("d")), Vec::<PathBuf>::new());
}

/// As if nothing had been written there for some minutes.
fn age(directory: &Path) {
    let then = std::time::SystemTime::now() - Duration::from_secs(300);
    fs::File::open(directory).and_then(|file| file.set_modified(then)).expect("it is ours");
}

/// The process is killed at any moment of being asked: the command says so, and what the next one finds is
/// whole.
#[test]
fn killed_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    for delay in 0..6 {
        let mut server = Server::in_directory(directory.path());
        let child = server.forks("fork");
        let mut command = server.record_process(&child, &format!("x{delay}"), &["--for", "20s"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        sleep(Duration::from_millis(20 * delay));
        assert!(Command::new("kill").args(["-s", "KILL", &child]).status().expect("kill").success());
        let result = Said::from(command.wait_with_output().expect("it ends"));
        let words = [
            "there is no process",
            "has ended before it began to record",
            "has ended while it was recorded",
            "cannot be recorded",
        ];
        assert!(words.iter().any(|words| flat(&result.stderr).contains(words)), "{result:#?}");
        // The page serves the parent, and the next child.
        let child = server.forks("fork");
        for pid in [child, server.pid()] {
            server.records(&pid, &format!("y{delay}-{pid}"), "100ms", &[]);
        }
        server.ended();
    }
}

/// What the process gives up after its start does no harm, and most of it does not hinder a recording.
#[test]
fn closed_descriptors_and_sandboxes() {
    let mut server = Server::new();
    assert_eq!(server.does("close"), "done");
    server.records(&server.pid(), "x", "300ms", &TABLE);
    if server.does("chroot") == "done" {
        server.records(&server.pid(), "y", "300ms", &["`table`"]);
    } else {
        println!("not root: chroot(2) was not tried");
    }
    assert_eq!(server.does("sandbox"), "done");
    said(&mut server.record("z", &["--for", "300ms"])).fails(2, &["has entered a sandbox since its start"]);
    server.goes_on();
    server.kill();
}

/// It enters a sandbox while it is recorded: what the end of the recording needs may be forbidden then.
#[test]
fn a_sandbox_meanwhile() {
    let mut server = Server::new();
    let recorded = server.being_recorded("x");
    server.goes_on();
    assert_eq!(server.does("no barrier"), "done");
    interrupt(&recorded);
    let result = Said::from(recorded.wait_with_output().expect("it ends"));
    assert_eq!(result.code, Some(0), "{result:#?}");
    has(&result.stdout, &TABLE);
    server.await_state(false);
    server.goes_on();
    server.kill();
}

/// The barrier that the recorder needs was registered at the start: a later filter beside an earlier one, which
/// is not noticed, may end the process for that.
#[test]
fn a_filter_against_registrations() {
    let mut server = Server::with(&["filtered"]);
    assert_eq!(server.does("no registration"), "done");
    let child = server.forks("fork");
    for number in ["1", "2"] {
        for pid in [&server.pid(), &child] {
            server.records(pid, &format!("{number}-{pid}"), "200ms", &TABLE);
        }
    }
    server.kill();
}

/// A filter that was there at the start refuses the barrier.
#[test]
fn no_barrier() {
    let mut server = Server::with(&["refused"]);
    said(&mut server.record("x", &["--for", "300ms"]))
        .fails(2, &["the kernel refuses membarrier(2) to it", "spinpark profile --pid"]);
    server.goes_on();
    server.kill();
}

/// No thread makes a call that would begin the recording.
#[test]
fn a_silent_process() {
    let mut server = Server::new();
    server.does("idle");
    sleep(Duration::from_millis(100));
    let mut command = server.record("x", &[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    sleep(Duration::from_millis(500));
    interrupt(&child);
    let result = Said::from(child.wait_with_output().expect("it ends"));
    result.fails(
        2,
        &["nothing was recorded: no thread of it has used a lock", &format!("spinpark why {}", server.pid())],
    );
    // It is not waited for longer than it was to record.
    said(&mut server.record("x", &["--for", "300ms"]))
        .fails(2, &["nothing was recorded: no thread of it has used a lock"]);
    assert!(!server.directory.path().join("x").exists());
    server.kill();
}

#[test]
fn processes_that_are_not_dormant() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = |pid: u32| said(spinpark(["record"]).arg(pid.to_string()).current_dir(directory.path()));
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("it starts");
    record(sleeper.id()).fails(
        2,
        &["is not dormant: it was started without the recorder", "spinpark profile --pid", "--dormant"],
    );
    sleeper.kill().expect("it runs");
    sleeper.wait().expect("it ends");
    record(sleeper.id()).fails(2, &["there is no process"]);
    record(i32::MAX as u32).fails(2, &["there is no process"]);
    // Recorded from its start on.
    let mut command = Command::new(compile_c("dormant.c", &["-O1", "-g"]));
    command.env("LD_PRELOAD", profiler()).env("SPINPARK_PROFILE_DIR", directory.path().join("d"));
    let started = tempfile::tempdir().expect("a directory");
    let mut server = Server::started(command, started);
    let begun = Instant::now();
    while files(&directory.path().join("d")).is_empty() && begun.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    record(server.child.id()).fails(2, &["is recorded from its start on", "spinpark top"]);
    server.kill();
    // No file can be made.
    let mut command = Command::new(compile_c("dormant.c", &["-O1", "-g"]));
    command.env("LD_PRELOAD", profiler()).env("SPINPARK_PROFILE_DORMANT", "/proc/here");
    let mut server = Server::started(command, tempfile::tempdir().expect("a directory"));
    record(server.child.id()).fails(2, &["has the recorder in it, but is not dormant"]);
    server.kill();
    assert_eq!(files(directory.path()), [directory.path().join("d")], "nothing was kept");
}

/// A thread of another process, or of the kernel, is none that could be started again.
#[test]
fn no_processes_of_programs() {
    let record = |id: &str| said(&mut spinpark(["record", id]));
    let thread = std::thread::spawn(move || {
        let own = fs::read_link("/proc/thread-self").expect("a link");
        let id = own.file_name().expect("a number").to_string_lossy().into_owned();
        record(&id).fails(2, &["is a thread of process", "Try: spinpark record"]);
    });
    thread.join().expect("it says so");
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        record("2").fails(2, &["process 2 is a thread of the kernel"]);
    }
}

/// Another user may not, and the files are closed to it.
#[test]
fn another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: another user cannot be played");
        return;
    }
    const NOBODY: u32 = 65534;
    let mut server = Server::new();
    let scratch = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(scratch.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    // A copy that the other user can execute.
    let program = server.record("x", &["--for", "1s"]).get_program().to_owned();
    let copy = Path::new("/tmp").join(format!("spinpark-of-nobody-{}", std::process::id()));
    fs::copy(program, &copy).expect("a copy");
    let mut command = Command::new(&copy);
    command
        .args(["record", &server.pid(), "--for", "1s"])
        .current_dir(scratch.path())
        .uid(NOBODY)
        .gid(NOBODY);
    let result = said(&mut command);
    result.fails(2, &["is another user's (uid 0)", "Try: sudo /", &format!(" record {}", server.pid())]);
    let page = server.file("dormant");
    let read = Command::new("cat").arg(&page).uid(NOBODY).gid(NOBODY).output().expect("cat");
    assert!(!read.status.success(), "its page is closed to others");
    let _ = fs::remove_file(copy);
    server.kill();
}

/// A disk that is full when the process starts, or while it is recorded.
#[test]
fn a_full_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).expect("a directory");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=200k", "none"]).arg(&disk).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        println!("no file system can be mounted here: a full disk was not tried");
        return;
    }
    let start = || {
        let mut command = Command::new(compile_c("dormant.c", &["-O1", "-g"]));
        command.env("LD_PRELOAD", profiler()).env("SPINPARK_PROFILE_DORMANT", &disk);
        Server::started(command, tempfile::tempdir().expect("a directory"))
    };
    let mut server = start();
    let fill = |name: &str| {
        let mut file = fs::File::create(disk.join(name)).expect("a file");
        while file.write_all(&[1; 4096]).is_ok() {}
    };
    fill("rest");
    server.records(&server.pid(), "x", "400ms", &["`table`"]);
    // There is no room for what is kept.
    let room = directory.path().join("room");
    fs::create_dir(&room).expect("a directory");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8k", "none"]).arg(&room).output();
    assert!(mount.expect("it starts").status.success());
    let result = said(server.record(&room.join("y").to_string_lossy(), &["--for", "2s"]).arg("--json"));
    assert_eq!(result.code, Some(1), "{result:#?}");
    let place = format!("the disk of {} is full", room.join("y").display());
    has(
        &result.stderr,
        &["Nothing is kept: cannot write to", &place, "are free, and", "are needed", "--output"],
    );
    assert!(!result.stderr.contains("Kept in"), "{result:#?}");
    let page = room.join("page.html").to_string_lossy().into_owned();
    let result = said(server.record("page", &["--for", "2s", "--html"]).arg(page));
    result.fails(2, &["cannot write", "page.html: the disk of", "is full", "are needed", "Make room there"]);
    let _ = Command::new("umount").arg("-l").arg(&room).status();
    server.goes_on();
    // The file system needs room again for what it had: here for holes, elsewhere (btrfs) for any change.
    let recording = files(&disk).into_iter().filter(|path| path.is_dir()).flat_map(|path| files(&path));
    let recording =
        recording.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "spinprof"));
    let recording = fs::File::options().write(true).open(recording.expect("its file")).expect("it opens");
    let length = recording.metadata().expect("a file").len();
    rustix::fs::fallocate(
        &recording,
        rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE,
        4096,
        length - 4096,
    )
    .expect("tmpfs does");
    fill("more");
    said(&mut server.record("z", &["--for", "1s"])).fails(2, &["cannot record: the disk is full"]);
    server.goes_on();
    // One that starts now cannot be dormant, and runs.
    let mut other = start();
    assert_eq!(other.does("idle"), "done");
    said(&mut other.record("y", &["--for", "1s"])).fails(2, &["has the recorder in it, but is not dormant"]);
    other.kill();
    server.kill();
    let _ = Command::new("umount").arg("-l").arg(&disk).status();
}
