//! Compiles each shim in `shims` whose library is installed, and lists all of them in `peers.rs` for
//! `src/foreign.rs`. A peer that is not installed, or cannot be compiled, is left out, and the worker says so. A
//! shim that lacks a function, or names the wrong library, fails when the worker is linked.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The kinds of locks, each with a function of the shim that only a peer with that kind defines.
const KINDS: [(&str, &str); 3] = [("mutex", "lock"), ("rwlock", "read"), ("condvar", "wait")];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shims");
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
        Ok(Self { text: fs::read_to_string(&path)?, path, name })
    }

    /// The header that it includes first.
    fn header(&self) -> &str {
        let include = self.text.lines().find_map(|line| line.strip_prefix("#include "));
        include.map_or("", |header| header.trim_matches(['<', '>', '"']))
    }

    fn package(&self) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix("// pkg-config: "))
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
        let missing = String::new;
        let library = match self.package() {
            Some(package) => {
                let mut config = pkg_config::Config::new();
                Some(config.cargo_metadata(false).probe(package).map_err(|_| missing())?)
            }
            None => None,
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
            build.cpp(true).std("c++17");
        }
        // First a file that only includes the header: it tells a missing library from a shim that does not
        // compile.
        let probe = out_dir().join(format!("{}_probe", self.name)).with_extension(extension);
        let text = format!("#include <{}>\nint peer_{}_probe;\n", self.header(), self.name);
        fs::write(&probe, text).map_err(|error| error.to_string())?;
        let mut probing = build.clone();
        probing.file(&probe).cargo_metadata(false).try_compile("peer_probe").map_err(|_| String::new())?;
        build.define("PEER(function)", &*format!("peer_{}_##function", self.name));
        let compiled = build.file(&self.path).try_compile(&format!("peer_{}", self.name));
        compiled.map_err(|error| {
            let error = error.to_string();
            format!("its shim does not compile: {}", error.lines().next().unwrap_or_default())
        })
    }
}
