//! The CPU time that the process' control groups allow, as a number of CPUs: a container has a quota rather
//! than a CPU set.
//!
//! Read once, when the process starts, from the files of version 2 (`cpu.max`) or 1 (`cpu.cfs_quota_us`,
//! `cpu.cfs_period_us`) of the group and of those that it is in. A file that cannot be read sets no bound.

use core::ffi::CStr;

use crate::raw;

/// The longest path of a group's file that is looked for.
const MOST: usize = 512;

/// The rest of a text.
struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// Takes the text before the next `end`, and the `end`.
    #[inline(never)] // for the drop-in's size, as below
    fn until(&mut self, end: u8) -> &'a [u8] {
        let length = self.0.iter().take_while(|&&byte| byte != end).count();
        let (piece, rest) = self.0.split_at_checked(length).unwrap_or((self.0, &[]));
        self.0 = rest.get(1..).unwrap_or(&[]);
        piece
    }

    /// Takes a number; 0 if it is none.
    fn number(&mut self, end: u8) -> u64 {
        let mut number = 0_u64;
        for digit in self.until(end) {
            match digit.wrapping_sub(b'0') {
                digit @ 0..=9 => number = number.saturating_mul(10).saturating_add(u64::from(digit)),
                _ => return 0,
            }
        }
        number
    }
}

/// The path of a file, put together without allocation; one that is too long is cut off, and not found.
struct Path {
    bytes: [u8; MOST],
    length: usize,
}

impl Path {
    #[inline(never)]
    fn append(&mut self, part: &[u8]) {
        for &byte in part {
            if self.length < MOST - 1 {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
    }

    #[inline(never)]
    fn cut(&mut self, length: usize) {
        self.length = length.min(MOST);
        self.bytes[self.length..].fill(0);
    }

    /// The first two numbers of the file `name` in this directory; 0 for each that is missing.
    #[inline(never)]
    fn numbers(&mut self, name: &[u8]) -> (u64, u64) {
        let length = self.length;
        self.append(name);
        let mut text = [0; 64];
        let mut text = read(&self.bytes, &mut text);
        self.cut(length);
        // A single number is followed by the end of its line.
        let mut line = Text(text.until(b'\n'));
        (line.number(b' '), line.number(b' '))
    }
}

/// Reads the file whose name `path` starts with, up to its zero.
#[inline(never)]
fn read<'a>(path: &[u8], text: &'a mut [u8]) -> Text<'a> {
    let mut length = 0;
    if let Ok(path) = CStr::from_bytes_until_nul(path) {
        let file = raw::open_read(path);
        if file >= 0 {
            length = usize::try_from(raw::read(file, text)).unwrap_or(0);
            raw::close(file);
        }
    }
    Text(text.get(..length).unwrap_or(&[]))
}

/// The quotas of this process in CPUs, rounded up; `u32::MAX` if there are none.
pub(crate) fn cpus() -> u32 {
    let mut groups = [0; 2048];
    least(read(b"/proc/self/cgroup\0", &mut groups), b"/sys/fs/cgroup")
}

/// The least quota of all groups, and of those around them. `groups` is the text of a `/proc/PID/cgroup`,
/// lines of `number:controllers:/path`; `root` is where the groups are.
fn least(mut groups: Text<'_>, root: &[u8]) -> u32 {
    let mut least = u32::MAX;
    while !groups.0.is_empty() {
        let mut line = Text(groups.until(b'\n'));
        line.until(b':');
        let mut controllers = Text(line.until(b':'));
        let mut is_first = false;
        let is_second = controllers.0.is_empty();
        while !controllers.0.is_empty() {
            is_first |= controllers.until(b',') == b"cpu";
        }
        if !is_first && !is_second {
            continue;
        }
        let mut path = Path { bytes: [0; MOST], length: 0 };
        path.append(root);
        path.append(if is_first { b"/cpu" } else { b"" });
        let top = path.length;
        if line.0 != b"/" {
            path.append(line.0);
        }
        loop {
            let name: &[u8] = if is_first { b"/cpu.cfs_quota_us" } else { b"/cpu.max" };
            let (quota, mut period) = path.numbers(name);
            if is_first && quota > 0 {
                (period, _) = path.numbers(b"/cpu.cfs_period_us");
            }
            if quota > 0 && period > 0 {
                least = least.min(u32::try_from(quota.div_ceil(period)).unwrap_or(u32::MAX));
            }
            // In a container, the path may be that of the host: then only the last directory exists.
            if path.length <= top {
                if is_first {
                    return least; // the controller is in one version only, and that of version 2 comes last
                }
                break;
            }
            let parent = path.bytes.iter().take(path.length).rposition(|&byte| byte == b'/');
            path.cut(parent.unwrap_or(top).max(top));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A directory with these files, and the quota of `groups` there.
    fn in_directory(name: &str, files: &[(&str, &str)], groups: &str) -> u32 {
        let root: PathBuf = std::env::temp_dir().join(std::format!("spinpark-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a temporary directory");
            fs::write(file, text).expect("a temporary file");
        }
        let least = least(Text(groups.as_bytes()), root.to_str().expect("a path in UTF-8").as_bytes());
        let _ = fs::remove_dir_all(root);
        least
    }

    #[test]
    fn of_version_2_the_least_one_of_all_levels_counts() {
        let files = [
            ("a/cpu.max", "max 100000\n"),
            ("a/b/cpu.max", "150000 100000\n"),
            ("a/b/c/cpu.max", "400000 100000\n"),
            ("d/cpu.max", "50000 100000\n"),
        ];
        assert_eq!(in_directory("deep", &files, "0::/a/b/c\n"), 2);
        assert_eq!(in_directory("half", &files, "0::/d\n"), 1);
        assert_eq!(in_directory("none", &files, "0::/a\n"), u32::MAX);
        assert_eq!(in_directory("outside", &[("cpu.max", "300000 100000\n")], "0::/\n"), 3);
    }

    #[test]
    fn of_version_1_the_one_of_the_controller() {
        let files = [
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("cpu/docker/x/cpu.cfs_quota_us", "100000\n"),
            ("cpu/docker/x/cpu.cfs_period_us", "100000\n"),
        ];
        let groups = "3:cpuset:/\n2:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n0::/docker/x\n";
        assert_eq!(in_directory("first", &files, groups), 1);
        assert_eq!(in_directory("free", &files[..2], groups), u32::MAX);
        let inside = [("cpu/cpu.cfs_quota_us", "200000\n"), ("cpu/cpu.cfs_period_us", "100000\n")];
        assert_eq!(in_directory("inside", &inside, groups), 2);
    }

    #[test]
    fn what_cannot_be_read_sets_no_bound() {
        assert_eq!(in_directory("empty", &[], ""), u32::MAX);
        assert_eq!(in_directory("odd", &[("a/cpu.max", "much 0 0\n")], "0::/a\nx\n::\n1:cpu:/a\n"), u32::MAX);
        assert_eq!(in_directory("zero", &[("a/cpu.max", "5 0\n")], "0::/a"), u32::MAX);
        let long = std::format!("0::/{}\n", "a".repeat(2 * MOST));
        assert_eq!(in_directory("long", &[], &long), u32::MAX);
        assert_eq!(Text(b"99999999999999999999999").number(b' '), u64::MAX);
    }
}
