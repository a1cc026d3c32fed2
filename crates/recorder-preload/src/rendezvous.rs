//! Threads that wait for each other's progress: barriers, ends of threads, initialisations that run once.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{EBUSY, ETIMEDOUT};
use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site, word};

use crate::function::Function;
use crate::mutex::functions;
use crate::phases::RECORDER;
use crate::wake::{self, End};
use crate::{cancel, next};

/// `PTHREAD_BARRIER_SERIAL_THREAD`: the thread that came last has let the others go.
const SERIAL: c_int = -1;

fn call(address: usize, kind: fn(usize) -> Kind, site: Site) -> LockCall {
    LockCall { address, role: Role::Wake, kind, site }
}

/// Arrives at a barrier. Each arrival is noted: the last one before a thread goes on is the one that it has
/// waited for.
///
/// # Safety
///
/// As to call `pthread_barrier_wait` with these arguments.
unsafe fn arrive<const DETAIL: u32>(arguments: [usize; 4], site: Site) -> c_int {
    let call = call(arguments[0], |_| Kind::Barrier, site);
    wake::wake(&call, || (), |()| true);
    wake::wait::<DETAIL, _>(
        &call,
        false,
        // SAFETY: the caller's arguments.
        |_| unsafe { next::call(Function::pthread_barrier_wait, arguments) },
        |result| if *result == SERIAL { End::AtOnce } else { End::Woken },
    )
}

/// Waits for the end of a thread. `time`: the address of the deadline, or 0.
///
/// # Safety
///
/// As to call the function with these arguments.
unsafe fn join_by<const DETAIL: u32>(
    function: Function,
    arguments: [usize; 4],
    time: usize,
    site: Site,
) -> c_int {
    let call = call(arguments[0], |_| Kind::Join, site);
    wake::wait::<DETAIL, _>(
        &call,
        time != 0,
        // SAFETY: the caller's arguments.
        |cancelled| cancel::with_handler(&call, cancelled, || unsafe { next::call(function, arguments) }),
        |result| match *result {
            0 => End::Woken,
            ETIMEDOUT | EBUSY => End::TimedOut,
            _ => End::AtOnce,
        },
    )
}

/// Runs an initialisation, or waits while another thread does.
///
/// # Safety
///
/// As to call the function with these arguments.
#[inline(always)]
unsafe fn once_by<const DETAIL: u32>(function: Function, arguments: [usize; 4], site: Site) -> c_int {
    /// glibc's: an initialisation is running; it has run.
    const RUNS: u32 = 1;
    const HAS_RUN: u32 = 2;
    // SAFETY: the caller's object, of four bytes.
    let state = unsafe { &*(arguments[0] as *const AtomicU32) }.load(Relaxed);
    // The unwinder has an initialisation of its own, for which threads may wait in the recorder.
    if RECORDER.is_at_work() {
        // SAFETY: the caller's arguments.
        return unsafe { next::call(function, arguments) };
    }
    let call = call(word(arguments[0]), |_| Kind::Once, site);
    if state & (RUNS | HAS_RUN) != RUNS {
        // SAFETY: the caller's arguments.
        let result = unsafe { next::call(function, arguments) };
        if state & HAS_RUN == 0 {
            wake::wake(&call, || (), |()| true);
        }
        return result;
    }
    wake::wait::<DETAIL, _>(
        &call,
        false,
        // SAFETY: the caller's arguments.
        |cancelled| cancel::with_handler(&call, cancelled, || unsafe { next::call(function, arguments) }),
        |_| End::Woken,
    )
}

functions! {
    barrier(barrier, b, c, d, site) = arrive::<DETAIL>([barrier, b, c, d], site);
    join(thread, b, c, d, site) = join_by::<DETAIL>(Function::pthread_join, [thread, b, c, d], 0, site);
    timed_join(thread, b, time, d, site) =
        join_by::<DETAIL>(Function::pthread_timedjoin_np, [thread, b, time, d], time, site);
    clock_join(thread, b, clock, time, site) =
        join_by::<DETAIL>(Function::pthread_clockjoin_np, [thread, b, clock, time], time, site);
    thrd_join(thread, b, c, d, site) = join_by::<DETAIL>(Function::thrd_join, [thread, b, c, d], 0, site);
    once(once, b, c, d, site) = once_by::<DETAIL>(Function::pthread_once, [once, b, c, d], site);
    call_once(once, b, c, d, site) = once_by::<DETAIL>(Function::call_once, [once, b, c, d], site);
}
