//! Watching a call that blocks until another thread lets it go on, and the call that does: what semaphores,
//! barriers, ends of threads and futexes have in common. Nothing is held afterwards, as far as is known here.

use spinpark_recorder::{Blocking, LockCall, Lot};

use crate::phases::{self, RECORDER, look_for_wishes};
use crate::table::CONTENDED;

/// How such a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It blocked, and was woken or interrupted.
    Woken,
    /// Its time was over.
    TimedOut,
    /// It did not block.
    AtOnce,
}

/// What runs if the thread is cancelled while it blocks; for
/// [`cancel::with_handler`](crate::cancel::with_handler).
pub(crate) type Cancelled = fn(&LockCall);

fn cancelled(call: &LockCall) {
    RECORDER.cancel_wait(call, true);
}

fn cancelled_left_out(call: &LockCall) {
    RECORDER.cancel_wait(call, false);
}

/// Runs `body`, which is likely to block; `is_timed`: until a deadline at most.
#[cold]
#[inline(never)]
pub(crate) fn wait<const DETAIL: u32, R>(
    call: &LockCall,
    is_timed: bool,
    body: impl FnOnce(Cancelled) -> R,
    end: impl FnOnce(&R) -> End,
) -> R {
    let mut start = RECORDER.now();
    let entered = RECORDER.enter().or_else(|| {
        // To begin a recording is not waiting.
        let own = phases::late(false).then(|| RECORDER.enter()).flatten();
        start = RECORDER.now();
        own
    });
    let Some(own) = entered else { return body(cancelled_left_out) };
    RECORDER.count_other();
    // No thread is known to have it.
    let owner = Some(0);
    let mut lot = Lot::None;
    if DETAIL == CONTENDED {
        match RECORDER.begin_left_out(own, call, (start, owner, is_timed)) {
            Ok(left_out) => {
                RECORDER.leave();
                let result = body(cancelled_left_out);
                let Some(own) = RECORDER.enter() else { return result };
                let end = end(&result);
                if let Some(ended) =
                    RECORDER.end_left_out(own, call, left_out, (end != End::Woken).then_some(0))
                {
                    note(end, || RECORDER.went_on(own, call, &ended), || RECORDER.gave_up(own, &ended));
                }
                RECORDER.leave();
                look_for_wishes::<DETAIL>();
                return result;
            }
            Err(asked) => lot = asked,
        }
    }
    let wait = RECORDER.begin_wait(
        own,
        call,
        &Blocking { start, owner, is_exact: false, is_timed, is_shared: false, lot },
    );
    RECORDER.leave();
    let result = body(if wait.is_counted() { cancelled } else { cancelled_left_out });
    let Some(own) = RECORDER.enter() else { return result };
    let ended = RECORDER.end_wait(own, call, &wait);
    note(end(&result), || RECORDER.went_on(own, call, &ended), || RECORDER.gave_up(own, &ended));
    RECORDER.leave();
    look_for_wishes::<DETAIL>();
    result
}

fn note(end: End, woken: impl FnOnce(), timed_out: impl FnOnce()) {
    match end {
        End::Woken => woken(),
        End::TimedOut => timed_out(),
        End::AtOnce => {}
    }
}

/// Runs `body`, which wakes threads that wait at the address of the call; `woke`: whether it did.
#[inline(always)]
pub(crate) fn wake<R>(call: &LockCall, body: impl FnOnce() -> R, woke: impl FnOnce(&R) -> bool) -> R {
    if !RECORDER.is_hot(call.address) {
        return body();
    }
    let Some(own) = RECORDER.enter() else { return body() };
    let wake = RECORDER.begin_wake(own, call);
    let result = body();
    if let Some(wake) = &wake {
        RECORDER.end_wake(own, call, wake, woke(&result));
    }
    RECORDER.leave();
    result
}
