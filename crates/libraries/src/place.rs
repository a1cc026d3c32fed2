//! The order of the places.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::places::Places;
use crate::private::{equals, executable, put, speakable};
use crate::refusal::Refusal;
use crate::trusted::Directory;
use crate::{Library, NoPlace};

/// Where a file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is installed with the command.
    Installed,
    /// It was inside the command.
    Carried,
}

/// A file to preload.
#[derive(Debug)]
pub struct Found {
    /// Its absolute path, which `LD_PRELOAD` can express.
    pub path: PathBuf,
    /// Where it comes from.
    pub origin: Origin,
    /// Places that come first, and why they were not used.
    pub refusals: Vec<Refusal>,
}

/// A file with the content of `library`, which is written if there is none.
pub(crate) fn carried(library: Library, version: &str, places: &Places) -> Result<Found, NoPlace> {
    let mut refusals = Vec::new();
    for path in places.installed(library.file).iter().filter(|path| path.exists()) {
        match same(library, path) {
            Ok(path) => return Ok(Found { path, origin: Origin::Installed, refusals }),
            Err(refusal) => refusals.push(refusal),
        }
    }
    for parent in &places.private {
        match put(library, version, parent) {
            Ok(path) => return Ok(Found { path, origin: Origin::Carried, refusals }),
            Err(refusal) => refusals.push(refusal),
        }
    }
    Err(NoPlace::Nowhere { file: library.file.to_owned(), refusals })
}

/// The installed file as it is. Where nothing is carried, there is nothing to compare it with.
pub(crate) fn installed(file: &str, places: &Places) -> Result<Found, NoPlace> {
    let candidates = places.installed(file);
    match candidates.iter().find(|path| path.is_file()) {
        Some(path) => Ok(Found { path: path.clone(), origin: Origin::Installed, refusals: Vec::new() }),
        None => Err(NoPlace::NotInstalled { file: file.to_owned(), places: candidates }),
    }
}

/// The path of an installed file, without symbolic links, if it is the library and stays it.
fn same(library: Library, path: &Path) -> Result<PathBuf, Refusal> {
    let different = || Refusal::Different(path.to_path_buf());
    let path = path.canonicalize().map_err(|_| different())?;
    speakable(&path)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(different()) };
    let (fd, _) = Directory::open(parent)?.file(Path::new(name))?;
    let file = File::from(fd);
    if !equals(&file, library.content) {
        return Err(different());
    }
    executable(file.as_fd(), &path)?;
    Ok(path)
}
