//! `dlopen`, `dlmopen` and `dlsym`: how a program reaches glibc's functions past the drop-in.
//!
//! | call                                     | what is done                                            |
//! |------------------------------------------|---------------------------------------------------------|
//! | `dlopen` with `RTLD_DEEPBIND`, `dlmopen` | glibc serves all mutexes from then on ([`glibc_owned`]) |
//! | `dlsym` that would give glibc's function | it gives ours                                           |
//!
//! Each function here only returns where its call continues. The exported one jumps there with the caller's
//! return address and arguments: glibc reads the return address, to find the caller's library.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem;
use core::ptr;

use spinpark_linux::{Library, glibc_dlsym};

use crate::arch::jump;
use crate::real::{self, Name};
use crate::{glibc_owned, mode};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// The drop-in's name (`build.rs`).
const THIS: &CStr = c"libspinpark_preload.so";

/// Before `dlopen(file, flags)`.
extern "C" fn open(file: *const c_char, flags: c_int) -> *mut c_void {
    let loads = !file.is_null() && flags & libc::RTLD_NOLOAD == 0;
    if loads && flags & libc::RTLD_DEEPBIND != 0 {
        glibc_owned::share();
    }
    real::address(Name::dlopen)
}

/// Before `dlmopen(namespace, file, flags)`.
extern "C" fn open_in(namespace: c_long, _: *const c_char, flags: c_int) -> *mut c_void {
    if namespace != 0 || flags & libc::RTLD_DEEPBIND != 0 {
        glibc_owned::share();
    }
    real::address(Name::dlmopen)
}

/// Before `dlsym(handle, name)`.
extern "C" fn symbol(handle: *mut c_void, _: *const c_char) -> *mut c_void {
    if handle == libc::RTLD_DEFAULT || handle == libc::RTLD_NEXT {
        glibc_dlsym()
    } else {
        in_library as *mut c_void
    }
}

/// `dlsym` of a library, which does not depend on the caller.
unsafe extern "C" fn in_library(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: null, or glibc's function.
    let dlsym = unsafe { mem::transmute::<*mut c_void, Option<Dlsym>>(glibc_dlsym()) };
    // SAFETY: the caller's arguments.
    let found = dlsym.map_or(ptr::null_mut(), |dlsym| unsafe { dlsym(handle, name) });
    if found.is_null() || !mode::ours() || !real::is_one(found) {
        return found;
    }
    // Not the first of that name in the process: that may be the caller's own, which looks for the one that
    // it wraps. SAFETY: the caller's name.
    let ours = Library::loaded(THIS).map(|library| library.lookup(unsafe { CStr::from_ptr(name) }));
    ours.filter(|it| !it.is_null()).unwrap_or(found)
}

jump!(
    open,
    ["spinpark_dlopen_0" as "dlopen@", "GLIBC_2.2.5"],
    ["spinpark_dlopen_1" as "dlopen@@", "GLIBC_2.34"]
);
jump!(
    open_in,
    ["spinpark_dlmopen_0" as "dlmopen@", "GLIBC_2.3.4"],
    ["spinpark_dlmopen_1" as "dlmopen@@", "GLIBC_2.34"]
);
// Not the oldest version of `dlsym`, which programs linked before glibc 2.34 call: under that name this
// library asks for glibc's own.
jump!(symbol, ["spinpark_dlsym" as "dlsym@@", "GLIBC_2.34"]);
