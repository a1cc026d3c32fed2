//! The variables with which a service manager addresses one process: the one that it starts.
//!
//! `sd_listen_fds` and `sd_watchdog_enabled` of a program heed `LISTEN_FDS` and `WATCHDOG_USEC` only if
//! `LISTEN_PID` and `WATCHDOG_PID` are its own process id, and `NOTIFY_SOCKET` takes messages of the main
//! process only. A command that stands between the manager and the program is that process. So either the
//! command becomes the program ([`expects_this_process`], [`super::apart`]), or each program that it starts
//! finds its own process id there ([`with_own_id`]).

use std::env;
use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{self, Command};
use std::ptr;

/// Variables whose value is a process id.
const IDS: [&str; 3] = ["LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"];

/// Those that name this process.
fn own() -> impl Iterator<Item = &'static str> {
    let id = process::id().to_string();
    IDS.into_iter().filter(move |name| env::var_os(name).is_some_and(|value| value == *id))
}

/// Whether a service manager knows the program by the id of this process.
#[must_use]
pub fn expects_this_process() -> bool {
    own().next().is_some() || has_notify_socket()
}

/// Whether a service manager takes messages of its main process.
#[must_use]
pub fn has_notify_socket() -> bool {
    env::var_os("NOTIFY_SOCKET").is_some_and(|path| !path.is_empty())
}

/// Lets the process of `command` find its own id in the variables that name this one. To be called last: the
/// process begins to execute the program in here. `name` is the program's `argv[0]`. The environment must not
/// have been cleared.
pub fn with_own_id(command: &mut Command, name: &OsStr) {
    let names: Vec<&str> = own().collect();
    if !names.is_empty() {
        // A null in a word is an error of `spawn`.
        if let Some(mut image) = Image::of(command, name, &names) {
            // SAFETY: the closure runs between fork and exec and makes system calls only: all memory is there.
            unsafe { command.pre_exec(move || Err(image.execute())) };
        }
    }
}

/// What `execve` needs, complete but for the process id.
struct Image {
    path: CString,
    _arguments: Vec<CString>,
    argv: Vec<*const c_char>,
    /// Each ends with a null; those of the first `ids` have [`DIGITS`] nulls for the id.
    variables: Vec<Vec<u8>>,
    ids: usize,
    envp: Vec<*const c_char>,
}

/// Bytes for a process id.
const DIGITS: usize = 10;

// SAFETY: the pointers are to memory that the structure owns, and that nothing else uses.
unsafe impl Send for Image {}
// SAFETY: as above; `execute` takes it exclusively.
unsafe impl Sync for Image {}

impl Image {
    /// None if a word has a null in it.
    fn of(command: &Command, name: &OsStr, ids: &[&str]) -> Option<Self> {
        let path = CString::new(command.get_program().as_bytes()).ok()?;
        let words = std::iter::once(name).chain(command.get_args());
        let arguments: Vec<CString> =
            words.map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>().ok()?;
        let is_changed = |name: &OsStr| command.get_envs().any(|(changed, _)| changed == name);
        let is_id = |name: &OsStr| ids.iter().any(|id| name == *id);
        let kept = env::vars_os().filter(|(name, _)| !is_changed(name) && !is_id(name));
        let set = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let others = kept.chain(set.filter(|(name, _)| !is_id(name)));
        let id = |name: &&str| {
            let mut variable = format!("{name}=").into_bytes();
            variable.resize(variable.len() + DIGITS + 1, 0);
            variable
        };
        let other = |(name, value): (OsString, OsString)| {
            let mut variable = name.into_vec();
            variable.push(b'=');
            variable.extend(value.into_vec());
            (!variable.contains(&0)).then(|| {
                variable.push(0);
                variable
            })
        };
        let mut variables: Vec<Vec<u8>> = ids.iter().map(id).collect();
        for variable in others {
            variables.push(other(variable)?);
        }
        let argv = arguments.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect();
        let envp = variables.iter().map(|variable| variable.as_ptr().cast()).chain([ptr::null()]).collect();
        Some(Self { path, _arguments: arguments, argv, variables, ids: ids.len(), envp })
    }

    /// Becomes the program; comes back with the error if that is not possible.
    fn execute(&mut self) -> io::Error {
        let mut digits = [0; DIGITS];
        let mut rest = process::id();
        let mut at = DIGITS;
        while rest > 0 && at > 0 {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        for variable in &mut self.variables[..self.ids] {
            let start = variable.len() - DIGITS - 1;
            variable[start..start + DIGITS - at].copy_from_slice(&digits[at..]);
        }
        // SAFETY: the path and all elements of both lists are strings that end with a null and live in `self`;
        // both lists end with a null pointer. The buffers have not moved: only their bytes changed.
        unsafe { libc::execve(self.path.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr()) };
        io::Error::last_os_error()
    }
}
