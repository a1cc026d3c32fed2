//! What a fork makes of a recording: the file is the parent's, and so is all that is noted.
//!
//! A handler of `pthread_atfork` tells the child ([`Recorder::forget`]), but not before handlers of others have run, and not
//! after `_Fork` or a bare `clone`. So whether this process is the one that records says a word in a page that the kernel
//! empties in a child (`MADV_WIPEONFORK`, Linux 4.14): nothing is recorded without it.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use spinpark_linux::raw;

use super::own::here;
use super::Recorder;

const PAGE: usize = 4096;

/// Whether this process records.
pub(crate) struct Alive(AtomicPtr<AtomicU32>);

impl Alive {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> bool {
        self.word().is_some_and(|word| word.load(Acquire) != 0)
    }

    #[inline(always)]
    fn word(&self) -> Option<&AtomicU32> {
        // SAFETY: null, or a page that stays.
        unsafe { self.0.load(Relaxed).as_ref() }
    }

    /// Makes the page; whether there was memory.
    pub(crate) fn prepare(&self) -> bool {
        if self.word().is_some() {
            return true;
        }
        let Some(page) = raw::map_zero(PAGE) else { return false };
        // An older kernel does not do it. Then the handler of the fork says so.
        raw::wipe_on_fork(page.as_ptr(), PAGE);
        self.0.store(page.as_ptr().cast(), Release);
        true
    }

    /// After [`Alive::prepare`]: it does, or not any more.
    pub(crate) fn set(&self, is_alive: bool) {
        if let Some(word) = self.word() {
            word.store(u32::from(is_alive), Release);
        }
    }
}

impl Recorder {
    /// In a forked child, whose only thread this is: nothing is recorded until the next [`Recorder::start`].
    ///
    /// `false` if the fork came from a signal handler that has interrupted the recorder: it will go on when that returns, with
    /// the parent's memory, which is left as it is. There must be no start then.
    pub fn forget(&self) -> bool {
        self.alive.set(false);
        self.epoch.fetch_add(1, Relaxed);
        let here = here();
        here.refused.set(0);
        if here.is_busy.get() != 0 {
            return false;
        }
        self.file.forget();
        here.own.set(ptr::null());
        here.events.set(0);
        here.letting.set(0);
        true
    }

    /// Whether there is a file, and it is this process'.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.alive.get() && self.file.header().is_some()
    }

    /// Changes at a fork: what was begun before is the parent's.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }
}
