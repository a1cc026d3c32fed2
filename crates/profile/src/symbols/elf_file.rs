//! Which build of a program or library a file is, and where it has a variable.

use std::path::{Path, PathBuf};
use std::{fs, io};

use object::{Object, ObjectSymbol, SymbolKind};
use thiserror::Error;

use super::demangle::demangled;

/// A file of which nothing can be learnt.
#[derive(Debug, Error)]
pub enum Unusable {
    /// It cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, io::Error),
    /// It is no program or library.
    #[error("{} is no ELF file", .0.display())]
    NotElf(PathBuf),
}

/// A program or library.
#[derive(Debug)]
pub struct ElfFile {
    path: PathBuf,
    content: Vec<u8>,
    /// Its build id, in hexadecimal digits, if it has one.
    pub build_id: Option<String>,
}

impl ElfFile {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// [`Unusable`].
    pub fn open(path: &Path) -> Result<Self, Unusable> {
        let content = fs::read(path).map_err(|error| Unusable::Unreadable(path.to_owned(), error))?;
        let object = object::File::parse(&*content).map_err(|_| Unusable::NotElf(path.to_owned()))?;
        let digits = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect();
        let build_id = object.build_id().ok().flatten().map(digits);
        Ok(Self { path: path.to_owned(), build_id, content })
    }

    /// Address and size of each variable of that name: as the linker has it, or as its source does.
    #[must_use]
    pub fn variables(&self, name: &str) -> Vec<(u64, u64)> {
        let Ok(object) = object::File::parse(&*self.content) else { return Vec::new() };
        let mut found: Vec<(u64, u64)> = object
            .symbols()
            .chain(object.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.is_definition())
            .filter(|symbol| {
                symbol.name().is_ok_and(|linked| {
                    linked == name || demangled(linked).is_some_and(|shown| shown == name)
                })
            })
            .map(|symbol| (symbol.address(), symbol.size().max(1)))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
