//! Files of a running program, opened before they vanished ([`crate::keeper`]): by inode and path.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::live_process;
use crate::maps::Mapping;

/// Files that are open at most; fewer than the limit of the process.
const MOST: usize = 512;

/// Files that were opened while the program ran, by inode and path.
#[derive(Debug, Default)]
pub struct Kept {
    files: HashMap<(u64, PathBuf), File>,
}

impl Kept {
    /// A path of the file that a mapping is of, if it was kept.
    pub(super) fn path(&self, mapping: &Mapping) -> Option<PathBuf> {
        let file = self.files.get(&(mapping.inode, mapping.path.clone()))?;
        // While the file has its name, debug files beside it are found by that.
        let now = fs::metadata(&mapping.path).ok();
        let kept = file.metadata().ok()?;
        let is_there = now.is_some_and(|now| (now.dev(), now.ino()) == (kept.dev(), kept.ino()));
        Some(if is_there {
            mapping.path.clone()
        } else {
            PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
        })
    }

    /// Opens the file of a mapping of this process, unless that is done.
    pub(crate) fn keep(&mut self, pid: u32, mapping: &Mapping) {
        let key = (mapping.inode, mapping.path.clone());
        if self.files.len() >= MOST || self.files.contains_key(&key) {
            return;
        }
        let process = live_process::directory(pid);
        let inside = mapping.path.strip_prefix("/").unwrap_or(&mapping.path);
        // `map_files` has every module, and is for privileged readers only.
        let range = format!("{:x}-{:x}", mapping.start, mapping.end);
        let places =
            [process.join("root").join(inside), process.join("exe"), process.join("map_files").join(range)];
        let is_it = |file: &File| file.metadata().is_ok_and(|metadata| metadata.ino() == mapping.inode);
        if let Some(file) = places.iter().find_map(|place| File::open(place).ok().filter(is_it)) {
            self.files.insert(key, file);
        }
    }
}
