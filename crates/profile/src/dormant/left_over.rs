//! What dormant processes have left that were killed, or have become another program: their directories.
//!
//! A directory is removed if it and all that is in it are as a process makes them, and no process has any of
//! its files open or mapped for writing, in whatever name space that is: so a process number that is used again
//! saves none, and costs none. All is done relative to the opened directories, and no link is followed: another
//! user who may write beside them cannot have anything else removed.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, unlinkat};
use rustix::process::geteuid;
use spinpark_recorder::format::{CONTROL_FILE, QUOTA_FILE};

use super::is_process_directory;
use crate::read::{EXTENSION, is_file_in_use};

/// Directories are removed when they are this old: a process that begins has the files in use a moment later.
const OLD: Duration = Duration::from_secs(60);

/// Removes the directories of processes that are gone, of those in `base`: this user's, or, for root, anyone's.
pub fn remove_left_over(base: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(base) = openat(CWD, base, flags, Mode::empty()) else { return };
    for name in names(&base) {
        if is_process_directory(OsStr::from_bytes(name.to_bytes())) && empty(&base, &name).is_some() {
            // Another command may have been faster.
            let _ = unlinkat(&base, &name, AtFlags::REMOVEDIR);
        }
    }
}

/// Removes the files of a directory that is left over; none if it is not, and then they stay.
fn empty(base: &OwnedFd, name: &CStr) -> Option<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(base, name, flags, Mode::empty()).ok()?;
    let status = fstat(&directory).ok()?;
    let user = geteuid();
    let is_own = user.as_raw() == status.st_uid || user.is_root();
    if !is_own || status.st_mode & 0o077 != 0 || !is_old(&status) {
        return None;
    }
    let files = names(&directory);
    let is_left_over = |name: &CString| {
        // What has taken its place is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&directory, name, flags, Mode::empty()).ok()?;
        let is_file = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::RegularFile;
        (is_file && is_file_in_use(&file.into()) == Some(false)).then_some(())
    };
    if !files.iter().all(|name| is_recorders(name) && is_left_over(name).is_some()) {
        return None;
    }
    files.iter().try_for_each(|name| unlinkat(&directory, name, AtFlags::empty())).ok()
}

fn is_recorders(name: &CStr) -> bool {
    let is_recording = Path::new(OsStr::from_bytes(name.to_bytes()))
        .extension()
        .is_some_and(|extension| extension == EXTENSION);
    is_recording || name == CONTROL_FILE || name == QUOTA_FILE
}

fn is_old(status: &Stat) -> bool {
    let modified = Duration::from_secs(u64::try_from(status.st_mtime).unwrap_or(0));
    SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|now| now.saturating_sub(modified) > OLD)
}

fn names(directory: &OwnedFd) -> Vec<CString> {
    let entries = Dir::read_from(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_owned());
    names.filter(|name| ![c".", c".."].contains(&name.as_c_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    /// A directory of a process that began long ago.
    fn made(base: &Path, name: &str, files: &[&str]) -> PathBuf {
        let directory = base.join(name);
        fs::create_dir(&directory).expect("a directory");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("it is ours");
        for file in files {
            fs::write(directory.join(file), "x").expect("a file");
        }
        age(&directory);
        directory
    }

    fn age(directory: &Path) {
        let then = SystemTime::now() - 2 * OLD;
        File::open(directory).and_then(|file| file.set_modified(then)).expect("it is ours");
    }

    #[test]
    fn what_is_removed() {
        const FILES: [&str; 3] = ["control.dormant", "12-34.spinprof", ".spinpark-quota"];
        let base = tempfile::tempdir().expect("a directory");
        let base = base.path();
        let gone = [made(base, "12-34", &FILES), made(base, "13-34", &[]), made(base, "14-34", &FILES[..1])];
        let others = base.join("others");
        fs::create_dir(&others).expect("a directory");
        let elsewhere = made(&others, "20-34", &FILES);
        let (link, inner) = (base.join("21-34"), made(base, "22-34", &[]));
        symlink(&elsewhere, &link).expect("a link");
        symlink(elsewhere.join(FILES[0]), inner.join(FILES[0])).expect("a link");
        age(&inner);
        let open_to_others = made(base, "23-34", &FILES);
        fs::set_permissions(&open_to_others, fs::Permissions::from_mode(0o770)).expect("it is ours");
        let in_use = made(base, "24-34", &FILES);
        let writer = File::options().write(true).open(in_use.join(FILES[1])).expect("a file");
        let new = made(base, "25-34", &FILES);
        File::open(&new).and_then(|file| file.set_modified(SystemTime::now())).expect("it is ours");
        let kept = [
            others,
            elsewhere,
            link,
            inner,
            open_to_others,
            in_use.clone(),
            new,
            made(base, "26-34", &["control.dormant", "mine.txt"]),
            made(base, "not-one", &FILES),
        ];
        let before: Vec<_> = kept.iter().map(|directory| names_in(directory)).collect();
        remove_left_over(base);
        assert!(gone.iter().all(|directory| !directory.exists()), "{gone:?}");
        let after: Vec<_> = kept.iter().map(|directory| names_in(directory)).collect();
        assert_eq!(before, after, "{kept:?}");
        drop(writer);
        remove_left_over(base);
        assert!(!in_use.exists(), "no process has it any more");
    }

    fn names_in(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).expect("it is there");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        names.sort();
        names
    }
}
