//! `syscall`: futexes of the runtimes that have no lock functions of libc's, such as Rust's, C++20's, GLib's
//! and Qt's.
//!
//! It takes seven arguments, of which the last may be on the stack; all are passed on, and all registers of a
//! call that is none of these: it jumps. `errno` is that of the call. What waits in the kernel by itself
//! (libc's own, the drop-in's) is not seen here.
//!
//! The memory of a futex is not read: the kernel may know that it is not there.

use core::ffi::c_int;

use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site, word};

use crate::function::Function;
use crate::next::{self, NEXT};
use crate::semaphore::ended;
use crate::table::{CONTENDED, FULL, SAMPLED};
use crate::{arch, dormant, wake};

/// `syscall`'s own.
const NUMBER: usize = Function::syscall as usize;
/// Calls that libc has no name for yet; the same numbers everywhere.
const FUTEX_WAITV: usize = 449;
const FUTEX_WAKE: usize = 454;
const FUTEX_WAIT: usize = 455;
const FUTEX_REQUEUE: usize = 456;

// The trampoline of `exports`, with the calls that are checked.
core::arch::global_asm!(
    ".pushsection .text.spinpark_profiler, \"ax\", @progbits",
    ".p2align 4",
    ".type spinpark_profiler_syscall, @function",
    "spinpark_profiler_syscall:",
    ".cfi_startproc",
    arch::syscall!(),
    ".cfi_endproc",
    ".popsection",
    number = const NUMBER,
    futex = const libc::SYS_futex,
    first = const FUTEX_WAITV,
    last = const FUTEX_REQUEUE,
    next = sym NEXT,
    control = sym dormant::CONTROL,
    heard = sym dormant::HEARD,
);

/// Defines the function for a detail: it gathers the arguments.
macro_rules! forms {
    ($($name:ident = $detail:ident;)*) => {$(
        /// `syscall`.
        ///
        /// # Safety
        ///
        /// As its namesake.
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(_: usize, _: usize, _: usize, _: usize, _: Site) -> c_int {
            core::arch::naked_asm!(
                ".cfi_startproc",
                arch::call_with_arguments!(),
                ".cfi_endproc",
                call = sym by_detail::$name,
            )
        }
    )*
        mod by_detail {
            use super::*;
            $(
                /// # Safety
                ///
                /// As [`super::recorded`].
                pub(super) unsafe extern "C" fn $name(arguments: &[usize; 7], site: Site) -> isize {
                    // SAFETY: the caller's promise.
                    unsafe { recorded::<$detail>(arguments, site) }
                }
            )*
        }
    };
}

forms! {
    contended = CONTENDED;
    sampled = SAMPLED;
    full = FULL;
}

/// A system call of those that may be one of these.
///
/// # Safety
///
/// As to make it; the site is that of the caller.
#[inline(always)]
unsafe fn recorded<const DETAIL: u32>(arguments: &[usize; 7], site: Site) -> isize {
    let address = arguments[1];
    // SAFETY: the caller's arguments.
    let make = || unsafe { next::call_wide(NUMBER, arguments) };
    let call = LockCall { address: word(address), role: Role::Wake, kind: |_| Kind::Futex, site };
    match futex_use(arguments) {
        Some(FutexUse::Wait { is_timed }) => wake::wait::<DETAIL, _>(&call, is_timed, |_| make(), how),
        Some(FutexUse::Wake { woke }) => wake::wake(&call, make, woke),
        None => make(),
    }
}

/// What a system call does with a futex.
pub(crate) enum FutexUse {
    /// It waits; `is_timed`: until a deadline at most.
    Wait { is_timed: bool },
    /// It wakes threads; `woke`: whether its result says that it did.
    Wake { woke: fn(&isize) -> bool },
}

/// The same of a call with these arguments; none of one that is neither.
#[inline(always)]
pub(crate) fn futex_use(arguments: &[usize; 7]) -> Option<FutexUse> {
    const FUTEX: usize = libc::SYS_futex as usize;
    let [number, _, operation, _, fourth, fifth, _] = *arguments;
    let wait = |deadline| Some(FutexUse::Wait { is_timed: deadline != 0 });
    let wake = |woke: fn(&isize) -> bool| Some(FutexUse::Wake { woke });
    match number {
        FUTEX => match operation as c_int & libc::FUTEX_CMD_MASK {
            libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_LOCK_PI
            | libc::FUTEX_LOCK_PI2
            | libc::FUTEX_WAIT_REQUEUE_PI => wait(fourth),
            libc::FUTEX_WAKE
            | libc::FUTEX_WAKE_BITSET
            | libc::FUTEX_WAKE_OP
            | libc::FUTEX_REQUEUE
            | libc::FUTEX_CMP_REQUEUE
            | libc::FUTEX_CMP_REQUEUE_PI => wake(|woken| *woken > 0),
            libc::FUTEX_UNLOCK_PI => wake(|result| *result == 0),
            _ => None,
        },
        // Of several words the array stands for all: which one woke the thread is not seen.
        FUTEX_WAITV => wait(fourth),
        FUTEX_WAIT => wait(fifth),
        FUTEX_WAKE => wake(|woken| *woken > 0),
        _ => None,
    }
}

fn how(result: &isize) -> wake::End {
    ended(if *result < 0 { -1 } else { 0 })
}
