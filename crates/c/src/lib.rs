//! The C and C++ library, `libspinpark`: the locks under names of their own, for programs that are built with
//! them. `include/spinpark.h` is its documentation, `include/spinpark.hpp` the C++ types over it.
//!
//! `install.sh` makes the shared and the static library of this crate. The header's objects are the structures
//! here, and each function of the header is one here, with references where the header has pointers: a caller
//! passes an object that is initialised (all zero is) and not yet destroyed.
//!
//! | module        | what it has                                                                     |
//! |---------------|---------------------------------------------------------------------------------|
//! | [`mutex`]     | `spinpark_mutex_*`                                                              |
//! | [`recursive`] | `spinpark_recursive_mutex_*`                                                    |
//! | [`rwlock`]    | `spinpark_rwlock_*`                                                             |
//! | [`cond`]      | `spinpark_cond_*`                                                               |
//! | [`time`]      | deadlines                                                                       |
//! | [`misuse`]    | how the process ends if a caller breaks a rule of the header                    |
//!
//! # What is in the header
//!
//! A release is a restartable sequence, not a compare-exchange, and it reads the queue's word instead of the
//! lock word. As inline code it would fix both words, the contended bit, the thread's number in the word and
//! this thread's memory in every program that was ever compiled. Behind a call all of that can change with the
//! library. So can the lock of a free mutex, which is inline: the header exchanges the first word, 0, for
//! `spinpark_hold`, and calls if that fails or is 0. What is in it is the library's choice at each moment
//! ([`ready_hold`](spinpark_linux::ready_hold)); a library that locks in another way leaves it 0.
#![no_std]

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
compile_error!("the C library is for 64-bit Linux with glibc");

pub mod cond;
mod misuse;
pub mod mutex;
pub mod recursive;
pub mod rwlock;
mod time;

// The libc crate leaves linking to std when anything else in the build uses std.
#[link(name = "c")]
unsafe extern "C" {}

/// Keeps a library that the code is in loaded, and starts restartable sequences while the process has one
/// thread: see `permanent` in `spinpark-linux`.
// SAFETY: the loader calls each entry of `.init_array` once, with arguments that the function does not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = spinpark_linux::initialise;

/// `spinpark_before_filter`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_before_filter() {
    spinpark_linux::before_filter();
}

// `spinpark_hold` of the header: this thread's `ready_hold`, as a symbol that programs can name.
core::arch::global_asm!(
    ".globl spinpark_hold",
    ".type spinpark_hold, @object",
    ".size spinpark_hold, 4",
    ".set spinpark_hold, spinpark_0_1_local + {at}",
    at = const spinpark_linux::READY_HOLD_AT,
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Only an impossible state of a lock gets here. To go on would be to let two threads into a critical
    // section. SAFETY: ends the process.
    unsafe { libc::abort() }
}

// In a build without link-time optimisation, core's unwind tables name what would unwind through it. Nothing
// does: a panic ends the process.
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:",
    // An undefined instruction.
    #[cfg(target_arch = "x86_64")]
    "ud2",
    #[cfg(target_arch = "aarch64")]
    "udf 0",
);
