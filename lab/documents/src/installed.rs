//! Programs that are installed, wherever the distribution puts them.

use std::env;
use std::path::PathBuf;

use rustix::fs::Access;
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{program} is not installed; on Debian and Ubuntu: apt install --no-install-recommends {package}")]
pub struct NotInstalled {
    pub program: &'static str,
    pub package: &'static str,
}

/// The full path of `program` if it is an executable file on `PATH` (or in one of the `sbin` directories,
/// where distributions put servers).
pub fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|file| rustix::fs::access(file, Access::EXEC_OK).is_ok() && file.is_file())
}

/// As [`find_program`], for a program of the Debian package `package`.
pub fn require(program: &'static str, package: &'static str) -> Result<PathBuf, NotInstalled> {
    find_program(program).ok_or(NotInstalled { program, package })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_and_what_is_not() {
        assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
        let message = require("no-such-program-x", "some-package").unwrap_err().to_string();
        assert!(message.contains("no-such-program-x is not installed"), "{message}");
        assert!(message.contains("apt install --no-install-recommends some-package"), "{message}");
    }
}
