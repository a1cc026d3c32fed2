//! The library, installed for the tests, and programs that are linked to it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use spinpark_fixtures::scratch_dir;

/// Where `install.sh` has put the library: it is up to date.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch_dir().join("c-library");
        install(&prefix, &[]);
        prefix
    })
}

/// Runs `install.sh`.
#[track_caller]
pub(crate) fn install(prefix: &Path, environment: &[(&str, &OsStr)]) {
    let mut command = Command::new(crate_file("install.sh"));
    command.arg(prefix).env_remove("DESTDIR").env_remove("LIBDIR").envs(environment.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The installed directory of libraries.
pub(crate) fn libdir() -> PathBuf {
    prefix().join("lib")
}

/// A file of this crate.
pub(crate) fn crate_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A program's source.
pub(crate) fn source(name: &str) -> PathBuf {
    crate_file("tests/programs").join(name)
}

/// Whether `command` is installed; if not, says that `test` is skipped. In CI every program is.
pub(crate) fn is_installed(command: &str, test: &str) -> bool {
    let status = Command::new(command).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        let is_required = std::env::var("SPINPARK_REQUIRE_PROGRAMS").is_ok_and(|value| value == "1");
        assert!(!is_required, "{command} is not installed: ci/packages.sh installs it");
        eprintln!("skipped {test} with {command}: it is not installed");
    }
    is_there
}

/// What a compiler says to these arguments, if it refuses.
pub(crate) fn compiles<S: AsRef<OsStr>>(compiler: &str, arguments: &[S]) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.arg("-I").arg(prefix().join("include")).args(arguments);
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// Compiles a program, links it to the shared library, and returns it; it is in `directory`.
#[track_caller]
pub(crate) fn linked(compiler: &str, name: &str, flags: &[&str], directory: &Path) -> PathBuf {
    let program = directory.join(Path::new(name).file_stem().unwrap());
    let [source, libdir] = [source(name), libdir()].map(|path| path.into_os_string().into_string().unwrap());
    let (search, run_path) = (format!("-L{libdir}"), format!("-Wl,-rpath,{libdir}"));
    let mut arguments = vec!["-g", "-O2", "-pthread", "-D_GNU_SOURCE", "-o", program.to_str().unwrap()];
    arguments.push(&source);
    arguments.extend(flags);
    arguments.extend([search.as_str(), "-lspinpark", &run_path]);
    if let Err(error) = compiles(compiler, &arguments) {
        panic!("{error}");
    }
    program
}
