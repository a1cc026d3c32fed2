//! The environment, without `getenv`, which may be intercepted: this runs very early.

use core::ffi::{c_char, CStr};

use crate::symbol::{has_thread_sanitizer, lookup, Scope};

extern "C" {
    /// The environment; null before libc has been initialised.
    static environ: *const *const c_char;
}

/// The environment, also in a program's `.preinit_array` (ThreadSanitizer), which runs before libc has been
/// initialised.
fn entries() -> *const *const c_char {
    // SAFETY: read before threads exist, or with the same race as any `getenv`.
    let known = unsafe { environ };
    if !known.is_null() {
        return known;
    }
    let end: *const *const usize = lookup(Scope::All, c"__libc_stack_end").cast_const().cast();
    // SAFETY: null, or glibc's pointer to where the kernel has put the number of arguments.
    let Some(&count) = (unsafe { end.as_ref() }) else { return known };
    // SAFETY: the place of that number, which stays.
    let arguments = unsafe { *count };
    // SAFETY: behind it are the arguments, a null, and the environment.
    unsafe { count.add(arguments + 2).cast() }
}

/// The value of the environment variable `name`.
///
/// A process with more rights than its user (setuid) ignores the environment.
#[must_use]
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: reads the vector that the kernel passed at the start.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let name = name.to_bytes();
    let mut entry = entries();
    while !entry.is_null() {
        // SAFETY: `environ` is an array of C strings with a null at its end.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: not null, so one of those C strings.
        let bytes = unsafe { CStr::from_ptr(text) };
        if let Some(value) =
            bytes.to_bytes_with_nul().strip_prefix(name).and_then(|rest| rest.strip_prefix(b"="))
        {
            return CStr::from_bytes_with_nul(value).ok();
        }
        // SAFETY: not yet at the null at the end.
        entry = unsafe { entry.add(1) };
    }
    None
}

/// Whether the variable is there and neither empty nor 0.
#[must_use]
#[inline(never)] // for the drop-in's size
pub fn is_on(name: &CStr) -> bool {
    variable(name).is_some_and(|value| !matches!(value.to_bytes(), b"" | b"0"))
}

/// Whether the variable is 0.
#[must_use]
pub fn is_off(name: &CStr) -> bool {
    variable(name).is_some_and(|value| value.to_bytes() == b"0")
}

/// The race detector that this process runs under, if any: locks that bypass the pthread calls which it
/// intercepts look like races to it.
///
/// - **ThreadSanitizer** is in a library (GCC) or in the program (Clang), and exports `__tsan_init` in both
///   cases.
/// - **Helgrind and DRD** preload a library of their own, whose name valgrind writes to the program's
///   `LD_PRELOAD`. Valgrind removes it from the environment of programs that it does not follow, so each
///   process sees its own tool. Its other tools intercept no pthread calls, and are not mentioned here.
#[must_use]
pub fn race_detector() -> Option<&'static str> {
    if has_thread_sanitizer() {
        return Some("ThreadSanitizer");
    }
    let mut rest = variable(c"LD_PRELOAD")?.to_bytes();
    while let [_, tail @ ..] = rest {
        if rest.starts_with(b"vgpreload_helgrind") || rest.starts_with(b"vgpreload_drd") {
            return Some("Valgrind");
        }
        rest = tail;
    }
    None
}
