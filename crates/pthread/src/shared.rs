//! A process in which glibc's functions are called on our objects, past the drop-in: a library was opened with
//! `RTLD_DEEPBIND`, or in a namespace of its own ([`loader`](crate::loader)).
//!
//! From then on releases are compare-exchanges, so that no mark of glibc's is wiped out, and each mutex goes to glibc: a free
//! one as it is locked next, a held one as its holder unlocks it or waits on a condition variable. Then no mutex is free with
//! waiters of ours, which would look held to glibc (see [`foreign`](crate::foreign)). Read-write locks and condition variables
//! stay ours.

use spinpark_linux::{is_on, tell};
use spinpark_platform::AsymmetricBarrier;

use crate::fields::Linux;
use crate::mode;

const TELL: &[u8] = b"spinpark: A library was opened past the drop-in (RTLD_DEEPBIND, dlmopen): \
glibc serves all mutexes now.\n";

/// Before a library is opened that calls glibc's functions.
#[cold]
#[inline(never)]
pub(crate) fn begin() {
    if !mode::ours() || mode::is_shared() || is_on(c"SPINPARK_FORCE") {
        return;
    }
    tell(TELL);
    mode::share();
    spinpark_linux::stop_sequences();
    Linux::heavy_fence(); // another thread may have begun that just now
}
