//! A dormant process: it records nothing until a command asks it to, any number of times.
//!
//! At the start it makes a directory of its own, with the file of its recordings and the page [`Control`] of a
//! file that it maps. Neither grows, and nothing writes to them, until a command rings the bell in that page.
//! Until then each exported function is the next implementation's, as with the detail `off`; its trampoline
//! compares the bell with what was heard last (two loads of words that no thread writes) and jumps.
//!
//! A thread that hears the bell *answers* ([`bell`]): it makes of the process what is wished, and goes on with
//! its call. One thread does at a time; others go on with their calls meanwhile. So no thread, no timer and no
//! signal is needed, and what an answer needs of the system is little: the file is there, whatever rights the
//! process has given up since, and whatever descriptors it has closed.
//!
//! # Forked children
//!
//! The mapping lies in this library's own memory, so that its address is a constant; a forked child has it,
//! too. The fork does no more than note that no thread of the child answers. A command asks the child through
//! the same page, by its number. Then it makes a recording of its own, in memory
//! ([`begin_forked`](spinpark_recorder::Recorder::begin_forked)): it needs no right for that, either. All
//! processes with the page hear each ring, and one thread of each looks once whether its process is meant; if
//! not, without a system call.
//!
//! A child that does not run the handler (`_Fork`, `vfork`, a bare `clone`) has another process id, or, in a
//! name space of its own, the recorder's state of no process (`fork` in the recorder); it does not answer.

use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use spinpark_linux::{Linux, raw};
use spinpark_platform::{Clock, Clocks};
use spinpark_recorder::format::{
    CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, CONTROL_VERSION, Control, Detail, LEASE_NS, NO_BARRIER,
    Request,
};
use spinpark_recorder::{Failure, Settings, bell, namespace};

use crate::recorder::RECORDER;
use crate::table;

/// A page of its own, over which the file is mapped.
#[repr(C, align(4096))]
pub(crate) struct Page(Control);

/// See above; all zero if the process is not dormant.
pub(crate) static CONTROL: Page = Page(Control::new());

/// What the bell was when this process answered last.
pub(crate) static HEARD: AtomicU32 = AtomicU32::new(0);
/// The process, if it is dormant; else 0.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// 1: the process has forked others.
static HAS_FORKED: AtomicU32 = AtomicU32::new(0);
/// [`ANSWERS`] while a thread answers, or 0.
static ANSWERER: AtomicU32 = AtomicU32::new(0);
/// Any thread: its number would be a system call.
const ANSWERS: u32 = 1;
/// The number of the request that wished for the recording.
static REQUEST: AtomicU32 = AtomicU32::new(0);
/// Its command's latest beat, and when it was seen, ticks.
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
        Failure::Create(_) | Failure::Sandbox | Failure::NoBarrier | Failure::NotNow => {
            "the system refuses it"
        }
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

/// The bell was rung; `settings`: of a recording that begins in a child.
#[cold]
#[inline(never)]
pub(crate) fn answer(settings: fn() -> Settings<'static>) {
    let process = PROCESS.load(Acquire);
    if process == 0 || ANSWERER.load(Relaxed) != 0 || RECORDER.is_at_work() {
        return;
    }
    bell::answer(&control().bell, &HEARD, &ANSWERER, ANSWERS, || fulfil(process, settings));
}

/// Does what is wished of this process, if anything is; whether it need not be tried again.
fn fulfil(process: u32, settings: fn() -> Settings<'static>) -> bool {
    let is_new = |request: &Request| {
        request.process.load(Acquire) == process && request.wish.load(Acquire) != request.done.load(Relaxed)
    };
    let mut new = control().requests.iter().enumerate().filter(|(_, request)| is_new(request)).peekable();
    // To here, no system call and no time: this process may be in a sandbox that ends it for that, and not be
    // meant.
    if new.peek().is_none() {
        return true;
    }
    if RECORDER.ns_since(TRIED_LAST.load(Relaxed)) < TRY_NS {
        return false;
    }
    if process != raw::process_id() || !RECORDER.is_here() {
        return false;
    }
    // As in the recorder's file: on a full disk, touching the page may be a signal.
    if raw::populate(page(), PAGE) == Some(false) {
        TRIED_LAST.store(RECORDER.now(), Relaxed);
        return false;
    }
    new.find(|(_, request)| is_here(request))
        .is_none_or(|(number, request)| fulfil_request(number as u32, request, settings))
}

/// Whether a request to a process with this process' number is to this process, and not to another one in
/// another name space.
fn is_here(request: &Request) -> bool {
    let wanted = request.namespace.load(Relaxed);
    // In a sandbox that came since, a system call might end the process: it will say that it cannot record.
    wanted == 0 || RECORDER.is_sandboxed() || [0, wanted].contains(&namespace())
}

fn fulfil_request(number: u32, request: &Request, settings: fn() -> Settings<'static>) -> bool {
    let wish = request.wish.load(Acquire);
    if RECORDER.is_awake() {
        go_to_sleep();
    }
    let begun = if wish % 2 == 1 { begin(number, request, settings) } else { Ok(()) };
    let failure = match begun {
        Ok(()) => 0,
        // A later call does.
        Err(Failure::NotNow) if tries_again(wish) => return false,
        Err(Failure::NoBarrier) => NO_BARRIER,
        Err(other) => other.cause() as u32 + 1,
    };
    request.failure.store(failure, Relaxed);
    request.done.store(wish, Release);
    true
}

/// Begins a recording.
fn begin(number: u32, request: &Request, settings: fn() -> Settings<'static>) -> Result<(), Failure> {
    if RECORDER.is_forked() {
        RECORDER.begin_forked(&settings())?;
    }
    request.file.store(RECORDER.memory_file().map_or(0, |file| file.cast_unsigned() + 1), Relaxed);
    REQUEST.store(number, Relaxed);
    BEAT.store(request.beat.load(Relaxed), Relaxed);
    BEAT_SEEN.store(RECORDER.now(), Relaxed);
    RECORDER.awake(request.slower_than.load(Relaxed))?;
    table::install(Detail::Contended);
    Ok(())
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

/// A wait was recorded: if the command that wants that has been silent for too long, it has died. Another one
/// may have its request by now.
#[cold]
#[inline(never)]
pub(crate) fn check_beat() {
    let Some(request) = control().requests.get(REQUEST.load(Relaxed) as usize) else { return };
    let now = RECORDER.now();
    let is_own = || request.process.load(Relaxed) == PROCESS.load(Relaxed);
    let has_lapsed = || RECORDER.ns_since(BEAT_SEEN.load(Relaxed)) > LEASE_NS;
    let beat = request.beat.load(Relaxed);
    if is_own() && BEAT.swap(beat, Relaxed) != beat {
        BEAT_SEEN.store(now, Relaxed);
    } else if has_lapsed() {
        bell::with_turn(&ANSWERER, ANSWERS, || {
            // Another command may have begun a recording meanwhile.
            if has_lapsed() && RECORDER.is_awake() {
                let done = request.done.load(Relaxed);
                go_to_sleep();
                if is_own() {
                    request.done.store(done.wrapping_add(1), Release);
                }
            }
        });
    }
}

/// The process has forked a child.
pub(crate) fn forks() {
    if PROCESS.load(Relaxed) != 0 && HAS_FORKED.load(Relaxed) == 0 {
        HAS_FORKED.store(1, Relaxed);
    }
}

/// In a forked child of a dormant process; `may_record`: it can be asked.
pub(crate) fn forked(may_record: bool) {
    bell::forked(&ANSWERER);
    PROCESS.store(if may_record { raw::process_id() } else { 0 }, Relaxed);
}

/// The process ends in order: its files go, unless children have the page. A command that records it has them
/// open. What stays is removed by the next command, once no process has it.
pub(crate) fn end(directory: &CStr) {
    if PROCESS.load(Relaxed) == raw::process_id() && RECORDER.is_here() {
        RECORDER.remove_files(directory, HAS_FORKED.load(Relaxed) != 0);
    }
}
