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
//! the calls that begin and end, and who leaves a wait while any of them is under way waits for it and then for its
//! effect, with the handler still in place.

use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed, Ordering::SeqCst, fence};

use libc::pthread_t;
use spinpark_linux::Linux;
use spinpark_platform::{Deadline, Platform, Wait};

use crate::real;

/// `PTHREAD_CANCEL_ASYNCHRONOUS`.
const AT_ONCE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// Calls of [`cancel`] that have begun.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// Calls of [`cancel`] that have ended: the target has been sent its signal.
static ENDED: AtomicU32 = AtomicU32::new(0);

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
    BEGUN.fetch_add(1, SeqCst);
    // SAFETY: the caller's thread.
    let result = unsafe { real::pthread_cancel(thread) };
    ENDED.fetch_add(1, SeqCst);
    result
}

/// A futex wait that is a cancellation point.
///
/// If the thread is cancelled, this does not return: the handler that [`with_handler`] registered runs.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
    let mut old = 0;
    let begun = BEGUN.load(Relaxed);
    // SAFETY: from here to the second call cancellation may act at any instruction. All that lies between is the
    // system call; the state that the handler needs is in memory, and no frame here has anything to drop.
    unsafe { pthread_setcanceltype(AT_ONCE, &raw mut old) };
    let wait = Linux::futex_wait(word, expected, deadline);
    // SAFETY: restores what the first call returned.
    unsafe { pthread_setcanceltype(old, &raw mut old) };
    // A canceller that saw the type above has counted itself before that, so it is seen here (Dekker: it counts and
    // then looks at the type; this thread changes the type and then looks at the count).
    fence(SeqCst);
    if BEGUN.load(Relaxed) != begun || ENDED.load(Relaxed) != begun {
        await_cancellations();
    }
    wait
}

/// Waits until no cancellation is under way; acts on one that was meant for this thread.
#[cold]
#[inline(never)]
fn await_cancellations() {
    loop {
        let ended = ENDED.load(SeqCst);
        if BEGUN.load(SeqCst) == ended {
            break;
        }
        spinpark_linux::raw::yield_now(); // the canceller may be off the CPU
    }
    // The signal is pending at the latest now; it is delivered on the way out of any system call.
    spinpark_linux::raw::yield_now();
    // SAFETY: null or the function's address.
    let test = unsafe {
        mem::transmute::<*mut c_void, Option<unsafe extern "C" fn()>>(real::any(c"pthread_testcancel"))
    };
    if let Some(test) = test {
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

static PUSH: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static POP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// glibc's push and pop; `None` in a process without the thread library (glibc before 2.34), where nobody can be
/// cancelled.
fn push_and_pop() -> Option<(Push, Pop)> {
    let (mut push, mut pop) = (PUSH.load(Relaxed), POP.load(Relaxed));
    if push.is_null() || pop.is_null() {
        push = real::any(c"_pthread_cleanup_push");
        pop = real::any(c"_pthread_cleanup_pop");
        PUSH.store(push, Relaxed);
        POP.store(pop, Relaxed);
    }
    // SAFETY: null or the function's address; the types are those of glibc's pthreadP.h.
    let push = unsafe { mem::transmute::<*mut c_void, Option<Push>>(push) };
    // SAFETY: as above.
    let pop = unsafe { mem::transmute::<*mut c_void, Option<Pop>>(pop) };
    push.zip(pop)
}

/// Runs `body` with `handler(context)` to be called if this thread is cancelled in it.
///
/// The handler runs on top of the stack of `body`, whose frames are all still there.
pub(crate) fn with_handler<C>(context: &C, handler: unsafe extern "C" fn(*mut c_void), body: impl FnOnce()) {
    let Some((push, pop)) = push_and_pop() else { return body() };
    let mut buffer = MaybeUninit::<Buffer>::uninit();
    let argument = ptr::from_ref(context).cast_mut().cast();
    // SAFETY: the buffer stays in this frame until the pop below, or until the unwinder has left the frame.
    unsafe { push(buffer.as_mut_ptr(), handler, argument) };
    body();
    // SAFETY: the buffer pushed last; 0: do not run the handler.
    unsafe { pop(buffer.as_mut_ptr(), 0) };
}
