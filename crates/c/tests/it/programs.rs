//! Programs in C and C++ that use everything, and that break rules.

use std::os::unix::process::ExitStatusExt;

use spinpark_fixtures::Run;

use crate::headers::has_libcpp;
use crate::library::{compiles, is_installed, libdir, linked, source};

#[test]
fn each_c_function() {
    let directory = tempfile::tempdir().unwrap();
    let program = linked("cc", "api.c", &[], directory.path());
    assert_eq!(Run::new(&program).succeed().stdout_text(), "all good\n");
    // Where the kernel or glibc has no restartable sequences.
    Run::new(&program).env("SPINPARK_RSEQ", "0").succeed();
    let program = linked("cc", "api.c", &["-DSPINPARK_NO_INLINE"], directory.path());
    assert_eq!(Run::new(&program).succeed().stdout_text(), "all good\n");
}

/// A fully static program, too.
#[test]
fn the_static_library() {
    let directory = tempfile::tempdir().unwrap();
    let [source, archive] = [source("api.c"), libdir().join("libspinpark.a")];
    for link in ["-pthread", "-static"] {
        let program = directory.path().join(link);
        let arguments = [source.as_os_str(), "-O2".as_ref(), "-pthread".as_ref(), "-D_GNU_SOURCE".as_ref()];
        let linked =
            [link.as_ref(), "-o".as_ref(), program.as_os_str(), archive.as_os_str(), "-ldl".as_ref()];
        match compiles("cc", &[&arguments[..], &linked[..]].concat()) {
            Err(error) if link == "-static" && error.contains("-lc") => {
                eprintln!("skipped the_static_library, statically: no static C library");
            }
            Err(error) => panic!("{error}"),
            Ok(()) => assert_eq!(Run::new(&program).succeed().stdout_text(), "all good\n"),
        }
    }
}

/// Opened at run time, and closed while its locks are in use.
#[test]
fn a_plugin() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("plugin");
    let source = source("plugin.c");
    let arguments = ["-O2", "-pthread", "-o", program.to_str().unwrap(), source.to_str().unwrap(), "-ldl"];
    compiles("cc", &arguments).unwrap();
    Run::new(&program).arg(libdir().join("libspinpark.so.0")).succeed();
}

#[test]
fn the_cpp_types() {
    let directory = tempfile::tempdir().unwrap();
    for compiler in ["g++", "clang++"] {
        if !is_installed(compiler, "the_cpp_types") {
            continue;
        }
        let mut variants: Vec<&[&str]> = vec![&["-std=c++17"], &["-std=c++20"]];
        if has_libcpp(compiler) {
            variants.push(&["-std=c++17", "-stdlib=libc++"]);
        }
        for variant in variants {
            let program = linked(compiler, "api.cpp", variant, directory.path());
            assert_eq!(Run::new(&program).succeed().stdout_text(), "all good\n", "{compiler} {variant:?}");
        }
    }
}

/// What the header calls checked ends the process, and the message names the function.
#[test]
fn broken_rules() {
    let directory = tempfile::tempdir().unwrap();
    let program = linked("cc", "api.c", &[], directory.path());
    for (rule, message) in [
        ("mutex-twice", "spinpark_mutex_lock: the calling thread holds this mutex already"),
        ("mutex-twice-in-child", "spinpark_mutex_lock: the calling thread holds this mutex already"),
        ("mutex-twice-for", "spinpark_mutex_lock: the calling thread holds this mutex already"),
        ("mutex-destroy", "spinpark_mutex_destroy: a thread holds this mutex"),
        ("deadline", "a deadline: its tv_nsec is not from 0 to 999999999"),
        ("recursive-unlock", "spinpark_recursive_mutex_unlock: the calling thread does not hold this mutex"),
        ("recursive-destroy", "spinpark_recursive_mutex_destroy: a thread holds this mutex"),
        ("read-unlock", "spinpark_rwlock_read_unlock: no thread holds this lock"),
        ("read-unlock-of-write", "spinpark_rwlock_read_unlock: held for writing"),
        ("write-unlock", "spinpark_rwlock_write_unlock: no thread holds this lock for writing"),
        ("write-unlock-of-read", "spinpark_rwlock_write_unlock: no thread holds this lock for writing"),
        ("write-twice", "spinpark_rwlock_write_lock: the calling thread holds this lock for writing"),
        ("read-of-write", "spinpark_rwlock_read_lock: the calling thread holds this lock for writing"),
        ("rwlock-destroy", "spinpark_rwlock_destroy: a thread holds this lock"),
        ("cond-free-mutex", "spinpark_cond_wait: no thread holds the mutex"),
        ("cond-two-mutexes", "spinpark_cond_wait: another thread waits with another mutex"),
        ("cond-destroy", "spinpark_cond_destroy: a thread waits"),
    ] {
        let result = Run::new(&program).arg(rule).outcome();
        assert_eq!(result.status.signal(), Some(6), "{rule}: {}", result.report());
        let line = result.stderr_text();
        assert!(line.starts_with(&format!("spinpark: {message}")) && line.ends_with('\n'), "{rule}: {line}");
    }
}
