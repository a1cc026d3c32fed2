//! Runs a program with or without the drop-in, and does not let it hang.

mod configuration;
mod hung_stacks;
mod program_result;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

pub use configuration::Configuration;
use hung_stacks::stacks_of_group;
use program_result::Hang;
pub use program_result::ProgramResult;

/// A program to run: a [`Command`] in a process group of its own, with a [`Configuration`], a timeout and
/// captured output.
#[derive(Debug)]
pub struct Run {
    command: Command,
    configuration: Configuration,
    is_profiled: bool,
    timeout: Duration,
    input: Vec<u8>,
}

impl Run {
    /// Long enough for any test program on a busy machine.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(150);

    /// Runs `program` with [`Configuration::Glibc`] unless told otherwise.
    pub fn new(program: impl AsRef<OsStr>) -> Run {
        Run {
            command: Command::new(program),
            configuration: Configuration::Glibc,
            is_profiled: false,
            timeout: Run::DEFAULT_TIMEOUT,
            input: Vec::new(),
        }
    }

    /// Chooses whose locks to use.
    pub fn configuration(mut self, configuration: Configuration) -> Run {
        self.configuration = configuration;
        self
    }

    /// Lets the profiler watch, with files in `directory` and this detail: as `spinpark profile` does, from
    /// the program's start. Calls are not passed on for parts of the time, so that counts are exact; a test
    /// that wants that sets `SPINPARK_PROFILE_SPANS` afterwards.
    pub fn profiled(mut self, directory: impl AsRef<OsStr>, detail: &str) -> Run {
        self.command.env("SPINPARK_PROFILE_DIR", directory).env("SPINPARK_PROFILE_DETAIL", detail);
        self.command.env("SPINPARK_PROFILE_PARENT", std::process::id().to_string());
        self.command.env("SPINPARK_PROFILE_SPANS", "1");
        self.is_profiled = true;
        self
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Run {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Run {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// Removes an environment variable.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Run {
        self.command.env_remove(name);
        self
    }

    /// Runs in `dir`.
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Run {
        self.command.current_dir(dir);
        self
    }

    /// What the program reads from its standard input; empty unless set.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Run {
        self.input = bytes.into();
        self
    }

    /// How long the program may take before it counts as hung.
    pub fn timeout(mut self, timeout: Duration) -> Run {
        self.timeout = timeout;
        self
    }

    /// Starts the program in the background: a server, for example.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn spawn(mut self) -> Running {
        let [stdout, stderr, mut stdin] = [(); 3].map(|()| tempfile::tempfile().expect("a temporary file"));
        stdin.write_all(&self.input).and_then(|()| stdin.rewind()).expect("a temporary file is writable");
        self.configuration.apply(&mut self.command, self.is_profiled);
        // Files, not pipes: they need not be drained, and a stray grandchild cannot keep a reader waiting.
        let clone = |file: &File| Stdio::from(file.try_clone().expect("a file descriptor"));
        self.command.process_group(0).stdin(stdin).stdout(clone(&stdout)).stderr(clone(&stderr));
        let child = start_patiently(&mut self.command)
            .unwrap_or_else(|error| panic!("[{}] {:?}: {error}", self.configuration, self.command));
        Running { child, stdout, stderr, run: self, started: Instant::now(), reaped: false }
    }

    /// Runs the program to its end, whatever that is.
    pub fn outcome(self) -> ProgramResult {
        let mut running = self.spawn();
        let timeout = running.run.timeout;
        running.wait(timeout)
    }

    /// Runs the program to its end and asserts that it exits with status 0, in time.
    ///
    /// # Panics
    /// If not, with all that the program printed.
    pub fn succeed(self) -> ProgramResult {
        self.outcome().assert_success()
    }
}

/// A started program. Dropping it kills its process group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: File,
    stderr: File,
    run: Run,
    started: Instant,
    reaped: bool,
}

impl Running {
    /// The process id, which is also that of its process group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the program itself (not its children) to end: `SIGTERM`.
    pub fn terminate(&self) {
        // An error says that it has ended already, which is what we want.
        let _ = rustix::process::kill_process(self.pid(), Signal::TERM);
    }

    /// Whether the program has ended by itself.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.reaped
            || waitid(WaitId::Pid(self.pid()), options).expect("a child that was not waited for").is_some()
    }

    /// Waits for the end, for at most `timeout`; then takes the stacks and kills the process group.
    pub fn wait(&mut self, timeout: Duration) -> ProgramResult {
        let mut pause = Duration::from_millis(1);
        let deadline = Instant::now() + timeout;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        let hang = (!self.has_ended()).then(|| Hang { after: timeout, stacks: stacks_of_group(self.pid()) });
        let status = self.end();
        let read = |file: &mut File| {
            let mut bytes = Vec::new();
            file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("a temporary file is readable");
            bytes
        };
        ProgramResult {
            configuration: self.run.configuration,
            status,
            stdout: read(&mut self.stdout),
            stderr: read(&mut self.stderr),
            elapsed: self.started.elapsed(),
            hang,
            command: command_line(&self.run.command),
        }
    }

    /// Kills what is left of the group, then reaps. In this order the group's number cannot have been reused.
    fn end(&mut self) -> ExitStatus {
        if !self.reaped {
            // An error says that nothing is left to kill.
            let _ = kill_process_group(self.pid(), Signal::KILL);
            self.reaped = true;
        }
        self.child.wait().expect("a child can be waited for")
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn command_line(command: &Command) -> String {
    let words: Vec<OsString> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_owned).collect();
    words.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

/// Starts `command`; waits while its file is still open for writing somewhere: another test's thread may have
/// forked between the compiler's start and its end, and its child keeps our descriptors until it executes
/// something.
fn start_patiently(command: &mut Command) -> std::io::Result<Child> {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_returns_status_and_output() {
        let outcome = Run::new("sh").args(["-c", "cat; echo two >&2; exit 3"]).input("one").outcome();
        assert_eq!(outcome.status.code(), Some(3));
        assert_eq!((outcome.stdout_text().as_str(), outcome.stderr_text().as_str()), ("one", "two\n"));
        assert!(!outcome.success() && !outcome.timed_out());
    }

    #[test]
    fn a_hang_is_reported_and_its_group_is_killed() {
        let script = "sleep 1000 & echo $!; wait";
        let outcome = Run::new("sh").args(["-c", script]).timeout(Duration::from_millis(500)).outcome();
        assert!(outcome.timed_out() && outcome.report().contains("[glibc] sh -c"), "{}", outcome.report());
        let sleeper = outcome.stdout_text();
        // A killed process dies when it next runs, and stays a zombie until its reaper comes by.
        let stat = format!("/proc/{}/stat", sleeper.trim());
        let is_dead = || std::fs::read_to_string(&stat).map_or(true, |state| state.contains(") Z "));
        let give_up = Instant::now() + Duration::from_secs(60);
        while !is_dead() {
            assert!(Instant::now() < give_up, "{} still runs", sleeper.trim());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_service_ends_when_it_is_dropped() {
        let running = Run::new("sleep").arg("1000").spawn();
        assert!(!running.has_ended());
        let stat = format!("/proc/{}/stat", running.id());
        drop(running);
        assert!(!Path::new(&stat).exists());
    }
}
