//! Thread-local memory without std: a block that is all zero in a new thread, and its address.
//!
//! `#[thread_local]` is not stable, and `thread_local!` is std. So the block is defined and addressed in
//! assembly, with the initial-exec model (one load; the block is in static TLS in executables and in
//! libraries loaded at start).

/// Defines a function that returns the address of the calling thread's block.
///
/// `thread_block!(fn local() -> *mut Local = "symbol");`: the type is at most 16-byte aligned, and all zero
/// is a valid value of it. The symbol is hidden; a version in its name keeps two versions of a crate in one
/// program apart.
#[macro_export]
macro_rules! thread_block {
    ($(#[$doc:meta])* $vis:vis fn $local:ident() -> *mut $type:ty = $symbol:literal) => {
        const _: () = assert!(core::mem::align_of::<$type>() <= 16);
        core::arch::global_asm!(
            ".pushsection .tbss,\"awT\",@nobits",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ", @object"),
            concat!(".size ", $symbol, ", {size}"),
            ".p2align 4",
            concat!($symbol, ":"),
            ".zero {size}",
            ".popsection",
            size = const core::mem::size_of::<$type>(),
        );

        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        $vis fn $local() -> *mut $type {
            let local: *mut $type;
            // SAFETY: the initial-exec sequence: the variable's offset from the GOT, plus the thread pointer
            // at fs:0.
            unsafe {
                core::arch::asm!(
                    concat!("mov {local}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    "add {local}, qword ptr fs:[0]",
                    local = out(reg) local,
                    options(pure, readonly, nostack),
                );
            }
            local
        }

        $(#[$doc])*
        #[cfg(target_arch = "aarch64")]
        #[inline(always)]
        $vis fn $local() -> *mut $type {
            let local: *mut $type;
            // SAFETY: the initial-exec sequence: the variable's offset from the GOT, plus the thread pointer.
            unsafe {
                core::arch::asm!(
                    "mrs {local}, tpidr_el0",
                    concat!("adrp {offset}, :gottprel:", $symbol),
                    concat!("ldr {offset}, [{offset}, #:gottprel_lo12:", $symbol, "]"),
                    "add {local}, {local}, {offset}",
                    local = out(reg) local,
                    offset = out(reg) _,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            local
        }
    };
}
