//! `sem_*`. One that has a count is taken without a record: no thread waits.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{Call, Site};

use crate::function::Function;
use crate::mutex::functions;
use crate::wake::{self, End};
use crate::{cancel, next};

#[inline(always)]
fn call(address: usize, site: Site) -> Call {
    Call { address, role: Role::Wake, kind: |_| Kind::Semaphore, site }
}

/// Waits. `time`: the address of the deadline, or 0.
///
/// # Safety
///
/// As to call the function with these arguments.
#[inline(always)]
unsafe fn wait_by<const DETAIL: u32>(
    function: Function,
    arguments: [usize; 4],
    time: usize,
    site: Site,
) -> c_int {
    // The lower half of glibc's first eight bytes is the count, since 2.21; anything else is a wait of no
    // length. SAFETY: the caller's semaphore.
    let count = unsafe { &*(arguments[0] as *const AtomicU32) };
    if count.load(Relaxed) > 0 {
        // SAFETY: the caller's arguments.
        return unsafe { next::call(function, arguments) };
    }
    let call = call(arguments[0], site);
    wake::wait::<DETAIL, _>(
        &call,
        time != 0,
        // SAFETY: the caller's arguments.
        |cancelled| cancel::with_handler(&call, cancelled, || unsafe { next::call(function, arguments) }),
        |result| ended(*result),
    )
}

/// How a call that answers 0, or -1 with a number in `errno`, ended.
pub(crate) fn ended(result: c_int) -> End {
    if result >= 0 {
        return End::Woken;
    }
    // SAFETY: takes nothing.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: this thread's.
    match unsafe { *errno } {
        libc::EINTR => End::Woken,
        libc::ETIMEDOUT => End::TimedOut,
        _ => End::AtOnce,
    }
}

functions! {
    wait(semaphore, b, c, d, site) = wait_by::<DETAIL>(Function::sem_wait, [semaphore, b, c, d], 0, site);
    timed_wait(semaphore, time, c, d, site) =
        wait_by::<DETAIL>(Function::sem_timedwait, [semaphore, time, c, d], time, site);
    clock_wait(semaphore, clock, time, d, site) =
        wait_by::<DETAIL>(Function::sem_clockwait, [semaphore, clock, time, d], time, site);
    post(semaphore, b, c, d, site) = wake::wake(
        &call(semaphore, site),
        || next::call(Function::sem_post, [semaphore, b, c, d]),
        |result| *result == 0,
    );
}
