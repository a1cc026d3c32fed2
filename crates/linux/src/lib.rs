//! The platform on Linux: futexes, clocks, thread identity, fork. The only crate with system calls.
//!
//! `no_std`, no allocation, no thread-local destructors, and `errno` is never touched (system calls are made
//! directly), so that all of it may run inside intercepted pthread calls, before `main` and in destructors.
#![no_std]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("spinpark runs on 64-bit Linux; elsewhere use `parking_lot`, whose method names are the same");

mod adaptive;
mod attach;
mod block;
mod clock;
mod cpu;
mod environment;
mod fork;
mod futex;
mod generation;
mod interrupted;
mod jump;
mod leave;
mod lend;
mod mapping;
mod memory;
mod message;
mod observer;
mod permanent;
mod policy;
mod quota;
pub mod raw;
mod reads;
mod rseq;
mod sandbox;
mod single;
mod slack;
mod slot;
mod slots;
mod symbol;
mod thread;
mod unwoken;
mod vdso;

use core::sync::atomic::{self, AtomicBool, Ordering::Relaxed};

use spinpark_platform::{Platform, Tuning};

pub use attach::allow_attach;
pub use clock::{clock_id, clock_of, deadline, start as start_clock};
#[doc(hidden)]
pub use cpu::pretend as pretend_cpus;
pub use environment::{is_off, is_on, race_detector, variable};
pub use fork::take_over_fork_handler;
pub use interrupted::go_on;
pub use leave::{call, exit_if_put_off, leave_by, put_off_exit, set_queued, take_exit, Call, Exit, Sleep};
pub use memory::{Cell, Linux, LinuxWith, LockPadding};
pub use message::write_message;
pub use observer::{observe, Observer};
pub use permanent::initialise;
pub use rseq::stop as stop_sequences;
pub use sandbox::before_filter;
pub use slack::note as note_timer_slack;
pub use symbol::{glibc_dlsym, lookup, lookup_next, lookup_version, Library, Scope};
pub use thread::{known_token, ready_hold, thread_id, READY_HOLD_AT};

/// The last line of a process in which a lock holds an invalid value.
const OVERWRITTEN: &[u8] = b"spinpark: A lock was overwritten: freed, or locked by glibc's own functions \
(RTLD_DEEPBIND, dlsym). Set SPINPARK_DISABLE=1.\n";

impl<R: LockPadding> Platform for LinuxWith<R> {
    const TUNING: Tuning = Tuning::LINUX;

    #[cold]
    #[inline(never)]
    fn overwritten(_lock: usize) -> ! {
        message::write_message(OVERWRITTEN);
        // SAFETY: ends the process.
        unsafe { libc::abort() }
    }
}

/// Whether [`start`] has run: locks are in use.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Asks the kernel everything that locks need to know, once, before the first of them is used: a sandbox may
/// kill the process for a later call. `permanent`: the caller knows that this code stays mapped until the
/// process ends.
#[cold]
pub fn start(permanent: bool) {
    clock::start();
    if !STARTED.swap(true, Relaxed) && !sandbox::is_confined() {
        single::start();
        thread::start();
        generation::start();
        cpu::start();
        rseq::start(permanent);
        if permanent {
            message::notes_stderr();
        }
        if rseq::area() != 0 {
            slots::start();
        }
    }
}

/// The first call of a thread that has no token yet; also the process' first one, unless the layer above has
/// begun.
fn first_call() {
    if fork::register() {
        start(false);
    }
}

/// Sleeps for `span` nanoseconds, or less if a signal handler runs.
pub fn sleep_for(span: u64) {
    let never_woken = atomic::AtomicU32::new(0);
    futex::wait_for(&never_woken, 0, span);
}
