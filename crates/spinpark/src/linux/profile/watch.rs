//! The watcher of slow paths that records.

use std::ffi::{c_int, CStr, CString};
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::OnceLock;

use spinpark_linux::Linux;
use spinpark_platform::{Clocks, Deadline};
use spinpark_recorder::format::{Detail, Locks};
use spinpark_recorder::{
    Blocking, Failure, LockCall, Lot, Recorder, Releasing, Settings, Site, ThreadState, MOST,
};

use super::Named;
use crate::linux::slow::{self, Acquisition, Watcher};

static RECORDER: Recorder = Recorder::new();

/// Nothing is recorded, and nothing was.
const NEW: u8 = 0;
/// A recording starts.
const STARTING: u8 = 1;
const ON: u8 = 2;
/// A forked child whose locks have not had to wait yet.
const FORKED: u8 = 3;
const OVER: u8 = 4;
static STATE: AtomicU8 = AtomicU8::new(NEW);

/// Where files are created; known once there is one.
static DIRECTORY: OnceLock<CString> = OnceLock::new();

/// The quota of the directory's files, bytes.
static MOST_BYTES: OnceLock<u64> = OnceLock::new();

fn most() -> u64 {
    let given = std::env::var("SPINPARK_PROFILE_MAX_SIZE").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(MOST)
}

static WATCHER: Watcher = Watcher { acquire, release, wait, signal };

/// Starts. `None`: it was started before, or cannot be on this processor.
pub(super) fn start(directory: CString) -> Result<(), Option<Failure>> {
    let is_first = || STATE.compare_exchange(NEW, STARTING, Acquire, Relaxed).is_ok();
    if !cfg!(target_arch = "x86_64") || !is_first() {
        return Err(None);
    }
    RECORDER.prepare();
    RECORDER.idle(Detail::Contended);
    if let Err(failure) = record(&directory) {
        STATE.store(NEW, Release);
        return Err(Some(failure));
    }
    // No other thread has got here.
    let _ = DIRECTORY.set(directory);
    // SAFETY: registers a function that is sound to run in a forked child. Without memory it fails; then
    // children are not recorded.
    unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    // SAFETY: registers a function that may run at any time. If it fails, the file says that the program was
    // killed.
    unsafe { libc::atexit(at_exit) };
    slow::watch(Some(&WATCHER));
    Ok(())
}

/// Creates the file.
fn record(directory: &CStr) -> Result<(), Failure> {
    let settings = Settings {
        directory,
        detail: Detail::Contended,
        locks: Locks::Library,
        sample_every: 0,
        slower_than: u64::MAX,
        most: *MOST_BYTES.get_or_init(most),
        is_idle: false,
    };
    RECORDER.begin(&settings)?;
    spinpark_linux::observe(Some(observe));
    STATE.store(ON, Release);
    Ok(())
}

/// Ends it.
pub(super) fn stop() {
    slow::watch(None);
    finish();
}

fn finish() {
    if STATE.swap(OVER, Relaxed) == ON {
        spinpark_linux::observe(None);
        RECORDER.finish();
    }
}

extern "C" fn at_exit() {
    finish();
}

unsafe extern "C" fn in_forked_child() {
    if STATE.load(Relaxed) == ON {
        let can_start_again = RECORDER.forked();
        STATE.store(if can_start_again { FORKED } else { OVER }, Relaxed);
    }
}

extern "C" fn observe(event: c_int) {
    RECORDER.observe(event as u32);
}

/// Whether anything is recorded now. A forked child begins when it waits, or names a lock (`may_begin`).
fn is_on(may_begin: bool) -> bool {
    match STATE.load(Acquire) {
        // Another process may have switched it off, in the file.
        ON => RECORDER.wanted() != Detail::Off,
        FORKED => may_begin && restart(),
        _ => false,
    }
}

/// The first wait in a forked child.
#[cold]
fn restart() -> bool {
    let is_first = STATE.compare_exchange(FORKED, STARTING, Acquire, Relaxed).is_ok();
    let is_on = is_first && DIRECTORY.get().is_some_and(|directory| record(directory).is_ok());
    if is_first && !is_on {
        STATE.store(OVER, Release);
    }
    is_on
}

fn enter<'a>(may_begin: bool) -> Option<&'a ThreadState> {
    if is_on(may_begin) {
        RECORDER.enter()
    } else {
        None
    }
}

fn acquire(call: &LockCall, lock: &dyn Acquisition) -> bool {
    // This comes first, because a thread's first entry takes long.
    let start = RECORDER.now();
    if lock.at_once() {
        return true;
    }
    let Some(own) = enter(true) else { return lock.block() };
    RECORDER.forget_hold(own, call.address);
    RECORDER.forget_release(call.address);
    let (owner, is_timed) = (lock.owner(), lock.is_timed());
    // Of a lock that readers have, the owner is not known.
    let owner = (owner != 0).then_some(owner);
    let (is_exact, lot) = (false, Lot::None);
    let wait =
        RECORDER.begin_wait(own, call, &Blocking { start, owner, is_exact, is_timed, is_shared: false, lot });
    // While it blocks, signal handlers may use locks.
    RECORDER.leave();
    let is_acquired = lock.block();
    let Some(own) = RECORDER.enter() else { return is_acquired };
    let ended = RECORDER.end_wait(own, call, &wait);
    if !is_acquired {
        RECORDER.gave_up(own, &ended);
        RECORDER.disturb(call.address);
    } else if lock.force_slow_release() {
        RECORDER.acquired(own, call, &ended);
    } else {
        RECORDER.acquired_unseen(own, &ended);
    }
    RECORDER.leave();
    is_acquired
}

fn release(call: &LockCall, release: &dyn Fn()) {
    let Some(own) = enter(false) else { return release() };
    let releasing = RECORDER.release_seen(own, call);
    RECORDER.begin_release(call.address);
    release();
    if let Releasing::Last(hold) = &releasing {
        RECORDER.released(own, hold, None);
    } else if let Releasing::Unknown = releasing {
        RECORDER.released_unseen(own);
    }
    if RECORDER.end_release() {
        RECORDER.woke(own, call.address, call.role);
    }
    RECORDER.leave();
}

fn wait(call: &LockCall, mutex: usize, deadline: Option<Deadline>, wait: &dyn Fn() -> bool) -> bool {
    let Some(own) = enter(true) else { return wait() };
    let begun = RECORDER.begin_signal_wait(own, call, (mutex, Some(mutex)), deadline.is_some());
    RECORDER.leave();
    let is_timed_out = wait();
    let Some(own) = RECORDER.enter() else { return is_timed_out };
    let late = deadline.filter(|_| is_timed_out);
    let late = late.map(|deadline| Linux::now(deadline.clock).saturating_sub(deadline.at));
    RECORDER.end_signal_wait(own, call, &begun, late);
    RECORDER.leave();
    is_timed_out
}

fn signal(call: &LockCall) {
    if let Some(own) = enter(false) {
        // Whether it is for all waiters is not known here.
        RECORDER.signal(own, call, false);
        RECORDER.leave();
    }
}

/// A name, and what has it.
struct Naming<'a> {
    call: LockCall,
    name: &'a str,
}

/// Gives a lock a name.
pub(super) fn name<L: Named + ?Sized>(lock: &L, name: &str) {
    let nowhere = Site { stack: std::ptr::null(), frame: std::ptr::null() };
    let naming = Naming { call: lock.call(nowhere), name };
    // SAFETY: for a naming.
    unsafe { slow::slow(&naming, None, name_slowly) };
}

unsafe extern "C" fn name_slowly(naming: *const (), _: *const (), site: Site) -> bool {
    // SAFETY: the caller's naming.
    let naming = unsafe { &*naming.cast::<Naming<'_>>() };
    let name = naming.name.split('\0').next().unwrap_or_default();
    let Some(own) = enter(true) else { return false };
    RECORDER.name(own, &LockCall { site, ..naming.call }, name.as_bytes());
    RECORDER.leave();
    true
}
