//! The drop-in, `libspinpark_preload.so`: an export table over `spinpark-pthread`.
//!
//! `LD_PRELOAD=…/libspinpark_preload.so program`, or `spinpark run -- program`. No std, no allocation, no destructor,
//! and no constructor that anything depends on: the one in `init.rs` only makes the verbose line come early.
#![no_std]

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
compile_error!("the drop-in is for x86-64 Linux with glibc: elsewhere symbols have other versions");

mod export;
mod init;
mod loader;
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

// In a build without link-time optimisation, core's unwind tables name what would unwind through it. Nothing does: a panic
// ends the process. Without a definition the loader would refuse the library.
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality: ud2"
);
