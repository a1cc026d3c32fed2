//! When the parts of recording begin.
//!
//! | moment                       | what happens                                                                              |
//! |------------------------------|-------------------------------------------------------------------------------------------|
//! | first call of a lock function| the next implementation is looked up; calls go to it (allocators call before anything else) |
//! | this library's initialiser   | the environment is read, the unwinder loaded; the process that `spinpark profile` started creates its file, and with other details than `contended` every program |
//! | the first wait for a lock    | any other process creates its file, if it records waits only (`contended`)                    |
//! | fork                         | the child has no file, and creates one at its first wait; with `sampled` and `full`, at its first use of a lock |
//! | a command asks a dormant process, or its forked child | a recording begins, or ends ([`dormant`])                                              |
//! | this library's terminator    | the file is marked as that of a program that ended in order                                |
//!
//! | variable                  | effect                                                                          |
//! |---------------------------|---------------------------------------------------------------------------------|
//! | `SPINPARK_PROFILE_DIR`    | the directory in which the file is created, made if need be; without it nothing is recorded |
//! | `SPINPARK_PROFILE_DORMANT` | instead: the process is dormant; the directory in which it has one of its own    |
//! | `SPINPARK_PROFILE_DELAY`  | instead: nothing is recorded; the file of a plan of delays (`delay`)           |
//! | `SPINPARK_PROFILE_DETAIL` | `off`, `contended` (the default), `sampled` or `full`                            |
//! | `SPINPARK_PROFILE_SLOWER_THAN` | waits of this many ns are kept whole; without it, the longest of each thread    |
//! | `SPINPARK_PROFILE_MAX_SIZE` | size limit of all files in the directory together, bytes                          |
//! | `SPINPARK_PROFILE_PARENT` | a child of this process creates its file at the start                             |
//! | `SPINPARK_PROFILE_SPANS`  | for tests: light spans from the start on, or (1) none                            |
//! | `SPINPARK_PROFILE_GETPPID` | what that child's `getppid` answers                                              |
//! | `SPINPARK_FORCE=1`        | records even under a race detector, which then reports the recorder's own tables    |

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

use spinpark_linux::{Scope, is_on, lookup, race_detector, raw, variable};
use spinpark_recorder::format::{Detail, Locks};
use spinpark_recorder::{Failure, MOST, Settings};

pub(crate) use crate::recorder::RECORDER;
use crate::{cancel, dormant, mutex_layout, next, parent, single_threaded, table};

/// One in this number of acquisitions is timed with the detail `sampled`.
const SAMPLE_EVERY: u32 = 64;

/// Nothing is known yet.
const UNKNOWN: u8 = 0;
/// The next implementation is known.
const FOUND: u8 = 1;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// The thread that changes the state, or 0.
static FINDER: AtomicU32 = AtomicU32::new(0);

/// The absolute path of the directory, ended by a zero; empty if there is none. Written by the initialiser.
static DIRECTORY: Path = Path(UnsafeCell::new([0; 4096]));
/// The most that files may have on the disk, bytes.
static MOST_BYTES: AtomicU64 = AtomicU64::new(MOST);
static SLOWER_THAN: AtomicU64 = AtomicU64::new(u64::MAX);

struct Path(UnsafeCell<[u8; 4096]>);
// SAFETY: written once, before the process has a second thread or a recording, and only read after that.
unsafe impl Sync for Path {}

/// spinpark's function that reports what its locks do, or null.
static OBSERVE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The first call of any function: of that with this number. Or a later one: a bell was rung ([`dormant`]).
pub(crate) extern "C" fn first_call(number: usize) {
    if STATE.load(Acquire) == FOUND {
        return dormant::answer(|| settings(Detail::Off, false));
    }
    let mut me = 0;
    while STATE.load(Acquire) != FOUND {
        me = if me == 0 { raw::thread_id() } else { me };
        match FINDER.compare_exchange(0, me, Acquire, Relaxed) {
            Ok(_) => {
                find_next();
                FINDER.store(0, Release);
            }
            // Called by what this thread does to find them, the loader's allocator say; or by a signal
            // handler.
            Err(finder) if finder == me => {
                next::find_one(number);
                return table::pass(number);
            }
            Err(_) => raw::yield_now(),
        }
    }
}

/// Finds the next implementation, to which every call goes from now on.
fn find_next() {
    if STATE.load(Relaxed) == UNKNOWN {
        next::find_all();
        table::install(Detail::Off);
        STATE.store(FOUND, Release);
    }
}

extern "C" fn initialise() {
    // Failed look-ups must not change the program's `errno`.
    // SAFETY: takes nothing.
    let at = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno.
    let errno = unsafe { *at };
    first_call(0);
    spinpark_linux::allow_attach();
    let recorded = variable(c"SPINPARK_PROFILE_DIR");
    if let Some(plan) = variable(c"SPINPARK_PROFILE_DELAY") {
        let detector = race_detector().filter(|_| !is_on(c"SPINPARK_FORCE"));
        RECORDER.prepare();
        if RECORDER.delay_by(plan, detector.is_some()) {
            table::install_delays();
        }
    } else if let Some(directory) = recorded.or_else(|| variable(c"SPINPARK_PROFILE_DORMANT")) {
        match race_detector() {
            Some(detector) if !is_on(c"SPINPARK_FORCE") => {
                for text in [
                    "spinpark: nothing is recorded: ",
                    detector,
                    " would report the recorder (SPINPARK_FORCE=1: on)\n",
                ] {
                    raw::write(libc::STDERR_FILENO, text.as_bytes());
                }
            }
            _ if recorded.is_some() => begin(directory),
            _ => begin_dormant(directory),
        }
    }
    next::forget_error();
    // SAFETY: as above.
    unsafe { *at = errno };
}

/// Finds what any recording needs.
fn prepare(directory: &CStr) {
    single_threaded::start();
    cancel::start();
    OBSERVE.store(lookup(Scope::Next, c"spinpark_observe"), Relaxed);
    RECORDER.prepare();
    if let Some(most) = variable(c"SPINPARK_PROFILE_MAX_SIZE").and_then(number) {
        MOST_BYTES.store(most, Relaxed);
    }
    keep(directory);
    // SAFETY: registers functions that are sound to run there. Without memory it fails; then children are not
    // recorded.
    unsafe { libc::pthread_atfork(None, Some(in_forking_parent), Some(in_forked_child)) };
}

/// The process records when it is asked to. Its file is made now: later it may not have the right.
fn begin_dormant(base: &CStr) {
    prepare(base);
    // SAFETY: this is the initialiser's thread; others read it later.
    let path = unsafe { &mut *DIRECTORY.0.get() };
    raw::make_directory(directory());
    let is_made = dormant::append_name(path) && raw::make_private_directory(directory());
    RECORDER.idle(Detail::Off);
    let begun = match is_made {
        true => RECORDER.begin(&settings(Detail::Off, true)),
        false => Err(Failure::Create(libc::ENOENT)),
    };
    match begun {
        Ok(()) => {
            RECORDER.sleep();
            locks();
            dormant::start(directory());
        }
        Err(failure) => {
            RECORDER.never();
            dormant::say_failure(base, failure);
        }
    }
}

fn begin(directory: &CStr) {
    let started = raw::cpu_time();
    prepare(directory);
    let wanted = variable(c"SPINPARK_PROFILE_DETAIL");
    // Once: a forked child does not say it again.
    if wanted.is_some_and(|name| known(name).is_none()) {
        raw::write(
            libc::STDERR_FILENO,
            b"spinpark: SPINPARK_PROFILE_DETAIL is none of off, contended, sampled, full; it is taken as contended\n",
        );
    }
    let detail = wanted.and_then(known).unwrap_or(Detail::Contended);
    if let Some(ns) = variable(c"SPINPARK_PROFILE_SLOWER_THAN").and_then(number) {
        SLOWER_THAN.store(ns, Relaxed);
    }
    if let Some(times) = variable(c"SPINPARK_PROFILE_SPANS").and_then(number) {
        RECORDER.force_spans(u32::try_from(times).unwrap_or(0));
    }
    let parent = variable(c"SPINPARK_PROFILE_PARENT").and_then(number);
    let is_main = parent == Some(u64::from(raw::parent_id()));
    let id = |number: u64| u32::try_from(number).ok();
    let its_parent = variable(c"SPINPARK_PROFILE_GETPPID").and_then(number);
    if let (Some(command), Some(its_parent)) = (parent.and_then(id), its_parent.and_then(id)) {
        parent::hide(command, its_parent);
    }
    locks();
    RECORDER.idle(detail);
    RECORDER.note_start(started);
    table::install(detail);
    // Other details count more than waits from now on; with `off`, another process may change the detail in
    // the file later.
    if is_main || detail != Detail::Contended {
        let _ = record(!is_main);
    }
}

/// Begins to record, if that is possible: a thread is about to wait for a lock, or (`is_idle`) has used one.
#[cold]
#[inline(never)]
pub(crate) fn late(is_idle: bool) -> bool {
    RECORDER.may_begin() && record(is_idle)
}

/// Creates the file and begins to record.
fn record(is_idle: bool) -> bool {
    let started = raw::cpu_time();
    let detail = RECORDER.detail();
    match RECORDER.begin(&settings(detail, is_idle)) {
        Ok(()) => {
            RECORDER.note_start(started);
            true
        }
        // No space for a process that only uses locks: record it from its first wait on.
        Err(Failure::Bound) if is_idle && detail != Detail::Off => {
            RECORDER.expect(Detail::Contended);
            table::install(Detail::Contended);
            false
        }
        // A forked child may be luckier.
        Err(Failure::Bound | Failure::NotNow) => false,
        Err(_) => {
            table::install(Detail::Off);
            false
        }
    }
}

fn settings(detail: Detail, is_idle: bool) -> Settings<'static> {
    Settings {
        directory: directory(),
        detail,
        locks: locks(),
        sample_every: SAMPLE_EVERY,
        slower_than: SLOWER_THAN.load(Relaxed),
        most: MOST_BYTES.load(Relaxed),
        is_idle,
    }
}

/// Keeps the path, made absolute: the program may go elsewhere.
fn keep(directory: &CStr) {
    // SAFETY: the initialiser's thread; others read it later.
    let path = unsafe { &mut *DIRECTORY.0.get() };
    let name = directory.to_bytes_with_nul();
    let start = match name {
        [b'/', ..] => 0,
        _ => match usize::try_from(raw::working_directory(path)) {
            Ok(length @ 1..) => {
                path[length - 1] = b'/';
                length
            }
            _ => 0,
        },
    };
    match path.get_mut(start..start + name.len()) {
        Some(rest) => rest.copy_from_slice(name),
        None => path[0] = 0,
    }
}

fn directory() -> &'static CStr {
    // SAFETY: written by the initialiser, before anything is recorded.
    let path = unsafe { &*DIRECTORY.0.get() };
    CStr::from_bytes_until_nul(path).unwrap_or_default()
}

fn number(text: &CStr) -> Option<u64> {
    core::str::from_utf8(text.to_bytes()).ok()?.parse().ok()
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
            mutex_layout::are_spinparks();
            Locks::Spinpark
        }
        _ => Locks::Glibc,
    }
}

extern "C" fn observer(event: c_int) {
    RECORDER.observe(event.cast_unsigned());
}

/// The detail that is recorded may be changed from outside, in the file: checks whether it was.
#[inline(always)]
pub(crate) fn look_for_wishes<const DETAIL: u32>() {
    let wanted = RECORDER.wanted();
    if wanted as u32 != DETAIL {
        change(wanted);
    }
    if DETAIL == Detail::Contended as u32 && RECORDER.is_awake() {
        dormant::check_beat();
    }
}

#[cold]
#[inline(never)]
fn change(wanted: Detail) {
    // Of a dormant process only `dormant` changes it: here, threads whose waits began before would do so once
    // more, and one that is late after the end.
    if RECORDER.is_on() && !RECORDER.is_dormant() {
        RECORDER.set_detail(wanted);
        table::install(wanted);
    }
}

unsafe extern "C" fn in_forking_parent() {
    dormant::forks();
}

/// Writes as little as it can: each page that it touches makes the fork slower.
unsafe extern "C" fn in_forked_child() {
    let is_recorder_at_rest = RECORDER.forked();
    if RECORDER.is_dormant() {
        dormant::forked(is_recorder_at_rest);
        if RECORDER.detail() != Detail::Off {
            RECORDER.expect(Detail::Off);
            table::install(Detail::Off);
        }
    } else if !is_recorder_at_rest {
        table::install(Detail::Off);
    }
}

extern "C" fn terminate() {
    RECORDER.finish();
    dormant::end(directory());
}

// SAFETY: the loader calls each entry of `.init_array` once, with arguments that `initialise` does not look
// at.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = initialise;

// SAFETY: and each of `.fini_array` once, when the process exits.
#[used]
#[unsafe(link_section = ".fini_array")]
static TERMINATE: extern "C" fn() = terminate;
