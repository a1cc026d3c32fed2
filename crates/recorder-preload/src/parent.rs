//! `getppid` of a program whose parent is the command that records it.
//!
//! The program gets what it would get without the command: the id of the command's parent, or 1, init, in a
//! process that the command has adopted. Programs compare it with the id of the process that was to start
//! them, wait until it is 1, or send it signals.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use spinpark_linux::raw;

use crate::arch;

/// The command, or 0; its parent; the program that it started. Written by this library's initialiser, before
/// the process has a second thread.
static COMMAND: AtomicU32 = AtomicU32::new(0);
static ITS_PARENT: AtomicU32 = AtomicU32::new(1);
static PROGRAM: AtomicU32 = AtomicU32::new(0);

/// From now on, `command` is not seen as the parent: `its_parent` is.
pub(crate) fn hide(command: u32, its_parent: u32) {
    ITS_PARENT.store(its_parent, Relaxed);
    if raw::parent_id() == command {
        PROGRAM.store(raw::process_id(), Relaxed);
    }
    COMMAND.store(command, Relaxed);
}

extern "C" fn getppid() -> c_int {
    let parent = raw::parent_id();
    let seen = match parent {
        // The parent is outside of the PID namespace.
        0 => 0,
        _ if parent != COMMAND.load(Relaxed) => parent,
        _ if raw::process_id() == PROGRAM.load(Relaxed) => ITS_PARENT.load(Relaxed),
        _ => 1,
    };
    seen.cast_signed()
}

core::arch::global_asm!(
    ".pushsection .text.spinpark_profiler, \"ax\", @progbits",
    ".globl spinpark_profiler_alias_getppid",
    ".type spinpark_profiler_alias_getppid, @function",
    "spinpark_profiler_alias_getppid:",
    ".cfi_startproc",
    arch::jump_to!("{getppid}"),
    ".cfi_endproc",
    concat!(".symver spinpark_profiler_alias_getppid, getppid@@", arch::OLDEST!()),
    ".popsection",
    getppid = sym getppid,
);
