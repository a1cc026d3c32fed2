//! Programs compiled for the tests, and the command prepared to use them.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::ops::Deref;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;

/// Where compiled fixtures are.
fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-fixtures");
        fs::create_dir_all(&directory).unwrap();
        compile("drop_in.c", &directory.join("libspinpark_preload.so"), &["-shared", "-fPIC", "-ldl"])
            .unwrap();
        compile("program.c", &directory.join("program"), &["-pthread"]).unwrap();
        compile("waits.c", &directory.join("waits"), &["-g", "-pthread"]).unwrap();
        directory
    })
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Compiles a fixture; the error is what the compiler said. The file appears complete, or not at all.
pub(crate) fn compile(name: &str, to: &Path, flags: &[&str]) -> Result<(), String> {
    let new = to.with_extension("new");
    let output =
        Command::new("cc").arg("-O1").arg("-o").arg(&new).arg(source(name)).args(flags).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    fs::rename(&new, to).map_err(|error| error.to_string())
}

/// A fixture that only some tests need, compiled once.
pub(crate) fn compiled(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    static DONE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let path = directory().join(name);
    let mut done = DONE.lock().unwrap();
    if !done.contains(&path) {
        compile(source, &path, flags).unwrap();
        done.push(path.clone());
    }
    path
}

/// The stand-in for the drop-in.
pub(crate) fn drop_in() -> PathBuf {
    directory().join("libspinpark_preload.so")
}

/// The program under test.
pub(crate) fn program() -> PathBuf {
    directory().join("program")
}

/// The program whose waiting is known.
pub(crate) fn waits() -> PathBuf {
    directory().join("waits")
}

/// The command, with the stand-in.
pub(crate) fn spinpark<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(cargo_bin!("spinpark"));
    command.args(args).env("SPINPARK_PRELOAD", drop_in());
    // What the command writes for itself does not go to the developer's home.
    command.env("XDG_CACHE_HOME", directory().join("cache"));
    let ours = ["LD_PRELOAD", "SPINPARK_VERBOSE", "SPINPARK_DISABLE"];
    let environments = ["COLUMNS", "LC_ALL", "LC_CTYPE", "LANG", "NOTIFY_SOCKET"];
    for variable in ours.into_iter().chain(environments) {
        command.env_remove(variable);
    }
    let heed_interrupts = || {
        // SAFETY: a disposition may be set between fork and exec.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // A script that runs the tests in the background has them ignore SIGINT, and what they start.
    // SAFETY: the closure does nothing else.
    unsafe { command.pre_exec(heed_interrupts) };
    command
}

/// The output of the command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
}

/// What a command printed: text for people, which is searched word by word. Where a line ends depends on how
/// long a path, a process id or a number in it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    /// Whether these words follow each other, on one line or across lines.
    pub(crate) fn contains(&self, words: impl AsRef<str>) -> bool {
        flat(&self.0).contains(&flat(words.as_ref()))
    }

    /// As it was printed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it could steer a terminal.
    pub(crate) fn has_escapes(&self) -> bool {
        self.0.contains('\u{1b}')
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// No line is longer than that, but for one that is a single word: a path.
#[track_caller]
pub(crate) fn lines_fit(text: &str, columns: u16) {
    for line in text.lines().filter(|line| line.trim().contains(' ')) {
        assert!(line.chars().count() <= usize::from(columns), "{line}");
    }
}

/// In one line, wherever lines ended.
pub(crate) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            // A shell's code.
            code: output.status.code().or_else(|| output.status.signal().map(|signal| 128 + signal)),
            stdout: Text(String::from_utf8(output.stdout).unwrap()),
            stderr: Text(String::from_utf8(output.stderr).unwrap()),
        }
    }
}

/// Runs a command to its end. A copy of a program that was only just written may still be open for writing in
/// a child that another test is about to start; that passes.
pub(crate) fn said(command: &mut Command) -> Said {
    for _ in 0..6000 {
        match command.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            output => return output.unwrap().into(),
        }
    }
    panic!("{command:?} cannot be executed: another process still writes to it");
}

impl Said {
    /// Checks the exit code and that standard error contains each of `words`.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in: {}", self.stderr);
        }
    }

    /// Checks that all went well and that standard output contains each of `words`.
    #[track_caller]
    pub(crate) fn succeeds(&self, words: &[&str]) {
        assert_eq!(self.code, Some(0), "{self:#?}");
        for word in words {
            assert!(self.stdout.contains(word), "no `{word}` in: {}", self.stdout);
        }
    }
}

/// Ctrl-C, as soon as the command has printed a line with these words; what it says on standard output, and
/// on standard error.
pub(crate) fn interrupted_after(words: &str, command: &mut Command) -> (Text, Text) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while text.is_empty() || !flat(&text).contains(words) {
        assert_ne!(stdout.read_line(&mut text).unwrap(), 0, "{text}");
    }
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    stdout.read_to_string(&mut text).unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}{errors}");
    (Text(text), Text(errors))
}
