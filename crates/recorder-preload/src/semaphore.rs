//! `sem_*`. One that has a count is taken without a record: no thread waits. The thread only notes for itself
//! that it has it ([`Recorder::semaphore_taken`](spinpark_recorder::Recorder::semaphore_taken)).

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site};

use crate::function::Function;
use crate::mutex::functions;
use crate::phases::RECORDER;
use crate::wake::{self, End};
use crate::{cancel, instrument, next};

#[inline(always)]
fn call(address: usize, site: Site) -> LockCall {
    LockCall { address, role: Role::Wake, kind: |_| Kind::Semaphore, site }
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
    let result = if count.load(Relaxed) > 0 {
        // SAFETY: the caller's arguments.
        unsafe { next::call(function, arguments) }
    } else {
        let call = call(arguments[0], site);
        wake::wait::<DETAIL, _>(
            &call,
            time != 0,
            // SAFETY: the caller's arguments.
            |cancelled| cancel::with_handler(&call, cancelled, || unsafe { next::call(function, arguments) }),
            |result| ended(*result),
        )
    };
    if result == 0 {
        RECORDER.semaphore_taken(arguments[0]);
    }
    result
}

/// Tries. A thread that goes on trying waits, as at `pthread_mutex_trylock`.
///
/// # Safety
///
/// As to call the function with these arguments.
#[inline(always)]
unsafe fn try_it(arguments: [usize; 4], site: Site) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe { next::call(Function::sem_trywait, arguments) };
    // A failed call says why in `errno`: that it would have to wait, or that it is no semaphore, which no
    // implementation finds out.
    if result == 0 {
        RECORDER.semaphore_taken(arguments[0]);
        if RECORDER.is_polling() {
            polled(&call(arguments[0], site));
        }
    } else {
        failed(&call(arguments[0], site));
    }
    result
}

#[cold]
#[inline(never)]
fn polled(call: &LockCall) {
    if let Some(own) = RECORDER.enter() {
        RECORDER.polled(own, call);
        RECORDER.leave();
    }
}

#[cold]
#[inline(never)]
fn failed(call: &LockCall) {
    if let Some(own) = instrument::enter_late(true) {
        // No thread is known to have it.
        RECORDER.failed(own, call, Some(0));
        RECORDER.leave();
    }
}

/// Creates one. As a lock, it has a count of 1 and is used by threads of this process only.
///
/// # Safety
///
/// As to call `sem_init` with these arguments.
unsafe fn create(arguments: [usize; 4]) -> c_int {
    let [semaphore, is_shared, count, _] = arguments;
    // Both are 32 bits wide; of the registers' upper halves nothing is known.
    RECORDER.semaphore_created(semaphore, is_shared as c_int == 0 && count as u32 == 1);
    // SAFETY: the caller's arguments.
    unsafe { next::call(Function::sem_init, arguments) }
}

/// Posts. Before: afterwards the memory may be gone.
///
/// # Safety
///
/// As to call `sem_post` with these arguments.
#[inline(always)]
unsafe fn post_it(arguments: [usize; 4], site: Site) -> c_int {
    RECORDER.semaphore_posted(arguments[0]);
    // SAFETY: the caller's arguments.
    let body = || unsafe { next::call(Function::sem_post, arguments) };
    wake::wake(&call(arguments[0], site), body, |result| *result == 0)
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
    post(semaphore, b, c, d, site) = post_it([semaphore, b, c, d], site);
    try_wait(semaphore, b, c, d, site) = try_it([semaphore, b, c, d], site);
    init(semaphore, is_shared, count, d, _site) = create([semaphore, is_shared, count, d]);
}
