//! The libraries that are put in front of programs.

use std::env;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::elf::{Elf, Kind, Machine};
use super::preload_list::{DROP_IN, PROFILER, can_be_preloaded};

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

    /// The variable that states where it is.
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
    /// The libraries that it needs itself.
    needed: Vec<String>,
}

/// Not a usable library.
#[derive(Debug, Error)]
pub enum DropInError {
    /// The variable points to nothing.
    #[error(
        "{variable} is {path}: {error}\nSet it to the path of {file}, or unset it to use the {library} of this command",
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
        "the path of the {0}, {path}, contains a blank, a colon, or a word that the loader replaces ($LIB, $ORIGIN, $PLATFORM), which LD_PRELOAD cannot express\nCopy the {0} elsewhere and set {variable} to the copy",
        path = .1.display(), variable = .0.variable()
    )]
    Path(Library, PathBuf),
    /// The loader would give up the program.
    #[error(
        "the {library} needs {needed}, which is not installed here: no program could start with it\nIt is a part of glibc (Debian: libc6); install it, or copy it into this root directory"
    )]
    Missing {
        /// Which.
        library: Library,
        /// What is missing.
        needed: String,
    },
    /// For another machine.
    #[error(
        "the {library} {path} is for {machine}, but the program is for {program}\n{advice}",
        path = .path.display(), advice = other_machine(*.library, *.machine, *.program)
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

impl DropIn {
    /// The library that its variable names; none if the variable is not set.
    ///
    /// # Errors
    ///
    /// If what it names is not there, or not a library.
    pub fn named(library: Library) -> Result<Option<Self>, DropInError> {
        let Some(path) = env::var_os(library.variable()).filter(|value| !value.is_empty()).map(PathBuf::from)
        else {
            return Ok(None);
        };
        Self::at(library, path).map(Some)
    }

    /// The library at the path that its variable has.
    ///
    /// # Errors
    ///
    /// If it is not there, or not a library.
    pub fn at(library: Library, path: PathBuf) -> Result<Self, DropInError> {
        match path.canonicalize() {
            Ok(path) => Self::open(library, path),
            Err(error) => Err(DropInError::Variable { library, path, error }),
        }
    }

    /// The library at this absolute path.
    ///
    /// # Errors
    ///
    /// If it is not a library, or `LD_PRELOAD` cannot name it.
    pub fn open(library: Library, path: PathBuf) -> Result<Self, DropInError> {
        if !can_be_preloaded(&path) {
            return Err(DropInError::Path(library, path));
        }
        match Kind::of(&path) {
            Ok(Kind::Elf(Elf { machine, interpreter: None, needed, .. })) => {
                Ok(Self { library, path, machine, needed })
            }
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
            let missing = self.needed.iter().find(|name| !can_be_loaded(name));
            return missing.map_or(Ok(()), |missing| {
                Err(DropInError::Missing { library: self.library, needed: missing.clone() })
            });
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

/// What to do if library and program are for different machines.
fn other_machine(library: Library, machine: Machine, program: Machine) -> String {
    match program == Machine::OWN && machine != program {
        true => format!("Unset {} to use the {library} of this command", library.variable()),
        false => format!(
            "spinpark has libraries for {} only: build the program for that (with gcc: without -m32)",
            Machine::OWN
        ),
    }
}

/// Whether the loader finds a library. The drop-in is built for the machine of this command.
fn can_be_loaded(name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    // SAFETY: a library that glibc itself brings; nothing of it is used, and it stays loaded.
    !unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) }.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: impl Into<PathBuf>) -> Result<DropIn, DropInError> {
        DropIn::open(Library::DropIn, path.into())
    }

    /// There is no such build, so the advice is another.
    #[test]
    fn programs_of_32_bits() {
        let mut header = vec![0_u8; 52];
        header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
        for (at, value) in [(16, 3), (18, 3), (20, 1), (40, 52), (42, 32)] {
            header[at] = value;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), header).unwrap();
        let Ok(Kind::Elf(elf)) = Kind::of(file.path()) else { panic!("no ELF file") };
        let path = file.path().to_owned();
        let library = DropIn { library: Library::DropIn, path, machine: Machine::OWN, needed: Vec::new() };
        let said = library.check_machine(elf.machine).unwrap_err().to_string();
        assert!(said.contains("the program is for x86 (32 bits)") && said.contains("without -m32"), "{said}");
        assert!(!said.contains("Build spinpark"), "{said}");
    }

    #[test]
    fn not_a_library() {
        assert!(matches!(open("/etc/passwd"), Err(DropInError::NotALibrary(..))));
        for path in ["/a b/c.so", "/$LIB/c.so"] {
            assert!(matches!(open(path), Err(DropInError::Path(..))));
        }
        let program = std::env::current_exe().unwrap();
        assert!(matches!(open(program), Err(DropInError::NotALibrary(..))));
        assert!(can_be_loaded("libc.so.6") && !can_be_loaded("libno-such-library.so.2"));
    }
}
