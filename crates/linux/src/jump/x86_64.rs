//! x86-64.

/// The text of `$call`, which may change what functions may change: the arguments in registers and rax stay
/// as they were, and r11 has what the call returned. The stack is aligned for it, as it is at the start of a
/// function.
#[macro_export]
macro_rules! call_and_keep_arguments {
    ($($call:literal),+) => {
        $crate::kept_around!(($($call),+) "rdi" "rsi" "rdx" "rcx" "r8" "r9" "rax")
    };
}

/// The text of a call between pushes of these registers, and what takes them back.
#[doc(hidden)]
#[macro_export]
macro_rules! kept_around {
    (($($call:literal),+)) => {
        concat!($($call, "\n",)+ "mov r11, rax\n")
    };
    (($($call:literal),+) $first:literal $($other:literal)*) => {
        concat!(
            "push ", $first, "\n.cfi_adjust_cfa_offset 8\n",
            $crate::kept_around!(($($call),+) $($other)*),
            "pop ", $first, "\n.cfi_adjust_cfa_offset -8\n",
        )
    };
}
