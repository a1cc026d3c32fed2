//! Gives the linker the version nodes that the exported symbols name.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={directory}/versions.map");
    println!("cargo::rerun-if-changed=versions.map");
    println!("cargo::rerun-if-changed=build.rs");
}
