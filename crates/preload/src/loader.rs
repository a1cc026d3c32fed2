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
            ".cfi_adjust_cfa_offset 8",
            "push rsi",
            ".cfi_adjust_cfa_offset 8",
            "push rdx",
            ".cfi_adjust_cfa_offset 8", // the stack is aligned now
            "call {function}",
            "pop rdx",
            ".cfi_adjust_cfa_offset -8",
            "pop rsi",
            ".cfi_adjust_cfa_offset -8",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            "jmp rax",
            ".cfi_endproc",
            $(concat!(".size ", $alias, ", . - ", $alias),)+
            ".popsection",
            function = sym $where,
        );
    };
}

jump!(loader::open, ["spinpark_dlopen_0" as "dlopen@GLIBC_2.2.5"], ["spinpark_dlopen_1" as "dlopen@@GLIBC_2.34"]);
jump!(loader::open_in, ["spinpark_dlmopen_0" as "dlmopen@GLIBC_2.3.4"], ["spinpark_dlmopen_1" as "dlmopen@@GLIBC_2.34"]);
// Not `dlsym@GLIBC_2.2.5`, which programs linked before glibc 2.34 call: under that name this library asks for glibc's own.
jump!(loader::symbol, ["spinpark_dlsym" as "dlsym@@GLIBC_2.34"]);
