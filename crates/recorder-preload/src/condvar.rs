//! `pthread_cond_*`. The real wait is called: its semantics, cancellation among them, are the next
//! implementation's.
//!
//! Those of the oldest version (`GLIBC_2.2.5`), to which symbols without a version are bound, keep the
//! condition variable elsewhere: they are functions of their own.
//!
//! The mutex counts as released at the call and as acquired at the return: the time between is the condition
//! variable's.

use core::ffi::c_int;

use libc::ETIMEDOUT;
use spinpark_linux::Linux;
use spinpark_platform::{Clock, Clocks, Deadline};
use spinpark_recorder::format::{Detail, Kind, Role};
use spinpark_recorder::{LockCall, Releasing, Site};

use crate::function::Function;
use crate::instrument::enter_late;
use crate::mutex::{self, dispose, functions, initialise};
use crate::phases::{RECORDER, look_for_wishes};
use crate::{cancel, mutex_layout, next};

#[inline(always)]
fn call(address: usize, site: Site) -> LockCall {
    LockCall { address, role: Role::Signal, kind: |_| Kind::Condvar, site }
}

/// How long ago the deadline was, ns. Of which clock it is only the condition variable knows: it is the one
/// by which it is over, and only just. Where another library moves the clock and converts deadlines, it may
/// be none of the kernel's: what is longer than the wait is cut off by the recorder.
unsafe fn late_by(time: usize) -> u64 {
    // SAFETY: the caller's timespec, by which it waited just now.
    let time = unsafe { *(time as *const libc::timespec) };
    let late = [Clock::Realtime, Clock::Monotonic].map(|clock| {
        let deadline = Deadline::from_timespec(clock, time.tv_sec, time.tv_nsec as u32);
        Linux::now(clock).checked_sub(deadline.at)
    });
    late.into_iter().flatten().min().unwrap_or(0)
}

/// Waits. `time`: the address of the deadline, or 0.
///
/// # Safety
///
/// As to call the function with these arguments: a condition variable, a mutex that the caller holds.
pub(crate) unsafe fn wait_by<const DETAIL: u32>(
    function: Function,
    arguments: [usize; 4],
    time: usize,
    timed_out: c_int,
    site: Site,
) -> c_int {
    let [cond, mutex, ..] = arguments;
    let call = call(cond, site);
    let begun = if DETAIL == Detail::Off as u32 { None } else { enter_late(false) };
    let Some(own) = begun else {
        // SAFETY: the caller's arguments.
        let result = unsafe { next::call(function, arguments) };
        look_for_wishes::<DETAIL>();
        return result;
    };
    let mut releasing = RECORDER.release(own, mutex);
    if matches!(releasing, Releasing::Unknown) && mutex_layout::is_held_recursively(mutex) {
        releasing = Releasing::Again;
    }
    let is_hot = RECORDER.is_hot(mutex);
    let mutex_call = mutex::call(mutex, site);
    let is_light =
        DETAIL == Detail::Contended as u32 && RECORDER.turn_to_wait(RECORDER.now()) && RECORDER.is_hot(cond);
    RECORDER.not_passed(mutex);
    let is_awaited = !is_light && mutex_layout::is_awaited(mutex) == Some(true);
    let hand_off =
        is_hot.then(|| RECORDER.hand_off(own, &mutex_call, (false, is_awaited), &releasing)).flatten();
    if let Releasing::Last(release) = &releasing {
        RECORDER.released(own, release, hand_off.map(|hand_off| (mutex, hand_off)));
    } else if let Some(hand_off) = &hand_off {
        RECORDER.handed_off_unnoted(own, &mutex_call, hand_off);
    }
    let is_mutex_noted = !matches!(releasing, Releasing::Unknown);
    let wait = match is_light {
        true => RECORDER.begin_light_signal_wait(own, &call, mutex, time != 0),
        false => RECORDER.begin_signal_wait(own, &call, (mutex, None), time != 0),
    };
    RECORDER.leave();
    let cancelled = if wait.is_counted() { cancelled } else { cancelled_light };
    // SAFETY: the caller's arguments.
    let result = cancel::with_handler(&call, cancelled, || unsafe { next::call(function, arguments) });
    let Some(own) = RECORDER.enter() else { return result };
    let late = (result == timed_out && time != 0).then(|| {
        // SAFETY: the caller's timespec.
        unsafe { late_by(time) }
    });
    RECORDER.end_signal_wait(own, &call, &wait, late);
    if !is_mutex_noted {
        RECORDER.released_unseen(own);
    }
    let is_contended = DETAIL == Detail::Contended as u32;
    let is_passed = is_contended && RECORDER.is_light();
    let is_left_out = is_passed || is_contended && RECORDER.leaves_out(mutex);
    if is_left_out {
        if !is_passed && RECORDER.is_awaited_and_free(mutex) {
            RECORDER.barged(mutex);
        }
    } else if is_mutex_noted || DETAIL == Detail::Full as u32 || RECORDER.is_hot(mutex) {
        let is_timed = DETAIL == Detail::Full as u32;
        let prepared = RECORDER.prepare_call(own, &mutex_call, is_timed);
        RECORDER.acquired_at_once(own, &mutex_call, prepared, is_timed);
    } else if DETAIL == Detail::Sampled as u32 {
        RECORDER.count_or_sample(own, &mutex_call);
    }
    RECORDER.leave();
    look_for_wishes::<DETAIL>();
    result
}

/// The thread was cancelled in its wait. It holds the mutex, and nothing is noted of that.
fn cancelled(call: &LockCall) {
    RECORDER.cancel_signal_wait(call, true);
}

/// The same of a wait that began in a light span.
fn cancelled_light(call: &LockCall) {
    RECORDER.cancel_signal_wait(call, false);
}

/// Signals.
///
/// # Safety
///
/// As to call the function with this condition variable.
#[inline(always)]
pub(crate) unsafe fn signal_by<const DETAIL: u32>(
    function: Function,
    cond: usize,
    is_to_all: bool,
    site: Site,
) -> c_int {
    let is_noted =
        DETAIL != Detail::Contended as u32 || RECORDER.is_hot(cond) && !RECORDER.passes_signal(cond);
    if is_noted && let Some(own) = RECORDER.enter() {
        RECORDER.signal(own, &call(cond, site), is_to_all);
        RECORDER.leave();
    }
    // SAFETY: the caller's condition variable.
    unsafe { next::call(function, [cond, 0, 0, 0]) }
}

functions! {
    wait(cond, mutex, c, d, site) =
        wait_by::<DETAIL>(Function::pthread_cond_wait, [cond, mutex, c, d], 0, ETIMEDOUT, site);
    timed_wait(cond, mutex, time, d, site) =
        wait_by::<DETAIL>(Function::pthread_cond_timedwait, [cond, mutex, time, d], time, ETIMEDOUT, site);
    clock_wait(cond, mutex, clock, time, site) =
        wait_by::<DETAIL>(Function::pthread_cond_clockwait, [cond, mutex, clock, time], time, ETIMEDOUT, site);
    signal(cond, _b, _c, _d, site) = signal_by::<DETAIL>(Function::pthread_cond_signal, cond, false, site);
    broadcast(cond, _b, _c, _d, site) = signal_by::<DETAIL>(Function::pthread_cond_broadcast, cond, true, site);
    init(cond, attributes, c, d, site) = initialise::<DETAIL>(Function::pthread_cond_init, [cond, attributes, c, d], site);
    old_wait(cond, mutex, c, d, site) =
        wait_by::<DETAIL>(Function::old_pthread_cond_wait, [cond, mutex, c, d], 0, ETIMEDOUT, site);
    old_timed_wait(cond, mutex, time, d, site) =
        wait_by::<DETAIL>(Function::old_pthread_cond_timedwait, [cond, mutex, time, d], time, ETIMEDOUT, site);
    old_signal(cond, _b, _c, _d, site) = signal_by::<DETAIL>(Function::old_pthread_cond_signal, cond, false, site);
    old_broadcast(cond, _b, _c, _d, site) = signal_by::<DETAIL>(Function::old_pthread_cond_broadcast, cond, true, site);
    old_init(cond, attributes, c, d, site) =
        initialise::<DETAIL>(Function::old_pthread_cond_init, [cond, attributes, c, d], site);
}

/// `pthread_cond_destroy` of the oldest version.
///
/// # Safety
///
/// As its namesake.
pub(crate) unsafe extern "C" fn old_destroy(
    cond: usize,
    _b: usize,
    _c: usize,
    _d: usize,
    _site: Site,
) -> c_int {
    // SAFETY: the caller's condition variable.
    unsafe { dispose(Function::old_pthread_cond_destroy, cond) }
}

/// `pthread_cond_destroy`.
///
/// # Safety
///
/// As its namesake.
pub(crate) unsafe extern "C" fn destroy(cond: usize, _b: usize, _c: usize, _d: usize, _site: Site) -> c_int {
    // SAFETY: the caller's condition variable.
    unsafe { dispose(Function::pthread_cond_destroy, cond) }
}
