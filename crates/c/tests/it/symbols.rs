//! What the libraries show: the functions of the header, with their version, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::library::{crate_file, libdir};

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(crate_file("include/spinpark.h")).unwrap();
    let (declarations, _) = header.split_once("---- a free mutex").unwrap();
    let names = declarations.lines().filter_map(|line| {
        let declaration = line.strip_prefix("void ").or_else(|| line.strip_prefix("bool "))?;
        declaration.split_once('(').map(|(name, _)| name.to_owned())
    });
    names.collect()
}

/// What a tool of binutils prints about a library.
fn said(tool: &str, arguments: &[&str], library: &str) -> String {
    let output = Command::new(tool).args(arguments).arg(libdir().join(library)).output().unwrap();
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The last column.
fn names(table: &str) -> BTreeSet<String> {
    table.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn of_the_shared_library() {
    let mut expected: BTreeSet<_> =
        declared().into_iter().map(|name| format!("{name}@@SPINPARK_0")).collect();
    assert!(expected.len() > 30, "{expected:?}");
    expected.extend(["SPINPARK_0", "spinpark_hold@@SPINPARK_0"].map(str::to_owned));
    assert_eq!(names(&said("nm", &["-D", "--defined-only"], "libspinpark.so")), expected);
    let dynamic = said("readelf", &["-dW"], "libspinpark.so");
    assert!(dynamic.contains("soname: [libspinpark.so.0]") && dynamic.contains("NODELETE"), "{dynamic}");
}

#[test]
fn of_the_static_library() {
    let found = names(&said("nm", &["-g", "--defined-only"], "libspinpark.a"));
    let mut expected = declared();
    expected.extend(["spinpark.o:", "spinpark_hold"].map(str::to_owned));
    assert_eq!(found, expected);
}

/// glibc 2.31 has every function, and version, that the library needs.
#[test]
fn of_glibc() {
    let needed = said("nm", &["-D", "--undefined-only"], "libspinpark.so");
    let versions = names(&needed).into_iter().filter_map(|name| {
        let (major, minor) = name.split_once("@GLIBC_")?.1.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse::<u32>().unwrap(), minor.parse::<u32>().unwrap()))
    });
    let newest = versions.max().expect("functions of glibc");
    assert!(newest <= (2, 31), "{newest:?}: {needed}");
}
