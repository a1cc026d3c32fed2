//! Compiles the test programs.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Flags of every program; a caller's flags come after the source file, so that libraries work.
const FLAGS: [&str; 6] = ["-O2", "-g", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Werror"];

/// Compiles `source`, a path relative to this crate or an absolute one, and returns the program.
///
/// C++ sources (`.cpp`) are compiled with `CXX` or `c++`, all others with `CC` or `cc`. The result is kept,
/// under a name that depends on the text of the source, on the headers beside it, on the compiler and on the
/// flags.
///
/// # Panics
/// If the compiler is missing or unhappy.
pub fn compile_c(source: impl AsRef<Path>, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let is_cpp = source.extension().is_some_and(|extension| extension == "cpp");
    let (variable, default) = if is_cpp { ("CXX", "c++") } else { ("CC", "cc") };
    let compiler = std::env::var(variable).unwrap_or_else(|_| default.to_owned());

    let stem = source.file_stem().expect("a source file has a name").to_string_lossy().into_owned();
    let program = scratch_dir().join(format!("{stem}-{:016x}", fingerprint(&source, &compiler, flags)));
    if program.exists() {
        return program;
    }
    // Compile beside it and rename: another test process may want the same program now. The path only, not
    // the open file: a child that another thread forks now would keep it open, and what is open for writing
    // cannot be executed.
    let unfinished = tempfile::Builder::new()
        .prefix(&stem)
        .tempfile_in(scratch_dir())
        .expect("scratch space")
        .into_temp_path();
    // `CC` may hold a command with arguments ("ccache cc"), as in make.
    let mut words = compiler.split_whitespace();
    let output = Command::new(words.next().expect("CC names a compiler"))
        .args(words)
        .args(FLAGS)
        .arg("-o")
        .arg(&unfinished)
        .arg(&source)
        .args(flags)
        .output()
        .unwrap_or_else(|error| {
            panic!("{compiler} cannot be started: {error}; set {variable} to a compiler")
        });
    assert!(
        output.status.success(),
        "{compiler} {}: {}\n{}",
        source.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
    // The second one leaves the first one's in place: it may run already, and a profile of it knows the file
    // by its age.
    if let Err(error) = unfinished.persist_noclobber(&program) {
        assert_eq!(error.error.kind(), std::io::ErrorKind::AlreadyExists, "{}", error.error);
    }
    program
}

/// A directory in the build tree that tests may write to; it is kept between runs.
pub fn scratch_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        // Test programs run as <target>/<profile>/deps/<name>.
        let exe = std::env::current_exe().expect("a program knows its path");
        let dir = exe
            .ancestors()
            .find(|dir| dir.file_name() == Some(OsStr::new("deps")))
            .and_then(|deps| deps.ancestors().nth(2))
            .map_or_else(std::env::temp_dir, Path::to_owned)
            .join("testkit");
        std::fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        dir
    })
}

fn fingerprint(source: &Path, compiler: &str, flags: &[&str]) -> u64 {
    let read =
        |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut hasher = DefaultHasher::new();
    (compiler, FLAGS, flags, source, read(source)).hash(&mut hasher);
    // Programs of other directories include `check.h`, too.
    let posix = Path::new(env!("CARGO_MANIFEST_DIR")).join("posix");
    let mut headers: Vec<PathBuf> = [source.parent().expect("a file is in a directory"), &posix]
        .into_iter()
        .flat_map(|directory| std::fs::read_dir(directory).expect("a directory of sources"))
        .map(|entry| entry.expect("an entry of a readable directory").path())
        .filter(|path| path.extension() == Some(OsStr::new("h")))
        .collect();
    headers.sort();
    for header in headers {
        read(&header).hash(&mut hasher);
    }
    hasher.finish()
}
