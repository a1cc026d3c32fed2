//! Builds the two cdylibs with a cargo of its own and hands their bytes to the crate.
//!
//! Cargo cannot depend on another crate's cdylib, and the release profile is wanted in debug builds too. The inner build
//! has its own target directory inside `OUT_DIR`: the outer cargo holds the lock of its own while it waits for us.
//!
//! `SPINPARK_LIBRARIES` replaces the inner build: a directory has the two files; `none` carries no library at all, for
//! packages that install them beside the command or in `../lib/spinpark`.

mod inner;
mod sources;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// The names of the files, as the crate's constants name them.
const FILES: [(&str, &str); 2] =
    [("DROP_IN", "libspinpark_preload.so"), ("PROFILER", "libspinpark_profiler.so")];

/// So many hexadecimal digits of the hash name a directory.
const DIGITS: usize = 16;

fn main() {
    println!("cargo::rerun-if-env-changed=SPINPARK_LIBRARIES");
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(variable("OUT_DIR"));
    let directory = match env::var_os("SPINPARK_LIBRARIES").filter(|value| !value.is_empty()) {
        Some(value) if value == "none" => None,
        Some(directory) => {
            let directory = PathBuf::from(directory);
            assert!(
                directory.is_absolute(),
                "SPINPARK_LIBRARIES={}: not an absolute path",
                directory.display()
            );
            for (_, file) in FILES {
                println!("cargo::rerun-if-changed={}", directory.join(file).display());
            }
            Some(directory)
        }
        None => Some(inner::build(&out)),
    };
    let generated = directory.map_or_else(|| String::from(NONE), |directory| embed(&directory));
    fs::write(out.join("carried.rs"), generated).expect("OUT_DIR can be written");
}

const NONE: &str = "const CARRIED: Option<Carried> = None;\n";

/// The source of the constant that has the libraries of `directory`.
fn embed(directory: &Path) -> String {
    let mut all = Sha256::new();
    let mut fields = String::new();
    for (name, file) in FILES {
        let path = directory.join(file);
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(bytes.starts_with(b"\x7fELF"), "{} is not an ELF file", path.display());
        all.update(&bytes);
        let field = name.to_lowercase();
        writeln!(fields, "    {field}: Library {{ file: {file:?}, content: include_bytes!({path:?}) }},")
            .expect("a string grows");
    }
    let mut hash = String::new();
    for byte in all.finalize() {
        write!(hash, "{byte:02x}").expect("a string grows");
    }
    hash.truncate(DIGITS);
    format!("const CARRIED: Option<Carried> = Some(Carried {{\n    hash: {hash:?},\n{fields}}});\n")
}

/// A variable that cargo sets for build scripts.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("cargo sets {name} for build scripts: {error}"))
}
