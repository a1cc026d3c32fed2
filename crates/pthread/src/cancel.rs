//! Cancellation: how a wait on a condition variable can be cancelled, and what runs then.
//!
//! POSIX' cancellation is the thread library's: glibc unwinds the stack and calls the clean-up handlers on the way. Two
//! of its public calls are enough. `pthread_setcanceltype` makes cancellation act at once for the length of one system
//! call, which is what glibc does for its own blocking calls; `_pthread_cleanup_push`, which old `pthread.h` macros
//! used, registers a handler by address of its frame, so nothing has to be caught or unwound in Rust.

use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use spinpark_linux::Linux;
use spinpark_platform::{Deadline, Platform, Wait};

use crate::real;

/// `PTHREAD_CANCEL_ASYNCHRONOUS`.
const AT_ONCE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// A futex wait that is a cancellation point.
///
/// If the thread is cancelled, this does not return: the handler that [`with_handler`] registered runs.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
    let mut old = 0;
    // SAFETY: from here to the second call cancellation may act at any instruction. All that lies between is the
    // system call; the state that the handler needs is in memory, and no frame here has anything to drop.
    unsafe { pthread_setcanceltype(AT_ONCE, &raw mut old) };
    let wait = Linux::futex_wait(word, expected, deadline);
    // SAFETY: restores what the first call returned.
    unsafe { pthread_setcanceltype(old, &raw mut old) };
    wait
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
