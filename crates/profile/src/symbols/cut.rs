//! Which frames are the lock's own and not the program's.
//!
//! A reader wants the call site in the program, not the wrapper around the lock. Wrappers are known by name:
//! those of libraries, and lock methods of classes that are named like locks. Debug information that has line
//! tables only (`-gline-tables-only`, `debug = "line-tables-only"`) gives *inlined* functions names without
//! modules, namespaces and classes: those are known by name and source file together. A file alone tells
//! nothing: without the records of inlined functions (split DWARF that is not there), the program's own
//! function stands at a line of the header.

use crate::function_names::short;
use crate::model::{Frame, Role, library};

/// Libraries that implement or watch locks; with versions behind their names. All of their functions are the locks', also
/// those of which a stripped one has no names.
const LIBRARIES: [&str; 3] = ["libspinpark_profiler.so", "libspinpark_preload.so", "libspinpark.so"];

/// Functions, or what their names begin with: pthreads', C11's, libstdc++'s, libc++'s, Rust's.
const PREFIXES: [&str; 67] = [
    "boost::posix::",
    "boost::mutex::",
    "boost::timed_mutex::",
    "boost::recursive_",
    "boost::condition_variable",
    "boost::detail::",
    "boost::thread_cv_detail::",
    "pthread_mutex_",
    "pthread_rwlock_",
    "pthread_cond_",
    "spinpark_mutex_",
    "spinpark_recursive_mutex_",
    "spinpark_rwlock_",
    "spinpark_cond_",
    "___pthread_",
    "__pthread_",
    "__gthread_",
    "__gthrw_",
    "mtx_",
    "cnd_",
    "__GI_",
    "std::mutex::",
    "std::timed_mutex::",
    "std::recursive_mutex::",
    "std::recursive_timed_mutex::",
    "std::shared_mutex::",
    "std::shared_timed_mutex::",
    "std::__shared_mutex",
    "std::__mutex_base",
    "std::__recursive_mutex_base",
    "std::__timed_mutex_impl",
    "std::condition_variable",
    "std::__condvar::",
    "__glibcxx_rwlock_",
    "std::__1::mutex::",
    "std::__1::shared_mutex::",
    "std::__1::condition_variable",
    // The loader, where an auditor traces calls (`LD_AUDIT`), or binds them.
    "_dl_runtime_profile",
    "_dl_runtime_resolve",
    // Libraries that others take locks through.
    "CRYPTO_THREAD_",
    "CRYPTO_MUTEX_",
    "ossl_crypto_mutex_",
    "sqlite3_mutex_",
    "pthreadMutexEnter",
    "pthreadMutexTry",
    "pthreadMutexLeave",
    "pthreadMutexAlloc",
    "uv_mutex_",
    "uv_rwlock_",
    "uv_cond_",
    "apr_thread_mutex_",
    "apr_thread_rwlock_",
    "apr_thread_cond_",
    "inline_mysql_",
    "psi_mutex_",
    "psi_rwlock_",
    "rw_pr_",
    "g_rw_lock_",
    "g_mutex_",
    "g_rec_mutex_",
    "ngx_thread_mutex_",
    "qemu_mutex_",
    "qemu_rec_mutex_",
    "qemu_cond_",
    "rb_native_mutex_",
    "rb_native_cond_",
    "rb_nativethread_lock_",
];

/// Templates: what the guards of C++ are called, in front of `<`.
const GUARDS: [&str; 8] = [
    "std::lock_guard",
    "std::unique_lock",
    "std::shared_lock",
    "std::scoped_lock",
    "boost::lock_guard",
    "boost::unique_lock",
    "boost::shared_lock",
    "boost::upgrade_lock",
];

/// Rust's crates of locks, in which every function is a wrapper, and what drops their guards; line tables
/// have its last part.
const CRATES: [&str; 11] = [
    "lock_api::",
    "parking_lot::",
    "parking_lot_core::",
    "spinpark::",
    "spinpark_locks::",
    "core::ptr::drop_in_place<lock_api::",
    "core::ptr::drop_glue<lock_api::",
    "core::mem::drop",
    "drop_in_place<lock_api::",
    "drop_glue<lock_api::",
    "drop<lock_api::",
];

/// Directories with the sources of Rust's crates of locks: of a registry, where a version follows, and of a
/// checkout.
const CRATE_SOURCES: [&str; 7] = [
    "/lock_api-",
    "/parking_lot-",
    "/parking_lot_core-",
    "/spinpark-",
    "/spinpark-locks-",
    "/crates/locks/src/",
    "/crates/spinpark/src/",
];

/// What C++'s wrappers are called without their namespaces and classes.
const BARE: [&str; 14] = [
    "__gthread_",
    "__gthrw_",
    "__glibcxx_rwlock_",
    "__libcpp_mutex_",
    "__libcpp_condvar_",
    "__libcpp_recursive_mutex_",
    "lock",
    "try_lock",
    "unlock",
    "wait",
    "unique_lock",
    "shared_lock",
    "scoped_lock",
    "_M_lock",
];

/// What the paths of the headers end with, in which libstdc++ and libc++ have their locks, below a directory
/// `c++`.
const HEADERS: [&str; 9] = [
    "/bits/gthr-default.h",
    "/bits/std_mutex.h",
    "/bits/unique_lock.h",
    "/mutex",
    "/shared_mutex",
    "/condition_variable",
    "/__mutex/mutex.h",
    "/__mutex/lock_guard.h",
    "/__mutex/unique_lock.h",
];

/// How the names of classes end that are nothing but locks, in lower case.
const CLASSES: [&str; 9] = [
    "lock",
    "mutex",
    "latch",
    "condvar",
    "guard",
    "locker",
    "waitcondition",
    "conditionvariable",
    "condition_variable",
];

/// How the names of their methods begin, in lower case; those called as the class make and end one.
const METHODS: [&str; 13] = [
    "lock",
    "unlock",
    "try",
    "rdlock",
    "wrlock",
    "read_lock",
    "write_lock",
    "acquire",
    "release",
    "enter",
    "wait",
    "timed_wait",
    "with",
];

/// `frames` from the innermost one of the program on; if there is none, the outermost alone.
/// `known`: the number of those that are known not to be.
pub(super) fn own_frames(mut frames: Vec<Frame>, known: usize) -> Vec<Frame> {
    let last = frames.len().saturating_sub(1);
    let own = frames.iter().skip(known).position(|frame| !is_wrapper(frame)).map_or(last, |own| known + own);
    frames.drain(..own);
    frames
}

pub(super) fn is_wrapper(frame: &Frame) -> bool {
    if LIBRARIES.contains(&library(&frame.module)) {
        return true;
    }
    let Some(function) = frame.function.as_deref() else {
        // The loader takes no lock of the program: it calls for it.
        return frame.module.starts_with("ld-linux") || frame.module.starts_with("ld.so");
    };
    if frame.is_inlined && frame.source.as_ref().is_some_and(|(path, _)| is_source_of_locks(path, function)) {
        return true;
    }
    // `<spinpark::Mutex<T>>::lock`, `void std::lock<…>(…)` and `bool std::timed_mutex::try_lock_for<…>(…)`
    // are meant too.
    let function = function.trim_start_matches('<').trim_start_matches("void ").trim_start_matches("bool ");
    let is_guard = |guard: &str| function.strip_prefix(guard).is_some_and(|rest| rest.starts_with('<'));
    PREFIXES.iter().chain(&CRATES).any(|prefix| function.starts_with(prefix))
        || GUARDS.iter().any(|guard| is_guard(guard))
        || function.starts_with("std::lock<")
        || is_method_of_lock(&short(function))
}

/// `…/parking_lot-0.12.5/src/condvar.rs`; `lock` in `/usr/include/c++/12/bits/std_mutex.h`; not
/// `…/parking_lot-fork/src/main.rs`.
fn is_source_of_locks(path: &str, function: &str) -> bool {
    let is_of = |directory: &str| {
        let rest = path.split_once(directory).map(|(_, rest)| rest);
        rest.is_some_and(|rest| {
            directory.ends_with('/') || rest.starts_with(|first: char| first.is_ascii_digit())
        })
    };
    let is_header = |header: &str| path.ends_with(header);
    let is_bare = || BARE.iter().any(|name| function.trim_start_matches('~').starts_with(name));
    CRATE_SOURCES.into_iter().any(is_of)
        || path.contains("/c++/") && HEADERS.into_iter().any(is_header) && is_bare()
}

/// `kyotocabinet::RWLock::lock_writer`, `Mutex::Mutex`; not `Table::lock` nor `Lock::statistics`.
fn is_method_of_lock(function: &str) -> bool {
    let mut parts = function.rsplit("::");
    let (Some(method), Some(class)) = (parts.next(), parts.next()) else { return false };
    let class = class.split_once('<').map_or(class, |(class, _)| class);
    if !CLASSES.iter().any(|end| class.to_ascii_lowercase().ends_with(end)) {
        return false;
    }
    let method = method.trim_start_matches('~');
    method == class || METHODS.iter().any(|start| method.to_ascii_lowercase().starts_with(start))
}

/// Of a stack that waits for a signal: the method of a lock's class that does, innermost, as the class and
/// the role in which it takes the lock. What waits for a signal in the program's name is none.
pub(super) fn method(frames: &[Frame]) -> Option<(String, Role)> {
    let wrappers = frames.iter().take_while(|frame| is_wrapper(frame));
    wrappers.filter_map(|frame| frame.function.as_deref()).find_map(|function| {
        let function = short(function.trim_start_matches("void ").trim_start_matches("bool "));
        let (class, method) = function.rsplit_once("::")?;
        let is_std = ["std::", "__gnu"].iter().any(|prefix| class.starts_with(prefix));
        let is_guard = GUARDS.iter().any(|guard| class.starts_with(guard));
        if is_std || is_guard || !is_method_of_lock(&function) {
            return None;
        }
        let name = class.rsplit("::").next()?.to_ascii_lowercase();
        let method = method.to_ascii_lowercase();
        let is_of_lock = ["lock", "mutex"].iter().any(|end| name.ends_with(end));
        let is_taken = ["lock", "try", "rdlock", "wrlock", "read_lock", "write_lock", "acquire", "enter"]
            .iter()
            .any(|start| method.starts_with(start));
        let is_read = ["shared", "read", "rdlock"].iter().any(|word| method.contains(word));
        let role = if is_read { Role::Read } else { Role::Write };
        (is_of_lock && is_taken).then(|| (class.to_owned(), role))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(functions: &[&str]) -> Vec<String> {
        let frame = |function: &&str| Frame {
            function: Some((*function).to_owned()),
            source: None,
            module: String::from("program"),
            ..Frame::default()
        };
        let frames = own_frames(functions.iter().map(frame).collect(), 0);
        frames.into_iter().filter_map(|frame| frame.function).collect()
    }

    #[test]
    fn line_tables_have_names_without_modules() {
        let frame = |&(function, path): &(&str, &str)| Frame {
            function: Some(function.to_owned()),
            source: Some((path.to_owned(), 1)),
            module: String::from("program"),
            is_inlined: true,
            ..Frame::default()
        };
        let own = |frames: &[(&str, &str)]| {
            let frames = own_frames(frames.iter().map(frame).collect(), 0);
            frames.into_iter().filter_map(|frame| frame.function).collect::<Vec<_>>()
        };
        let registry = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let rust = [
            ("unlock_slow<u32>", &*format!("{registry}/spinpark-locks-0.1.0/src/core/slow.rs")),
            ("drop<RawMutex, u32>", &*format!("{registry}/lock_api-0.4.14/src/mutex.rs")),
            (
                "drop_in_place<lock_api::mutex::MutexGuard<RawMutex, u32>>",
                "/rustc/5980/library/core/src/ptr/mod.rs",
            ),
            ("update", "/home/me/program/src/main.rs"),
        ];
        assert_eq!(own(&rust), ["update"]);
        let cpp = [
            ("__gthread_mutex_lock", "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h"),
            ("lock", "/usr/include/c++/12/bits/std_mutex.h"),
            ("lock_guard", "/usr/lib/llvm-19/include/c++/v1/__mutex/lock_guard.h"),
            ("store", "/home/me/program/main.cpp"),
        ];
        assert_eq!(own(&cpp), ["store"]);
        let split =
            [("close_day", "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h"), ("main", "main.cpp")];
        assert_eq!(
            own(&split),
            ["close_day", "main"],
            "a function of the program stays, wherever its line is"
        );
        let mine = [("lock", "/home/me/parking_lot-fork/src/mutex.rs"), ("main", "/home/me/src/mutex")];
        assert_eq!(own(&mine), ["lock", "main"], "other files of these names are the program's");
    }

    #[test]
    fn functions_of_own_libraries_need_no_names() {
        let frame = |function: Option<&str>, module: &str| Frame {
            function: function.map(str::to_owned),
            module: module.to_owned(),
            ..Frame::default()
        };
        let stack = vec![
            frame(None, "libspinpark.so.0.1.0"),
            frame(None, "libspinpark.so.0"),
            frame(Some("spinpark_mutex_lock"), "libspinpark.so"),
            frame(Some("t1"), "program"),
        ];
        assert_eq!(own_frames(stack, 0), [frame(Some("t1"), "program")]);
        // A static one is in the program.
        assert_eq!(names(&["spinpark_rwlock_read_lock", "t1", "main"]), ["t1", "main"]);
        assert_eq!(names(&["spinpark_before_filter", "main"]), ["spinpark_before_filter", "main"]);
        // Others' libraries.
        let other = vec![frame(None, "libspinparkling.so.1"), frame(Some("t1"), "program")];
        assert_eq!(own_frames(other.clone(), 0), other);
    }

    #[test]
    fn wrappers_are_cut_at_the_top_only() {
        let cut = names(&[
            "__gthread_mutex_lock(pthread_mutex_t*)",
            "std::mutex::lock()",
            "store",
            "mtx_lock",
            "main",
        ]);
        assert_eq!(cut, ["store", "mtx_lock", "main"]);
        let guard = names(&[
            "std::unique_lock<std::mutex>::lock()",
            "std::lock_guard<std::mutex>::lock_guard(M&)",
            "f()",
        ]);
        assert_eq!(guard, ["f()"]);
        let dropped = names(&[
            "<lock_api::mutex::MutexGuard<R,T> as core::ops::drop::Drop>::drop",
            "core::ptr::drop_in_place<lock_api::mutex::MutexGuard<spinpark::raw_mutex::RawMutex,u32>>",
            "core::mem::drop",
            "program::update",
        ]);
        assert_eq!(dropped, ["program::update"]);
        assert_eq!(names(&["std::lock_guards::mine()", "main"]), ["std::lock_guards::mine()", "main"]);
        let classes = names(&[
            "kyotocabinet::RWLock::lock_writer()",
            "ScopedLock::ScopedLock(RWLock*)",
            "Table::lock()",
        ]);
        assert_eq!(classes, ["Table::lock()"]);
        assert_eq!(names(&["base::Mutex::~Mutex()", "Table::~Table()"]), ["Table::~Table()"]);
        assert_eq!(names(&["Lock::statistics()", "main"]), ["Lock::statistics()", "main"]);
        let traced = ["_dl_runtime_profile_avx512", "add_item", "main"];
        assert_eq!(names(&traced), ["add_item", "main"], "an auditor traces calls");
        assert_eq!(names(&["pthread_mutex_lock", "mtx_lock"]), ["mtx_lock"], "never everything");
        assert_eq!(names(&[]), [""; 0]);
    }
}
