//! The next implementation: the functions that the program would have called without this library.

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use spinpark_linux::{Scope, lookup, lookup_version};

use crate::exports::{COUNT, Function, NAMES};

/// Their addresses.
pub(crate) static NEXT: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];

/// Any function of the table: who has fewer arguments does not look at the others.
type Call = unsafe extern "C" fn(usize, usize, usize, usize) -> c_int;

/// Looks all of them up in the libraries after this one.
pub(crate) fn find_all() {
    for (next, name) in NEXT.iter().zip(NAMES) {
        next.store(find(name), Relaxed);
    }
}

/// Condition variables by version, the one that has had its present layout since 2.3.2 (clockwait has one only):
/// `dlsym(RTLD_NEXT)` finds the older before glibc 2.36 (BZ 14932).
fn find(name: &CStr) -> *mut c_void {
    let versioned = if name.to_bytes().starts_with(b"pthread_cond_") {
        lookup_version(name, c"GLIBC_2.3.2")
    } else {
        ptr::null_mut()
    };
    if versioned.is_null() { lookup(Scope::Next, name) } else { versioned }
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
    // SAFETY: found before anything of ours was installed; ours is installed only if it is there.
    let next = unsafe { mem::transmute::<*mut c_void, Call>(next) };
    let [a, b, c, d] = arguments;
    // SAFETY: the caller's promise; arguments beyond those that the function has are in registers that it does not read.
    unsafe { next(a, b, c, d) }
}
