//! The inner cargo: its arguments, and what it must not inherit from the outer one.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{FILES, sources, variable};

const PACKAGES: [&str; 2] = ["spinpark-pthread", "spinpark-profiler"];

/// Builds both libraries; the directory that they are in.
pub(crate) fn build(out: &Path) -> PathBuf {
    let workspace = workspace();
    let target = with_glibc(&variable("TARGET"));
    let directory = out.join("target");
    let mut command = Command::new(variable("CARGO"));
    command.arg("build").arg("--release").arg("--manifest-path").arg(workspace.join("Cargo.toml"));
    command.args(PACKAGES.iter().flat_map(|package| ["-p", package]));
    // With --target, the outer flags are the libraries' alone and the place of the result does not depend on settings.
    command.arg("--target").arg(&target).arg("--target-dir").arg(&directory);
    // The outer cargo has brought the lock file up to date; this one changes no source. Without one, it resolves anew.
    if workspace.join("Cargo.lock").exists() {
        command.arg("--locked");
    }
    // Settings of the workspace (a vendored registry, a linker) are found from here.
    command.current_dir(&workspace);
    // `build.build-dir` would lead into the directory whose lock the outer cargo holds.
    command.env("CARGO_BUILD_BUILD_DIR", &directory);
    // `cargo clippy` and `cargo check` want these libraries compiled, not linted.
    command.env_remove("RUSTC_WORKSPACE_WRAPPER");
    if env::var_os("RUSTC_WRAPPER").is_some_and(|wrapper| Path::new(&wrapper).ends_with("clippy-driver")) {
        command.env_remove("RUSTC_WRAPPER");
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags(&env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default()));
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    // Standard output would be read as instructions to the outer cargo.
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "building the libraries to preload for {target} failed ({}):\n{}\n\
         To build the command without them, set SPINPARK_LIBRARIES to a directory that has {} and {}, or to `none`",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        FILES[0].1,
        FILES[1].1,
    );
    let result = directory.join(&target).join("release");
    for (_, file) in FILES {
        sources::watch(&workspace, &result.join(file).with_extension("d"));
    }
    result
}

/// The workspace that this crate is in. `cargo install` has it as well, from a path or from git.
fn workspace() -> PathBuf {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let workspace = here.ancestors().nth(2).unwrap_or(&here).to_path_buf();
    assert!(
        workspace.join("crates/pthread/Cargo.toml").exists(),
        "{} is not spinpark's workspace, so the libraries to preload cannot be built here: set SPINPARK_LIBRARIES to a \
         directory that has them, or to `none`",
        workspace.display()
    );
    workspace
}

/// A static command built for musl runs programs of glibc; so its libraries are for glibc.
fn with_glibc(target: &str) -> String {
    target.replace("-musl", "-gnu")
}

/// The outer flags, without those that need a runtime library in what is built: the libraries are `no_std` and live in
/// processes that have none. `CARGO_ENCODED_RUSTFLAGS` separates flags with 0x1f.
fn flags(encoded: &str) -> String {
    const SEPARATOR: char = '\x1f';
    const NEED_RUNTIME: [&str; 3] = ["instrument-coverage", "profile-generate", "sanitizer"];
    let mut kept: Vec<&str> = Vec::new();
    for flag in encoded.split(SEPARATOR) {
        let value = flag.trim_start_matches("-C").trim_start_matches("-Z");
        if !NEED_RUNTIME.iter().any(|name| value.starts_with(name)) {
            kept.push(flag);
        } else if kept.last().is_some_and(|last| ["-C", "-Z"].contains(last)) {
            kept.pop(); // `-C instrument-coverage`, in two words
        }
    }
    kept.join(&SEPARATOR.to_string())
}
