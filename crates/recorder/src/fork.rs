//! Whether this process records: not yet, now, or not at all; and how a fork changes that.
//!
//! The file is the parent's, and so is all that is noted. A child begins a recording of its own once it has
//! something to record ([`Recorder::begin`]): for most there never is, and their fork should cost what it
//! costs without a recorder. So the handler of `pthread_atfork` only notes that the child may begin
//! ([`Recorder::forked`]).
//!
//! It runs after handlers of others, and not at all after `_Fork` or a bare `clone`. So the state is a word
//! in a page that the kernel empties in a child (`MADV_WIPEONFORK`, Linux 4.14): nothing is recorded without
//! it.
//!
//! | state       | set by                                                | next                                           |
//! |-------------|-------------------------------------------------------|------------------------------------------------|
//! | `NOTHING`   | the start; a fork; a start that failed                | `IDLE`, `ON`                                   |
//! | `IDLE`      | [`Recorder::idle`], [`Recorder::forked`]              | `BEGINNING`, by the thread that begins          |
//! | `BEGINNING` | [`Recorder::begin`]                                   | `ON`, `IDLE` or `NOTHING`, by the same thread   |
//! | `ON`        | [`Recorder::start`], once the file is complete        | `NOTHING`, in a child; `BEGINNING` ([`super::dormant`]) |
//! | `ASLEEP`    | [`super::dormant`], and so in the next column          | `BEGINNING`                                    |
//! | `FORKED`    | [`Recorder::forked`], in a child of a dormant process  | `BEGINNING` ([`Recorder::begin_forked`])        |
//!
//! | op                          | order   | pairs with    | because                                                 |
//! |-----------------------------|---------|---------------|---------------------------------------------------------|
//! | state: store of `ON`        | Release | load          | a thread that sees it finds file and tables             |
//! | state: load                 | Acquire | store         | the same                                                |
//! | state: changes of `dormant` | AcqRel  | load          | the same; and see [`presence`]                            |
//! | state: `IDLE` → `BEGINNING` | Acquire | store of `IDLE` | one thread begins, and sees what the last try has left |

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{compiler_fence, fence, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};

use spinpark_linux::raw;

use super::clock::monotonic;
use super::thread_state::here;
use super::{presence, Failure, Recorder, Settings};
use crate::format::Detail;

const PAGE: usize = 4096;

const NOTHING: u32 = 0;
pub(super) const ON: u32 = 1;
const IDLE: u32 = 2;
pub(super) const BEGINNING: u32 = 3;
pub(super) const ASLEEP: u32 = 4;
pub(super) const FORKED: u32 = 5;

/// How long a thread waits for another one that begins, ns.
const PATIENCE_NS: u64 = 20_000_000;

/// See above.
#[repr(C)]
struct Page {
    state: AtomicU32,
    /// 1: this process is among those that are counted as refused.
    is_refused: AtomicU32,
    /// When the process began, ticks; 0: with its recording.
    begun: AtomicU64,
    /// CPU time that beginning to record has taken, ns.
    start: AtomicU64,
    /// 1: this process was forked by one that records, or would have.
    is_child: AtomicU32,
}

/// Whether this process records.
pub(crate) struct Alive(AtomicPtr<Page>);

impl Alive {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> bool {
        self.page().is_some_and(|page| page.state.load(Acquire) == ON)
    }

    #[inline(always)]
    fn page(&self) -> Option<&Page> {
        // SAFETY: null, or a page that stays; all zero is one.
        unsafe { self.0.load(Relaxed).as_ref() }
    }

    /// Makes the page; whether there was memory.
    pub(crate) fn prepare(&self) -> bool {
        if self.page().is_some() {
            return true;
        }
        let Some(page) = raw::map_zero(PAGE) else { return false };
        // An older kernel does not do it. Then the handler of the fork says so.
        raw::wipe_on_fork(page.as_ptr(), PAGE);
        self.0.store(page.as_ptr().cast(), Release);
        true
    }

    /// As [`Alive::get`], for a thread that has no table and is counted in `entering` from now on.
    pub(crate) fn enter_first(&self, entering: &AtomicU32) -> bool {
        /// Of a process that has no page.
        static NEVER: AtomicU32 = AtomicU32::new(NOTHING);
        let state = self.page().map_or(&NEVER, |page| &page.state);
        presence::enter_first(entering, state, ON, || fence(SeqCst))
    }

    /// From one state to another, if it is in that; whether it was.
    pub(super) fn change(&self, from: u32, to: u32) -> bool {
        self.page().is_some_and(|page| page.state.compare_exchange(from, to, AcqRel, Relaxed).is_ok())
    }

    /// The present recording begins now, and the process began before.
    pub(super) fn begin_now(&self) {
        if let Some(page) = self.page() {
            page.begun.store(0, Relaxed);
            page.start.store(0, Relaxed);
        }
    }

    pub(super) fn set(&self, state: u32) {
        if let Some(page) = self.page() {
            page.state.store(state, Release);
        }
    }

    /// After [`Alive::prepare`]: the recording is complete.
    pub(crate) fn set_on(&self) {
        self.set(ON);
    }

    /// When the process began, if that was before its recording.
    pub(crate) fn begun(&self) -> Option<u64> {
        self.page().map(|page| page.begun.load(Relaxed)).filter(|begun| *begun != 0)
    }

    /// Beginning has taken `ns` of CPU time more; how much that is by now.
    pub(crate) fn add_start(&self, ns: u64) -> u64 {
        self.page().map_or(ns, |page| page.start.fetch_add(ns, Relaxed) + ns)
    }

    /// Whether it is in this state.
    pub(super) fn is(&self, state: u32) -> bool {
        self.state() == state
    }

    fn state(&self) -> u32 {
        self.page().map_or(NOTHING, |page| page.state.load(Acquire))
    }
}

impl Recorder {
    /// After [`Recorder::prepare`]: the process will begin a recording when it has something to record.
    pub fn idle(&self, detail: Detail) {
        self.detail.store(detail as u32, Relaxed);
        if let Some(page) = self.alive.page() {
            page.begun.store(self.now(), Relaxed);
        }
        self.alive.set(IDLE);
    }

    /// In a forked child, whose only thread this is: nothing is recorded until [`Recorder::begin`], or, if the
    /// parent is dormant, [`Recorder::begin_forked`].
    ///
    /// `false` if the fork came from a signal handler that has interrupted the recorder: it will go on when
    /// that returns, with the parent's memory, which is left as it is. There must be no start then.
    ///
    /// Each page that this writes costs the fork a copy: it is the state's, and that of the thread's own
    /// memory.
    pub fn forked(&self) -> bool {
        let here = here();
        if here.refused.get() != 0 {
            here.refused.set(0);
        }
        if here.skips.get() != 0 {
            // The skips were the parent's.
            here.skips.set(0);
        }
        // So are the spans; of a thread that was just changing them the child has nothing.
        self.spans.forget();
        if here.is_busy.get() != 0 {
            self.alive.set(NOTHING);
            return false;
        }
        if !here.own.get().is_null() {
            here.own.set(ptr::null());
            here.events.set(0);
            here.releasing.set(0);
        }
        self.idle_again();
        true
    }

    fn idle_again(&self) {
        let Some(page) = self.alive.page() else { return };
        page.begun.store(self.now(), Relaxed);
        page.is_refused.store(0, Relaxed);
        page.is_child.store(1, Relaxed);
        page.state.store(if self.is_dormant() { FORKED } else { IDLE }, Release);
    }

    /// In a forked child, after [`Recorder::forked`]: nothing will be recorded.
    pub fn never(&self) {
        self.alive.set(NOTHING);
    }

    /// Something else will be recorded than [`Recorder::idle`] was given.
    pub fn expect(&self, detail: Detail) {
        self.detail.store(detail as u32, Relaxed);
    }

    /// The detail that is recorded, or will be.
    #[must_use]
    pub fn detail(&self) -> Detail {
        Detail::of(self.detail.load(Relaxed))
    }

    /// Begins a recording, if there is none and there may be one; `Ok` if there is one now. The calling
    /// thread is about to wait for a lock, or, with `settings.is_idle`, has something else to record.
    ///
    /// Another thread that begins is waited for, a while.
    #[cold]
    #[inline(never)]
    pub fn begin(&self, settings: &Settings<'_>) -> Result<(), Failure> {
        let local = here();
        let page = self.alive.page().filter(|_| local.is_busy.get() == 0).ok_or(Failure::NotNow)?;
        match page.state.compare_exchange(IDLE, BEGINNING, Acquire, Acquire) {
            Err(BEGINNING) => self.await_start(page),
            Err(ON) => Ok(()),
            Err(_) => Err(Failure::NotNow),
            Ok(_) => self.begin_first(page, settings),
        }
    }

    fn begin_first(&self, page: &Page, settings: &Settings<'_>) -> Result<(), Failure> {
        let local = here();
        // A signal handler that runs now finds the recorder at work.
        local.is_busy.set(1);
        compiler_fence(SeqCst);
        self.epoch.fetch_add(1, Relaxed);
        self.file.forget();
        let started = self.start(settings);
        let next = match started {
            Ok(()) => ON,
            Err(Failure::Bound) => {
                if page.is_refused.swap(1, Relaxed) == 0 {
                    self.file.quota.refused(1);
                }
                // A process that waits has a larger quota.
                if settings.is_idle {
                    IDLE
                } else {
                    NOTHING
                }
            }
            Err(failure) => {
                self.file.quota.failed(failure);
                NOTHING
            }
        };
        if next == ON && page.is_refused.swap(0, Relaxed) != 0 {
            self.file.quota.refused(-1);
        }
        page.state.store(next, Release);
        self.leave();
        started
    }

    fn await_start(&self, page: &Page) -> Result<(), Failure> {
        let begun = monotonic();
        loop {
            match page.state.load(Acquire) {
                ON => return Ok(()),
                BEGINNING if monotonic().saturating_sub(begun) < PATIENCE_NS => raw::yield_now(),
                _ => return Err(Failure::NotNow),
            }
        }
    }

    /// Whether there is a file, and it is this process'.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.alive.get() && self.file.header().is_some()
    }

    /// Whether this process records, or may at times: not one that was cloned without its knowledge, whatever
    /// number that has for itself.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.alive.state() != NOTHING
    }

    /// Whether there is no recording, and [`Recorder::begin`] could begin one.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.alive.state() == IDLE
    }

    /// The same, or a thread is about to.
    #[must_use]
    pub fn may_begin(&self) -> bool {
        matches!(self.alive.state(), IDLE | BEGINNING)
    }

    /// Whether this process was forked by one that records, or would have: it has that one's memory.
    pub(crate) fn is_child(&self) -> bool {
        self.alive.page().is_some_and(|page| page.is_child.load(Relaxed) != 0)
    }

    /// A number that changes at a fork: waits that began before are the parent's.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }
}
