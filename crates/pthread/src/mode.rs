//! Whether the locks are ours in this process, and how the user can tell.
//!
//! | variable             | effect                                                                              |
//! |----------------------|-------------------------------------------------------------------------------------|
//! | `SPINPARK_DISABLE=1` | every call goes to glibc: the honest baseline, with the same interposition           |
//! | `SPINPARK_FORCE=1`   | ours even under a race detector (see `environment` in the linux crate)                |
//! | `SPINPARK_RSEQ=0`    | no restartable sequences: see `rseq` in the linux crate                             |
//! | `SPINPARK_POLICY=T`  | a table of policies, or a file with one: see [`policy`](crate::policy)              |
//! | `SPINPARK_VERBOSE=1` | one line on stderr at the start of the process                                      |
//! | `SPINPARK_REPORT=F`  | appends `loaded PID` to the file F at the start of the process, `used PID` at the   |
//! |                      | first call of a lock function; before that `off PID`, under a race detector, or     |
//! |                      | `disabled PID`, by `SPINPARK_DISABLE`; `spinpark compare` reads it                  |
//!
//! Read once, at the first call or in the drop-in's initialiser, whichever comes first.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed, Ordering::SeqCst};

use spinpark_linux::{is_on, race_detector, variable};
use spinpark_platform::SpinPolicy;

use crate::fields::Linux;
use crate::{fields, leave, policy, real};

const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
/// Every call goes to glibc.
const DISABLED: u8 = 2;
/// Ours, and the first call is to be reported.
const OURS_UNUSED: u8 = 3;
/// Disabled, and the first call is to be reported.
const DISABLED_UNUSED: u8 = 4;
/// Ours, but for the mutexes, which go to glibc one by one: see [`glibc_owned`](crate::glibc_owned).
const SHARED: u8 = 5;

static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Points to a byte that is 0 or 1 only if the mode is `OURS`: 1 while the process has one thread. That is
/// glibc's `__libc_single_threaded` (2.32), or a byte that is always 0. So the fast paths learn both from two
/// loads.
static SINGLE: AtomicPtr<u8> = AtomicPtr::new((&raw const UNSURE).cast_mut());
static UNSURE: u8 = 2;
static NEVER: u8 = 0;

/// How a call is served, if the process has decided that already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fast {
    /// By us; other threads may exist.
    Threaded,
    /// By us; there is no other thread.
    Alone,
    /// Not decided yet, or not by us: [`ours`] tells.
    Unsure,
}

/// What is known without a call.
#[inline(always)]
pub(crate) fn fast() -> Fast {
    // SAFETY: points to a byte of this library or of libc, neither of which is unloaded while it runs. glibc
    // writes it in `pthread_create`, before there is a second thread, and after a join.
    match unsafe { SINGLE.load(Relaxed).read_volatile() } {
        0 => Fast::Threaded,
        1 => Fast::Alone,
        _ => Fast::Unsure,
    }
}

/// Whether this call is ours to serve, as far as the process goes.
#[inline]
pub(crate) fn ours() -> bool {
    match MODE.load(Relaxed) {
        OURS => true,
        DISABLED => false,
        mode => first_call(mode),
    }
}

#[cold]
#[inline(never)]
fn first_call(mode: u8) -> bool {
    if mode == UNKNOWN {
        start();
        return ours();
    }
    if mode == SHARED {
        return true;
    }
    report("used");
    let ours = mode == OURS_UNUSED;
    decide(mode, if ours { OURS } else { DISABLED });
    ours
}

/// As [`ours`], of a mutex, which in a shared process may be glibc's.
#[inline(always)]
pub(crate) fn serves(in_shared: impl FnOnce() -> bool) -> bool {
    match MODE.load(Relaxed) {
        OURS => true,
        DISABLED => false,
        mode => first_call(mode) && (!is_shared() || in_shared()),
    }
}

/// Whether glibc's functions are called on the same objects, past these.
pub(crate) fn is_shared() -> bool {
    MODE.load(Relaxed) == SHARED
}

/// The process is shared from here on; no call is served by a short way any more.
pub(crate) fn share() {
    // SeqCst: see `decide`.
    MODE.store(SHARED, SeqCst);
    SINGLE.store((&raw const UNSURE).cast_mut(), SeqCst);
}

/// Another thread may have decided since `seen`, or begun to share the process ([`share`]). SeqCst: either
/// this thread sees `SHARED`, or that one's store to `SINGLE` is the later one.
#[inline(never)] // for the drop-in's size
fn decide(seen: u8, mode: u8) {
    if MODE.compare_exchange(seen, mode, Relaxed, Relaxed).is_ok() && mode == OURS {
        let glibcs = real::any(c"__libc_single_threaded").cast::<u8>();
        let single = if glibcs.is_null() { (&raw const NEVER).cast_mut() } else { glibcs };
        SINGLE.store(single, SeqCst);
        if MODE.load(SeqCst) != OURS {
            SINGLE.store((&raw const UNSURE).cast_mut(), Relaxed);
        }
    }
}

// Runs once when the library is loaded. Nothing depends on it: the first call does the same if it comes
// before. SAFETY: the loader calls each entry of `.init_array` once, with arguments that `initialise` does
// not look at.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISER: extern "C" fn() = initialise;

extern "C" fn initialise() {
    start();
}

/// Reads the environment.
#[cold]
pub(crate) fn start() {
    if MODE.load(Relaxed) != UNKNOWN {
        return;
    }
    let chosen = is_on(c"SPINPARK_DISABLE");
    let detector = if chosen || is_on(c"SPINPARK_FORCE") { None } else { race_detector() };
    let disabled = chosen || detector.is_some();
    let reported = variable(c"SPINPARK_REPORT").is_some();
    decide(
        UNKNOWN,
        match (disabled, reported) {
            (false, false) => OURS,
            (true, false) => DISABLED,
            (false, true) => OURS_UNUSED,
            (true, true) => DISABLED_UNUSED,
        },
    );
    real::find_all();
    register_fork_handler();
    fields::probe();
    spinpark_linux::allow_attach();
    if !disabled {
        leave::start();
        spinpark_linux::start(true); // the drop-in is linked with `-z nodelete`
        policy::start();
    }
    if reported {
        report("loaded");
    }
    if chosen && reported {
        report("disabled");
    }
    if let Some(detector) = detector {
        if reported {
            report("off");
        }
        let mut line = Line::new();
        line.text("spinpark: off: ").text(detector);
        line.text(" cannot see its locks (SPINPARK_FORCE=1: on)\n");
        line.write_to(libc::STDERR_FILENO);
    }
    if is_on(c"SPINPARK_VERBOSE") {
        let what = if disabled { "disabled: calls go to glibc" } else { "active" };
        let mut line = Line::new();
        line.text("spinpark: ").text(what).text(concat!(" (version ", env!("CARGO_PKG_VERSION"), ", pid "));
        line.number(process());
        if !disabled {
            line.text(", CPUs ").number(Linux::cpus());
        }
        if let Some(count) = policy::count() {
            line.text(", policies ").number(count);
        }
        line.text(")\n");
        line.write_to(libc::STDERR_FILENO);
    }
}

/// The first one that glibc gets: see [`process`](crate::process).
fn register_fork_handler() {
    let ours = spinpark_linux::take_over_fork_handler();
    // SAFETY: the handler is sound to run in a forked child. A null handle: this library is never unloaded.
    unsafe { real::__register_atfork(None, None, Some(ours), ptr::null_mut()) };
}

/// Appends `what` and the process id to the report file. A file that cannot be opened is ignored.
#[inline(never)] // for the drop-in's size
fn report(what: &str) {
    let Some(path) = variable(c"SPINPARK_REPORT") else { return };
    let mut line = Line::new();
    line.text(what).text(" ").number(process()).text("\n");
    let file = spinpark_linux::raw::open_append(path);
    if file >= 0 {
        line.write_to(file);
        spinpark_linux::raw::close(file);
    }
}

fn process() -> u32 {
    spinpark_linux::raw::process_id()
}

/// A line of output, put together without allocation and written at once.
struct Line {
    bytes: [u8; 128],
    length: usize,
}

impl Line {
    fn new() -> Self {
        Self { bytes: [0; 128], length: 0 }
    }

    #[inline(never)] // for the drop-in's size
    fn text(&mut self, text: &str) -> &mut Self {
        for &byte in text.as_bytes() {
            if let Some(free) = self.bytes.get_mut(self.length) {
                *free = byte;
                self.length += 1;
            }
        }
        self
    }

    fn number(&mut self, number: u32) -> &mut Self {
        if number >= 10 {
            self.number(number / 10);
        }
        let digit = [b'0' + (number % 10) as u8];
        self.text(core::str::from_utf8(&digit).unwrap_or("?"))
    }

    fn write_to(&self, file: i32) {
        spinpark_linux::raw::write(file, &self.bytes[..self.length]);
    }
}
