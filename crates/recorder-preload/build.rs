//! Gives the linker the version nodes that the exported symbols name, libdl, the name, and the mark of a
//! library that stays loaded.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let of = |architecture: &str| format!("{directory}/versions/{architecture}.map");
    let map = of(&std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH"));
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={map}");
    name_versions(&nodes(&of("x86_64")), &nodes(&map));
    use_lld();
    // Before glibc 2.34 `dlsym` lives in libdl, which a program need not load; since then there is a stub of
    // that name.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,-l:libdl.so.2,--as-needed");
    // Threads keep pointers into it, and the C library a fork handler.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Otherwise the version definitions would have the path of the output file, and each directory a library
    // of its own.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libspinpark_profiler.so");
    println!("cargo::rerun-if-changed=versions");
    println!("cargo::rerun-if-changed=build.rs");
}

/// rustc gives the linker a list of symbols without a version. GNU's refuses that beside nodes with names; LLVM's,
/// which comes with Rust, takes both. On x86-64 it is the default.
fn use_lld() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    if variable("CARGO_CFG_TARGET_ARCH") == "x86_64" {
        return;
    }
    let output = std::process::Command::new(variable("RUSTC")).args(["--print", "sysroot"]).output();
    let sysroot = output.expect("rustc starts").stdout;
    let sysroot = String::from_utf8(sysroot).expect("a path in UTF-8");
    let directory = format!("{}/lib/rustlib/{}/bin/gcc-ld", sysroot.trim_end(), variable("HOST"));
    // Of a distribution's Rust it is not a part: there the C compiler looks for a linker of that name.
    println!("cargo::rustc-cdylib-link-arg=-B{directory}");
    println!("cargo::rustc-cdylib-link-arg=-fuse-ld=lld");
}

/// The version nodes of a file, the oldest one first.
fn nodes(map: &str) -> Vec<String> {
    let text = std::fs::read_to_string(map);
    let text = text.unwrap_or_else(|error| panic!("no versions for this architecture: {map}: {error}"));
    text.lines().filter_map(|line| line.strip_suffix(" { };")).map(str::to_owned).collect()
}

/// The sources name the versions of x86-64. On an architecture that came later, what glibc had before that has
/// the version in which the architecture came, the oldest one of `there`.
fn name_versions(on_x86_64: &[String], there: &[String]) {
    for version in on_x86_64 {
        let same = if there.contains(version) { version } else { &there[0] };
        println!("cargo::rustc-env=SPINPARK_VERSION_{version}={same}");
    }
}
