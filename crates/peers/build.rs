//! Compiles a shim per peer that is installed. Nothing here can fail: a peer that is not there, or cannot be compiled, is
//! left out, and the worker says so.

use std::path::{Path, PathBuf};

/// A library of locks, and how to find it.
struct Peer {
    name: &'static str,
    /// Its shim.
    source: &'static str,
    /// A header without which it is not there.
    header: &'static str,
    /// Its name for pkg-config; if it has none, the library is called as the peer.
    package: Option<&'static str>,
    /// Debian's packages.
    debian: &'static str,
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "abseil",
        source: "shims/abseil.cc",
        header: "absl/synchronization/mutex.h",
        package: Some("absl_synchronization"),
        debian: "g++ pkg-config libabsl-dev",
    },
    Peer { name: "nsync", source: "shims/nsync.c", header: "nsync.h", package: None, debian: "libnsync-dev" },
    Peer {
        name: "onetbb",
        source: "shims/onetbb.cc",
        header: "oneapi/tbb/rw_mutex.h",
        package: Some("tbb"),
        debian: "g++ pkg-config libtbb-dev",
    },
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shims");
    for peer in &PEERS {
        println!("cargo::rustc-check-cfg=cfg({})", peer.name);
        println!("cargo::rerun-if-changed={}", peer.watched().display());
        let variable = peer.name.to_uppercase();
        match peer.build() {
            Ok(version) => {
                println!("cargo::rustc-cfg={}", peer.name);
                println!("cargo::rustc-env=PEER_{variable}={version}");
            }
            Err(why) => {
                let why = why.lines().next().unwrap_or_default().to_owned();
                println!("cargo::rustc-env=PEER_{variable}={why}");
            }
        }
    }
}

impl Peer {
    /// What changes when it is installed or goes. (A file that does not exist would count as changed, always.)
    fn watched(&self) -> PathBuf {
        let headers = Path::new("/usr/include");
        let header = headers.join(self.header);
        if header.exists() { header } else { headers.into() }
    }

    /// Compiles the shim and links the library; returns the library's version, or why there is none.
    fn build(&self) -> Result<String, String> {
        let missing = || {
            format!(
                "not there when it was built: apt install {}, cargo build --release -p spinpark-peers",
                self.debian
            )
        };
        let library = match self.package {
            Some(package) => {
                let mut config = pkg_config::Config::new();
                Some(config.cargo_metadata(false).probe(package).map_err(|_| missing())?)
            }
            None => None,
        };
        let includes: &[PathBuf] = library.as_ref().map_or(&[], |library| &library.include_paths);
        self.compile(includes, &missing())?;
        match library {
            Some(library) => {
                for path in &library.link_paths {
                    println!("cargo::rustc-link-search=native={}", path.display());
                }
                for name in &library.libs {
                    println!("cargo::rustc-link-lib=dylib={name}");
                }
                Ok(library.version)
            }
            None => {
                println!("cargo::rustc-link-lib=dylib={}", self.name);
                Ok(String::new())
            }
        }
    }

    fn compile(&self, includes: &[PathBuf], missing: &str) -> Result<(), String> {
        let is_cpp = Path::new(self.source).extension().is_some_and(|extension| extension == "cc");
        let mut build = cc::Build::new();
        build.cpp(is_cpp).opt_level(2).includes(includes).cargo_warnings(false);
        if is_cpp {
            build.std("c++17");
        }
        // First a file that only includes the header: whether it is there is not a question of our shim.
        let probe = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join(format!(
            "{}_probe.{}",
            self.name,
            if is_cpp { "cc" } else { "c" }
        ));
        let text = format!("#include <{}>\nint peer_{}_probe;\n", self.header, self.name);
        std::fs::write(&probe, text).map_err(|error| error.to_string())?;
        build
            .clone()
            .file(&probe)
            .cargo_metadata(false)
            .try_compile("peer_probe")
            .map_err(|_| missing.to_owned())?;
        let compiled = build.file(self.source).try_compile(&format!("peer_{}", self.name));
        compiled.map_err(|error| format!("its shim does not compile: {error}"))
    }
}
