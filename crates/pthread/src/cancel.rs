//! Cancellation: sleeps in which a thread can be cancelled, and what runs then.
//!
//! POSIX' cancellation is the thread library's: glibc unwinds the stack and calls the clean-up handlers on
//! the way. Two of its public calls are enough. `pthread_setcanceltype` makes cancellation act at once for
//! the length of one system call, which is what glibc does for its own blocking calls;
//! `_pthread_cleanup_push`, which old `pthread.h` macros used, registers a handler by address of its frame,
//! so nothing has to be caught or unwound in Rust.
//!
//! One thing more is needed. `pthread_cancel` reads the target's type and then sends a signal; if the
//! target was woken in between, it leaves its wait with a signal of the condition variable used up, and is
//! reported as cancelled when the late signal arrives at its exit. (glibc's own waits check a private flag
//! for this.) So [`cancel`] notes the targets of the calls that are under way, and a thread that leaves a
//! wait while it is one waits for the call and for its effect, with the handler still in place. Other threads
//! do not wait: a call may take as long as a `dlopen` (glibc loads its unwinder at the first one).

use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};

use libc::pthread_t;
use spinpark_linux::raw;
use spinpark_platform::{Deadline, Futex, Threads, Wait};

use crate::fields::Linux;
use crate::real::{self, Name, address};

/// `PTHREAD_CANCEL_DEFERRED`.
pub(crate) const LATER: c_int = 0;
/// `PTHREAD_CANCEL_ASYNCHRONOUS`.
pub(crate) const AT_ONCE: c_int = 1;

unsafe extern "C" {
    pub(crate) fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// Calls of [`cancel`] that have begun, ever.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// The targets of the calls that are under way, each with the generation of the process in its upper 16 bits
/// (a forked child does not have the threads that make the parent's); 0: a free place.
static TARGETS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// Calls that are under way (low half), in the process of the generation in the high half.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);
/// Those of them that found no place, counted the same way. They may be for any thread.
static OTHERS: AtomicU64 = AtomicU64::new(0);

/// How long a thread waits for a cancellation of its own that is under way, in steps of [`STEP_NS`]: a
/// canceller needs microseconds, unless it is off the CPU. Bounded, so that a flood of cancellations cannot
/// hold a thread up.
const STEPS: u32 = 400;
const STEP_NS: u64 = 50_000;

/// `thread`, of this process.
fn target(thread: pthread_t) -> u64 {
    const ADDRESS: u32 = 48;
    (thread & ((1 << ADDRESS) - 1)) | u64::from(Linux::generation()) << ADDRESS
}

fn is_any(calls: &AtomicU64) -> bool {
    let state = calls.load(SeqCst);
    state as u32 > 0 && (state >> 32) as u32 == Linux::generation()
}

/// Whether a call is under way that may be for the calling thread. It costs one load while there is none,
/// else a check of all places, and no other thread a sleep.
#[inline(never)] // for the drop-in's size
fn is_target() -> bool {
    // SAFETY: takes nothing.
    let me = || target(unsafe { libc::pthread_self() });
    let has_place = |me| TARGETS.iter().any(|place| place.load(SeqCst) == me);
    // Of a call, its place is taken before it is counted.
    is_any(&UNDER_WAY) && (has_place(me()) || is_any(&OTHERS))
}

/// A call for a thread, until it is [ended](Counted::end).
struct Counted(Option<&'static AtomicU64>);

impl Counted {
    fn begin(thread: pthread_t) -> Self {
        let target = target(thread);
        let is_free = |state: u64| state == 0 || state >> 48 != target >> 48;
        let place = TARGETS.iter().find(|place| {
            let seen = place.load(Relaxed);
            is_free(seen) && place.compare_exchange(seen, target, SeqCst, Relaxed).is_ok()
        });
        if place.is_none() {
            count(&OTHERS, 1);
        }
        count(&UNDER_WAY, 1);
        BEGUN.fetch_add(1, SeqCst);
        Self(place)
    }

    fn end(self) {
        match self.0 {
            Some(place) => place.store(0, SeqCst),
            None => count(&OTHERS, -1),
        }
        count(&UNDER_WAY, -1);
    }
}

/// Adds `change` to `calls` of this process.
fn count(calls: &AtomicU64, change: i32) {
    let mine = u64::from(Linux::generation()) << 32;
    let update = |state: u64| {
        let now = if state & !u64::from(u32::MAX) == mine { state as u32 } else { 0 };
        // A call that the parent of this process began is not counted here, nor does its end come here.
        Some(mine | u64::from(now.saturating_add_signed(change)))
    };
    let _ = calls.fetch_update(SeqCst, Relaxed, update);
}

/// `pthread_cancel`: glibc's, counted.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn cancel(thread: pthread_t) -> c_int {
    // SAFETY: takes nothing.
    if thread == unsafe { libc::pthread_self() } {
        // Acts at once, perhaps without coming back; and this thread is in no wait.
        // SAFETY: the caller's thread.
        return unsafe { real::pthread_cancel(thread) };
    }
    let mut old = 0;
    // The call is async-cancel-safe, and a canceller that is itself cancelled must not leave its count
    // behind. SAFETY: a public call; restored below.
    unsafe { pthread_setcanceltype(LATER, &raw mut old) };
    let counted = Counted::begin(thread);
    // SAFETY: the caller's thread.
    let result = unsafe { real::pthread_cancel(thread) };
    counted.end();
    // SAFETY: restores what the first call returned.
    unsafe { pthread_setcanceltype(old, &raw mut old) };
    result
}

/// A futex wait that is a cancellation point.
fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
    cancellable(&|| Linux::futex_wait(word, expected, deadline))
}

/// Runs `sleep`, a futex wait and nothing that must be completed, as a cancellation point.
///
/// If the thread is cancelled, this does not return: the handler that [`with_handler`] registered runs.
pub(crate) fn cancellable(sleep: &dyn Fn() -> Wait) -> Wait {
    let mut old = 0;
    let begun = BEGUN.load(Relaxed);
    let already = is_target(); // such a call may see the type below, and end before the last look
    // SAFETY: from here to the second call cancellation may act at any instruction. Between them are the
    // system call and, now and then, a check of the CPUs, which may end anywhere. The state that the handler
    // needs is in memory, and no frame here has anything to drop.
    unsafe { pthread_setcanceltype(AT_ONCE, &raw mut old) };
    let wait = sleep();
    // SAFETY: restores what the first call returned.
    unsafe { pthread_setcanceltype(old, &raw mut old) };
    // A canceller that saw the type above has counted itself before that, so it is seen here (Dekker: it
    // counts and then reads the type; this thread changes the type and then reads the counts).
    fence(SeqCst);
    if already || BEGUN.load(Relaxed) != begun || is_target() {
        await_cancellation();
    }
    wait
}

/// Waits until no cancellation of this thread is under way, and acts on one that was.
#[cold]
#[inline(never)]
fn await_cancellation() {
    for _ in 0..STEPS {
        if !is_target() {
            break;
        }
        // Asleep, not polling: the canceller may be off the CPU, or of lower priority.
        spinpark_linux::sleep_for(STEP_NS);
    }
    // The signal is pending at the latest now; it is delivered on the way out of any system call.
    let _ = raw::thread_id();
    let test = address(Name::pthread_testcancel);
    // SAFETY: null or the function's address.
    if let Some(test) = unsafe { mem::transmute::<*mut c_void, Option<Test>>(test) } {
        // SAFETY: does not return if this thread is cancelled; the handler is in place.
        unsafe { test() };
    }
}

/// glibc's `struct _pthread_cleanup_buffer`.
#[repr(C)]
pub(crate) struct Buffer {
    routine: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut Self,
}

impl Buffer {
    pub(crate) const EMPTY: Self =
        Self { routine: None, argument: ptr::null_mut(), cancel_type: 0, previous: ptr::null_mut() };
}

type Push = unsafe extern "C" fn(*mut Buffer, unsafe extern "C" fn(*mut c_void), *mut c_void);
type Pop = unsafe extern "C" fn(*mut Buffer, c_int);
type Test = unsafe extern "C" fn();

pub(crate) fn push_and_pop() -> Option<(Push, Pop)> {
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
/// In a process without the thread library (glibc before 2.34) there is no handler and no other thread to
/// cancel this one: the wait is no cancellation point then.
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
    spinpark_linux::exit_if_put_off();
    body(futex_wait);
    // SAFETY: the buffer pushed last; 0: do not run the handler.
    unsafe { pop(buffer.as_mut_ptr(), 0) };
}
