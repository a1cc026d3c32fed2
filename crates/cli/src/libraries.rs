//! The two libraries to preload: the command carries them, and finds or writes a file for each that programs
//! can load.
//!
//! `LD_PRELOAD` takes a path, and each program that is started later opens it again, perhaps long after the
//! command has ended. So a carried library becomes a file: an installed one ([`install_directories`]) with
//! exactly its content, else one that is written to the first of [`private_places`] that works. Either is
//! used only if no other user can replace it between the check and the load ([`Directory`]).
//!
//! `/proc/self/fd/3` on a memory file needs no directory, but a program that closes the descriptors that it
//! inherits (a daemon, Python's `subprocess`) reuses the number for another file, and its children would load
//! or block on that one. So if no directory is fit, another process keeps the file open ([`memory`]).
//!
//! # A private place
//!
//! - **P1** the directory has mode 0700 and a trusted path, so only the user's own processes create, replace
//!   or remove files in it. What was checked is what programs load.
//! - **P2** only a complete file gets the name, by `rename`. Two processes that write at once both succeed,
//!   with the same content; a program that has mapped the older file keeps it.
//! - **P3** the content is compared at each start, since a crash of the machine may leave an empty file:
//!   nothing is synced.
//!
//! # A directory of a trusted path
//!
//! - **J1** it belongs to root or to the user.
//! - **J2** other users cannot write to it, or it is a sticky directory. An entry of that can be renamed or
//!   removed only by root and by the owners of the entry and of the directory, to whom J1 applies.
//! - **J3** no other file system begins in a directory where other users can write: one that a user has
//!   mounted there (FUSE) can claim any owner and mode.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::geteuid;
use spinpark_measure::process::executable::preload_list::can_be_preloaded;
use spinpark_measure::process::executable::{DropIn, Library};

mod memory;
#[cfg(test)]
mod tests;

/// A library inside the command.
#[derive(Clone, Copy)]
struct Carried {
    file: &'static str,
    content: &'static [u8],
    /// The package's version and a hash over both libraries, such as `0.1.0-89abcdef01234567`; it names a
    /// directory.
    version: &'static str,
}

/// What the build script generates. Nothing if the command was built with `SPINPARK_LIBRARIES=none`.
static CARRIED: &[Carried] = include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// A file to preload.
#[derive(Debug)]
pub struct Found {
    /// It.
    pub path: PathBuf,
    /// Where it comes from, for messages.
    pub origin: &'static str,
    /// Why earlier places were not used.
    pub refusals: Vec<anyhow::Error>,
}

const INSTALLED: &str = "installed with this command";
const WRITTEN: &str = "carried by this command";
const IN_MEMORY: &str = "carried by this command, in memory while a program runs";

/// The library that its variable names, else the one that is installed with the command or carried by it.
pub fn find(library: Library) -> Result<DropIn> {
    match DropIn::named(library)? {
        Some(named) => Ok(named),
        None => Ok(DropIn::open(library, locate(library)?.path)?),
    }
}

/// The file that is installed with the command or carried by it; an error says what to do.
pub fn locate(library: Library) -> Result<Found> {
    let file = library.file();
    let installed =
        install_directories(&env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default());
    let (found, copy) = match CARRIED.iter().find(|carried| carried.file == file) {
        Some(library) => (
            find_carried(*library, &installed, &private_places(), memory::put),
            "Copy it with `spinpark libraries --to DIR`, and set",
        ),
        None => (find_installed(file, &installed), "Set"),
    };
    found.map_err(|error| anyhow!("{error}\n{copy} {} to the path of {file}", library.variable()))
}

/// Copies both libraries to `directory`, for `SPINPARK_PRELOAD` and `SPINPARK_PROFILER`.
pub fn copy_to(directory: &Path) -> Result<Vec<PathBuf>> {
    let is_any = !CARRIED.is_empty();
    ensure!(is_any, "this command carries no libraries: it was built with SPINPARK_LIBRARIES=none");
    let way_out = "Give --to a directory in which you may write";
    let failed = |error| anyhow!("cannot copy to {}: {error}\n{way_out}", directory.display());
    fs::create_dir_all(directory).map_err(anyhow::Error::from).map_err(failed)?;
    // 0666: others may read it, as far as the umask allows.
    let copy = |library: &Carried| write(*library, directory, 0o666, |_| Ok(())).map_err(failed);
    CARRIED.iter().map(copy).collect()
}

/// The directories in which libraries are installed with `command`.
fn install_directories(command: &Path) -> Vec<PathBuf> {
    let Some(bin) = command.parent() else { return Vec::new() };
    let prefix = bin.parent().unwrap_or(bin);
    vec![bin.to_path_buf(), prefix.join("lib"), prefix.join("lib/spinpark")]
}

/// A directory that belongs to the user alone, with a directory for each version in it.
struct Place {
    path: PathBuf,
    creates_parent: bool,
}

/// The cache comes before the temporary directories because it outlives the session: a service that is
/// started now may start programs weeks later, and the system removes temporary files after days without use.
fn private_places() -> Vec<Place> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let place =
        |parent: PathBuf, name: &str, creates_parent| Place { path: parent.join(name), creates_parent };
    let shared = format!("spinpark-{}", geteuid().as_raw());
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let temporary = variable("TMPDIR").filter(|path| path != Path::new("/tmp"));
    let places = [
        cache.map(|parent| place(parent, "spinpark", true)),
        variable("XDG_RUNTIME_DIR").map(|parent| place(parent, "spinpark", false)),
        temporary.map(|parent| place(parent, &shared, false)),
    ];
    // What a container with a read-only root may still have.
    let usual = ["/tmp", "/var/tmp", "/run", "/dev/shm"].map(|parent| place(parent.into(), &shared, false));
    places.into_iter().flatten().chain(usual).collect()
}

/// The installed file, unchecked: a command that carries nothing cannot compare it.
fn find_installed(file: &str, directories: &[PathBuf]) -> Result<Found> {
    let paths = || directories.iter().map(|directory| directory.join(file));
    let list = || list(paths().map(|path| path.display().to_string()));
    let path = paths().find(|path| path.is_file());
    let path = path.with_context(|| format!("cannot find {file}; looked for\n{}", list()))?;
    Ok(Found { path, origin: INSTALLED, refusals: Vec::new() })
}

/// A file with the content of `library`, which is written if there is none; the last resort is `into_memory`.
fn find_carried(
    library: Carried,
    directories: &[PathBuf],
    private: &[Place],
    into_memory: fn(Carried) -> Result<PathBuf>,
) -> Result<Found> {
    let installed =
        directories.iter().map(|directory| directory.join(library.file)).filter(|path| path.exists());
    let installed = installed.map(|path| (INSTALLED, check_installed(library, &path)));
    let written = private.iter().map(|place| (WRITTEN, put(library, place)));
    let mut refusals = Vec::new();
    let in_memory = std::iter::once_with(|| (IN_MEMORY, into_memory(library)));
    for (origin, result) in installed.chain(written).chain(in_memory) {
        match result {
            Ok(path) => return Ok(Found { path, origin, refusals }),
            Err(refusal) => refusals.push(refusal),
        }
    }
    let list = list(refusals.iter().map(|refusal| format!("{refusal:#}")));
    bail!("no directory is fit for {}, which programs have to load:\n{list}", library.file)
}

fn list(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// The path of an installed file, without symbolic links, if it has the content of `library`.
fn check_installed(library: Carried, path: &Path) -> Result<PathBuf> {
    let path = path.canonicalize().with_context(at(path))?;
    let (parent, name) = split(&path)?;
    Directory::walk(parent)?.check_file(name, library.content)?;
    Ok(path)
}

/// Puts `library` into a directory that is the user's alone, unless it is there; returns the path of the file
/// (P1 to P3).
fn put(library: Carried, place: &Place) -> Result<PathBuf> {
    let (parent, name) = split(&place.path)?;
    let parent = if place.creates_parent && !parent.exists() {
        let (above, name) = split(parent)?;
        Directory::walk(above)?.enter(name, true)?
    } else {
        Directory::walk(parent)?
    };
    let versions = parent.enter(name, true)?;
    let directory = versions.enter(library.version.as_ref(), true)?;
    // The directory's time says, to a day, when the version was used. Set before the file is checked, it
    // keeps other processes from removing the version.
    let is_due = fs::metadata(&directory.path).is_ok_and(|found| is_older(&found, 1));
    if is_due {
        let _ = File::open(&directory.path).and_then(|file| file.set_modified(SystemTime::now()));
    }
    let path = directory.path.join(library.file);
    let is_missing = directory.check_file(library.file.as_ref(), library.content).is_err();
    if is_missing {
        write(library, &directory.path, 0o600, check_executable).with_context(at(&path))?;
    }
    if is_due || is_missing {
        sweep(&versions.path, &directory.path);
    }
    Ok(path)
}

/// P2. A file that fails `check` or is not complete is removed.
fn write(library: Carried, to: &Path, mode: u32, check: fn(&File) -> Result<()>) -> Result<PathBuf> {
    let path = to.join(library.file);
    let mut builder = tempfile::Builder::new();
    let prefix = format!(".{}.", library.file);
    let mut new = builder.prefix(&prefix).permissions(Permissions::from_mode(mode)).tempfile_in(to)?;
    // Not through `new`: it would append its random name to the error.
    new.as_file_mut().write_all(library.content)?;
    check(new.as_file())?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(path)
}

/// Tries what the loader will do: to map code of the file. A mount option or a security module may forbid it.
fn check_executable(file: &File) -> Result<()> {
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    // Private, as the loader does: some file systems refuse shared mappings only.
    // SAFETY: a new mapping at an address of the kernel's choice, which nothing reads or runs.
    match unsafe { mmap(ptr::null_mut(), 1, protection, MapFlags::PRIVATE, file, 0) } {
        // SAFETY: it is the mapping that was just made, and nothing points into it.
        Ok(address) => Ok(unsafe { munmap(address, 1) }?),
        Err(Errno::PERM | Errno::ACCESS) => bail!("programs cannot load code from there (mounted noexec?)"),
        Err(error) => Err(error.into()),
    }
}

fn split(path: &Path) -> Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).with_context(at(path))
}

/// For `with_context`.
fn at(path: &Path) -> impl Fn() -> String {
    || path.display().to_string()
}

/// A directory whose path means the same directory for as long as root and the user leave it alone.
///
/// The path has no symbolic link and is walked from `/`. Each entry is looked up in a directory that was
/// checked, opened, and then checked itself (J1 to J3).
struct Directory {
    path: PathBuf,
    /// The file system, if other users can write to the directory.
    shared: Option<u64>,
}

impl Directory {
    /// Links in `path` (`/home` may be one) are resolved first. If one changes meanwhile, the older path is
    /// checked and used.
    fn walk(path: &Path) -> Result<Self> {
        let path = path.canonicalize().with_context(at(path))?;
        let above_root = Self { path: PathBuf::new(), shared: None };
        path.components().try_fold(above_root, |directory, name| directory.enter(name.as_os_str(), false))
    }

    /// A private directory has mode 0700, and is created if it is missing.
    fn enter(&self, name: &OsStr, is_private: bool) -> Result<Self> {
        let path = self.path.join(name);
        ensure!(
            can_be_preloaded(&path),
            "{}: LD_PRELOAD needs a path without blanks, colons, $LIB, $ORIGIN and $PLATFORM",
            path.display()
        );
        if is_private {
            match DirBuilder::new().mode(PRIVATE).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                result => result.with_context(at(&path))?,
            }
        }
        let checked = self.open(&path, libc::O_PATH | libc::O_DIRECTORY, is_private);
        let (_, found) = checked.with_context(at(&path))?;
        Ok(Self { path, shared: (found.mode() & WRITABLE != 0).then(|| found.dev()) })
    }

    /// Checks that other users cannot change or replace the file, and that it is what programs have to load.
    fn check_file(&self, name: &OsStr, content: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        // Without O_NONBLOCK, a fifo would wait for its writer.
        let (mut file, found) = self.open(&path, libc::O_NONBLOCK, false).with_context(at(&path))?;
        let mut bytes = Vec::new();
        let has_length = found.is_file() && found.len() == content.len() as u64;
        let is_same = has_length && file.read_to_end(&mut bytes).is_ok() && bytes == content;
        ensure!(is_same, "{}: not the library of this command", path.display());
        check_executable(&file).with_context(at(&path))
    }

    /// J1 to J3 for an entry.
    fn open(&self, path: &Path, flags: i32, is_private: bool) -> Result<(File, Metadata)> {
        let file = OpenOptions::new().read(true).custom_flags(flags | libc::O_NOFOLLOW).open(path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::NotADirectory => anyhow!("not a directory, or a symbolic link; remove it"),
            _ => error.into(),
        })?;
        let found = file.metadata()?;
        let (owner, mode) = (found.uid(), found.mode() & 0o7777);
        let is_owned = owner == 0 || owner == geteuid().as_raw();
        ensure!(is_owned, "belongs to user {owner}, who could replace the library");
        let has_mode = !is_private || mode & 0o777 == PRIVATE;
        ensure!(has_mode, "its mode is {mode:04o}, not 0700; run `chmod 700` on it, or remove it");
        let is_closed = mode & WRITABLE == 0 || (found.is_dir() && mode & STICKY != 0);
        ensure!(is_closed, "other users can write to it (mode {mode:04o}); run `chmod go-w` on it");
        let is_here = self.shared.is_none_or(|device| device == found.dev());
        ensure!(is_here, "mounted in a directory where other users can write");
        Ok((file, found))
    }
}

const PRIVATE: u32 = 0o700;
/// The permissions of group and others to write.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Removes what interrupted writers left in `current`, and other versions that were not used for 30 days.
///
/// Programs that run keep what they have mapped. An unknown file stays, and so does its directory.
fn sweep(versions: &Path, current: &Path) {
    let remove = |directory: &Path, prefixes: &[&str], days| {
        let is_unused = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        for (path, ..) in entries(directory, days).filter(|(_, name, _)| is_unused(name)) {
            let _ = fs::remove_file(path);
        }
    };
    remove(current, &[".libspinpark_"], 1);
    for (path, name, found) in entries(versions, 30) {
        if path != current && found.is_dir() && is_version(&name) {
            remove(&path, &["libspinpark_", ".libspinpark_"], 0);
            let _ = fs::remove_dir(path);
        }
    }
}

/// The entries that are older, and have names in UTF-8. Symbolic links are not followed.
fn entries(directory: &Path, days: u32) -> impl Iterator<Item = (PathBuf, String, Metadata)> {
    fs::read_dir(directory).into_iter().flatten().flatten().filter_map(move |entry| {
        let (name, found) = (entry.file_name().into_string().ok()?, entry.metadata().ok()?);
        is_older(&found, days).then(|| (entry.path(), name, found))
    })
}

fn is_older(found: &Metadata, days: u32) -> bool {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    found.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > days * DAY))
}

/// Whether a name is a version and a hash.
fn is_version(name: &str) -> bool {
    let hash = name.rsplit_once('-').map_or("", |(_, hash)| hash);
    name.starts_with(|c: char| c.is_ascii_digit())
        && hash.len() == 16
        && u64::from_str_radix(hash, 16).is_ok()
}
