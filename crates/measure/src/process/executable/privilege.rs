//! Programs that gain privileges when they start: the kernel sets `AT_SECURE`, and the loader then ignores
//! `LD_PRELOAD`.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
/// Without it, the setgid bit means something else.
const GROUP_EXECUTE: u32 = 0o010;

/// The user that starts the program.
struct Caller {
    user: u32,
    group: u32,
}

/// What makes `path` privileged for the caller, if anything.
pub(super) fn of(path: &Path, metadata: &Metadata) -> Option<String> {
    let caller =
        Caller { user: rustix::process::getuid().as_raw(), group: rustix::process::getgid().as_raw() };
    let mut attribute = [0u8; 64];
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut attribute[..]).is_ok();
    gained(&caller, metadata.mode(), metadata.uid(), metadata.gid(), capabilities)
}

fn gained(caller: &Caller, mode: u32, user: u32, group: u32, capabilities: bool) -> Option<String> {
    if mode & SETUID != 0 && user != caller.user {
        return Some(format!("is setuid (it runs as user {user})"));
    }
    if mode & SETGID != 0 && mode & GROUP_EXECUTE != 0 && group != caller.group {
        return Some(format!("is setgid (it runs as group {group})"));
    }
    // The superuser gains nothing from them.
    (capabilities && caller.user != 0).then(|| String::from("has file capabilities"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Caller = Caller { user: 1000, group: 1000 };
    const ROOT: Caller = Caller { user: 0, group: 0 };

    #[test]
    fn only_what_changes_something_counts() {
        assert!(gained(&USER, 0o4755, 0, 0, false).unwrap().contains("setuid"));
        assert!(gained(&USER, 0o2755, 0, 5, false).unwrap().contains("setgid"));
        assert!(gained(&USER, 0o755, 0, 0, true).unwrap().contains("capabilities"));
        assert_eq!(gained(&USER, 0o755, 0, 0, false), None);
        assert_eq!(gained(&USER, 0o4755, 1000, 0, false), None);
        assert_eq!(gained(&USER, 0o2745, 0, 5, false), None);
        assert_eq!(gained(&ROOT, 0o4755, 0, 0, true), None);
    }
}
