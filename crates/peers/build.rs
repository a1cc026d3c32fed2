//! Compiles each shim in `shims` whose library is installed, and lists all of them in `peers.rs` for
//! `src/foreign.rs`. A peer that is not installed, or cannot be compiled, is left out, and the worker says why.
//! A shim that lacks a function, or names the wrong library, fails when the worker is linked.
//!
//! | line of a shim       | meaning                                                                      |
//! |----------------------|------------------------------------------------------------------------------|
//! | the first `#include` | the header; the library is not installed if there is none                    |
//! | `// pkg-config: X`   | the library to link, and where it is                                         |
//! | `// header-only`     | there is no library to link                                                  |
//! | neither of both      | the library has the stem of the file as its name: `-lstem`                   |
//! | `// std: c++20`      | the standard of C++, instead of C++17                                        |
//!
//! Headers and libraries elsewhere: `CPATH` and `LIBRARY_PATH`, which the compiler reads.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The kinds of locks, each with a function of the shim that only a peer with that kind defines.
const KINDS: [(&str, &str); 3] = [("mutex", "lock"), ("rwlock", "read"), ("condvar", "wait")];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shims");
    for variable in ["CPATH", "LIBRARY_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let mut shims: Vec<PathBuf> =
        fs::read_dir("shims")?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    shims.sort();
    let (mut built, mut found) = (String::new(), String::new());
    for path in shims {
        let shim = Shim::read(path)?;
        println!("cargo::rerun-if-changed={}", shim.watched().display());
        let (name, result) = (&shim.name, shim.build());
        if result.is_ok() {
            built += &format!("peer!({name}: {});\n", shim.kinds().join(" "));
        }
        let found_out = match result {
            Ok(version) => format!("Ok(({name}::adapter(), {version:?}))"),
            Err(why) => format!("Err({why:?})"),
        };
        found += &format!("    ({name:?}, {found_out}),\n");
    }
    let list = format!(
        "{built}
/// All peers by name.
pub(crate) fn peers() -> Vec<(&'static str, Found)> {{
    vec![
{found}    ]
}}
"
    );
    fs::write(out_dir().join("peers.rs"), list)?;
    Ok(())
}

fn out_dir() -> PathBuf {
    env::var_os("OUT_DIR").unwrap_or_default().into()
}

/// The file that gives a library's locks a C interface.
struct Shim {
    path: PathBuf,
    /// Its stem: the name of the adapter, and of the library if pkg-config does not know it.
    name: String,
    text: String,
}

impl Shim {
    fn read(path: PathBuf) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()) {
            let path = path.display();
            return Err(format!("{path}: the file's stem is part of C names: letters, digits and _").into());
        }
        Ok(Self { text: fs::read_to_string(&path)?, path, name })
    }

    /// The header that it includes first.
    fn header(&self) -> &str {
        let include = self.text.lines().find_map(|line| line.strip_prefix("#include "));
        include.map_or("", |header| header.trim_matches(['<', '>', '"']))
    }

    fn line(&self, key: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(key))
    }

    fn is_header_only(&self) -> bool {
        self.text.lines().any(|line| line == "// header-only")
    }

    fn kinds(&self) -> Vec<&'static str> {
        let has = |function: &str| self.text.contains(&format!("PEER({function})"));
        KINDS.into_iter().filter(|(_, function)| has(function)).map(|(kind, _)| kind).collect()
    }

    /// The path that changes when the library is installed or removed. A file that does not exist would
    /// always count as changed.
    fn watched(&self) -> PathBuf {
        let headers = Path::new("/usr/include");
        let header = headers.join(self.header());
        if header.exists() { header } else { headers.into() }
    }

    /// Compiles it and links the library. Returns the library's version, or why there is none: an empty
    /// reason if it is not installed.
    fn build(&self) -> std::result::Result<String, String> {
        let probe = |package| pkg_config::Config::new().cargo_metadata(false).probe(package);
        let library = match self.line("// pkg-config: ").map(probe) {
            Some(Err(_)) if !self.is_header_only() => return Err(String::new()),
            library => library.and_then(|found| found.ok()),
        };
        let includes: &[PathBuf] = library.as_ref().map_or(&[], |library| &library.include_paths);
        self.compile(includes)?;
        let Some(library) = library else {
            if self.is_header_only() {
                return Ok(String::new());
            }
            println!("cargo::rustc-link-lib=dylib={}", self.name);
            return Ok(String::new());
        };
        for path in &library.link_paths {
            println!("cargo::rustc-link-search=native={}", path.display());
        }
        for name in &library.libs {
            println!("cargo::rustc-link-lib=dylib={name}");
        }
        Ok(library.version)
    }

    fn compile(&self, includes: &[PathBuf]) -> std::result::Result<(), String> {
        let extension = self.path.extension().unwrap_or_default();
        let mut build = cc::Build::new();
        build.opt_level(2).includes(includes).cargo_warnings(false);
        if extension == "cc" {
            build.cpp(true).std(self.line("// std: ").unwrap_or("c++17"));
        }
        // First a file that only includes the header: it tells a missing library from a shim that does not
        // compile.
        let probe = out_dir().join(format!("{}_probe", self.name)).with_extension(extension);
        fs::write(&probe, format!("#include <{}>\n", self.header())).map_err(|error| error.to_string())?;
        if let Some(why) = error_of(&build, &probe) {
            let is_missing = why.contains(self.header()) && why.contains("file");
            return Err(if is_missing {
                String::new()
            } else {
                format!("its header does not compile: {why}")
            });
        }
        build.define("PEER(function)", &*format!("peer_{}_##function", self.name));
        if let Some(why) = error_of(&build, &self.path) {
            return Err(format!("its shim does not compile: {why}"));
        }
        let compiled = build.file(&self.path).try_compile(&format!("peer_{}", self.name));
        compiled.map_err(|error| error.to_string())
    }
}

/// The compiler's first error in the file, if it has one.
fn error_of(build: &cc::Build, file: &Path) -> Option<String> {
    let compiler = match build.try_get_compiler() {
        Ok(compiler) => compiler,
        Err(error) => return Some(error.to_string()),
    };
    let output = match compiler.to_command().arg("-fsyntax-only").arg(file).output() {
        Ok(output) if output.status.success() => return None,
        Ok(output) => output,
        Err(error) => return Some(format!("{}: {error}", compiler.path().display())),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.contains("error")).or(said.lines().next());
    Some(error.unwrap_or("the compiler says nothing").to_owned())
}
