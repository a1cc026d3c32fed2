//! A library with spinpark's locks may be closed while threads that have used them live on.

use std::ffi::{c_int, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Duration;

type Count = extern "C" fn() -> u64;

const THREADS: usize = 4;
const CALLS: u64 = 1000;

/// The path of an example, next to this test's directory: cargo builds examples before it runs tests.
fn plugin(name: &str) -> CString {
    let mut path: PathBuf = std::env::current_exe().expect("this test");
    path.pop();
    path.pop();
    path.push(format!("examples/lib{name}.so"));
    assert!(path.exists(), "{} is not there: run `cargo build --examples -p spinpark`", path.display());
    CString::new(path.as_os_str().as_bytes()).expect("a path")
}

fn open(name: &str) -> *mut libc::c_void {
    const NOW: c_int = libc::RTLD_NOW;
    // SAFETY: an example of this crate, whose initialiser opens it once more.
    let library = unsafe { libc::dlopen(plugin(name).as_ptr(), NOW) };
    assert!(!library.is_null());
    library
}

/// Lets threads be interrupted, preempted and moved to other CPUs.
fn live_on() {
    for _ in 0..100 {
        std::thread::sleep(Duration::from_micros(50));
        std::thread::yield_now();
    }
}

#[test]
fn a_library_that_locks_only_in_its_destructor() {
    for _ in 0..5 {
        let library = open("plugin_late");
        // SAFETY: the handle is good; nothing of the library is in use.
        unsafe { libc::dlclose(library) };
        live_on();
    }
}

/// The kernel must not be left with a pointer into memory that is gone (rseq.S4 in the crate
/// `spinpark-linux`).
#[test]
fn threads_outlive_the_library_whose_locks_they_used() {
    let library = open("plugin");
    // SAFETY: the handle is good.
    let count = unsafe { libc::dlsym(library, c"count".as_ptr()) };
    assert!(!count.is_null());
    // SAFETY: that is its type.
    let count = unsafe { std::mem::transmute::<*mut libc::c_void, Count>(count) };
    let (used, closed) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    count();
                }
                used.wait();
                closed.wait();
                live_on();
            });
        }
        used.wait();
        assert_eq!(count(), THREADS as u64 * CALLS + 1);
        // SAFETY: the handle is good; the library is not called any more.
        unsafe { libc::dlclose(library) };
        closed.wait();
    });
}
