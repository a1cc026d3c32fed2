//! Where modules were mapped: snapshots of `/proc/self/maps`.

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
    pub path: String,
    /// The file's name was taken from it.
    pub is_deleted: bool,
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
        let text = String::from_utf8_lossy(text);
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            if let Some(head) = line.strip_prefix("@ ") {
                let number = head.split(' ').next().and_then(|number| number.parse::<usize>().ok());
                // Numbers count up: others are junk.
                if number.is_some_and(|number| number == snapshots.len()) {
                    snapshots.push(Vec::new());
                }
            } else if let (Some(snapshot), Some(mapping)) = (snapshots.last_mut(), mapping(line)) {
                snapshot.push(mapping);
            }
        }
        Self { snapshots }
    }

    /// Snapshot `number`, or else the latest one before: a stack may have been written when a snapshot found no room.
    #[must_use]
    pub fn snapshot(&self, number: u32) -> &[Mapping] {
        let number = (number as usize).min(self.snapshots.len().saturating_sub(1));
        self.snapshots.get(number).map_or(&[], Vec::as_slice)
    }

    /// The mapping of `address` in snapshot `number`, or else in any other, the latest first.
    #[must_use]
    pub fn find(&self, number: u32, address: u64) -> Option<&Mapping> {
        let covers = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        let first = self.snapshot(number).iter().find(covers);
        first.or_else(|| self.snapshots.iter().rev().find_map(|snapshot| snapshot.iter().find(covers)))
    }

    /// All snapshots, the oldest first.
    pub fn snapshots(&self) -> impl DoubleEndedIterator<Item = &[Mapping]> {
        self.snapshots.iter().map(Vec::as_slice)
    }
}

/// `55d0-55d1 r-xp 00001000 fe:01 1234   /path with blanks`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        field
    };
    let (start, end) = field().split_once('-')?;
    let permissions = field();
    let offset = u64::from_str_radix(field(), 16).ok()?;
    let _device = field();
    let inode = field().parse().ok()?;
    let path = rest.trim_start();
    let (path, is_deleted) = path.strip_suffix(" (deleted)").map_or((path, false), |path| (path, true));
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset,
        inode,
        is_executable: permissions.contains('x'),
        path: path.to_owned(),
        is_deleted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "@ 0 17\n\
        1000-2000 r-xp 00001000 fe:01 42         /a/b c\n\
        2000-3000 rw-p 00000000 00:00 0\n\
        junk\n\
        @ 1 99\n\
        1000-2000 r-xp 00000000 fe:01 43         /d (deleted)\n\
        3000-4000 r-xp 00000000 00:00 0          [vdso]\n\
        4000-50";

    #[test]
    fn lines() {
        let maps = Maps::new(TEXT.as_bytes());
        let first = maps.find(0, 0x1fff).expect("it is there");
        assert_eq!((first.path.as_str(), first.offset, first.inode), ("/a/b c", 0x1000, 42));
        assert!(first.is_executable && !first.is_deleted);
        let second = maps.find(1, 0x1000).expect("it is there");
        assert_eq!((second.path.as_str(), second.is_deleted), ("/d", true));
        assert_eq!(maps.find(0, 0x2000).map(|mapping| mapping.path.as_str()), Some(""));
        assert_eq!(maps.find(0, 0x3000).map(|mapping| mapping.path.as_str()), Some("[vdso]"), "of another");
        assert_eq!(maps.find(7, 0x1000).map(|mapping| mapping.inode), Some(43), "the last one");
        assert_eq!(maps.find(0, 0x4000), None, "half a line");
        assert_eq!(Maps::default().find(0, 0), None);
    }
}
