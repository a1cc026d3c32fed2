//! Versions that are no longer used are removed.
//!
//! The time of a version's directory says when it was last used, to a day. A version that was not used for 30 days goes when
//! another one is used. Programs that run keep what they have mapped; a program that runs for longer than that under a
//! version that is never started again could not pass the library on to programs that it starts then.

use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, Dir, FileType, Timespec, Timestamps, UTIME_NOW, fstat, futimens, statat, unlinkat,
};

use crate::trusted::Directory;

/// How the name of a file begins that is being written.
pub(crate) const UNFINISHED: &str = ".";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A version that was not used for so long is removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Notes that this version is used; whether that was last noted long enough ago to look for unused ones.
pub(crate) fn mark_used(directory: &Directory) -> bool {
    let is_due = fstat(&directory.fd).is_ok_and(|stat| age(stat.st_mtime) > DAY);
    let is_new = Dir::read_from(&directory.fd).is_ok_and(|dir| names(dir).is_empty());
    if is_due {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        // On a read-only file system nothing is removed either.
        let _ = futimens(&directory.fd, &Timestamps { last_access: now, last_modification: now });
    }
    is_due || is_new
}

/// Removes what other versions and interrupted writers left in `ours`. What cannot be removed stays.
pub(crate) fn sweep(ours: &Directory, current: &Directory) {
    remove_files(current, |name, age| name.starts_with(UNFINISHED) && age > DAY);
    let Ok(dir) = Dir::read_from(&ours.fd) else { return };
    for name in names(dir) {
        let Ok(stat) = statat(&ours.fd, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let is_current = current.path.file_name().is_some_and(|current| current == name.as_str());
        if is_current || !is_directory || !is_version(&name) || age(stat.st_mtime) <= UNUSED {
            continue;
        }
        let Ok(version) = ours.enter_private(name.as_ref()) else { continue };
        // Files that are not ours keep the directory.
        remove_files(&version, |name, _| name.trim_start_matches(UNFINISHED).starts_with("libspinpark_"));
        let _ = unlinkat(&ours.fd, name.as_str(), AtFlags::REMOVEDIR);
    }
}

/// Whether a name is a version with a hash.
fn is_version(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(version, hash)| {
        version.starts_with(|first: char| first.is_ascii_digit())
            && hash.len() == 16
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn remove_files(directory: &Directory, is_unused: impl Fn(&str, Duration) -> bool) {
    let Ok(dir) = Dir::read_from(&directory.fd) else { return };
    for name in names(dir) {
        let Ok(stat) = statat(&directory.fd, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if is_unused(&name, age(stat.st_mtime)) {
            let _ = unlinkat(&directory.fd, name.as_str(), AtFlags::empty());
        }
    }
}

/// The entries that have names in UTF-8: ours have.
fn names(dir: Dir) -> Vec<String> {
    dir.filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| name != "." && name != "..")
        .collect()
}

/// The time since `seconds`; none if that is in the future.
fn age(seconds: i64) -> Duration {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    SystemTime::now().duration_since(then).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert!(is_version("0.1.0-0123456789abcdef") && is_version("0.2.0-rc-1-0123456789abcdef"));
        assert!(!is_version("0.1.0") && !is_version("notes-0123456789abcdef") && !is_version("0.1.0-beef"));
    }
}
