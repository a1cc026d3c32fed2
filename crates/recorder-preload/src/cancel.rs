//! A thread that is cancelled while it waits for a signal: what was counted for it is taken back.
//!
//! glibc unwinds such a thread and calls the clean-up handlers on the way; `_pthread_cleanup_push`, which old
//! `pthread.h` macros used, registers one by the address of its frame, so nothing has to be caught here.

use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use spinpark_linux::{Scope, lookup};
use spinpark_recorder::LockCall;

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

/// Finds glibc's functions; nulls in a process without the thread library (glibc before 2.34).
pub(crate) fn start() {
    PUSH.store(lookup(Scope::All, c"_pthread_cleanup_push"), Relaxed);
    POP.store(lookup(Scope::All, c"_pthread_cleanup_pop"), Relaxed);
}

struct Context<'a> {
    call: &'a LockCall,
    handler: fn(&LockCall),
}

unsafe extern "C" fn run(context: *mut c_void) {
    // SAFETY: from `with_handler`, in a frame below this one.
    let context = unsafe { &*context.cast::<Context<'_>>() };
    (context.handler)(context.call);
}

/// Runs `body`; if this thread is cancelled in it, `handler` runs.
pub(crate) fn with_handler<R>(call: &LockCall, handler: fn(&LockCall), body: impl FnOnce() -> R) -> R {
    // SAFETY: null or the function's address; the types are those of glibc's pthreadP.h.
    let push = unsafe { mem::transmute::<*mut c_void, Option<Push>>(PUSH.load(Relaxed)) };
    // SAFETY: as above.
    let pop = unsafe { mem::transmute::<*mut c_void, Option<Pop>>(POP.load(Relaxed)) };
    let Some((push, pop)) = push.zip(pop) else { return body() };
    let context = Context { call, handler };
    let mut buffer = MaybeUninit::<Buffer>::uninit();
    // SAFETY: buffer and context stay in this frame until the pop below, or until the unwinder has left the
    // frame.
    unsafe { push(buffer.as_mut_ptr(), run, (&raw const context).cast_mut().cast()) };
    let result = body();
    // SAFETY: the buffer pushed last; 0: do not run the handler.
    unsafe { pop(buffer.as_mut_ptr(), 0) };
    result
}
