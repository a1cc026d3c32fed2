//! `dlopen`, `dlmopen` and `dlsym`: each asks `spinpark-pthread` where its call goes on, and jumps there.

use spinpark_pthread::loader;

/// Defines a function that calls `$where` and jumps to the address that it returns, with its own three arguments and return
/// address. Exported as in [`export`](crate::export).
macro_rules! jump {
    ($where:path, $([$alias:literal as $symbol:literal]),+) => {
        core::arch::global_asm!(
            ".pushsection .text.unlikely.spinpark_loader, \"ax\", @progbits",
            $(
                concat!(".globl ", $alias),
                concat!(".type ", $alias, ", @function"),
                concat!($alias, ":"),
                concat!(".symver ", $alias, ", ", $symbol),
            )+
            ".cfi_startproc",
            "push rdi",
            "push rsi",
            "push rdx",
            ".cfi_adjust_cfa_offset 24", // the stack is aligned now
            "call {function}",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            ".cfi_adjust_cfa_offset -24",
            "jmp rax",
            ".cfi_endproc",
            ".popsection",
            function = sym $where,
        );
    };
}

jump!(loader::open, ["spinpark_dlopen_0" as "dlopen@GLIBC_2.2.5"], ["spinpark_dlopen_1" as "dlopen@@GLIBC_2.34"]);
jump!(loader::open_in, ["spinpark_dlmopen_0" as "dlmopen@GLIBC_2.3.4"], ["spinpark_dlmopen_1" as "dlmopen@@GLIBC_2.34"]);
jump!(loader::symbol, ["spinpark_dlsym_0" as "dlsym@GLIBC_2.2.5"], ["spinpark_dlsym_1" as "dlsym@@GLIBC_2.34"]);
