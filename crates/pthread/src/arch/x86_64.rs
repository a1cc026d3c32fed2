//! x86-64: instructions, glibc's records, and the symbols that only it has.

use crate::cond;
use crate::table::{export, version};

/// The words of glibc's `__jmp_buf`.
pub(crate) const JUMP_WORDS: usize = 8;

/// An instruction that ends the process.
macro_rules! trap {
    () => {
        "ud2"
    };
}
pub(crate) use trap;

/// Defines a function that calls `$where` and jumps to the address that it returns, with its own arguments
/// and return address. Exported as in [`table`](crate::table).
macro_rules! jump {
    ($where:path, $([$alias:literal as $symbol:literal, $version:literal]),+) => {
        core::arch::global_asm!(
            ".pushsection .text.unlikely.spinpark_loader, \"ax\", @progbits",
            $(
                concat!(".globl ", $alias),
                concat!(".type ", $alias, ", @function"),
                concat!($alias, ":"),
                concat!(".symver ", $alias, ", ", $symbol, $crate::table::version!($version)),
            )+
            ".cfi_startproc",
            spinpark_linux::call_and_keep_arguments!("call {function}"),
            "jmp r11",
            ".cfi_endproc",
            $(concat!(".size ", $alias, ", . - ", $alias),)+
            ".popsection",
            function = sym $where,
        );
    };
}
pub(crate) use jump;

// glibc's 2.2.5 forms of condition variables keep a pointer in the object, and release a mutex past the
// drop-in. The oldest version is also what symbols without one are bound to (of plugins linked with musl, for
// example), so ours take the object, which has 48 bytes there, as it is; with `SPINPARK_DISABLE=1`, too. (In
// programs linked before glibc 2.3 it has 24.)
export! {
    cond::init => "pthread_cond_init" @ "GLIBC_2.2.5";
    cond::destroy => "pthread_cond_destroy" @ "GLIBC_2.2.5";
    cond::wait => "pthread_cond_wait" @ "GLIBC_2.2.5";
    cond::timed_wait => "pthread_cond_timedwait" @ "GLIBC_2.2.5";
    cond::signal => "pthread_cond_signal" @ "GLIBC_2.2.5";
    cond::broadcast => "pthread_cond_broadcast" @ "GLIBC_2.2.5";
}
