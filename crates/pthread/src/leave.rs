//! How a thread leaves a lock call by unwinding, without a return: it is cancelled in its sleep
//! ([`cancel`](crate::cancel)), or a signal handler ends it by `pthread_exit` (how programs cancel where
//! there is no `pthread_cancel`) or jumps out of the call.
//!
//! [`undoable`] gives a call a clean-up handler, which undoes it. glibc runs that at once, wherever the
//! signal interrupted the call. A thread that is changing a lock's queue must not be unwound: the change must
//! be completed, and only the thread's own frames can do that. So the exit is *put off*: the handler is
//! discarded, the interrupted code continues as if it had returned ([`go_on`](spinpark_linux::go_on)), and
//! the thread ends at the next place where its call can be unwound, a microsecond later. To the program, the
//! signal came that much later. An exit is also put off while the thread spins, announced to others, and
//! where it has begun to wait for a condition variable. A thread that is undoing its call already, because it
//! ends or is cancelled, continues with that: the second exit is discarded with its handler.
//!
//! An exit is not put off if the handler has clean-up to do (a destructor, a clean-up handler of its own),
//! which would be lost with its frames. Then the process ends with a message, as it does for `siglongjmp`,
//! whose target only the program knows.

use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::{iter, ptr};

use spinpark_linux::{Call, raw, write_message};
use spinpark_platform::Wait;

use crate::arch::JUMP_WORDS;
use crate::cancel::{AT_ONCE, Buffer, LATER, cancellable, pthread_setcanceltype, push_and_pop};
use crate::real::{Name, address};

/// A call that waits in a queue, with its clean-up handler.
#[repr(C)]
struct Waits {
    buffer: Buffer,
    call: Call,
    /// The thread's cancellation type before.
    kind: c_int,
}

/// Runs `wait`, a wait in a lock's queue, with cancellation deferred, except in its sleeps if the thread has
/// asked for cancellation at once: see [`sleep_in_queue`].
///
/// A thread may leave the call from a signal handler: by `pthread_exit`, which unwinds, or by `siglongjmp`,
/// for which glibc runs the same handlers, unless the handler's alternate stack lies in a frame of this
/// thread. Where it sleeps, or has been woken and spins, that is as good as a cancellation
/// (`Futex::or_leave`). Where it is in the middle of a change of the queue, or of its lock, an exit is put
/// off until that is done ([`exit`]); if the wait is over then, `undo` gives up what it got. Where an exit
/// cannot be put off, and at a jump, the process ends: another thread would follow a pointer into a stack
/// that is gone.
pub(crate) fn undoable<R>(wait: impl FnOnce() -> R, undo: impl FnOnce(R)) -> R {
    within(true, wait, undo)
}

/// [`undoable`], for a wait whose sleeps are no cancellation points, or have their own way, and after which
/// nothing is undone.
pub(crate) fn always_deferred<R>(wait: impl FnOnce() -> R) -> R {
    within(false, wait, drop)
}

#[inline(always)]
fn within<R>(at_once: bool, wait: impl FnOnce() -> R, undo: impl FnOnce(R)) -> R {
    let mut waits = MaybeUninit::<Waits>::uninit();
    begin(&mut waits, at_once);
    let result = wait();
    // SAFETY: `begin` has filled it.
    let waits = unsafe { waits.assume_init_mut() };
    waits.call.end(); // before the handler goes, as in `begin`
    if let Some(value) = spinpark_linux::take_exit(&raw const waits.call) {
        undo(result);
        exit(value); // the handler is in place, and has nothing to undo
    }
    end(waits);
    result
}

#[inline(never)]
fn begin(waits: &mut MaybeUninit<Waits>, at_once: bool) {
    let mut kind = 0;
    // SAFETY: a public call; restored by `end`.
    unsafe { pthread_setcanceltype(LATER, &raw mut kind) };
    let call = Call::new(at_once && kind == AT_ONCE);
    let waits = waits.write(Waits { buffer: Buffer::EMPTY, call, kind });
    let it: *mut Waits = waits;
    if let Some((push, _)) = push_and_pop() {
        // SAFETY: the buffer stays in the caller's frame until `end`, or until the unwinder has left the
        // frame. It is the first field.
        unsafe { push(it.cast(), left, it.cast()) };
    }
    // SAFETY: written above.
    let call = unsafe { &raw const (*it).call };
    // Behind the handler, which does nothing about a call that has not begun.
    // SAFETY: `end` or `left` ends it.
    unsafe { Call::begin(call) };
}

#[inline(never)]
fn end(waits: &mut Waits) {
    if let Some((_, pop)) = push_and_pop() {
        // SAFETY: the buffer pushed last; 0: do not run the handler.
        unsafe { pop(&raw mut waits.buffer, 0) };
    }
    if waits.kind != LATER {
        let mut old = 0;
        // SAFETY: restores what `begin` found.
        unsafe { pthread_setcanceltype(waits.kind, &raw mut old) };
    }
}

/// The clean-up handler of `call`, which is one of [`within`].
fn handler_of(call: &Call) -> *mut Buffer {
    ptr::from_ref(call).wrapping_byte_sub(mem::offset_of!(Waits, call)).cast_mut().cast()
}

/// Leaves `call`, the innermost one, as the unwinder would.
fn leave(call: &Call) {
    if let Some((_, pop)) = push_and_pop() {
        // SAFETY: the buffer pushed last; 1: run the handler.
        unsafe { pop(handler_of(call), 1) };
    }
}

const LEFT: &[u8] =
    b"spinpark: A signal handler jumped or exited out of a lock call at a point that does not allow it.\n";

/// The thread has been unwound out of the call.
unsafe extern "C" fn left(argument: *mut c_void) {
    // SAFETY: `begin` got this call, which lives in a frame below this one.
    let waits = unsafe { &*argument.cast::<Waits>() };
    // What is to be done first is no cancellation point. If a handler leaves that, too, this function runs
    // again.
    let mut kind = LATER;
    // SAFETY: a public call; restored below.
    unsafe { pthread_setcanceltype(LATER, &raw mut kind) };
    if ptr::eq(Call::innermost(), &raw const waits.call) {
        if !being_left(&waits.call, || waits.call.leave()) {
            write_message(LEFT);
            // SAFETY: ends the process.
            unsafe { libc::abort() }
        }
        let _ = spinpark_linux::take_exit(&raw const waits.call); // this may be the one
        waits.call.end();
    }
    // SAFETY: restores what `begin` found: a thread that jumps out of the call goes on.
    unsafe { pthread_setcanceltype(waits.kind, &raw mut kind) };
}

/// At the start of the process.
pub(crate) fn start() {
    spinpark_linux::leave_by(sleep_in_queue, exit);
}

/// Runs `sleep`, a sleep in a lock's queue. A thread that is cancelled there is dequeued: see [`left`].
fn sleep_in_queue(sleep: &dyn Fn() -> Wait) -> Wait {
    if spinpark_linux::call().is_some_and(Call::is_cancellable) { cancellable(sleep) } else { sleep() }
}

/// `pthread_exit`.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn pthread_exit(value: *mut c_void) -> ! {
    exit(value)
}

/// `thrd_exit`.
///
/// # Safety
///
/// As C11 has it.
pub(crate) unsafe extern "C" fn thrd_exit(result: c_int) -> ! {
    exit(result as isize as *mut c_void)
}

/// Ends the calling thread, now or as soon as its call can be unwound.
pub(crate) fn exit(value: *mut c_void) -> ! {
    while let Some(call) = spinpark_linux::call() {
        if !must_any_go_on(call) || !has_no_handler_since(call) {
            break;
        }
        if let Some(place) = call.being_left_in() {
            // SAFETY: nothing refers to the handler's frames. The thread is ending, or jumps: that goes on.
            unsafe { spinpark_linux::go_on(place) };
            break;
        }
        if call.must_go_on() {
            spinpark_linux::put_off_exit(call, value);
            // SAFETY: nothing refers to the handler's frames: the thread ends in the call's.
            unsafe { spinpark_linux::go_on(ptr::from_ref(call).cast()) };
            let _ = spinpark_linux::take_exit(call); // it cannot be put off
            break;
        }
        leave(call); // in a handler that interrupts a call that must go on
    }
    type Exit = unsafe extern "C" fn(*mut c_void) -> !;
    let function = address(Name::pthread_exit);
    // SAFETY: null or the function's address.
    match unsafe { mem::transmute::<*mut c_void, Option<Exit>>(function) } {
        // SAFETY: the caller's value.
        Some(exit) => unsafe { exit(value) },
        // SAFETY: ends the process: no thread library, so no other thread.
        None => unsafe { libc::_exit(0) },
    }
}

/// glibc's `__pthread_unwind_buf_t`: a place to jump to, and then the handlers that were registered before,
/// in both ways.
#[repr(C)]
struct Registered {
    /// glibc's `__jmp_buf`.
    registers: [usize; JUMP_WORDS],
    has_mask: c_int,
    outer_jump: *const c_void,
    outer_buffer: *const c_void,
    rest: [*const c_void; 2],
}

type Register = unsafe extern "C" fn(*mut Registered);

/// Whether `call`, or one that it interrupts, must go on.
fn must_any_go_on(call: &Call) -> bool {
    iter::successors(Some(call), |call| call.outer()).any(Call::must_go_on)
}

/// The clean-up handlers that were registered last, in both ways.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Handlers {
    jump: *const c_void,
    buffer: *const c_void,
}

impl Handlers {
    /// Those of the calling thread.
    fn newest() -> Option<Self> {
        let function = |name| {
            // SAFETY: null or the function's address; the types are those of glibc's pthreadP.h.
            unsafe { mem::transmute::<*mut c_void, Option<Register>>(address(name)) }
        };
        let begin = function(Name::__pthread_register_cancel)?;
        let end = function(Name::__pthread_unregister_cancel)?;
        let mut registered = MaybeUninit::<Registered>::zeroed();
        raw::without_signals(|| {
            // SAFETY: taken out again at once: nothing jumps there.
            unsafe { begin(registered.as_mut_ptr()) };
            // SAFETY: registered last.
            unsafe { end(registered.as_mut_ptr()) };
        });
        // SAFETY: zero is a value of every field.
        let registered = unsafe { registered.assume_init() };
        Some(Self { jump: registered.outer_jump, buffer: registered.outer_buffer })
    }
}

/// Runs `undo`, which undoes `call` in a clean-up handler. Handlers of signals that would end the thread
/// meanwhile are given up: it ends.
pub(crate) fn being_left<R>(call: &Call, undo: impl FnOnce() -> R) -> R {
    let handlers = Handlers::newest();
    call.being_left((&raw const handlers).cast(), undo)
}

/// Whether no clean-up handler has been registered since that of `call`, the innermost one, or since that
/// began to undo it.
fn has_no_handler_since(call: &Call) -> bool {
    let Some(newest) = Handlers::newest() else { return false };
    if let Some(place) = call.being_left_in() {
        // SAFETY: of `being_left`.
        return unsafe { *place.cast::<Option<Handlers>>() } == Some(newest);
    }
    let frame: *const c_void = handler_of(call).cast_const().cast();
    let here = (&raw const newest).cast();
    let is_older =
        newest.jump.is_null() || !(here..frame).contains(&newest.jump) && !is_on_other_stack(newest.jump);
    newest.buffer == frame && is_older
}

/// Whether the calling handler has a stack of its own, and `address` is on that.
fn is_on_other_stack(address: *const c_void) -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: asks for the stack.
    unsafe { libc::sigaltstack(ptr::null(), stack.as_mut_ptr()) };
    // SAFETY: zero is a value of every field.
    let stack = unsafe { stack.assume_init() };
    let start = stack.ss_sp.cast_const();
    stack.ss_flags & libc::SS_ONSTACK != 0
        && (start..start.wrapping_byte_add(stack.ss_size)).contains(&address)
}
