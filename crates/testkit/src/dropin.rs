//! Where the drop-in and the profiler come from.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use cargo_metadata::Message;

/// The workspace that this crate was built from.
pub fn workspace_root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        manifest.ancestors().nth(2).expect("this crate lives two levels below the workspace").to_owned()
    })
}

/// The drop-in under test: the file that `SPINPARK_PRELOAD` names, else the release build of
/// `spinpark-pthread`, made on the first call. Cargo makes concurrent test processes wait for each other
/// here, and an up-to-date build costs a fraction of a second.
///
/// # Panics
/// If the build fails, or if `SPINPARK_PRELOAD` names no file.
pub fn dropin() -> &'static Path {
    static DROPIN: OnceLock<PathBuf> = OnceLock::new();
    DROPIN.get_or_init(|| named_or_built("SPINPARK_PRELOAD", "spinpark-pthread"))
}

/// The recorder under test: the file that `SPINPARK_PROFILER` names, else the release build of
/// `spinpark-recorder-preload`.
///
/// # Panics
/// As [`dropin`].
pub fn profiler() -> &'static Path {
    static PROFILER: OnceLock<PathBuf> = OnceLock::new();
    PROFILER.get_or_init(|| named_or_built("SPINPARK_PROFILER", "spinpark-recorder-preload"))
}

fn named_or_built(variable: &str, package: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => {
            // The programs run in other directories than we do, and `ld.so` only warns about a file that is
            // missing.
            std::fs::canonicalize(&path)
                .unwrap_or_else(|error| panic!("{variable}={}: {error}", path.display()))
        }
        None => build(package),
    }
}

fn build(package: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(workspace_root())
        .args(["build", "--release", "-p", package, "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started; the environment variable CARGO names another one");
    assert!(output.status.success(), "building {package} failed: {}", output.status);
    Message::parse_stream(output.stdout.as_slice())
        .filter_map(|message| match message.expect("cargo prints its messages as JSON") {
            Message::CompilerArtifact(artifact) if artifact.target.is_kind("cdylib".into()) => Some(artifact),
            _ => None,
        })
        .flat_map(|artifact| artifact.filenames)
        .find(|file| file.extension() == Some("so"))
        .unwrap_or_else(|| panic!("{package} builds one shared library"))
        .into_std_path_buf()
}
