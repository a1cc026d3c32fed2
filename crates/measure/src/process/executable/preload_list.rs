//! Lists of libraries that the loader puts in front of a program's: `LD_PRELOAD`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The file name of the drop-in.
pub const DROP_IN: &str = "libspinpark_preload.so";
/// The file name of the recorder of profiles.
pub const PROFILER: &str = "libspinpark_profiler.so";

/// `preload` in front of an `LD_PRELOAD` that is there already.
#[must_use]
pub fn prepend(preload: &Path, inherited: &OsStr) -> OsString {
    let mut list = preload.as_os_str().to_os_string();
    if !inherited.is_empty() {
        list.push(":");
        list.push(inherited);
    }
    list
}

/// Whether the loader takes `path` in `LD_PRELOAD` as it is: entries cannot be quoted, end at blanks and
/// colons, and have words that the loader replaces (`$LIB`, `${ORIGIN}`). An unknown word it keeps.
#[must_use]
pub fn can_be_preloaded(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let is_replaced = |after: &[u8]| {
        let word = after.strip_prefix(b"{").unwrap_or(after);
        [&b"ORIGIN"[..], b"LIB", b"PLATFORM"].iter().any(|known| word.starts_with(known))
    };
    !bytes.iter().any(|byte| b" :\t\n".contains(byte))
        && !bytes.split(|byte| *byte == b'$').skip(1).any(is_replaced)
}

/// An `LD_PRELOAD` list without spinpark's libraries.
#[must_use]
pub fn without_drop_in(list: &OsStr) -> OsString {
    let others =
        list.as_bytes().split(|byte| matches!(byte, b':' | b' ')).filter(|entry| !entry.is_empty()).filter(
            |entry| {
                let path = Path::new(OsStr::from_bytes(entry));
                // A file in memory: `/memfd:/libspinpark_preload.so (deleted)`.
                let in_memory = if path.starts_with("/proc") { fs::read_link(path).ok() } else { None };
                let of_memory = in_memory.as_deref().and_then(Path::file_name);
                let is = |name: Option<&OsStr>, ours: &str| {
                    name.is_some_and(|name| name.to_string_lossy().trim_end_matches(" (deleted)") == ours)
                };
                ![DROP_IN, PROFILER].iter().any(|ours| is(path.file_name(), ours) || is(of_memory, ours))
            },
        );
    OsString::from_vec(others.collect::<Vec<_>>().join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_would_change_is_not_preloaded() {
        let can = |path: &str| can_be_preloaded(Path::new(path));
        for path in ["/a b/x", "/a:b/x", "/$LIB/x", "/a/${ORIGIN}/x", "/x$PLATFORM", "/$$LIB/x"] {
            assert!(!can(path), "{path}");
        }
        for path in ["/a/x.so", "/$HOME/x", "/a$/x", "/${lib}/x", "/LIB/'x\"\\", "/ü"] {
            assert!(can(path), "{path}");
        }
    }
}
