//! A dormant process: it records nothing until a command asks it to, any number of times.
//!
//! At the start it makes a directory of its own, with the file of its recordings and the page
//! [`Control`] of a file that it maps. Neither grows, and nothing writes to them, until the bell in that page
//! is rung. Until then each exported function is the next implementation's, as with the detail `off`; its
//! trampoline looks at the bell (one load that no thread writes) and jumps.
//!
//! A thread that hears the bell *answers*: it makes of the process what the page wishes, and goes on with its
//! call. One thread does at a time; others go on with their calls meanwhile. So no thread, no timer and no
//! signal is needed, and what an answer needs of the system is little: the file is there, whatever rights the
//! process has given up since, and whatever descriptors it has closed.
//!
//! The mapping lies in this library's own memory, so that its address is a constant. A forked child has it,
//! too: it puts an empty page in its place, and is not dormant. One that has not (`_Fork`, `vfork`, a bare
//! `clone`) has another process id, or, in a name space of its own, the recorder's state of no process
//! (`fork` in the recorder); it does not answer.

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use spinpark_linux::{Linux, raw};
use spinpark_platform::{Clock, Clocks};
use spinpark_recorder::Failure;
use spinpark_recorder::format::{
    CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, CONTROL_VERSION, Control, Detail, LEASE_NS,
};

use crate::recorder::RECORDER;
use crate::table;

/// A page of its own, over which the file is mapped.
#[repr(C, align(4096))]
pub(crate) struct Page(Control);

/// See above; all zero if the process is not dormant.
pub(crate) static CONTROL: Page = Page(Control::new());

/// The process, if it is dormant; else 0.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The thread that answers, or 0.
static ANSWERER: AtomicU32 = AtomicU32::new(0);
/// The command's latest beat, and when it was seen, ticks.
static BEAT: AtomicU32 = AtomicU32::new(0);
static BEAT_SEEN: AtomicU64 = AtomicU64::new(0);
/// The wish for which a thread was in the recorder, and when it was tried first, ticks; when any was tried
/// last.
static TRIED: AtomicU32 = AtomicU32::new(0);
static TRIED_FIRST: AtomicU64 = AtomicU64::new(0);
static TRIED_LAST: AtomicU64 = AtomicU64::new(0);
/// Between two tries, ns: calls are many, and each try is system calls and a barrier.
const TRY_NS: u64 = 100_000;

const PAGE: usize = size_of::<Page>();
const _: () = assert!(PAGE == CONTROL_BYTES);

fn control() -> &'static Control {
    &CONTROL.0
}

fn page() -> *mut u8 {
    ptr::addr_of!(CONTROL).cast_mut().cast()
}

/// Appends `/PID-START` to a path that ends with a zero, START in ms since 1970; whether it fits.
pub(crate) fn append_name(path: &mut [u8]) -> bool {
    let Some(mut at) = path.iter().position(|byte| *byte == 0).filter(|length| *length > 0) else {
        return false;
    };
    let mut put = |bytes: &[u8]| {
        let end = at + bytes.len();
        path.get_mut(at..end).map(|place| place.copy_from_slice(bytes)).map(|()| at = end).is_some()
    };
    let mut digits = [0; 20];
    put(b"/")
        && put(decimal(raw::process_id().into(), &mut digits))
        && put(b"-")
        && put(decimal(Linux::now(Clock::Realtime) / 1_000_000, &mut digits))
        && put(b"\0")
}

/// A number in words of one digit each.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 || at == 0 {
            return &digits[at..];
        }
    }
}

/// The path of the page's file, in the directory of this process; empty if it is too long.
fn path_of<'a>(directory: &CStr, path: &'a mut [u8; 512]) -> &'a CStr {
    let parts = [directory.to_bytes(), b"/", CONTROL_FILE.to_bytes_with_nul()];
    let mut at = 0;
    for part in parts {
        match path.get_mut(at..at + part.len()) {
            Some(place) => place.copy_from_slice(part),
            None => return c"",
        }
        at += part.len();
    }
    CStr::from_bytes_until_nul(path).unwrap_or_default()
}

/// From now on, the process can be asked. Nothing is recorded, and no thread but this has begun.
pub(crate) fn start(directory: &CStr) {
    let mut path = [0; 512];
    let path = path_of(directory, &mut path);
    let file = raw::create(path);
    if file < 0 {
        return say_failure(directory, Failure::Create(-file));
    }
    let first = Control::new();
    first.version.store(CONTROL_VERSION, Relaxed);
    first.magic.store(CONTROL_MAGIC, Relaxed);
    first.pid.store(raw::process_id(), Relaxed);
    // Written, not mapped: on a full disk that fails, and touching the page would be a signal.
    // SAFETY: its own bytes; there is no padding.
    let bytes =
        unsafe { core::slice::from_raw_parts(ptr::from_ref(&first).cast::<u8>(), size_of_val(&first)) };
    raw::write(file, bytes);
    let mut written = [0; size_of::<Control>()];
    let is_written = raw::read_at(file, &mut written, 0) == bytes.len().cast_signed() && written == *bytes;
    // SAFETY: the page is this library's, and all of it atomic.
    let is_mapped =
        is_written && raw::set_length(file, PAGE) && unsafe { raw::map_file_over(page(), PAGE, file) };
    raw::close(file);
    match (is_written, is_mapped) {
        (_, true) => PROCESS.store(raw::process_id(), Release),
        (false, _) => say_failure(directory, Failure::DiskFull),
        _ => say_failure(directory, Failure::Memory),
    }
}

/// The process cannot be asked.
pub(crate) fn say_failure(directory: &CStr, failure: Failure) {
    let why = match failure {
        Failure::Create(libc::EACCES | libc::EPERM | libc::EROFS) => "it may not write there",
        Failure::Create(libc::ENOENT | libc::ENOTDIR) => {
            "the directory cannot be made, or its name is too long"
        }
        Failure::Create(libc::ENOSPC | libc::EDQUOT) | Failure::DiskFull => "the disk is full",
        Failure::Create(libc::EMFILE | libc::ENFILE) => "there are too many open files",
        Failure::Create(libc::EFBIG) | Failure::TooLong => {
            "files may not be as long as a recording (ulimit -f)"
        }
        Failure::Create(libc::ENOMEM) | Failure::Memory => "there is too little memory (ulimit -v)",
        Failure::Bound => "SPINPARK_PROFILE_MAX_SIZE is too small for a recording",
        Failure::Create(_) | Failure::Sandbox | Failure::NotNow => "the system refuses it",
    };
    for text in [
        b"spinpark: not dormant, so `spinpark record` cannot record this process: no file in ",
        directory.to_bytes(),
        b": ",
        why.as_bytes(),
        b"\n",
    ] {
        raw::write(libc::STDERR_FILENO, text);
    }
}

/// The bell was rung.
#[cold]
#[inline(never)]
pub(crate) fn answer() {
    let process = PROCESS.load(Acquire);
    if process == 0 || RECORDER.ns_since(TRIED_LAST.load(Relaxed)) < TRY_NS {
        return;
    }
    if process != raw::process_id() || !RECORDER.is_here() || RECORDER.is_at_work() {
        return;
    }
    // As in the recorder's file: on a full disk, touching the page may be a signal.
    if raw::populate(page(), PAGE) == Some(false) {
        TRIED_LAST.store(RECORDER.now(), Relaxed);
        return;
    }
    with_turn(|| {
        let control = control();
        while control.bell.swap(0, AcqRel) != 0 {
            let (wish, done) = (control.wish.load(Acquire), control.done.load(Relaxed));
            if wish == done {
                continue;
            }
            if RECORDER.is_awake() {
                go_to_sleep();
            }
            let mut failure = 0;
            if wish % 2 == 1 {
                BEAT.store(control.beat.load(Relaxed), Relaxed);
                BEAT_SEEN.store(RECORDER.now(), Relaxed);
                match RECORDER.awake(control.slower_than.load(Relaxed)) {
                    Ok(()) => table::install(Detail::Contended),
                    Err(Failure::NotNow) if tries_again(wish) => {
                        // A later call does.
                        control.bell.store(1, Release);
                        return;
                    }
                    Err(other) => failure = other.cause() as u32 + 1,
                }
            }
            control.failure.store(failure, Relaxed);
            control.done.store(wish, Release);
        }
    });
}

/// A thread was in the recorder. It leaves soon; or never, if a signal handler has jumped out of it.
fn tries_again(wish: u32) -> bool {
    let now = RECORDER.now();
    if TRIED.swap(wish, Relaxed) != wish {
        TRIED_FIRST.store(now, Relaxed);
    }
    TRIED_LAST.store(now, Relaxed);
    RECORDER.ns_since(TRIED_FIRST.load(Relaxed)) <= LEASE_NS
}

fn go_to_sleep() {
    table::install(Detail::Off);
    RECORDER.fall_asleep();
}

/// Runs `body`, unless another thread answers, or this one does: a signal handler has interrupted it.
fn with_turn(body: impl FnOnce()) {
    if ANSWERER.compare_exchange(0, raw::thread_id(), Acquire, Relaxed).is_ok() {
        body();
        ANSWERER.store(0, Release);
    }
}

/// A wait was recorded: if the command that wants that has been silent for too long, it has died.
#[cold]
#[inline(never)]
pub(crate) fn check_beat() {
    let (control, now) = (control(), RECORDER.now());
    let has_lapsed = || RECORDER.ns_since(BEAT_SEEN.load(Relaxed)) > LEASE_NS;
    let beat = control.beat.load(Relaxed);
    if BEAT.swap(beat, Relaxed) != beat {
        BEAT_SEEN.store(now, Relaxed);
    } else if has_lapsed() {
        with_turn(|| {
            // Another command may have begun a recording meanwhile.
            if has_lapsed() && RECORDER.is_awake() {
                let done = control.done.load(Relaxed);
                go_to_sleep();
                control.done.store(done.wrapping_add(1), Release);
            }
        });
    }
}

/// In a forked child: it is not dormant.
pub(crate) fn forked() {
    if PROCESS.load(Relaxed) == 0 {
        return;
    }
    PROCESS.store(0, Relaxed);
    // The parent's thread that answered is not here.
    ANSWERER.store(0, Relaxed);
    // SAFETY: the page is this library's, and all of it atomic. Without memory the parent's stays: then the
    // child takes no notice of its bell.
    let _ = unsafe { raw::map_zero_over(page(), PAGE) };
}

/// The process ends in order: its files go. A command that records it has them open.
pub(crate) fn end(directory: &CStr) {
    if PROCESS.load(Relaxed) == raw::process_id() && RECORDER.is_here() {
        RECORDER.remove_files(directory);
    }
}
