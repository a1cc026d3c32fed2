//! Where modules were mapped: snapshots of `/proc/self/maps`, with the build ids that the recorder found in
//! memory.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A line of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// Where in the file it starts.
    pub offset: u64,
    /// The file's number, 0 if it is none.
    pub inode: u64,
    /// Code can run there.
    pub is_executable: bool,
    /// The file, `[vdso]` or the like, or nothing. Without `(deleted)`.
    pub path: PathBuf,
    /// The file's name was taken from it.
    pub is_deleted: bool,
    /// The build id of the module that was loaded, in hexadecimal digits, if the recorder found one.
    pub build_id: Option<String>,
}

impl Mapping {
    /// Whether it is a file's.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.path.is_absolute()
    }
}

/// All snapshots of a recording.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    snapshots: Vec<Vec<Mapping>>,
}

impl Maps {
    /// From the text of a recording. Lines that are none are passed over: the text may have been cut short.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let mut snapshots: Vec<Vec<Mapping>> = Vec::new();
        let mut build_ids: HashMap<(u64, u64), String> = HashMap::new();
        for line in text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n")) {
            if let Some(head) = line.strip_prefix(b"@ ") {
                let number = std::str::from_utf8(head)
                    .ok()
                    .and_then(|head| head.split(' ').next()?.parse::<usize>().ok());
                // Numbers count up: others are junk.
                if number.is_some_and(|number| number == snapshots.len()) {
                    snapshots.push(Vec::new());
                }
            } else if let Some(line) = line.strip_prefix(b"= ") {
                build_ids.extend(build_id(line));
            } else if let (Some(snapshot), Some(mapping)) = (snapshots.last_mut(), mapping(line)) {
                snapshot.push(mapping);
            }
        }
        for snapshot in &mut snapshots {
            // A module's build id was found at its start; its other mappings follow.
            let mut module: Option<(u64, String)> = None;
            for mapping in snapshot.iter_mut().filter(|mapping| mapping.inode != 0) {
                if let Some(id) = build_ids.get(&(mapping.start, mapping.inode)) {
                    module = Some((mapping.inode, id.clone()));
                }
                let known = module.as_ref().filter(|(inode, _)| *inode == mapping.inode);
                mapping.build_id = known.map(|(_, id)| id.clone());
            }
            // As the kernel has them.
            snapshot.sort_by_key(|mapping| mapping.start);
        }
        Self { snapshots }
    }

    /// Snapshot `number`, or else the latest one before: a stack may have been written when a snapshot found
    /// no space.
    #[must_use]
    pub fn snapshot(&self, number: u32) -> &[Mapping] {
        let number = (number as usize).min(self.snapshots.len().saturating_sub(1));
        self.snapshots.get(number).map_or(&[], Vec::as_slice)
    }

    /// The mapping of `address` in snapshot `number`, or else in any other, the latest first.
    #[must_use]
    pub fn find(&self, number: u32, address: u64) -> Option<&Mapping> {
        let first = covering(self.snapshot(number), address);
        first.or_else(|| self.snapshots().rev().find_map(|snapshot| covering(snapshot, address)))
    }

    /// All mappings that a snapshot has, then those of the others, the latest snapshot first.
    pub(crate) fn from(&self, number: u32) -> impl Iterator<Item = &[Mapping]> {
        std::iter::once(self.snapshot(number)).chain(self.snapshots().rev())
    }

    /// All snapshots, the oldest first.
    pub fn snapshots(&self) -> impl DoubleEndedIterator<Item = &[Mapping]> {
        self.snapshots.iter().map(Vec::as_slice)
    }
}

/// The one of a snapshot that has this address.
fn covering(snapshot: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = snapshot.partition_point(|mapping| mapping.start <= address);
    snapshot[..after].last().filter(|mapping| address < mapping.end)
}

/// `55d0-55d1 r-xp 00001000 fe:01 1234   /path with blanks`.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        std::str::from_utf8(field).ok()
    };
    let (start, end) = field()?.split_once('-')?;
    let permissions = field()?;
    let offset = u64::from_str_radix(field()?, 16).ok()?;
    let _device = field()?;
    let inode = field()?.parse().ok()?;
    let path = rest.trim_ascii_start();
    let (path, is_deleted) = path.strip_suffix(b" (deleted)").map_or((path, false), |path| (path, true));
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset,
        inode,
        is_executable: permissions.contains('x'),
        path: PathBuf::from(unescaped(path)),
        is_deleted,
        build_id: None,
    })
}

/// The kernel writes a new line in a path as `\012`.
fn unescaped(path: &[u8]) -> OsString {
    if !path.windows(4).any(|four| four == b"\\012") {
        return OsStr::from_bytes(path).to_owned();
    }
    let mut bytes = Vec::new();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(after) => (bytes, rest) = ([&bytes[..], b"\n"].concat(), after),
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// `55d0 1234 0123abcd`: where a module starts, its inode, and its build id.
fn build_id(line: &[u8]) -> Option<((u64, u64), String)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let inode = words.next()?.parse().ok()?;
    let id = words.next().filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some(((start, inode), id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "@ 0 17\n\
        1000-2000 r-xp 00001000 fe:01 42         /a/b c\n\
        2000-3000 rw-p 00000000 00:00 0\n\
        = 1000 42 00ab\n\
        junk\n\
        @ 1 99\n\
        1000-2000 r-xp 00000000 fe:01 43         /d (deleted)\n\
        3000-4000 r-xp 00000000 00:00 0          [vdso]\n\
        4000-50";

    #[test]
    fn lines() {
        let maps = Maps::new(TEXT.as_bytes());
        let first = maps.find(0, 0x1fff).expect("it is there");
        assert_eq!((first.path.to_str(), first.offset, first.inode), (Some("/a/b c"), 0x1000, 42));
        assert!(first.is_executable && !first.is_deleted);
        assert_eq!(first.build_id.as_deref(), Some("00ab"));
        let second = maps.find(1, 0x1000).expect("it is there");
        assert_eq!((second.path.to_str(), second.is_deleted, &second.build_id), (Some("/d"), true, &None));
        assert_eq!(maps.find(0, 0x2000).and_then(|mapping| mapping.path.to_str()), Some(""));
        assert_eq!(
            maps.find(0, 0x3000).and_then(|mapping| mapping.path.to_str()),
            Some("[vdso]"),
            "of another"
        );
        assert_eq!(maps.find(7, 0x1000).map(|mapping| mapping.inode), Some(43), "the last one");
        assert_eq!(maps.find(0, 0x4000), None, "half a line");
        assert_eq!(Maps::default().find(0, 0), None);
    }

    #[test]
    fn paths_are_bytes() {
        let maps = Maps::new(b"@ 0 1\n1000-2000 r-xp 0 fe:01 42         /a\xff/b\\012c\n");
        let path = &maps.find(0, 0x1000).expect("it is there").path;
        assert_eq!(path.as_os_str().as_bytes(), b"/a\xff/b\nc");
    }
}
