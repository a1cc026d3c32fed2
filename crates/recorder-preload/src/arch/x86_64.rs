//! x86-64. (A mutex' fast paths by hand are in [`mutex`](crate::mutex).)
//!
//! A function of the table has the place of its call in r8 and r9, behind four arguments; a starter has its number
//! in eax, and so has a function of `calls`.

/// An instruction that ends the process.
macro_rules! trap {
    () => {
        "ud2"
    };
}
pub(crate) use trap;

/// The version that glibc's oldest functions have.
macro_rules! OLDEST {
    () => {
        "GLIBC_2.2.5"
    };
}
pub(crate) use OLDEST;

/// Whether glibc has older versions of condition variables' functions.
pub(crate) const HAS_OLD: bool = true;

/// What only this architecture has.
macro_rules! on_x86_64 {
    ($($it:tt)*) => {
        $($it)*
    };
}
pub(crate) use on_x86_64;

/// Jumps to a function.
macro_rules! jump_to {
    ($function:literal) => {
        concat!("jmp ", $function)
    };
}
pub(crate) use jump_to;

/// The trampoline of an exported function: two moves, so that ours know where they were called, the bell, a jump.
macro_rules! trampoline {
    ($name:ident, $number:literal) => {
        concat!(
            "mov r8, rsp\n",
            "mov r9, rbp\n",
            // The bell.
            "mov r10d, dword ptr [rip + {heard}]\n",
            "cmp r10d, dword ptr [rip + {control}]\n",
            "jne spinpark_profiler_start_", stringify!($name), "\n",
            $crate::arch::jump!(table $number),
        )
    };
}
pub(crate) use trampoline;

/// Jumps through the table, and says which function this is.
macro_rules! jump {
    (table $number:literal) => {
        concat!("jmp qword ptr [rip + spinpark_profiler_table + 8 * ", stringify!($number), "]")
    };
    ($number:literal) => {
        concat!("mov eax, ", stringify!($number), "\n", $crate::arch::jump!(table $number))
    };
}
pub(crate) use jump;

/// A function of the table before the process has looked around, or when it has heard the bell.
macro_rules! starter {
    ($number:literal) => {
        concat!("mov eax, ", stringify!($number), "\njmp spinpark_profiler_start")
    };
}
pub(crate) use starter;

/// What starters jump to: it looks around, and jumps through the table again.
macro_rules! start {
    () => {
        concat!(
            spinpark_linux::call_and_keep_arguments!("mov edi, eax", "call {first_call}"),
            "lea r10, [rip + spinpark_profiler_table]\n",
            "jmp qword ptr [r10 + 8 * rax]",
        )
    };
}
pub(crate) use start;

/// The trampoline of `syscall`: calls that are none of those that wait go on at once.
macro_rules! syscall {
    () => {
        concat!(
            "cmp rdi, {futex}\n",
            "jne 2f\n",
            "1: mov r10d, dword ptr [rip + {heard}]\n",
            "cmp r10d, dword ptr [rip + {control}]\n",
            "jne spinpark_profiler_start_syscall\n",
            "jmp qword ptr [rip + spinpark_profiler_table + 8 * {number}]\n",
            "2: lea rax, [rdi - {first}]\n",
            "cmp rax, {last} - {first}\n",
            "jbe 1b\n",
            "mov rax, qword ptr [rip + {next} + 8 * {number}]\n",
            "test rax, rax\n",
            "jz 1b\n",
            "jmp rax\n",
        )
    };
}
pub(crate) use syscall;

/// Assembly that calls `{call}` with the caller's seven arguments (as an array), its site, and what `$first`
/// says, and returns.
macro_rules! call_with_arguments {
    ($($first:literal)?) => {
        concat!(
            "push qword ptr [rsp + 8]\n.cfi_adjust_cfa_offset 8\n",
            "push r9\n.cfi_adjust_cfa_offset 8\n",
            "push r8\n.cfi_adjust_cfa_offset 8\n",
            "push rcx\n.cfi_adjust_cfa_offset 8\n",
            "push rdx\n.cfi_adjust_cfa_offset 8\n",
            "push rsi\n.cfi_adjust_cfa_offset 8\n",
            "push rdi\n.cfi_adjust_cfa_offset 8\n",
            "mov rdi, rsp\n",
            // The site: the stack pointer as the caller left it, and its frame pointer.
            "lea rsi, [rsp + 56]\n",
            "mov rdx, rbp\n",
            $($first, "\n",)?
            "call {call}\n",
            "add rsp, 56\n.cfi_adjust_cfa_offset -56\n",
            "ret\n",
        )
    };
}
pub(crate) use call_with_arguments;

/// [`call::held`](crate::call), of the function in eax.
macro_rules! held {
    () => {
        concat!(
            spinpark_linux::call_and_keep_arguments!("call {holds}"),
            "test r11d, r11d\n",
            "jnz 2f\n",
            "lea r10, [rip + {next}]\n",
            "jmp qword ptr [r10 + 8 * rax]\n",
            "2:\n",
            // The seventh argument of one of them (`__recvfrom_chk`); the others do not read it.
            $crate::arch::call_with_arguments!("mov ecx, eax"),
        )
    };
}
pub(crate) use held;

/// Fetches the line of an object that is about to be written. Every x86-64 has the instruction, or takes it
/// for none.
#[inline(always)]
pub(crate) fn fetch(object: usize) {
    // SAFETY: reads and writes nothing.
    unsafe { core::arch::asm!("prefetchw [{}]", in(reg) object, options(nostack, preserves_flags)) };
}
