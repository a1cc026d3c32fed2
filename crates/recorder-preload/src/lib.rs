//! The recorder as a library to preload, `libspinpark_profiler.so`: it watches the program's pthread locks,
//! whichever library implements them.
//!
//! ```text
//! program ── pthread_mutex_lock ──▶ trampoline ── table ──▶ ours ──▶ the next library's pthread_mutex_lock
//!                                              (detail off: ──────▶)
//! ```
//!
//! Alone it watches glibc's locks; before `libspinpark_preload.so` it watches spinpark's. Every exported
//! function jumps through a table (`exports`, `table`). While nothing is recorded the table has the next
//! implementation's own functions (`next`); else ours, one module per kind of object, each written once for
//! all details. Nothing is known of the objects' layouts but what glibc's static initialisers fix, and
//! glibc's `__owner`, as a hint.
//!
//! # Try first
//!
//! A lock is tried before it is locked: what fails with EBUSY is a contended acquisition, and the counts are
//! exact by construction. An error-checking mutex codes a try with the result of a lock, or with EBUSY; then
//! it is locked. The try costs one more atomic operation per contended acquisition. It may overtake sleeping
//! waiters, as a lock may: both implementations let running threads barge past them.
//!
//! glibc's try is 2 ns slower than its lock, a seventh of a pair. So with the details `contended` and
//! `sampled` a mutex that was never waited for, and that looks free, is locked without a try. If another
//! thread takes it in the nanosecond between the look and the lock, that wait is not recorded; the next one
//! is, and from then on all are.
#![no_std]

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!(
    "the profiler is for x86-64 and aarch64 Linux with glibc: elsewhere symbols have other versions"
);

mod arch;
mod c11;
mod call;
mod cancel;
mod condvar;
mod delay;
mod dormant;
mod exports;
mod function;
mod instrument;
mod mutex;
mod mutex_layout;
mod next;
mod parent;
mod phases;
mod recorder;
mod rendezvous;
mod rwlock;
mod semaphore;
mod single_threaded;
mod spin;
mod syscall;
mod table;
mod unload;
mod wake;

// The libc crate leaves linking to std when anything else in the build uses std.
#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Only an impossible state of the recorder gets here.
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

// In a build without link-time optimisation, core's unwind tables name what would unwind through it. Nothing
// does: a panic ends the process. Without a definition the loader would refuse the library.
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    concat!("rust_eh_personality: ", arch::trap!()),
);
