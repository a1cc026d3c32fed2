//! AArch64.

/// The text of `$call`, which may change what functions may change: the arguments in registers, x9 and the
/// return address stay as they were, and x16 has what the call returned.
#[macro_export]
macro_rules! call_and_keep_arguments {
    ($($call:literal),+) => {
        concat!(
            "stp x29, x30, [sp, #-96]!\n.cfi_def_cfa_offset 96\n.cfi_offset 29, -96\n.cfi_offset 30, -88\n",
            "mov x29, sp\n",
            "stp x0, x1, [sp, #16]\n",
            "stp x2, x3, [sp, #32]\n",
            "stp x4, x5, [sp, #48]\n",
            "stp x6, x7, [sp, #64]\n",
            "stp x8, x9, [sp, #80]\n",
            $($call, "\n",)+
            "mov x16, x0\n",
            "ldp x0, x1, [sp, #16]\n",
            "ldp x2, x3, [sp, #32]\n",
            "ldp x4, x5, [sp, #48]\n",
            "ldp x6, x7, [sp, #64]\n",
            "ldp x8, x9, [sp, #80]\n",
            "ldp x29, x30, [sp], #96\n.cfi_def_cfa_offset 0\n.cfi_restore 29\n.cfi_restore 30\n",
        )
    };
}
