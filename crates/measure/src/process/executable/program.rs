//! From what the user typed to a program that the drop-in can be loaded into, or to the reason why not.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use thiserror::Error;

use super::elf::{Elf, Kind, Machine};
use super::privilege;

/// Scripts whose interpreter is a script: the kernel follows four.
const MAX_SCRIPTS: usize = 4;

/// A program that can be interposed.
#[derive(Debug, Clone)]
pub struct Executable {
    /// What to execute: the script, if it is one.
    pub path: PathBuf,
    /// What it runs on: that of the interpreter, if it is a script.
    pub machine: Machine,
}

/// Why a program cannot be run, or not on our locks. Each names the remedy.
#[derive(Debug, Error)]
pub enum Blocker {
    /// No such file.
    #[error("there is no program `{}`{}", .name.to_string_lossy(), not_found_hint(.name))]
    NotFound {
        /// What was looked for.
        name: OsString,
    },
    /// A directory.
    #[error("{} is a directory; name the program inside it", .0.display())]
    Directory(PathBuf),
    /// No execute permission, or not a file.
    #[error("{path} is not executable; if it is a program, run `chmod +x {path}` first", path = .0.display())]
    NotExecutable(PathBuf),
    /// It cannot be inspected.
    #[error("cannot read {}: {}\nspinpark must see what kind of program it is; give yourself read permission", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// Neither ELF nor a script.
    #[error(
        "{path} is neither an ELF program nor a script with a `#!` line\nIf it is a shell script, start it as `sh {path}`",
        path = .0.display()
    )]
    NotAProgram(PathBuf),
    /// Started through something that cannot be interposed.
    #[error("{} is a script, and its interpreter cannot be used:\n{}", .0.display(), .1)]
    Script(PathBuf, Box<Self>),
    /// No dynamic loader.
    #[error(
        "{} is statically linked: it brings its own locks, and no library can be put in front of them\nLink it dynamically (without -static), or use the spinpark library in its source; with Go neither helps, since its locks are no pthread locks", .0.display()
    )]
    Static(PathBuf),
    /// Not glibc's loader.
    #[error(
        "{} is built for another C library (its loader is {interpreter}); the drop-in replaces the locks of glibc only\nBuild the program on a glibc system", .path.display()
    )]
    OtherLibc {
        /// The program.
        path: PathBuf,
        /// The loader that it names.
        interpreter: String,
    },
    /// The loader is not there.
    #[error(
        "{} needs the loader {interpreter}, which does not exist here\nInstall the C library of its architecture", .path.display()
    )]
    NoLoader {
        /// The program.
        path: PathBuf,
        /// The loader that it names.
        interpreter: String,
    },
    /// The loader ignores `LD_PRELOAD` for it.
    #[error(
        "{} {why}: the system ignores LD_PRELOAD for such programs\nCopy it to a file of your own (`cp` drops the privilege) and run the copy", .path.display()
    )]
    Privileged {
        /// The program.
        path: PathBuf,
        /// "is setuid …"
        why: String,
    },
}

fn not_found_hint(name: &OsStr) -> String {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        return String::from("; check the path");
    }
    if Path::new(name).exists() {
        return format!(" in PATH\nIt is in this directory: write ./{shown}");
    }
    String::from(" in PATH; check the spelling, or give its path")
}

impl Executable {
    /// Looks `name` up as a shell does, and checks that the drop-in can be loaded into it.
    ///
    /// # Errors
    ///
    /// The first thing that stands in the way.
    pub fn find(name: &OsStr) -> Result<Self, Blocker> {
        Self::find_with(name, &[])
    }

    /// The same for a program with its arguments: a loader (`ld-linux-x86-64.so.2 ./app`) is judged by what
    /// it loads.
    ///
    /// # Errors
    ///
    /// The first thing that stands in the way.
    pub fn find_with(name: &OsStr, arguments: &[OsString]) -> Result<Self, Blocker> {
        let path = resolve(name)?;
        let machine = check(&path, arguments, MAX_SCRIPTS)?;
        Ok(Self { path, machine })
    }
}

/// The program that `name` means, for runs that put no library in front of it: any that can be executed.
///
/// # Errors
///
/// If there is none.
pub fn locate(name: &OsStr) -> Result<PathBuf, Blocker> {
    let path = resolve(name)?;
    match Kind::of(&path) {
        Ok(Kind::Other) => Err(Blocker::NotAProgram(path)),
        // One that may be executed, but not read, runs.
        _ => Ok(path),
    }
}

/// The file that `name` means.
fn resolve(name: &OsStr) -> Result<PathBuf, Blocker> {
    let not_found = || Blocker::NotFound { name: name.to_os_string() };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return executable(&path).map(|_| path);
    }
    let mut found = not_found();
    for directory in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        let path = directory.join(name);
        match executable(&path) {
            Ok(_) => return Ok(path),
            Err(Blocker::NotExecutable(path)) => found = Blocker::NotExecutable(path),
            Err(_) => {}
        }
    }
    if name.is_empty() { Err(not_found()) } else { Err(found) }
}

/// Whether `path` is a file that may be executed.
fn executable(path: &Path) -> Result<Metadata, Blocker> {
    let Ok(metadata) = path.metadata() else { return Err(Blocker::NotFound { name: path.into() }) };
    if metadata.is_dir() {
        return Err(Blocker::Directory(path.into()));
    }
    if !metadata.is_file() || rustix::fs::access(path, Access::EXEC_OK).is_err() {
        return Err(Blocker::NotExecutable(path.into()));
    }
    Ok(metadata)
}

/// Follows scripts to the program that is executed in the end.
fn check(path: &Path, arguments: &[OsString], scripts_left: usize) -> Result<Machine, Blocker> {
    let metadata = executable(path)?;
    match Kind::of(path).map_err(|error| Blocker::Unreadable(path.into(), error))? {
        Kind::Other => Err(Blocker::NotAProgram(path.into())),
        Kind::Elf(elf) => {
            if let Some(why) = privilege::of(path, &metadata) {
                return Err(Blocker::Privileged { path: path.into(), why });
            }
            match loaded_by(path, &elf, arguments) {
                Loads::Nothing => check_loader(path, elf),
                Loads::Itself => Ok(elf.machine),
                Loads::Program(program) => check_loaded(&program),
            }
        }
        Kind::Script(_) if scripts_left == 0 => Err(Blocker::NotAProgram(path.into())),
        Kind::Script(line) => {
            let wrap = |blocker| Blocker::Script(path.into(), Box::new(blocker));
            let interpreter = interpreter_of(&line).ok_or_else(|| Blocker::NotAProgram(path.into()))?;
            let interpreter = resolve(&interpreter).map_err(wrap)?;
            check(&interpreter, &[], scripts_left - 1).map_err(wrap)
        }
    }
}

/// The program behind a `#!` line; behind `env`, the one that `env` starts.
fn interpreter_of(line: &str) -> Option<OsString> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if Path::new(first).file_name() != Some(OsStr::new("env")) {
        return Some(first.into());
    }
    let started = words.find(|word| !word.starts_with('-') && !word.contains('='));
    Some(started.unwrap_or(first).into())
}

/// What a file loads, if it is a dynamic loader that is executed itself.
enum Loads {
    /// It is no loader.
    Nothing,
    /// It only says something about itself.
    Itself,
    /// This program.
    Program(PathBuf),
}

/// What `elf` at `path` loads with these `arguments`. A loader is a library without a loader, with a loader's
/// name, or the one that its argument asks for.
fn loaded_by(path: &Path, elf: &Elf, arguments: &[OsString]) -> Loads {
    if elf.interpreter.is_some() {
        return Loads::Nothing;
    }
    let program = loaded_program(arguments);
    let is_named_so = elf.soname.as_deref().is_some_and(is_glibcs_loader);
    let is_asked_for = || {
        let Ok(Kind::Elf(Elf { interpreter: Some(interpreter), .. })) =
            Kind::of(Path::new(program.as_ref()?))
        else {
            return None;
        };
        Some(Path::new(&interpreter).canonicalize().ok()? == path.canonicalize().ok()?)
    };
    match (&program, is_named_so || is_asked_for() == Some(true)) {
        (_, false) => Loads::Nothing,
        (None, true) => Loads::Itself,
        (Some(program), true) => Loads::Program(program.into()),
    }
}

/// The program among the arguments of glibc's loader: the first that is no option, or an option's value.
fn loaded_program(arguments: &[OsString]) -> Option<OsString> {
    const WITH_VALUE: [&str; 7] = [
        "--library-path",
        "--inhibit-rpath",
        "--audit",
        "--preload",
        "--argv0",
        "--glibc-hwcaps-prepend",
        "--glibc-hwcaps-mask",
    ];
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if WITH_VALUE.iter().any(|option| word == *option) {
            words.next()?;
        } else if !word.as_bytes().starts_with(b"--") {
            return Some(word.clone());
        }
    }
    None
}

/// A program that a loader maps: it needs no execute permission, and gains no privileges.
fn check_loaded(path: &Path) -> Result<Machine, Blocker> {
    if !path.as_os_str().as_bytes().contains(&b'/') && !path.exists() {
        return Err(Blocker::NotFound { name: path.into() });
    }
    match Kind::of(path) {
        Ok(Kind::Elf(elf)) => check_loader(path, elf),
        Ok(_) => Err(Blocker::NotAProgram(path.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Blocker::NotFound { name: path.into() }),
        Err(error) => Err(Blocker::Unreadable(path.into(), error)),
    }
}

/// By its file name.
fn is_glibcs_loader(name: &str) -> bool {
    name.starts_with("ld-linux") || name.starts_with("ld64.so") || name == "ld.so.1"
}

/// Whether the program starts through glibc's dynamic loader.
fn check_loader(path: &Path, elf: Elf) -> Result<Machine, Blocker> {
    let Some(interpreter) = elf.interpreter else { return Err(Blocker::Static(path.into())) };
    let loader = Path::new(&interpreter).file_name().and_then(OsStr::to_str).unwrap_or_default();
    if !is_glibcs_loader(loader) && !elf.needed.iter().any(|library| library == "libc.so.6") {
        return Err(Blocker::OtherLibc { path: path.into(), interpreter });
    }
    if !Path::new(&interpreter).exists() {
        return Err(Blocker::NoLoader { path: path.into(), interpreter });
    }
    Ok(elf.machine)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(line: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        fs::write(&path, line).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (directory, path)
    }

    #[test]
    fn finds_a_program_in_path() {
        let executable = Executable::find(OsStr::new("cat")).unwrap();
        assert!(executable.path.is_absolute());
    }

    #[test]
    fn what_is_not_a_program() {
        assert!(matches!(Executable::find(OsStr::new("no-such-program-x")), Err(Blocker::NotFound { .. })));
        assert!(matches!(Executable::find(OsStr::new("/no/such/x")), Err(Blocker::NotFound { .. })));
        assert!(matches!(Executable::find(OsStr::new("/tmp")), Err(Blocker::Directory(_))));
        assert!(matches!(Executable::find(OsStr::new("/proc/self/stat")), Err(Blocker::NotExecutable(_))));
        assert!(matches!(Executable::find(OsStr::new("")), Err(Blocker::NotFound { .. })));
    }

    #[test]
    fn scripts_are_followed_to_their_interpreter() {
        let (_keep, path) = script("#!/bin/sh\n");
        assert!(Executable::find(path.as_os_str()).is_ok());
        let (_keep, path) = script("#!/usr/bin/env -S X=1 cat -n\n");
        assert!(Executable::find(path.as_os_str()).is_ok());
        let (_keep, path) = script("#! /no/such/interpreter\n");
        let Err(Blocker::Script(_, inner)) = Executable::find(path.as_os_str()) else {
            panic!("not a script")
        };
        assert!(matches!(*inner, Blocker::NotFound { .. }));
        let (_keep, path) = script("echo hello\n");
        assert!(matches!(Executable::find(path.as_os_str()), Err(Blocker::NotAProgram(_))));
    }

    /// `ld.so ./app`, as bundles and containers start programs.
    #[test]
    fn a_loader_is_judged_by_what_it_loads() {
        let Kind::Elf(own) = Kind::of(Path::new("/proc/self/exe")).unwrap() else { panic!("no ELF") };
        let loader = own.interpreter.clone().unwrap();
        let find = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            Executable::find_with(OsStr::new(&loader), &arguments)
        };
        let own_path = std::env::current_exe().unwrap();
        let own_path = own_path.to_str().unwrap();
        assert_eq!(find(&[own_path, "--x"]).unwrap().machine, own.machine);
        assert!(find(&["--library-path", "/lib", "--argv0", "x", own_path]).is_ok());
        assert!(find(&["--help"]).is_ok() && find(&[]).is_ok());
        assert!(matches!(find(&["/no/such/x"]), Err(Blocker::NotFound { .. })));
        assert!(matches!(find(&["--inhibit-cache", "/etc/passwd"]), Err(Blocker::NotAProgram(_))));
        // A loader that has no name of glibc's, but is what its program asks for.
        let elf = Elf { interpreter: None, soname: None, ..own };
        let loads = |path: &str| loaded_by(Path::new(path), &elf, &[own_path.into()]);
        assert!(matches!(loads(&loader), Loads::Program(_)));
        assert!(matches!(loads(own_path), Loads::Nothing));
    }

    #[test]
    fn the_loader_decides() {
        let Kind::Elf(own) = Kind::of(Path::new("/proc/self/exe")).unwrap() else { panic!("no ELF") };
        let path = Path::new("/x");
        assert!(check_loader(path, own.clone()).is_ok());
        let musl =
            Elf { interpreter: Some("/lib/ld-musl-x86_64.so.1".into()), needed: vec![], ..own.clone() };
        assert!(matches!(check_loader(path, musl), Err(Blocker::OtherLibc { .. })));
        let alone = Elf { interpreter: None, ..own.clone() };
        assert!(matches!(check_loader(path, alone), Err(Blocker::Static(_))));
        let foreign = Elf { interpreter: Some("/nowhere/ld-linux-foreign.so.9".into()), ..own };
        assert!(matches!(check_loader(path, foreign), Err(Blocker::NoLoader { .. })));
    }
}
