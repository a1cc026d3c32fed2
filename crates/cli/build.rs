//! Builds the two libraries to preload with a cargo of its own and hands their bytes to `src/libraries.rs`.
//!
//! Cargo cannot depend on another crate's cdylib, and their own profile is wanted in debug builds too. The
//! inner build has its own target directory inside `OUT_DIR`: the outer cargo holds the lock of its own while
//! it waits for this script.
//!
//! `SPINPARK_LIBRARIES` replaces the inner build: a directory has the two files; `none` carries no library at
//! all, for packages that install them in the command's directory, in `../lib` or in `../lib/spinpark`.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

const PACKAGES: [&str; 2] = ["spinpark-pthread", "spinpark-recorder-preload"];
const PROFILE: &str = "preload";
const FILES: [&str; 2] = ["libspinpark_preload.so", "libspinpark_profiler.so"];

fn main() {
    println!("cargo::rerun-if-env-changed=SPINPARK_LIBRARIES");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR"));
    let value = env::var_os("SPINPARK_LIBRARIES").filter(|value| !value.is_empty()).map(PathBuf::from);
    let generated = match value {
        Some(none) if none == Path::new("none") => String::from("&[]"),
        Some(directory) => {
            assert!(directory.is_absolute(), "SPINPARK_LIBRARIES={directory:?}: not an absolute path");
            for file in FILES {
                println!("cargo::rerun-if-changed={}", directory.join(file).display());
            }
            embed(&directory)
        }
        None => embed(&build(&out)),
    };
    fs::write(out.join("carried.rs"), generated).expect("OUT_DIR can be written");
}

/// A variable that cargo sets for build scripts.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("cargo sets {name} for build scripts: {error}"))
}

/// The source of the constant that has the libraries of `directory`.
fn embed(directory: &Path) -> String {
    // The hash only separates builds of one version: the content of a file is compared whenever it is used.
    let mut hash = DefaultHasher::new();
    let paths = FILES.map(|file| directory.join(file));
    for path in &paths {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(bytes.starts_with(b"\x7fELF"), "{} is not an ELF file", path.display());
        hash.write(&bytes);
    }
    let version = format!("{}-{:016x}", variable("CARGO_PKG_VERSION"), hash.finish());
    let library = |(file, path)| {
        format!("Carried {{ file: {file:?}, content: include_bytes!({path:?}), version: {version:?} }}")
    };
    format!("&[{}]", FILES.iter().zip(&paths).map(library).collect::<Vec<_>>().join(", "))
}

/// Builds both libraries; returns the directory that they are in.
fn build(out: &Path) -> PathBuf {
    let workspace = &workspace(out);
    // A static command built for musl runs programs of glibc, so its libraries are for glibc.
    let target = variable("TARGET").replace("-musl", "-gnu");
    let directory = out.join("target");
    let mut command = Command::new(variable("CARGO"));
    command.args(["build", "--profile", PROFILE]).args(PACKAGES.iter().flat_map(|package| ["-p", package]));
    // With --target, the outer flags are the libraries' alone and the place of the result does not depend on
    // settings.
    command.arg("--target").arg(&target).arg("--target-dir").arg(&directory);
    // The outer cargo has brought the lock file up to date; this one changes no source. Without one, it
    // resolves anew; that of a package has more crates than are here.
    if workspace.join("Cargo.lock").exists() && !workspace.starts_with(out) {
        command.arg("--locked");
    }
    // Settings of the workspace (a vendored registry, a linker) are found from here.
    command.current_dir(workspace);
    // `build.build-dir` would lead into the directory whose lock the outer cargo holds.
    command.env("CARGO_BUILD_BUILD_DIR", &directory);
    // `cargo clippy` and `cargo check` want these libraries compiled, not linted.
    command.env_remove("RUSTC_WORKSPACE_WRAPPER");
    if env::var_os("RUSTC_WRAPPER").is_some_and(|wrapper| Path::new(&wrapper).ends_with("clippy-driver")) {
        command.env_remove("RUSTC_WRAPPER");
    }
    let mut flags = flags(&env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default());
    // As what the laboratory measures, which says why in `lab/.cargo/config.toml`.
    if !flags.contains("align-all-functions") {
        flags =
            format!("{flags}\x1f-Cllvm-args=-align-all-functions=6").trim_start_matches('\x1f').to_owned();
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags);
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    // Standard output would be read as instructions to the outer cargo.
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "building the libraries to preload for {target} failed ({}):\n{}\n\
         To build the command without them, set SPINPARK_LIBRARIES to a directory that has {FILES:?}, or to `none`",
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
    let result = directory.join(&target).join(PROFILE);
    FILES.iter().for_each(|file| watch(workspace, &result.join(file).with_extension("d")));
    result
}

/// The workspace that has the sources of both libraries: with `cargo install` from a path or from git, this one.
/// The package on crates.io has its own copy in `libraries`, since a package cannot contain others: their manifests
/// have another name there, and get theirs here.
fn workspace(out: &Path) -> PathBuf {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    match here.ancestors().nth(2) {
        Some(whole) if whole.join("crates/pthread/Cargo.toml").exists() => whole.to_owned(),
        _ => unpack(&here.join("libraries"), &out.join("workspace")),
    }
}

fn unpack(libraries: &Path, workspace: &Path) -> PathBuf {
    // Of an earlier build.
    let _ = fs::remove_dir_all(workspace);
    let manifest = fs::read_to_string(libraries.join("workspace.toml"));
    let manifest = manifest.unwrap_or_else(|error| panic!("{}: {error}", libraries.display()));
    let is_other = |line: &&str| line.starts_with("default-members") || line.starts_with("exclude");
    let members = |line| if str::starts_with(line, "members") { "members = [\"crates/*\"]" } else { line };
    let lines: Vec<&str> = manifest.lines().filter(|line| !is_other(line)).map(members).collect();
    let crates = workspace.join("crates");
    copy(libraries, &crates).unwrap_or_else(|error| panic!("{}: {error}", crates.display()));
    for (from, to) in [("workspace.lock", "Cargo.lock"), ("workspace.toml", "Cargo.toml")] {
        fs::rename(crates.join(from), workspace.join(to)).expect("it was copied");
    }
    fs::write(workspace.join("Cargo.toml"), lines.join("\n")).expect("OUT_DIR can be written");
    workspace.to_owned()
}

/// Copies a directory, with the manifests of crates in it under their own name.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        match path.is_dir() {
            true => copy(&path, &to.join(name))?,
            false if name == "manifest.toml" => fs::write(to.join("Cargo.toml"), fs::read(path)?)?,
            false => fs::write(to.join(name), fs::read(path)?)?,
        }
    }
    Ok(())
}

/// The outer flags, without those that need a runtime library in what is built: the libraries are `no_std`
/// and live in processes that have none. `CARGO_ENCODED_RUSTFLAGS` separates flags with 0x1f.
fn flags(encoded: &str) -> String {
    const NEED_RUNTIME: [&str; 3] = ["instrument-coverage", "profile-generate", "sanitizer"];
    // `-C NAME` in two words becomes one flag, and is split again at the end.
    let joined = encoded.replace("-C\x1f", "-C\0").replace("-Z\x1f", "-Z\0");
    let is_kept = |flag: &&str| {
        let value = flag.trim_start_matches("-C").trim_start_matches("-Z").trim_start_matches('\0');
        !NEED_RUNTIME.iter().any(|name| value.starts_with(name))
    };
    joined.split('\x1f').filter(is_kept).collect::<Vec<_>>().join("\x1f").replace('\0', "\x1f")
}

/// Tells cargo to run this script again if a file changes that the inner cargo has read, according to
/// `dep_info` (`libNAME.d`), or a manifest of theirs, or a profile.
fn watch(workspace: &Path, dep_info: &Path) {
    let text = fs::read_to_string(dep_info).unwrap_or_else(|error| panic!("{}: {error}", dep_info.display()));
    let list = text.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, list)| list);
    let mut watched = BTreeSet::from(["Cargo.toml", "Cargo.lock", ".cargo/config.toml"].map(PathBuf::from));
    // A blank in a name is written as `\ `.
    for file in list.replace("\\ ", "\0").split(' ').map(|file| PathBuf::from(file.replace('\0', " "))) {
        watched.extend(file.ancestors().skip(1).map(|directory| directory.join("Cargo.toml")));
        watched.insert(file);
    }
    // A path that does not exist would run the script each time.
    let watched = watched.into_iter().map(|path| workspace.join(path));
    for file in watched.filter(|path| path.starts_with(workspace) && path.is_file()) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}
