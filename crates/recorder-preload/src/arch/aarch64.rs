//! AArch64.
//!
//! A function of the table has the place of its call in x4 and x5, behind four arguments; a starter has its number
//! in w9, and so has a function of `calls`.
//!
//! The return address is in a register here, and ours want it in a place (`Site`). So the trampoline of such a
//! function calls it, with a frame record of its own: its two words lie where a call would have pushed the return
//! address on x86-64, with the frame pointer below it.

/// An instruction that ends the process.
macro_rules! trap {
    () => {
        "brk #1"
    };
}
pub(crate) use trap;

/// The version that glibc's oldest functions have.
macro_rules! OLDEST {
    () => {
        "GLIBC_2.17"
    };
}
pub(crate) use OLDEST;

/// Whether glibc has older versions of condition variables' functions.
pub(crate) const HAS_OLD: bool = false;

/// What only x86-64 has.
macro_rules! on_x86_64 {
    ($($it:tt)*) => {
        ""
    };
}
pub(crate) use on_x86_64;

/// Jumps to a function.
macro_rules! jump_to {
    ($function:literal) => {
        concat!("b ", $function)
    };
}
pub(crate) use jump_to;

/// Makes a frame record at the end of the caller's frame. x10 points to the return address in it, and x11 has the
/// caller's frame pointer.
macro_rules! enter {
    () => {
        concat!(
            "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset 29, -16\n.cfi_offset 30, -8\n",
            "add x10, sp, #8\n",
            "mov x11, x29\n",
            "mov x29, sp\n",
        )
    };
}
pub(crate) use enter;

/// Returns from what [`enter`] has entered.
macro_rules! leave {
    () => {
        "ldp x29, x30, [sp], #16\n.cfi_def_cfa_offset 0\n.cfi_restore 29\n.cfi_restore 30\nret"
    };
}
pub(crate) use leave;

/// The trampoline of an exported function: so that ours know where they were called, the bell, a call.
macro_rules! trampoline {
    ($name:ident, $number:literal) => {
        concat!(
            $crate::arch::enter!(),
            "mov x4, x10\n",
            "mov x5, x11\n",
            "adrp x16, spinpark_profiler_table + 8 * ",
            stringify!($number),
            "\n",
            "ldr x16, [x16, :lo12:spinpark_profiler_table + 8 * ",
            stringify!($number),
            "]\n",
            // The bell.
            "adrp x17, {heard}\n",
            "ldr w17, [x17, :lo12:{heard}]\n",
            "adrp x12, {control}\n",
            "ldr w12, [x12, :lo12:{control}]\n",
            "cmp w17, w12\n",
            "b.eq 2f\n",
            "adrp x16, spinpark_profiler_start_",
            stringify!($name),
            "\n",
            "add x16, x16, :lo12:spinpark_profiler_start_",
            stringify!($name),
            "\n",
            "2: blr x16\n",
            $crate::arch::leave!(),
        )
    };
}
pub(crate) use trampoline;

/// Jumps through the table, and says which function this is.
macro_rules! jump {
    ($number:literal) => {
        concat!(
            "mov w9, #",
            stringify!($number),
            "\n",
            "adrp x16, spinpark_profiler_table + 8 * ",
            stringify!($number),
            "\n",
            "ldr x16, [x16, :lo12:spinpark_profiler_table + 8 * ",
            stringify!($number),
            "]\n",
            "br x16",
        )
    };
}
pub(crate) use jump;

/// A function of the table before the process has looked around, or when it has heard the bell.
macro_rules! starter {
    ($number:literal) => {
        concat!("mov w9, #", stringify!($number), "\nb spinpark_profiler_start")
    };
}
pub(crate) use starter;

/// What starters jump to: it looks around, and jumps through the table again.
macro_rules! start {
    () => {
        concat!(
            spinpark_linux::call_and_keep_arguments!("mov w0, w9", "bl {first_call}"),
            "adrp x16, spinpark_profiler_table\n",
            "add x16, x16, :lo12:spinpark_profiler_table\n",
            "ldr x16, [x16, w9, uxtw #3]\n",
            "br x16",
        )
    };
}
pub(crate) use start;

/// The trampoline of `syscall`: calls that are none of those that wait go on at once.
macro_rules! syscall {
    () => {
        concat!(
            "cmp x0, #{futex}\n",
            "b.ne 3f\n",
            "2: adrp x16, {heard}\n",
            "ldr w16, [x16, :lo12:{heard}]\n",
            "adrp x17, {control}\n",
            "ldr w17, [x17, :lo12:{control}]\n",
            "cmp w16, w17\n",
            "b.ne spinpark_profiler_start_syscall\n",
            "adrp x16, spinpark_profiler_table + 8 * {number}\n",
            "ldr x16, [x16, :lo12:spinpark_profiler_table + 8 * {number}]\n",
            "br x16\n",
            "3: sub x16, x0, #{first}\n",
            "cmp x16, #({last} - {first})\n",
            "b.ls 2b\n",
            "adrp x16, {next} + 8 * {number}\n",
            "ldr x16, [x16, :lo12:{next} + 8 * {number}]\n",
            "cbz x16, 2b\n",
            "br x16",
        )
    };
}
pub(crate) use syscall;

/// Assembly that calls `{call}` with the caller's seven arguments (as an array), its site, and what `$first`
/// says, and returns.
macro_rules! call_with_arguments {
    ($($first:literal)?) => {
        concat!(
            $crate::arch::enter!(),
            "sub sp, sp, #64\n.cfi_def_cfa_offset 80\n",
            "stp x0, x1, [sp]\n",
            "stp x2, x3, [sp, #16]\n",
            "stp x4, x5, [sp, #32]\n",
            "str x6, [sp, #48]\n",
            "mov x0, sp\n",
            "mov x1, x10\n",
            "mov x2, x11\n",
            $($first, "\n",)?
            "bl {call}\n",
            "add sp, sp, #64\n.cfi_def_cfa_offset 16\n",
            $crate::arch::leave!(),
        )
    };
}
pub(crate) use call_with_arguments;

/// [`call::held`](crate::call), of the function in w9.
macro_rules! held {
    () => {
        concat!(
            spinpark_linux::call_and_keep_arguments!("bl {holds}"),
            "cbnz w16, 2f\n",
            "adrp x16, {next}\n",
            "add x16, x16, :lo12:{next}\n",
            "ldr x16, [x16, w9, uxtw #3]\n",
            "br x16\n",
            "2:\n",
            $crate::arch::call_with_arguments!("mov w3, w9"),
        )
    };
}
pub(crate) use held;

/// Fetches the line of an object that is about to be written.
#[inline(always)]
pub(crate) fn fetch(object: usize) {
    // SAFETY: reads and writes nothing.
    unsafe { core::arch::asm!("prfm pstl1keep, [{}]", in(reg) object, options(nostack, preserves_flags)) };
}
