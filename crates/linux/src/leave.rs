//! How a thread leaves a call that waits for a lock without coming back: by unwinding, where cancellation or a
//! handler's `pthread_exit` ends it. What it does first, where it can be cancelled, and exits that are put off.
//!
//! The layer above knows cancellation: two functions of it are called from here ([`leave_by`]).

use core::cell::Cell;
use core::ffi::c_void;
use core::mem;
use core::ptr;
use core::sync::atomic::{compiler_fence, AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};

use spinpark_platform::Wait;

// ---- the calls of a thread

/// What a thread remembers of its calls. All zero in a new thread.
#[repr(C)]
struct Leaving {
    /// See [`Call`].
    call: *const Call,
    /// See [`put_off_exit`].
    exits: PutOffExit,
}

crate::thread_block!(fn leaving() -> *mut Leaving = "spinpark_0_1_leaving");

/// An exit that the calling thread has put off.
#[derive(Clone, Copy)]
#[repr(C)]
struct PutOffExit {
    /// The call, or null: none is put off.
    of: *const Call,
    value: *mut c_void,
}

/// A call in which a thread waits: what leaving it by unwinding needs.
///
/// A thread's calls are a chain, from that of a signal handler to the one that the handler interrupts. One
/// pointer tells which is the innermost, so that a handler between any two steps finds a whole chain.
#[repr(C)]
#[derive(Debug)]
pub struct Call {
    state: Cell<u32>,
    /// What the thread does as it leaves the call, or null: it cannot be left. See
    /// [`or_leave`](crate::leave).
    leave: Cell<*const c_void>,
    /// See [`being_left_in`](Self::being_left_in).
    left_in: Cell<*const c_void>,
    outer: *const Self,
}

/// Its address stands for the place of a call that the thread has left by unwinding.
static LEFT: u8 = 0;

/// In the state of a call: the thread is or may be in a queue.
const IN_QUEUE: u32 = 1;
/// In the state of a call: a sleep in it acts on cancellation at once.
const CANCELLABLE: u32 = 2;

impl Call {
    fn left() -> *const c_void {
        (&raw const LEFT).cast()
    }

    /// A call by the calling thread, in which sleeps act on cancellation at once if it `is_cancellable`.
    #[must_use]
    pub fn new(is_cancellable: bool) -> Self {
        let state = Cell::new(if is_cancellable { CANCELLABLE } else { 0 });
        let [leave, left_in] = [const { Cell::new(ptr::null()) }; 2];
        Self { state, leave, left_in, outer: Self::innermost() }
    }

    /// The calling thread's innermost call, or null.
    #[must_use]
    pub fn innermost() -> *const Self {
        // SAFETY: the block belongs to this thread.
        unsafe { (*leaving()).call }
    }

    /// Begins `call`.
    ///
    /// # Safety
    ///
    /// It is [ended](Self::end) before its frame is left.
    pub unsafe fn begin(call: *const Self) {
        Self::set(call);
    }

    /// Ends the call.
    pub fn end(&self) {
        Self::set(self.outer);
    }

    fn set(call: *const Self) {
        // SAFETY: the block belongs to this thread.
        unsafe { (*leaving()).call = call };
    }

    /// Whether sleeps in it act on cancellation at once.
    #[must_use]
    pub fn is_cancellable(&self) -> bool {
        self.state.get() & CANCELLABLE != 0
    }

    /// Whether the thread is in a queue, or has one locked.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.state.get() & IN_QUEUE != 0
    }

    /// Whether the call must continue before the thread can end: it is being left already, or the thread's
    /// changes cannot be undone now, because it is changing a queue, or is the announced spinner.
    #[must_use]
    pub fn must_go_on(&self) -> bool {
        let place = self.left_in.get();
        place != Self::left() && (!place.is_null() || self.leave.get().is_null())
    }

    /// A place in the frame of the clean-up handler that is undoing the call, if any.
    #[must_use]
    pub fn being_left_in(&self) -> Option<*const c_void> {
        Some(self.left_in.get()).filter(|&place| place != Self::left() && !place.is_null())
    }

    /// Runs `undo`, which undoes the call, in a frame that has `place`.
    pub fn being_left<R>(&self, place: *const c_void, undo: impl FnOnce() -> R) -> R {
        self.left_in.set(place);
        let result = undo();
        self.left_in.set(Self::left());
        result
    }

    /// The call that this one interrupts, in a signal handler.
    #[must_use]
    pub fn outer(&self) -> Option<&Self> {
        // SAFETY: null, or in an older frame.
        unsafe { self.outer.as_ref() }
    }

    /// Takes what the thread does as it leaves the call. No sleep in it acts on cancellation any more.
    fn take_leave(&self) -> *const c_void {
        self.state.set(self.state.get() & !CANCELLABLE);
        self.leave.replace(ptr::null())
    }
}

/// The calling thread's innermost call.
pub fn call<'a>() -> Option<&'a Call> {
    // SAFETY: null, or in a frame that is not younger.
    unsafe { Call::innermost().as_ref() }
}

/// Notes that the calling thread is in a queue, or has one locked; or neither.
pub fn set_queued(queued: bool) {
    if let Some(call) = call() {
        let state = call.state.get();
        call.state.set(if queued { state | IN_QUEUE } else { state & !IN_QUEUE });
    }
}

/// Sets what the calling thread does if it leaves its innermost call, or null; returns what it was.
fn set_leave(leave: *const c_void) -> *const c_void {
    call().map_or(ptr::null(), |call| call.leave.replace(leave))
}

/// The calling thread ends with `value` as soon as it has come to where `call`, its innermost one, can be
/// left, or to its end.
pub fn put_off_exit(call: *const Call, value: *mut c_void) {
    // SAFETY: the block belongs to this thread.
    unsafe { (*leaving()).exits = PutOffExit { of: call, value } };
}

/// The value with which the calling thread ends now, if it has put that off in `call`.
#[must_use]
pub fn take_exit(call: *const Call) -> Option<*mut c_void> {
    // SAFETY: the block belongs to this thread.
    let exits = unsafe { &mut (*leaving()).exits };
    let is_of = !exits.of.is_null() && exits.of == call;
    is_of.then(|| {
        exits.of = ptr::null();
        exits.value
    })
}

// ---- where a call is left

/// What a thread does before it leaves: behind one pointer, so that a signal handler never finds half of it.
struct Leave<'a>(&'a dyn Fn());

/// See [`Futex::or_leave`](spinpark_platform::Futex::or_leave).
#[inline(always)]
pub(crate) fn or_leave<R>(leave: &dyn Fn(), body: impl FnOnce() -> R) -> R {
    let leave = Leave(leave);
    let outer = set_leave(ptr::from_ref(&leave).cast());
    // A handler of this thread finds the pointer only during the body.
    compiler_fence(SeqCst);
    exit_if_put_off();
    let result = body();
    compiler_fence(SeqCst);
    set_leave(outer);
    result
}

impl Call {
    /// Called when the thread leaves its innermost call by unwinding: runs what that needs. `false`: it
    /// cannot be left here.
    #[must_use]
    pub fn leave(&self) -> bool {
        let leave: *const Leave<'_> = self.take_leave().cast();
        if !self.is_queued() {
            return true;
        }
        // SAFETY: null, or in a frame of `or_leave` that the thread has not returned from: the unwinder is on
        // top of it.
        let Some(leave) = (unsafe { leave.as_ref() }) else { return false };
        (leave.0)();
        true
    }
}

// ---- what the layer above does

/// Runs the sleep that it gets.
pub type Sleep = fn(&dyn Fn() -> Wait) -> Wait;
/// Ends the calling thread, with a value for `pthread_join`.
pub type Exit = fn(*mut c_void) -> !;

static SLEEP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static EXIT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// From now on every thread that waits for a lock sleeps by `sleep`, and ends by `exit` if it has put that
/// off: functions of the layer above, which knows cancellation.
pub fn leave_by(sleep: Sleep, exit: Exit) {
    SLEEP.store(sleep as *mut c_void, Relaxed);
    EXIT.store(exit as *mut c_void, Relaxed);
}

/// Ends the calling thread if it has put that off, where its call can be unwound.
#[inline]
pub fn exit_if_put_off() {
    if let Some(value) = take_exit(Call::innermost()) {
        exit(value);
    }
}

#[cold]
#[inline(never)]
fn exit(value: *mut c_void) {
    // SAFETY: null, or a function of this type.
    if let Some(exit) = unsafe { mem::transmute::<*mut c_void, Option<Exit>>(EXIT.load(Relaxed)) } {
        exit(value);
    }
}

pub(crate) fn sleep_cancellably(sleep: &dyn Fn() -> Wait) -> Wait {
    // SAFETY: null, or a function of this type.
    match unsafe { mem::transmute::<*mut c_void, Option<Sleep>>(SLEEP.load(Relaxed)) } {
        Some(by) => by(sleep),
        None => sleep(),
    }
}
