//! The headers compile without a warning: each standard, each compiler that is installed, with and without
//! ThreadSanitizer.

use crate::library::{compiles, crate_file, is_installed, source};

const WARNINGS: [&str; 7] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only"];

/// Compiles `programs` under each standard and in each variant that the compiler knows.
fn compile_all(compiler: &str, standards: &[&str], variants: &[&[&str]], programs: &[(&str, &[&str])]) {
    for standard in standards {
        let language = if compiler.ends_with("++") { "c++" } else { "c" };
        let standard = format!("-std={standard}");
        if compiles(compiler, &[&standard, "-x", language, "-fsyntax-only", "/dev/null"]).is_err() {
            eprintln!("skipped {standard} with {compiler}, which does not know it");
            continue;
        }
        for variant in variants {
            for (program, flags) in programs {
                let source = source(program).into_os_string().into_string().unwrap();
                let mut arguments = vec![standard.as_str(), "-x", language, &source];
                arguments.extend(WARNINGS.iter().chain(*variant).chain(*flags));
                compiles(compiler, &arguments).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}

#[test]
fn c() {
    for compiler in ["gcc", "clang"] {
        if is_installed(compiler, "headers::c") {
            let programs: [(&str, &[&str]); 2] = [("header.c", &[]), ("api.c", &["-D_GNU_SOURCE"])];
            let variants: [&[&str]; 3] = [&[], &["-fsanitize=thread"], &["-DSPINPARK_NO_INLINE"]];
            compile_all(compiler, &["c99", "c11", "c17", "c2x"], &variants, &programs);
        }
    }
}

#[test]
fn cpp() {
    let libcpp: [&[&str]; 4] = [&[], &["-fsanitize=thread"], &["-DSPINPARK_NO_INLINE"], &["-stdlib=libc++"]];
    for compiler in ["g++", "clang++"] {
        if is_installed(compiler, "headers::cpp") {
            let variants = if has_libcpp(compiler) { &libcpp[..] } else { &libcpp[..3] };
            let programs: [(&str, &[&str]); 3] = [("header.c", &[]), ("api.cpp", &[]), ("tsan.cpp", &[])];
            compile_all(compiler, &["c++17", "c++20", "c++2b"], variants, &programs);
        }
    }
}

/// Whether a compiler has libc++ to choose.
pub(crate) fn has_libcpp(compiler: &str) -> bool {
    let arguments = ["-stdlib=libc++", "-include", "mutex", "-x", "c++", "-fsyntax-only", "/dev/null"];
    let is_there = compiles(compiler, &arguments).is_ok();
    if !is_there {
        eprintln!("skipped libc++ with {compiler}, which has none");
    }
    is_there
}

#[test]
fn the_version_is_the_packages() {
    let header = std::fs::read_to_string(crate_file("include/spinpark.h")).unwrap();
    let part = |name: &str| {
        let define = format!("#define SPINPARK_VERSION_{name} ");
        header.lines().find_map(|line| line.strip_prefix(&define)).unwrap().to_owned()
    };
    assert_eq!([part("MAJOR"), part("MINOR"), part("PATCH")].join("."), env!("CARGO_PKG_VERSION"));
}
