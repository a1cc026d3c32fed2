//! Gives the linker the version nodes that the exported symbols name, libdl, the name, and the mark of a
//! library that stays loaded.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={directory}/versions.map");
    // Before glibc 2.34 `dlsym` lives in libdl, which a program need not load; since then there is a stub of
    // that name.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,-l:libdl.so.2,--as-needed");
    // Threads keep pointers into it, and the C library a fork handler.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Otherwise the version definitions would have the path of the output file, and each directory a library
    // of its own.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libspinpark_profiler.so");
    println!("cargo::rerun-if-changed=versions.map");
    println!("cargo::rerun-if-changed=build.rs");
}
