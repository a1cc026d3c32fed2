//! When what begins.
//!
//! | moment                       | what happens                                                                              |
//! |------------------------------|-------------------------------------------------------------------------------------------|
//! | first call of a lock function| the next implementation is looked up; calls go to it (allocators call before anything else) |
//! | this library's initialiser   | the environment is read, the unwinder loaded, the file created; recording begins             |
//! | fork                         | the child forgets; its first call of a lock function creates a file of its own              |
//! | this library's terminator    | the file is marked as that of a program that ended in order                                |
//!
//! | variable                  | effect                                                                          |
//! |---------------------------|---------------------------------------------------------------------------------|
//! | `SPINPARK_PROFILE_DIR`    | the directory in which the file is created, made if need be; without it nothing is recorded |
//! | `SPINPARK_PROFILE_DETAIL` | `off`, `contended` (the default), `sampled` or `full`                            |

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32};

use spinpark_linux::{Scope, lookup, raw, variable};
use spinpark_observe::format::{Detail, Locks};
use spinpark_observe::recorder::{Recorder, Settings};

use crate::{cancel, exports, mutex, next, watch};

/// One in so many acquisitions is timed with the detail `sampled`.
const SAMPLE_EVERY: u32 = 64;

/// The recorder of this process.
pub(crate) static RECORDER: Recorder = Recorder::new();

/// Nothing is known yet.
const UNKNOWN: u8 = 0;
/// The next implementation is known.
const FOUND: u8 = 1;
/// A forked child that has not called anything yet.
const FORKED: u8 = 3;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// The thread that changes the state, or 0.
static LOOKER: AtomicU32 = AtomicU32::new(0);

static STARTERS: [AtomicPtr<c_void>; exports::COUNT] =
    [const { AtomicPtr::new(ptr::null_mut()) }; exports::COUNT];

/// spinpark's function that says what its locks do, or null.
static OBSERVE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The first call of any function: of that with this number.
pub(crate) extern "C" fn first_call(number: usize) {
    let mut me = 0;
    while STATE.load(Acquire) != FOUND {
        me = if me == 0 { raw::thread_id() } else { me };
        match LOOKER.compare_exchange(0, me, Acquire, Relaxed) {
            Ok(_) => {
                look_around();
                LOOKER.store(0, Release);
            }
            // Called by what this thread does to look around, the loader's allocator say; or by a signal handler.
            Err(looker) if looker == me => {
                next::find_one(number);
                return exports::pass(number);
            }
            Err(_) => raw::yield_now(),
        }
    }
}

/// Finds the next implementation, to which every call goes from now on; a forked child also begins to record.
fn look_around() {
    match STATE.load(Relaxed) {
        UNKNOWN => {
            for (kept, starter) in STARTERS.iter().zip(exports::starters()) {
                kept.store(starter.into_inner(), Relaxed);
            }
            next::find_all();
            exports::install(Detail::Off);
            STATE.store(FOUND, Release);
        }
        FORKED => {
            // Whoever calls meanwhile goes to the next implementation.
            exports::install(Detail::Off);
            STATE.store(FOUND, Release);
            record();
        }
        _ => {}
    }
}

extern "C" fn initialise() {
    // What was looked up in vain is not the program's.
    // SAFETY: takes nothing.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno.
    let errno = unsafe { *at };
    first_call(0);
    if variable(c"SPINPARK_PROFILE_DIR").is_some() {
        begin();
    }
    next::forget_error();
    // SAFETY: as above.
    unsafe { *at = errno };
}

fn begin() {
    watch::start();
    cancel::start();
    OBSERVE.store(lookup(Scope::Next, c"spinpark_observe"), Relaxed);
    RECORDER.prepare();
    // Once: a forked child does not say it again.
    if variable(c"SPINPARK_PROFILE_DETAIL").is_some_and(|name| known(name).is_none()) {
        raw::write(
            libc::STDERR_FILENO,
            b"spinpark: SPINPARK_PROFILE_DETAIL is none of off, contended, sampled, full; it is taken as contended\n",
        );
    }
    // SAFETY: registers a function that is sound to run in a forked child. Without memory it fails; then a child writes to
    // its parent's file.
    unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    record();
}

/// Creates the file and begins to record.
fn record() {
    let Some(directory) = variable(c"SPINPARK_PROFILE_DIR") else { return };
    let detail = variable(c"SPINPARK_PROFILE_DETAIL").and_then(known).unwrap_or(Detail::Contended);
    raw::make_directory(directory);
    let settings = Settings { directory, detail, locks: locks(), sample_every: SAMPLE_EVERY };
    if RECORDER.start(&settings).is_ok() {
        exports::install(detail);
    } else {
        exports::install(Detail::Off);
    }
}

fn known(name: &CStr) -> Option<Detail> {
    Some(match name.to_bytes() {
        b"off" => Detail::Off,
        b"" | b"contended" => Detail::Contended,
        b"sampled" => Detail::Sampled,
        b"full" => Detail::Full,
        _ => return None,
    })
}

/// Whose locks they are; spinpark's are asked to tell what they do.
fn locks() -> Locks {
    type Observe = unsafe extern "C" fn(Option<extern "C" fn(c_int)>) -> c_int;
    // SAFETY: null, or the function of that name.
    match unsafe { mem::transmute::<*mut c_void, Option<Observe>>(OBSERVE.load(Relaxed)) } {
        // SAFETY: the drop-in's function, with an observer that stays.
        Some(observe) if unsafe { observe(Some(observer)) } != 0 => {
            mutex::are_spinparks();
            Locks::Spinpark
        }
        _ => Locks::Glibc,
    }
}

extern "C" fn observer(event: c_int) {
    RECORDER.observe(event.cast_unsigned());
}

/// The detail that is recorded may be changed from outside, in the file: looks whether it was.
#[inline(always)]
pub(crate) fn look_for_wishes<const DETAIL: u32>() {
    let wanted = RECORDER.wanted();
    if wanted as u32 != DETAIL {
        change(wanted);
    }
}

#[cold]
#[inline(never)]
fn change(wanted: Detail) {
    if RECORDER.is_on() {
        RECORDER.set_detail(wanted);
        exports::install(wanted);
    }
}

unsafe extern "C" fn in_forked_child() {
    if RECORDER.forget() {
        STATE.store(FORKED, Relaxed);
        exports::install_starters(&STARTERS);
    } else {
        exports::install(Detail::Off);
    }
}

extern "C" fn terminate() {
    RECORDER.finish();
}

// SAFETY: the loader calls each entry of `.init_array` once, with arguments that `initialise` does not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = initialise;

// SAFETY: and each of `.fini_array` once, when the process exits.
#[used]
#[unsafe(link_section = ".fini_array")]
static TERMINATE: extern "C" fn() = terminate;
