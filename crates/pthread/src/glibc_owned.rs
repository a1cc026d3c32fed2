//! Mutexes that a program reaches through two implementations: this one, and glibc's own functions past it.
//!
//! A library opened with `RTLD_DEEPBIND`, or a pointer from `dlsym` on libc's own handle, calls glibc's
//! `pthread_mutex_lock` on an object that others lock here. Both have their word in the same four bytes.
//! glibc takes any value of ours for a mutex that is held, and no thread of ours acquires one of glibc's (X1
//! in `spinpark_locks`' `word`). So no two threads hold the mutex at a time. Owner and count mean the same to
//! both: a thread that holds a recursive mutex through one may lock it again through the other.
//!
//! What remains is to wake each other's sleepers. The first thread of ours that finds a value of glibc's
//! makes the mutex glibc's for good ([`GLIBC_OWNED`] in its kind), reports this once, and every later call
//! goes to glibc's functions.
//!
//! | the word says | a thread of ours      | what it does                                                                 |
//! |---------------|-----------------------|------------------------------------------------------------------------------|
//! | 1, 2          | locks                 | sets [`GLIBC_OWNED`], and locks through glibc                                |
//! | 2             | unlocks, locked here  | sends our waiters to look again, stores 0, wakes one sleeper of glibc's (X3) |
//! | any           | unlocks, glibc-owned  | the same if it was locked here, else unlocks it through glibc                |
//!
//! # A shared process
//!
//! A library that is opened with `RTLD_DEEPBIND`, or in a namespace of its own, announces this ([`share`]).
//! From then on releases are compare-exchanges, so that no 2 of glibc's is overwritten, and each mutex goes
//! to glibc: a free one as it is locked next, a held one as its holder unlocks it or waits on a condition
//! variable. Then no mutex is free with waiters of ours, which would look held to glibc. Read-write locks and
//! condition variables stay ours.
//!
//! # What is not seen
//!
//! Without such an announcement, two things are not seen:
//!
//! - A release here that is a plain store overwrites the 2 of a thread that sleeps in glibc's function.
//!   That thread sleeps until a value of glibc's is found in this mutex, or glibc's unlock wakes it. From the
//!   first such value in the process on, each release is a compare-exchange, which fails on a 2.
//! - A mutex that is free, but has waiters of ours, is held for glibc, whose waiter then overwrites the
//!   word: 2, and no holder. No thread can tell that from a holder of ours, whose name was overwritten. So
//!   after [`LONGEST`] seconds a waiter reports what may have happened, once in the process, and waits on.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::{ETIMEDOUT, timespec};
use spinpark_linux::{is_on, thread_id, write_message};
use spinpark_locks::GLIBCS_CONTENDED;
use spinpark_platform::{AsymmetricBarrier, Clock, Clocks, Futex, NS_PER_SEC, Platform};

use crate::fields::Linux;
use crate::mutex::{GLIBC_KINDS, GLIBC_OWNED, Mutex};
use crate::{mode, real};

/// How often, once a second, a thread finds the mutex held by no thread that is known, before it reports
/// this.
const LONGEST: u32 = 10;

static SAID_LOST: AtomicBool = AtomicBool::new(false);
const LOST: &[u8] =
    b"spinpark: A thread has waited for 10 s for a mutex that glibc's own functions lock, too. \
If the program hangs, set SPINPARK_DISABLE=1.\n";
static SAID_BOTH: AtomicBool = AtomicBool::new(false);
const BOTH: &[u8] = b"spinpark: A mutex is locked by glibc's own functions, too (RTLD_DEEPBIND, dlsym). \
glibc serves it from now on.\n";

impl Mutex {
    /// Leaves the mutex to glibc for good.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_to_glibc(&self) {
        if !self.set_glibc_owned() || mode::is_shared() {
            return;
        }
        if !SAID_BOTH.swap(true, Relaxed) {
            write_message(BOTH);
        }
        spinpark_linux::stop_sequences();
        Linux::asymmetric_barrier(); // another thread may have begun that just now
        // Those whose 2 a release of ours has overwritten, before it was a compare-exchange.
        Linux::futex_wake(self.raw.queue().word(), i32::MAX as u32);
    }

    /// Locks a mutex in which a value of glibc's was found, `depth` times more than once.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_in_glibc(&self, depth: u32) -> c_int {
        let mut lost = 0;
        loop {
            let seconds = Linux::now(Clock::Monotonic) / NS_PER_SEC + 1;
            let time = timespec { tv_sec: seconds as i64, tv_nsec: 0 };
            // SAFETY: the time is this function's.
            let result = unsafe { self.lock_in_glibc_until(libc::CLOCK_MONOTONIC, &raw const time) };
            if result != ETIMEDOUT {
                if result == 0 {
                    self.held_more_often(depth);
                }
                return result;
            }
            let word = self.raw.queue().word().load(Relaxed);
            lost = if word == GLIBCS_CONTENDED && self.is_locked_here() { lost + 1 } else { 0 };
            if lost == LONGEST && !SAID_LOST.swap(true, Relaxed) {
                write_message(LOST);
            }
        }
    }

    /// [`Mutex::lock_in_glibc`], with the caller's time.
    ///
    /// # Safety
    ///
    /// `time` points to a timespec.
    pub(crate) unsafe fn lock_in_glibc_until(&self, clock: libc::clockid_t, time: *const timespec) -> c_int {
        self.give_to_glibc();
        let mutex = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the caller's time; this mutex.
        unsafe { real::pthread_mutex_clocklock(mutex, clock, time) }
    }

    /// In a shared process: keeps the mutex here if it is held here or has waiters. If not, it is glibc's
    /// from here on, and the answer is `false`.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep_if_in_use(&self) -> bool {
        let ours = self.raw.is_in_use();
        if !ours {
            self.set_glibc_owned();
        }
        ours
    }

    /// Whether the calling thread's unlock is ours to serve: the mutex was locked here. One that is glibc's
    /// by now becomes so in its word as well.
    #[inline(always)]
    pub(crate) fn keep_to_unlock(&self) -> bool {
        self.kind() & GLIBC_KINDS == 0 && mode::serves(|| self.keep_if_held_here())
            || self.is_glibc_owned() && self.keep_if_held_here()
    }

    /// Keeps the mutex here if it was locked here, by the calling thread; else the answer is `false`. In a
    /// shared process, or once it is glibc's, it is not kept: its holder writes what glibc would have, so
    /// that it never becomes free with waiters of ours.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep_if_held_here(&self) -> bool {
        if !self.is_locked_here() {
            self.set_glibc_owned();
            return false;
        }
        if (mode::is_shared() || self.is_glibc_owned())
            && self.raw.is_locked()
            && (self.is_plain() || self.is_owned_by(thread_id()))
        {
            self.set_glibc_owned();
            self.raw.give_to_glibc();
            self.owner().store(thread_id(), Relaxed);
            self.users().store(1, Relaxed);
            return false;
        }
        true
    }

    /// Every later call on the mutex goes to glibc.
    fn set_glibc_owned(&self) -> bool {
        self.kind_word().fetch_or(GLIBC_OWNED, Relaxed) & GLIBC_OWNED == 0
    }

    /// Whether a wait on a condition variable releases the mutex here and takes it back; else it is glibc's.
    pub(crate) fn keep_to_wait(&self) -> bool {
        let ours = self.keep_to_unlock();
        if ours && !self.is_locked_here() {
            self.give_to_glibc();
            return false;
        }
        ours
    }

    /// Whether a mutex that is held was locked here, not through glibc; certain for its owner.
    pub(crate) fn is_locked_here(&self) -> bool {
        let users = self.users().load(Relaxed) as i32;
        if users < 0 {
            Linux::overwritten(0); // glibc has unlocked what was locked here
        }
        users == 0
    }
}

const SHARED: &[u8] = b"spinpark: A library was opened past the drop-in (RTLD_DEEPBIND, dlmopen): \
glibc serves all mutexes now.\n";

/// Before a library is opened that calls glibc's functions.
#[cold]
#[inline(never)]
pub(crate) fn share() {
    if !mode::ours() || mode::is_shared() || is_on(c"SPINPARK_FORCE") {
        return;
    }
    write_message(SHARED);
    mode::share();
    spinpark_linux::stop_sequences();
    Linux::asymmetric_barrier(); // another thread may have begun that just now
}
