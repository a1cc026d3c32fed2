//! The drop-in, `libspinpark_preload.so`: pthread objects and functions over the spinpark locks.
//!
//! `LD_PRELOAD=…/libspinpark_preload.so program`, or `spinpark run -- program`. One function per pthread
//! call, each returning its errno. All state is inside the pthread objects, in glibc's own sizes, with
//! glibc's own fields where it reads them; static initialisers of every kind work. No std, no allocation, no
//! destructor, and no constructor that anything depends on: the one in `mode` only makes the verbose line
//! come early.
//!
//! | module          | what it has                                                                                       |
//! |-----------------|---------------------------------------------------------------------------------------------------|
//! | [`arch`]        | what depends on the CPU's architecture: instructions, glibc's records                             |
//! | [`table`]       | the export table: which function has which symbols                                                |
//! | [`mutex`]       | `pthread_mutex_*`                                                                                 |
//! | [`rwlock`]      | `pthread_rwlock_*`                                                                                |
//! | [`cond`]        | `pthread_cond_*`, a cancellation point                                                            |
//! | [`c11`]         | `mtx_*`, `cnd_*`                                                                                  |
//! | [`mode`]        | active or disabled, and how the user can tell                                                     |
//! | [`fields`]      | where glibc's fields stand in our locks                                                           |
//! | [`policy`]      | the policy that the user has chosen for a lock                                                    |
//! | [`leave`]       | calls that are unwound: cancelled, by `pthread_exit`, by a jump                                   |
//! | [`cancel`]      | `pthread_cancel`, counted: a cancelled waiter must lose no other's signal                         |
//! | [`real`]        | glibc's own functions                                                                             |
//! | [`glibc_owned`] | mutexes that are locked through glibc's own functions as well                                     |
//! | [`loader`]      | `dlopen`, `dlmopen`, `dlsym`: ways past the drop-in                                               |
//! | [`process`]     | `__register_atfork`, `prctl`, the profiler's observer: what the locks must know about the process |
//!
//! # Whose object is it?
//!
//! Robust, priority-inheritance, priority-protected and process-shared objects are glibc's: their kind says
//! so, in the field where glibc keeps it, and each call on one goes to glibc's own function (`real.rs`). With
//! `SPINPARK_DISABLE=1` that is every call.
#![no_std]

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!(
    "the drop-in is for x86-64 and aarch64 Linux with glibc: elsewhere symbols have other versions"
);

mod arch;
mod c11;
mod cancel;
mod cond;
mod fields;
mod glibc_owned;
mod leave;
mod loader;
mod mode;
mod mutex;
mod policy;
mod process;
mod real;
mod rwlock;
mod table;

// The libc crate leaves linking to std when anything else in the build uses std.
#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Only an impossible state of a lock gets here. To go on would be to let two threads into a critical
    // section. SAFETY: ends the process.
    unsafe { libc::abort() }
}

// In a build without link-time optimisation, core's unwind tables name what would unwind through it. Nothing
// does: a panic ends the process. Without a definition the loader would refuse the library.
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    concat!("rust_eh_personality: ", arch::trap!()),
);
