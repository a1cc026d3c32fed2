//! Cancellation: how a wait on a condition variable can be cancelled, and what runs then.
//!
//! POSIX' cancellation is the thread library's: glibc unwinds the stack and calls the clean-up handlers on the way. Two
//! of its public calls are enough. `pthread_setcanceltype` makes cancellation act at once for the length of one system
//! call, which is what glibc does for its own blocking calls; `_pthread_cleanup_push`, which old `pthread.h` macros
//! used, registers a handler by address of its frame, so nothing has to be caught or unwound in Rust.
//!
//! One thing more is needed. `pthread_cancel` looks at the target's type and then sends a signal; if the target was
//! woken in between, it leaves its wait with a signal of the condition variable used up, and is reported as cancelled
//! when the late signal arrives at its exit. (glibc's own waits look at a private flag for this.) So [`cancel`] counts
//! the calls that are under way, and who leaves a wait meanwhile waits for them and for their effect, with the handler
//! still in place.

use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};

use libc::pthread_t;
use spinpark_linux::Linux;
use spinpark_platform::{Deadline, Platform, Wait};

use crate::real::{self, Name, address};

/// `PTHREAD_CANCEL_DEFERRED`.
const LATER: c_int = 0;
/// `PTHREAD_CANCEL_ASYNCHRONOUS`.
const AT_ONCE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// Calls of [`cancel`] that have begun, ever.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// Calls of [`cancel`] that are under way (low half), in the process of this generation (high half): a forked child
/// does not have the threads that make them.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);

/// How long a waiter waits for cancellations that are under way, in steps of [`STEP_NS`]: a canceller needs
/// microseconds, unless it is off the CPU. Bounded, so that a flood of cancellations cannot hold anybody up.
const STEPS: u32 = 400;
const STEP_NS: u64 = 50_000;

fn under_way() -> u32 {
    let state = UNDER_WAY.load(SeqCst);
    if (state >> 32) as u32 == Linux::generation() { state as u32 } else { 0 }
}

/// Adds `change` to the calls that are under way in this process.
fn count(change: i32) {
    let mine = u64::from(Linux::generation()) << 32;
    let update = |state: u64| {
        let now = if state & !u64::from(u32::MAX) == mine { state as u32 } else { 0 };
        // A call that the parent of this process began is not counted here, nor does its end come here.
        Some(mine | u64::from(now.saturating_add_signed(change)))
    };
    let _ = UNDER_WAY.fetch_update(SeqCst, Relaxed, update);
}

/// `pthread_cancel`: glibc's, counted.
///
/// # Safety
///
/// As POSIX has it.
pub unsafe fn cancel(thread: pthread_t) -> c_int {
    // SAFETY: takes nothing.
    if thread == unsafe { libc::pthread_self() } {
        // Acts at once, perhaps without coming back; and this thread is in no wait.
        // SAFETY: the caller's thread.
        return unsafe { real::pthread_cancel(thread) };
    }
    let mut old = 0;
    // The call is async-cancel-safe, and a canceller that is itself cancelled must not leave its count behind.
    // SAFETY: a public call; restored below.
    unsafe { pthread_setcanceltype(LATER, &raw mut old) };
    BEGUN.fetch_add(1, SeqCst);
    count(1);
    // SAFETY: the caller's thread.
    let result = unsafe { real::pthread_cancel(thread) };
    count(-1);
    // SAFETY: restores what the first call returned.
    unsafe { pthread_setcanceltype(old, &raw mut old) };
    result
}

/// Runs `wait`, a wait in a lock's queue, with cancellation deferred.
///
/// To lock with asynchronous cancellation on is undefined by POSIX and does no harm in glibc. Here the thread would
/// leave its node behind in the queue.
pub(crate) fn deferred<R>(wait: impl FnOnce() -> R) -> R {
    let mut old = 0;
    // SAFETY: a public call; restored below.
    unsafe { pthread_setcanceltype(LATER, &raw mut old) };
    let result = wait();
    if old != LATER {
        // SAFETY: restores what the first call returned.
        unsafe { pthread_setcanceltype(old, &raw mut old) };
    }
    result
}

/// A futex wait that is a cancellation point.
///
/// If the thread is cancelled, this does not return: the handler that [`with_handler`] registered runs.
fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
    let mut old = 0;
    let begun = BEGUN.load(Relaxed);
    let already = under_way() != 0; // one of these may see the type below, and end before the last look
    // SAFETY: from here to the second call cancellation may act at any instruction. All that lies between is the
    // system call; the state that the handler needs is in memory, and no frame here has anything to drop.
    unsafe { pthread_setcanceltype(AT_ONCE, &raw mut old) };
    let wait = Linux::futex_wait(word, expected, deadline);
    // SAFETY: restores what the first call returned.
    unsafe { pthread_setcanceltype(old, &raw mut old) };
    // A canceller that saw the type above has counted itself before that, so it is seen here (Dekker: it counts and
    // then looks at the type; this thread changes the type and then looks at the counts).
    fence(SeqCst);
    if already || BEGUN.load(Relaxed) != begun || under_way() != 0 {
        await_cancellations();
    }
    wait
}

/// Waits until no cancellation is under way; acts on one that was meant for this thread.
#[cold]
#[inline(never)]
fn await_cancellations() {
    for _ in 0..STEPS {
        if under_way() == 0 {
            break;
        }
        // Asleep, not polling: the canceller may be off the CPU, or of lower priority.
        spinpark_linux::nap(STEP_NS);
    }
    // The signal is pending at the latest now; it is delivered on the way out of any system call.
    spinpark_linux::raw::yield_now();
    let test = address(Name::pthread_testcancel);
    // SAFETY: null or the function's address.
    if let Some(test) = unsafe { mem::transmute::<*mut c_void, Option<Test>>(test) } {
        // SAFETY: does not return if this thread is cancelled; the handler is in place.
        unsafe { test() };
    }
}

/// glibc's `struct _pthread_cleanup_buffer`.
#[repr(C)]
struct Buffer {
    routine: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut Self,
}

type Push = unsafe extern "C" fn(*mut Buffer, unsafe extern "C" fn(*mut c_void), *mut c_void);
type Pop = unsafe extern "C" fn(*mut Buffer, c_int);
type Test = unsafe extern "C" fn();

fn push_and_pop() -> Option<(Push, Pop)> {
    // SAFETY: null or the function's address; the types are those of glibc's pthreadP.h.
    let push = unsafe { mem::transmute::<*mut c_void, Option<Push>>(address(Name::_pthread_cleanup_push)) };
    // SAFETY: as above.
    let pop = unsafe { mem::transmute::<*mut c_void, Option<Pop>>(address(Name::_pthread_cleanup_pop)) };
    push.zip(pop)
}

/// A futex wait.
type Sleep = fn(&AtomicU32, u32, Option<Deadline>) -> Wait;

/// Runs `body` with `handler(context)` to be called if this thread is cancelled in the wait that `body` gets.
///
/// The handler runs on top of the stack of `body`, whose frames are all still there.
///
/// In a process without the thread library (glibc before 2.34) there is no handler and no other thread to cancel this one:
/// the wait is no cancellation point then.
pub(crate) fn with_handler<C>(
    context: &C,
    handler: unsafe extern "C" fn(*mut c_void),
    body: impl FnOnce(Sleep),
) {
    let Some((push, pop)) = push_and_pop() else { return body(Linux::futex_wait) };
    let mut buffer = MaybeUninit::<Buffer>::uninit();
    let argument = ptr::from_ref(context).cast_mut().cast();
    // SAFETY: the buffer stays in this frame until the pop below, or until the unwinder has left the frame.
    unsafe { push(buffer.as_mut_ptr(), handler, argument) };
    body(futex_wait);
    // SAFETY: the buffer pushed last; 0: do not run the handler.
    unsafe { pop(buffer.as_mut_ptr(), 0) };
}
