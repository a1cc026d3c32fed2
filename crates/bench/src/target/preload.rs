//! Finding the drop-in, without asking the user where it is.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::elf::{Elf, Kind, Machine};
use crate::arm::DROP_IN;

/// The variable that says where the drop-in is.
pub const VARIABLE: &str = "SPINPARK_PRELOAD";

/// A drop-in that was found.
#[derive(Debug, Clone)]
pub struct DropIn {
    /// Its absolute path.
    pub path: PathBuf,
    machine: Machine,
}

/// No drop-in, or not a usable one.
#[derive(Debug, Error)]
pub enum DropInError {
    /// Nowhere.
    #[error(
        "cannot find the drop-in {DROP_IN}; looked for\n{}\nIn the source tree, run `cargo build --release`; elsewhere, set {VARIABLE} to its path", list(.0)
    )]
    NotFound(Vec<PathBuf>),
    /// The variable points to nothing.
    #[error("{VARIABLE} is {}, but {error}\nSet it to the path of {DROP_IN}, or unset it to search for the drop-in", .path.display())]
    Variable {
        /// What it points to.
        path: PathBuf,
        /// What is wrong with that.
        error: io::Error,
    },
    /// Not a library.
    #[error("{} is not an ELF shared library; set {VARIABLE} to the path of {DROP_IN}", .0.display())]
    NotALibrary(PathBuf),
    /// The path cannot be written into the variable.
    #[error(
        "the path of the drop-in, {}, contains a blank or a colon, which LD_PRELOAD cannot express\nCopy the drop-in elsewhere and set {VARIABLE} to the copy", .0.display()
    )]
    Path(PathBuf),
    /// For another machine.
    #[error(
        "the drop-in {} is for {drop_in}, but the program is for {program}\nBuild spinpark for {program}, and set {VARIABLE} to that {DROP_IN}", .path.display()
    )]
    Architecture {
        /// The drop-in.
        path: PathBuf,
        /// Its machine.
        drop_in: Machine,
        /// The program's.
        program: Machine,
    },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("  {}", path.display())).collect::<Vec<_>>().join("\n")
}

impl DropIn {
    /// Finds the drop-in: where the variable says, or near the executable.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not a library.
    pub fn find() -> Result<Self, DropInError> {
        if let Some(path) = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
            return match path.canonicalize() {
                Ok(path) => Self::open(path),
                Err(error) => Err(DropInError::Variable { path, error }),
            };
        }
        let executable = env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
        let places = places(&executable);
        match places.iter().find(|place| place.is_file()) {
            Some(place) => Self::open(place.clone()),
            None => Err(DropInError::NotFound(places)),
        }
    }

    fn open(path: PathBuf) -> Result<Self, DropInError> {
        if path.to_string_lossy().contains([' ', ':', '\t']) {
            return Err(DropInError::Path(path));
        }
        match Kind::of(&path) {
            Ok(Kind::Elf(Elf { machine, interpreter: None, .. })) => Ok(Self { path, machine }),
            _ => Err(DropInError::NotALibrary(path)),
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
        Err(DropInError::Architecture { path: self.path.clone(), drop_in: self.machine, program })
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
fn places(executable: &Path) -> Vec<PathBuf> {
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
    let mut places: Vec<PathBuf> = directories.iter().map(|directory| directory.join(DROP_IN)).collect();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(executable: &str) -> Vec<String> {
        let places = places(Path::new(executable));
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

    #[test]
    fn not_a_library() {
        assert!(matches!(DropIn::open("/etc/passwd".into()), Err(DropInError::NotALibrary(_))));
        assert!(matches!(DropIn::open("/a b/c.so".into()), Err(DropInError::Path(_))));
        let program = std::env::current_exe().unwrap();
        assert!(matches!(DropIn::open(program), Err(DropInError::NotALibrary(_))));
    }
}
