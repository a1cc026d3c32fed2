//! Gives the linker the version nodes that the exported symbols name, libdl, and the mark of a library that stays loaded.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={directory}/versions.map");
    // Before glibc 2.34 `dlsym` lives in libdl, which a program need not load; since then there is a stub of that name.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,-l:libdl.so.2,--as-needed");
    // Threads keep pointers into it, and the C library a fork handler.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=versions.map");
    println!("cargo::rerun-if-changed=build.rs");
}
