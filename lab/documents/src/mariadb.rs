//! MariaDB in a directory of its own: how it is installed there, started and reached.
//!
//! Nothing of the system is touched: no configuration file is read, no port is opened, the server listens on
//! a socket in the directory only, and runs as the user that starts it. Clients come as `root`, without a
//! password: a user that can open the socket owns its directory.
//!
//! Only the words of the command lines are here; the caller runs them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::installed::{NotInstalled, require};
use crate::workloads::job::JobError;

/// The longest path of a socket, as the kernel has it (108 bytes with the end).
const LONGEST_SOCKET: usize = 107;

#[derive(Debug, Clone)]
pub struct Programs {
    pub server: PathBuf,
    /// What makes an empty database.
    pub install: PathBuf,
}

impl Programs {
    /// Finds them.
    pub fn find() -> Result<Self, NotInstalled> {
        const PACKAGE: &str = "mariadb-server";
        Ok(Self { server: require("mariadbd", PACKAGE)?, install: require("mariadb-install-db", PACKAGE)? })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    directory: PathBuf,
}

impl Files {
    /// In `directory`, which belongs to this user alone.
    pub fn at(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf() }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Where a running server is reached.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    /// Checks that the kernel allows a socket there.
    pub fn check_socket(&self) -> Result<(), JobError> {
        let socket = self.socket();
        if socket.as_os_str().len() <= LONGEST_SOCKET {
            return Ok(());
        }
        Err(JobError::Refused(format!(
            "the path of the database's socket, {}, is too long; name a directory with a shorter path with --dir",
            socket.display()
        )))
    }

    pub fn install_args(&self) -> Vec<OsString> {
        let own = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"];
        [self.common_args(), own.map(OsString::from).into(), vec![LOG_SIZE.into()]].concat()
    }

    pub fn server_args(&self) -> Vec<OsString> {
        let places = [option("--socket", &self.socket()), option("--pid-file", &self.directory.join("pid"))];
        let own = [
            "--skip-networking",
            "--skip-log-bin",
            "--skip-name-resolve",
            // This is about locks, not about the disk.
            LOG_SIZE,
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-flush-method=fsync",
        ];
        [self.common_args(), places.into(), own.map(OsString::from).into()].concat()
    }

    /// Arguments of MariaDB's own clients.
    pub fn client_args(&self) -> Vec<OsString> {
        vec!["--no-defaults".into(), "--user=root".into(), option("--socket", &self.socket())]
    }

    /// Arguments of a program that works on the files. Root must say that it means it.
    fn common_args(&self) -> Vec<OsString> {
        let places = [option("--datadir", &self.data()), option("--tmpdir", &self.directory)];
        let is_root = rustix::process::geteuid().is_root();
        let user = is_root.then(|| "--user=root".into());
        std::iter::once("--no-defaults".into()).chain(places).chain(user).collect()
    }
}

const LOG_SIZE: &str = "--innodb-log-file-size=16M";

fn option(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_directory() {
        let files = Files::at(Path::new("/private/x"));
        for args in [files.install_args(), files.server_args(), files.client_args()] {
            let args: Vec<String> = args.into_iter().map(|arg| arg.into_string().unwrap()).collect();
            assert_eq!(args[0], "--no-defaults", "must come first");
            let paths = args.iter().filter_map(|arg| arg.split_once("=/"));
            assert!(paths.clone().count() > 0);
            assert!(paths.into_iter().all(|(_, path)| path.starts_with("private/x")), "{args:?}");
        }
        assert!(files.server_args().contains(&"--skip-networking".into()));
    }

    #[test]
    fn a_socket_has_a_short_path() {
        assert!(Files::at(Path::new("/dev/shm/spinpark-123456")).check_socket().is_ok());
        assert!(Files::at(&Path::new("/").join("x".repeat(105))).check_socket().is_err());
        assert!(Files::at(&Path::new("/").join("x".repeat(104))).check_socket().is_ok());
    }
}
