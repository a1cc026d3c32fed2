//! Tools that find data races by intercepting pthread calls: locks that bypass these calls look like races to
//! them.
//!
//! - **ThreadSanitizer** is in a library (GCC) or in the program (Clang), and exports `__tsan_init` in both
//!   cases.
//! - **Helgrind and DRD** preload a library of their own, whose name valgrind writes to the program's
//!   `LD_PRELOAD`. Valgrind removes it from the environment of programs that it does not follow, so each
//!   process sees its own tool.
//!
//! Memcheck and the other tools of valgrind intercept no pthread calls, so they do not matter here.

use crate::environment::variable;
use crate::symbol::has_thread_sanitizer;

/// The race detector that this process runs under, if any.
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
