//! How a program finds the library: pkg-config, CMake; and where the files are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use spinpark_fixtures::Run;

use crate::library::{install, is_installed, libdir, prefix, source};

/// Runs a command to its end, which must be good; what it printed.
#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{command:?}: {out}{error}");
    out
}

fn files(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path);
        }
    }
}

#[test]
fn pkg_config() {
    if !is_installed("pkg-config", "pkg_config") {
        return;
    }
    let asked = |arguments: &[&str]| {
        let mut command = Command::new("pkg-config");
        done(command.args(arguments).arg("spinpark").env("PKG_CONFIG_PATH", libdir().join("pkgconfig")))
    };
    assert_eq!(asked(&["--modversion"]).trim(), env!("CARGO_PKG_VERSION"));
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let flags = asked(&["--cflags", "--libs"]);
    let mut compiler = Command::new("cc");
    done(compiler.arg(source("header.c")).args(flags.split_whitespace()).arg("-o").arg(&program));
    Run::new(&program).env("LD_LIBRARY_PATH", libdir()).succeed();
    assert!(asked(&["--static", "--libs"]).contains("-pthread"));
}

/// Builds `programs/cmake` with the library below `prefix`, and runs what it makes.
fn cmake_consumer(prefix: &Path, test: &str) {
    if !is_installed("cmake", test) || !is_installed("make", test) {
        return;
    }
    let build = tempfile::tempdir().unwrap();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(source("cmake")).arg("-B").arg(build.path());
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    done(configure.env_remove("spinpark_DIR"));
    done(Command::new("cmake").arg("--build").arg(build.path()));
    for program in ["shared", "static"] {
        Run::new(build.path().join(program)).succeed();
    }
    let cache = fs::read_to_string(build.path().join("CMakeCache.txt")).unwrap();
    let found = cache.lines().find_map(|line| line.strip_prefix("spinpark_DIR:PATH=")).unwrap();
    assert!(Path::new(found).starts_with(prefix), "{found}");
}

#[test]
fn cmake() {
    cmake_consumer(prefix(), "cmake");
}

/// As a package is made: files below `DESTDIR`, libraries in the directory of the architecture.
#[test]
fn a_package() {
    let destination = tempfile::tempdir().unwrap();
    let libdir = format!("lib/{}-linux-gnu", env::consts::ARCH);
    install(Path::new("/usr"), &[("DESTDIR", destination.path().as_os_str()), ("LIBDIR", libdir.as_ref())]);
    let version = env!("CARGO_PKG_VERSION");
    let mut found = BTreeSet::new();
    files(destination.path(), &mut found);
    let expected = [
        "include/spinpark.h".to_owned(),
        "include/spinpark.hpp".to_owned(),
        format!("{libdir}/cmake/spinpark/spinpark-config-version.cmake"),
        format!("{libdir}/cmake/spinpark/spinpark-config.cmake"),
        format!("{libdir}/libspinpark.a"),
        format!("{libdir}/libspinpark.so"),
        format!("{libdir}/libspinpark.so.0"),
        format!("{libdir}/libspinpark.so.{version}"),
        format!("{libdir}/pkgconfig/spinpark.pc"),
    ];
    let usr = destination.path().join("usr");
    assert_eq!(found, expected.iter().map(|file| usr.join(file)).collect());
    assert_eq!(fs::read_link(usr.join(&expected[5])).unwrap(), Path::new("libspinpark.so.0"));
    assert_eq!(
        fs::read_link(usr.join(&expected[6])).unwrap(),
        Path::new(&format!("libspinpark.so.{version}"))
    );
    let pc = fs::read_to_string(usr.join(&expected[8])).unwrap();
    assert!(
        pc.starts_with("prefix=/usr\n") && pc.contains(&format!("libdir=${{prefix}}/{libdir}\n")),
        "{pc}"
    );
    for file in &expected {
        let content = fs::read(usr.join(file)).unwrap();
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains(destination.path().to_str().unwrap()), "{file} names DESTDIR");
        assert!(!text.contains('@') || !file.ends_with(".cmake"), "{file}: a part was not filled in");
    }
    if Path::new("/usr/lib").join(format!("{}-linux-gnu", env::consts::ARCH)).exists() {
        // Elsewhere CMake does not look there.
        cmake_consumer(&usr, "a_package");
    }
}
