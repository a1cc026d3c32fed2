//! Where libraries may be, and where they may be put.

use std::env;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// A directory that can have ours in it.
#[derive(Debug, Clone)]
pub struct Parent {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is created if it is missing; the one that it is in is not.
    pub is_created: bool,
    /// The name of our directory in it.
    pub name: String,
}

/// Where to look, and where to write.
#[derive(Debug, Clone)]
pub struct Places {
    /// The path of the command, without symbolic links.
    pub command: PathBuf,
    /// Where a private directory may be, in order of preference.
    pub private: Vec<Parent>,
}

impl Places {
    /// Those of this process: `$XDG_CACHE_HOME` or `~/.cache`, `$XDG_RUNTIME_DIR`, `$TMPDIR`, `/tmp`.
    ///
    /// The cache comes first because it outlives the session: a service that is started now may start programs weeks later.
    /// Files in a temporary directory are removed by the system after days without use.
    #[must_use]
    pub fn of_this_process() -> Self {
        let command = env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
        let directory = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let in_home = || directory("HOME").map(|home| home.join(".cache"));
        let own = |is_created| move |path| Parent { path, is_created, name: "spinpark".to_owned() };
        let shared =
            |path| Parent { path, is_created: false, name: format!("spinpark-{}", geteuid().as_raw()) };
        let cache = directory("XDG_CACHE_HOME").or_else(in_home).map(own(true));
        let runtime = directory("XDG_RUNTIME_DIR").map(own(false));
        let temporary = directory("TMPDIR").filter(|path| path != Path::new("/tmp")).map(shared);
        let tmp = Some(shared(PathBuf::from("/tmp")));
        Self { command, private: [cache, runtime, temporary, tmp].into_iter().flatten().collect() }
    }

    /// Where an installed library called `file` would be: beside the command, or in `../lib`, or in `../lib/spinpark`.
    pub(crate) fn installed(&self, file: &str) -> Vec<PathBuf> {
        let Some(here) = self.command.parent() else { return Vec::new() };
        let lib = here.parent().map(|up| [up.join("lib"), up.join("lib/spinpark")]);
        let directories = std::iter::once(here.to_path_buf()).chain(lib.into_iter().flatten());
        directories.map(|directory| directory.join(file)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation() {
        let places = Places { command: "/usr/bin/spinpark".into(), private: Vec::new() };
        let expected = ["/usr/bin/x.so", "/usr/lib/x.so", "/usr/lib/spinpark/x.so"];
        assert_eq!(places.installed("x.so"), expected.map(PathBuf::from));
    }
}
