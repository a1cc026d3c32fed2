//! Finding the libraries that are put in front of programs, without asking the user where they are.

use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::elf::{Elf, Kind, Machine};
use crate::arm::{DROP_IN, PROFILER};

/// A library to be put in front of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Our locks.
    DropIn,
    /// The recorder of profiles.
    Profiler,
}

impl Library {
    /// Its file name.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::DropIn => DROP_IN,
            Self::Profiler => PROFILER,
        }
    }

    /// The variable that says where it is.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::DropIn => "SPINPARK_PRELOAD",
            Self::Profiler => "SPINPARK_PROFILER",
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DropIn => "drop-in",
            Self::Profiler => "profiler",
        })
    }
}

/// A library that was found.
#[derive(Debug, Clone)]
pub struct DropIn {
    library: Library,
    /// Its absolute path.
    pub path: PathBuf,
    machine: Machine,
}

/// No library, or not a usable one.
#[derive(Debug, Error)]
pub enum DropInError {
    /// Nowhere.
    #[error(
        "cannot find the {0} {file}; looked for\n{places}\nIn the source tree, run `cargo build --release`; elsewhere, set {variable} to its path",
        file = .0.file(), places = list(.1), variable = .0.variable()
    )]
    NotFound(Library, Vec<PathBuf>),
    /// The variable points to nothing.
    #[error(
        "{variable} is {path}, but {error}\nSet it to the path of {file}, or unset it to search for the {library}",
        variable = .library.variable(), path = .path.display(), file = .library.file()
    )]
    Variable {
        /// What was looked for.
        library: Library,
        /// What it points to.
        path: PathBuf,
        /// What is wrong with that.
        error: io::Error,
    },
    /// Not a library.
    #[error(
        "{path} is not an ELF shared library; set {variable} to the path of {file}",
        path = .1.display(), variable = .0.variable(), file = .0.file()
    )]
    NotALibrary(Library, PathBuf),
    /// The path cannot be written into the variable.
    #[error(
        "the path of the {0}, {path}, contains a blank or a colon, which LD_PRELOAD cannot express\nCopy the {0} elsewhere and set {variable} to the copy",
        path = .1.display(), variable = .0.variable()
    )]
    Path(Library, PathBuf),
    /// For another machine.
    #[error(
        "the {library} {path} is for {machine}, but the program is for {program}\nBuild spinpark for {program}, and set {variable} to that {file}",
        path = .path.display(), variable = .library.variable(), file = .library.file()
    )]
    Architecture {
        /// Which.
        library: Library,
        /// Where.
        path: PathBuf,
        /// Its machine.
        machine: Machine,
        /// The program's.
        program: Machine,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("  {}", path.display())).collect::<Vec<_>>().join("\n")
}

impl DropIn {
    /// Finds the drop-in: where its variable says, or near the executable.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not a library.
    pub fn find() -> Result<Self, DropInError> {
        Self::find_library(Library::DropIn)
    }

    /// Finds a library: where its variable says, or near the executable.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not a library.
    pub fn find_library(library: Library) -> Result<Self, DropInError> {
        if let Some(path) =
            env::var_os(library.variable()).filter(|value| !value.is_empty()).map(PathBuf::from)
        {
            return match path.canonicalize() {
                Ok(path) => Self::open(library, path),
                Err(error) => Err(DropInError::Variable { library, path, error }),
            };
        }
        let executable = env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
        let places = places(&executable, library.file());
        match places.iter().find(|place| place.is_file()) {
            Some(place) => Self::open(library, place.clone()),
            None => Err(DropInError::NotFound(library, places)),
        }
    }

    fn open(library: Library, path: PathBuf) -> Result<Self, DropInError> {
        if path.to_string_lossy().contains([' ', ':', '\t']) {
            return Err(DropInError::Path(library, path));
        }
        match Kind::of(&path) {
            Ok(Kind::Elf(Elf { machine, interpreter: None, .. })) => Ok(Self { library, path, machine }),
            _ => Err(DropInError::NotALibrary(library, path)),
        }
    }

    /// Checks that a process of `program`'s kind can load it.
    ///
    /// # Errors
    ///
    /// If not.
    pub fn check_machine(&self, program: Machine) -> Result<(), DropInError> {
        if self.machine == program {
            return Ok(());
        }
        Err(DropInError::Architecture {
            library: self.library,
            path: self.path.clone(),
            machine: self.machine,
            program,
        })
    }

    /// Whether it comes from an unoptimised build.
    #[must_use]
    pub fn is_debug_build(&self) -> bool {
        self.path
            .parent()
            .is_some_and(|directory| directory.ends_with("debug") || directory.ends_with("debug/deps"))
    }
}

/// Where to look, in order: beside the executable, in the installation, in the build tree.
fn places(executable: &Path, file: &str) -> Vec<PathBuf> {
    let Some(here) = executable.parent() else { return Vec::new() };
    let mut directories = vec![here.to_path_buf()];
    if let Some(up) = here.parent() {
        directories.push(up.join("lib"));
        directories.push(up.join("lib/spinpark"));
    }
    // `target/debug` and `target/debug/deps`: the other profile may have been built.
    let profile = if here.ends_with("deps") { here.parent() } else { Some(here) };
    if let (Some(profile), Some(target)) = (profile, profile.and_then(Path::parent)) {
        if profile != here {
            directories.push(profile.to_path_buf());
        }
        if profile.ends_with("debug") || profile.ends_with("release") {
            directories.push(target.join("release"));
            directories.push(target.join("debug"));
        }
    }
    let mut places: Vec<PathBuf> = directories.iter().map(|directory| directory.join(file)).collect();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(executable: &str) -> Vec<String> {
        let places = places(Path::new(executable), DROP_IN);
        places.iter().map(|place| place.parent().unwrap().display().to_string()).collect()
    }

    #[test]
    fn installed() {
        assert_eq!(directories("/usr/bin/spinpark"), ["/usr/bin", "/usr/lib", "/usr/lib/spinpark"]);
    }

    #[test]
    fn in_the_build_tree() {
        let debug = directories("/t/debug/spinpark");
        assert_eq!(debug[0], "/t/debug");
        assert!(debug.contains(&"/t/release".into()));
        let test = directories("/t/debug/deps/cli-0123");
        assert_eq!(test[0], "/t/debug/deps");
        assert!(test.contains(&"/t/debug".into()) && test.contains(&"/t/release".into()));
    }

    fn open(path: impl Into<PathBuf>) -> Result<DropIn, DropInError> {
        DropIn::open(Library::DropIn, path.into())
    }

    #[test]
    fn not_a_library() {
        assert!(matches!(open("/etc/passwd"), Err(DropInError::NotALibrary(..))));
        assert!(matches!(open("/a b/c.so"), Err(DropInError::Path(..))));
        let program = std::env::current_exe().unwrap();
        assert!(matches!(open(program), Err(DropInError::NotALibrary(..))));
    }
}
