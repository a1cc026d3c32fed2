//! Where separate debug files are, as gdb looks for them.
//!
//! In this order: by build id in the debug directories; by `.gnu_debuglink` beside the file, in `.debug/`
//! beside it, and below the debug directories; from debuginfod, if `DEBUGINFOD_URLS` is set. What
//! `.gnu_debugaltlink` names (dwz) is found in the same ways.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Object;

use super::debuginfod::Debuginfod;
use crate::model::Unnamed;

/// A file in memory.
pub(super) struct Mapped {
    pub(super) path: PathBuf,
    bytes: memmap2::Mmap,
}

impl Mapped {
    pub(super) fn open(path: &Path) -> Result<Self, Unnamed> {
        let file = fs::File::open(path).map_err(|error| Unnamed::of_error(&error))?;
        // SAFETY: programs and libraries are replaced, not rewritten, since others have them mapped too.
        let bytes = unsafe { memmap2::Mmap::map(&file) }.map_err(|error| Unnamed::of_error(&error))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn object(&self) -> Option<object::File<'_>> {
        object::File::parse(self.bytes()).ok()
    }
}

/// Where to look.
pub(super) struct Sought {
    pub(super) directories: Vec<PathBuf>,
    pub(super) debuginfod: Debuginfod,
}

impl Sought {
    /// The debug file of a file without debug information.
    pub(super) fn debug_file(
        &mut self,
        path: &Path,
        object: &object::File<'_>,
        build_id: Option<&str>,
    ) -> Option<PathBuf> {
        build_id
            .and_then(|id| self.by_build_id(id))
            .or_else(|| self.by_link(path, object))
            .or_else(|| self.debuginfod.debug_info(build_id?, path))
    }

    /// The debug file of a build in the debug directories.
    pub(super) fn by_build_id(&self, build_id: &str) -> Option<PathBuf> {
        let (directory, name) = build_id.split_at_checked(2)?;
        let file = format!(".build-id/{directory}/{name}.debug");
        self.directories.iter().map(|start| start.join(&file)).find(|path| path.exists())
    }

    fn by_link(&self, path: &Path, object: &object::File<'_>) -> Option<PathBuf> {
        let (name, crc) = object.gnu_debuglink().ok()??;
        let name = OsStr::from_bytes(name);
        let real = path.canonicalize().ok()?;
        let beside = real.parent()?;
        let below = |start: &PathBuf| {
            let inside = beside.strip_prefix("/").unwrap_or(beside);
            [start.join(inside).join(name), start.join(name)]
        };
        let places = [beside.join(name), beside.join(".debug").join(name)];
        let places = places.into_iter().chain(self.directories.iter().flat_map(below));
        let is_it = |path: &PathBuf| {
            *path != real && Mapped::open(path).is_ok_and(|file| checksum(file.bytes()) == crc)
        };
        places.into_iter().find(is_it)
    }
}

/// What `.gnu_debugaltlink` names: a file with the parts that several debug files share.
pub(super) fn alternative(path: &Path, object: &object::File<'_>, sought: &mut Sought) -> Option<PathBuf> {
    let (name, build_id) = object.gnu_debugaltlink().ok()??;
    let build_id = hexadecimal(build_id);
    let named = path.parent()?.join(OsStr::from_bytes(name));
    let is_it = |path: &PathBuf| {
        let file = Mapped::open(path).ok();
        let id = file
            .as_ref()
            .and_then(Mapped::object)
            .and_then(|object| Some(hexadecimal(object.build_id().ok()??)));
        id.as_deref() == Some(&build_id)
    };
    Some(named)
        .filter(is_it)
        .or_else(|| sought.by_build_id(&build_id))
        .or_else(|| sought.debuginfod.debug_info(&build_id, Path::new(OsStr::from_bytes(name))))
}

/// The checksum of `.gnu_debuglink`: the CRC of gzip.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
