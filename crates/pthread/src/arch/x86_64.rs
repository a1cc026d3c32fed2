//! x86-64.

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

/// Goes to `{from}` with the address that it returns to as another argument, which is its second or third.
macro_rules! with_caller {
    (second) => {
        "mov rsi, qword ptr [rsp]\njmp {from}\n"
    };
    (third) => {
        "mov rdx, qword ptr [rsp]\njmp {from}\n"
    };
}
pub(crate) use with_caller;
