//! The drop-in, `libspinpark_preload.so`: an export table over `spinpark-pthread`.
//!
//! `LD_PRELOAD=…/libspinpark_preload.so program`, or `spinpark run -- program`. No std, no allocation, no destructor,
//! and no constructor that anything depends on: the one in `init.rs` only makes the verbose line come early.
#![no_std]

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
compile_error!("the drop-in is for x86-64 Linux with glibc: elsewhere symbols have other versions");

mod export;
mod init;
mod table;

// The libc crate leaves linking to std when anything else in the build uses std.
#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Only an impossible state of a lock gets here. To go on would be to let two threads into a critical section.
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
