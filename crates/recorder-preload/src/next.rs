//! The next implementation: the functions that the program would have called without this library.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use spinpark_linux::{Scope, lookup, lookup_next, lookup_version};

use crate::arch::HAS_OLD;
use crate::function::{COUNT, Function, NAMES};

/// Their addresses.
pub(crate) static NEXT: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];

/// Any function of the table: one with fewer arguments does not read the others.
type AnyFunction = unsafe extern "C" fn(usize, usize, usize, usize) -> c_int;

/// Looks all of them up in the libraries after this one. What is not there makes the loader allocate a
/// message, and the allocator may use locks: those it uses are looked up first then ([`find_one`]).
pub(crate) fn find_all() {
    (0..COUNT).for_each(find_one);
}

/// Looks one of them up, unless it is known.
pub(crate) fn find_one(number: usize) {
    if let Some((next, name)) = NEXT.get(number).zip(NAMES.get(number))
        && next.load(Relaxed).is_null()
    {
        next.store(find(name), Relaxed);
    }
}

/// The loader's message about the latest look-up that failed is not for the program.
pub(crate) fn forget_error() {
    type Dlerror = unsafe extern "C" fn() -> *const c_char;
    let dlerror = lookup(Scope::All, c"dlerror");
    // SAFETY: null, or the function of that name; `Option<fn>` has null for `None`.
    if let Some(dlerror) = unsafe { mem::transmute::<*mut c_void, Option<Dlerror>>(dlerror) } {
        // SAFETY: takes nothing.
        unsafe { dlerror() };
    }
}

/// The next library's function; of a name that begins with `old_`, in its oldest version.
fn find(name: &CStr) -> *mut c_void {
    let Some(old) = name.to_bytes_with_nul().strip_prefix(b"old_") else { return lookup_next(name) };
    if !HAS_OLD {
        return ptr::null_mut();
    }
    let name = CStr::from_bytes_with_nul(old).unwrap_or(name);
    // A symbol without a version, as in a program that is linked with ThreadSanitizer's library, is bound to
    // ours of the oldest version, and would have been bound to that library's.
    let found = lookup(Scope::Next, name);
    let versions = [c"GLIBC_2.2.5", c"GLIBC_2.3.2"].map(|version| lookup_version(name, version));
    let is_between = !found.is_null() && !versions.contains(&found);
    if is_between { found } else { versions[0] }
}

/// The address of a function; null if there is none.
pub(crate) fn address(number: usize) -> *mut c_void {
    NEXT.get(number).map_or(ptr::null_mut(), |next| next.load(Relaxed))
}

/// Calls the next implementation of a function; a void one returns nothing of use.
///
/// # Safety
///
/// As to call that function with these arguments.
#[inline(always)]
pub(crate) unsafe fn call(function: Function, arguments: [usize; 4]) -> c_int {
    let next = NEXT[function as usize].load(Relaxed);
    // SAFETY: found before the recorder installed anything; its own is installed only if it is there.
    let next = unsafe { mem::transmute::<*mut c_void, AnyFunction>(next) };
    let [a, b, c, d] = arguments;
    // SAFETY: the caller's promise; arguments beyond those that the function has are in registers that it
    // does not read.
    unsafe { next(a, b, c, d) }
}

/// The same with seven arguments, and a result of any width: for functions that are
/// known by number.
///
/// # Safety
///
/// As to call that function with these arguments.
#[inline(always)]
pub(crate) unsafe fn call_wide(number: usize, arguments: &[usize; 7]) -> isize {
    type Next = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> isize;
    let next = NEXT[number].load(Relaxed);
    // SAFETY: found before the recorder installed anything; its own is installed only if it is there.
    let next = unsafe { mem::transmute::<*mut c_void, Next>(next) };
    let [a, b, c, d, e, f, g] = *arguments;
    // SAFETY: the caller's promise; arguments beyond those that the function has are where it does not read.
    unsafe { next(a, b, c, d, e, f, g) }
}
