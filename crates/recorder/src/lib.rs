//! The recorder: writes a profile of locks, inside the program; and its file.
//!
//! The profiled program maps a file and counts in it. So a program that is killed leaves its counts, and
//! another process can read them while it runs. Each thread writes to tables of its own, never near a lock;
//! only records that are written once are shared. It uses no std and no allocation.
//!
//! | module       | what it has                                                                      |
//! |--------------|----------------------------------------------------------------------------------|
//! | [`format`]   | the file: regions, records, entries; a [`format::View`] of it                    |
//! | [`lock_free_table`] | how it finds locks: a table without a lock                                |
//! | [`presence`] | whether a thread is in the recorder: no recording begins then                       |
//! | `arch`       | what depends on the architecture: its counter, calls, return addresses               |
//! | [`bell`]     | how a dormant process hears that it is asked                                         |
//! | [`delay`]    | instead of recording: delays at one point of some locks                              |
//! | `wait`       | a wait for a lock                                                                   |
//! | `hold`       | what happens to a lock that is acquired, until its release                          |
//! | `hand_off`   | between two owners of a lock: for how long it was free                              |
//! | `parts`      | the holders of a wait                                                               |
//! | `releases`   | the latest releases of locks to threads that wait                                   |
//! | `watch`      | whether a holder has a CPU                                                          |
//! | `condvar`    | waits for signals                                                                   |
//! | `wake`       | waits to be woken, for whatever it is: futexes, semaphores, barriers, ends of threads |
//! | `semaphore`  | semaphores that are used as locks: which thread has them                              |
//! | `polling`    | waits of threads that try, sleep and try again, or yield in a loop |
//! | `library`    | what is particular about the Rust library's locks: names, releases that are not seen |
//! | `slow`       | waits that are kept whole                                                            |
//! | `call`       | what a thread does that has a lock: `read`, `fsync`, …                               |
//! | `tally`      | adding up: counters, histograms, strips                                           |
//! | `site_cache` | what a thread has seen lately                                                      |
//! | `thread_state` | a thread's table, and what it holds                                              |
//! | `call_site`  | the stack and the entries of a call, from there or new                             |
//! | `entries`, `index` | a thread's entries in the file, and what finds them                          |
//! | `hash`       | of a lock's address                                                                |
//! | `registry`   | locks by address                                                                  |
//! | `stacks`, `unwind`, `maps` | stacks: kept once, captured, and the code that they are in             |
//! | `steps`      | stacks of known addresses: followed without unwinding                             |
//! | `stack_bounds`, `unwinder_lock` | when no stack is captured                                                 |
//! | `sampling`   | which acquisitions are samples                                                     |
//! | `cost`       | what recording costs a thread: measured                                            |
//! | `governor`   | the same, bounded                                                                  |
//! | `spans`      | the same, of a process: spans of time in which little is recorded                |
//! | `shared_tables` | what threads tell each other                                                    |
//! | `file`, `clock` | the file, and time                                                              |
//! | `room`       | the quota of the recordings of a directory |
//! | `fork`       | whether this process records, and how a fork changes that |
//! | `dormant`    | recordings of one process, one after the other: nothing is recorded between them |
//! | `early`      | locks that are created before there is a recording                                |
//!
//! # Rules
//!
//! 1. Nothing is written near a lock, and a thread that does not wait writes nothing shared
//!    (`shared_tables`).
//! 2. Nothing is written down while a lock is held that could be written after (`hold`).
//! 3. No allocation but by the kernel, no `errno`, no lock that the program has. Only [`Recorder::prepare`]
//!    allocates.
//! 4. A call that finds the recorder at work in its own thread (a signal handler; the unwinder's own lock) is
//!    not recorded but counted ([`Recorder::enter`]).
//! 5. A record that does not fit is counted, and never makes the program fail.
//!
//! # Orderings
//!
//! | what                                | written                      | read                    | because                         |
//! |-------------------------------------|------------------------------|-------------------------|---------------------------------|
//! | a record's first word; `thread_state` | Release, when it is whole    | Acquire                 | readers follow it to the rest    |
//! | counters of a table                 | Relaxed, by one thread       | Relaxed                 | any moment's number will do      |
//! | `waiting` of a table                | Relaxed, by one thread       | Acquire                 | its check tells what is not whole |
//! | a thread's notes of what it holds   | Release                      | Acquire                 | see `thread_state`               |
//! | `detail`, and `changed` before it   | Relaxed                      | Relaxed                 | a change may be late by some calls |
//! | slots, `hot`                        | Relaxed                      | Relaxed                 | hints: a wrong one costs a column |
//! | `is_busy`                           | plain, between compiler fences | plain, same thread    | signal handlers                  |

#![no_std]

pub mod bell;
pub mod delay;
pub mod format;
pub mod lock_free_table;
pub mod presence;

mod arch;
mod call;
mod call_site;
mod clock;
mod condvar;
mod cost;
mod dormant;
mod early;
mod entries;
mod file;
mod fork;
mod governor;
mod hand_off;
mod hash;
mod hold;
mod holder;
mod index;
mod library;
mod maps;
mod parts;
mod polling;
mod quota;
mod registry;
mod releases;
mod sampling;
mod semaphore;
mod shared_tables;
mod site;
mod site_cache;
mod slow;
mod spans;
mod stack_bounds;
mod stacks;
mod start;
mod steps;
mod tally;
#[cfg(test)]
mod test_recorder;
mod thread_state;
mod unwind;
mod unwinder_lock;
mod wait;
mod wake;
mod watch;

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicU8};

use spinpark_platform::Event;

pub use clock::monotonic;
pub use condvar::SignalWait;
pub use cost::Meter;
pub use hold::{Prepared, Release, Releasing};
pub use quota::Failure;
pub use shared_tables::HandOff;
pub use site::Site;
pub use site_cache::LockCall;
pub use start::{namespace, Settings, MOST};
pub use thread_state::ThreadState;
pub use wait::{Blocking, FinishedWait, LeftOut, Lot, PendingWait};
pub use wake::{address_of, word};

use crate::format::{Detail, Role, WaitOutcome};

/// A recorder: one process' tables. Empty until it is started; lives in a static.
pub struct Recorder {
    file: file::File,
    alive: fork::Alive,
    early: early::EarlyStacks,
    path: start::Path,
    /// What the process could not do when it started ([`raw::sandbox`](spinpark_linux::raw::sandbox)).
    sandbox: AtomicU32,
    /// See [`Recorder::epoch`].
    epoch: AtomicU32,
    shared: shared_tables::SharedTablesPointer,
    unwinder: unwind::Unwinder,
    main_stack: stack_bounds::MainStack,
    delays: delay::Delays,
    ticks: clock::Ticks,
    /// The clock at the start, ticks.
    started: AtomicU64,
    /// Threads that are taking a table.
    entering: AtomicU32,
    /// The memory of a thread that was mapped last; each has the one before.
    newest: AtomicPtr<ThreadState>,
    /// Where a new thread searches for a table next.
    candidate: AtomicU32,
    sample_every: AtomicU32,
    /// Waits of this length, ns, are kept whole.
    slower_than: AtomicU64,
    detail: AtomicU32,
    /// When that was changed last, ticks; 0: never.
    changed: AtomicU64,
    spans: spans::Spans,
    /// See [`Recorder::is_dormant`].
    dormant: AtomicU32,
    /// Whether the kernel orders the memory of this process' threads
    /// ([`raw::prepare_order`](spinpark_linux::raw::prepare_order)).
    has_barrier: AtomicU32,
    /// CPU time of the process before the recording, ns.
    cpu_before: AtomicU64,
    /// By hash of address: a thread has waited for it.
    hot: [AtomicU8; hash::HASHES],
    /// The same: how a semaphore is used ([`semaphore`]).
    semaphores: [AtomicU8; hash::HASHES],
}

/// Which events of a waiter are which outcomes.
const EVENTS: [(u32, WaitOutcome); 5] = [
    (Event::SpinAcquired as u32, WaitOutcome::Spun),
    (Event::Parked as u32, WaitOutcome::Parked),
    (Event::SpinLeftOwnerChanged as u32, WaitOutcome::OwnerChanged),
    (Event::SpinLeftOffCpu as u32, WaitOutcome::OffCpu),
    (Event::SpinLeftBudget as u32, WaitOutcome::Budget),
];

impl Recorder {
    /// Where the bytes are that say by hash which locks have been waited for ([`Recorder::is_hot`]), for
    /// assembly. The hash of a lock is the upper half of the product of its address / 8 and
    /// [`Recorder::HASH_FACTOR`], 32 bits each.
    pub const HOT_AT: usize = core::mem::offset_of!(Recorder, hot);
    /// See [`Recorder::HOT_AT`].
    pub const HASH_FACTOR: u32 = hash::FACTOR;
    /// Where the pointer is to the slots of locks, of [`Recorder::SLOT_BYTES`] each, by hash; null while
    /// there are none.
    pub const SLOTS_AT: usize = core::mem::offset_of!(Recorder, shared);
    /// See [`Recorder::SLOTS_AT`].
    pub const SLOT_BYTES: usize = size_of::<shared_tables::Slot>();
    /// Where the byte of the first slot is, from that pointer on, that is not 0 while the lock counts as free
    /// ([`Recorder::is_awaited_and_free`]).
    pub const IS_FREE_AT: usize = shared_tables::SharedTables::IS_FREE_AT;
    /// In the thread's block `spinpark_recorder_0_1_local`: the number of acquisitions to leave out
    /// ([`Recorder::skip_next`]), of glibc's contended mutexes that are free. Each counts down by one, and
    /// leaves the mutex at [`Recorder::PASSED_AT`]. 32 bits.
    pub const SKIPS_AT: usize = core::mem::offset_of!(thread_state::Local, skips);
    /// As [`Recorder::SKIPS_AT`]: the mutex whose acquisition was left out, in a light span or by
    /// [`Recorder::SKIPS_AT`]. Its release is left out, unless it is awaited, and takes this away.
    pub const PASSED_AT: usize = core::mem::offset_of!(thread_state::Local, passed);
    /// As [`Recorder::SKIPS_AT`]: each use of a contended lock counts down by one, and calls
    /// [`Recorder::turned`] when that is 0 or less. 32 bits.
    pub const TURNS_AT: usize = core::mem::offset_of!(thread_state::Local, turns);
    /// Where the byte is that is not 0 while calls are forwarded ([`Recorder::is_light`]).
    pub const IS_LIGHT_AT: usize =
        core::mem::offset_of!(Recorder, spans) + core::mem::offset_of!(spans::Spans, is_light);

    /// One that records nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill an array")]
        const COLD: AtomicU8 = AtomicU8::new(0);
        Self {
            file: file::File::new(),
            alive: fork::Alive::new(),
            early: early::EarlyStacks::new(),
            path: start::Path::new(),
            sandbox: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            shared: shared_tables::SharedTablesPointer::new(),
            unwinder: unwind::Unwinder::new(),
            main_stack: stack_bounds::MainStack::new(),
            delays: delay::Delays::new(),
            ticks: clock::Ticks::new(),
            started: AtomicU64::new(0),
            entering: AtomicU32::new(0),
            newest: AtomicPtr::new(core::ptr::null_mut()),
            candidate: AtomicU32::new(0),
            sample_every: AtomicU32::new(0),
            slower_than: AtomicU64::new(u64::MAX),
            detail: AtomicU32::new(Detail::Off as u32),
            changed: AtomicU64::new(0),
            spans: spans::Spans::new(),
            dormant: AtomicU32::new(0),
            has_barrier: AtomicU32::new(0),
            cpu_before: AtomicU64::new(0),
            hot: [COLD; hash::HASHES],
            semaphores: [COLD; hash::HASHES],
        }
    }

    /// The time, ticks.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.ticks.now()
    }

    fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    fn sample_every(&self) -> u32 {
        self.sample_every.load(Relaxed)
    }

    fn is_contended(&self) -> bool {
        self.detail.load(Relaxed) == Detail::Contended as u32
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.detail.load(Relaxed) == Detail::Full as u32
    }

    fn is_sampling(&self) -> bool {
        self.detail.load(Relaxed) == Detail::Sampled as u32
    }

    /// An event of a spinpark lock: a thread that waits or releases notes it.
    pub fn observe(&self, event: u32) {
        let events = &thread_state::here().events;
        events.set(events.get() | 1 << (event & 31));
        let local = thread_state::here();
        if event == Event::HandedOff as u32 && local.releasing.get() != 0 {
            if let Some(shared) = self.shared.get() {
                shared.slot(local.releasing.get()).handed.store(1, Relaxed);
            }
        }
    }

    /// The thread is about to release the lock at `address`, which may wake a waiter.
    pub fn begin_release(&self, address: usize) {
        let local = thread_state::here();
        local.events.set(0);
        local.releasing.set(address);
    }

    /// It has released it; whether that woke a waiter, as far as the lock tells.
    pub fn end_release(&self) -> bool {
        let local = thread_state::here();
        local.releasing.set(0);
        let woke = [Event::WokeHead, Event::WokeUnmarked, Event::GrantedReaders, Event::HandedOff];
        let woke = woke.into_iter().fold(0, |bits, event| bits | 1 << event as u32);
        local.events.replace(0) & woke != 0
    }

    /// A release of the lock that was at `address` woke a waiter. It may be gone, and so may its memory.
    pub fn woke(&self, own: &ThreadState, address: usize, role: Role) {
        let stats = self.find_lock(address).and_then(|(lock, _)| self.lock_stats(own, role, lock));
        if let Some(stats) = stats {
            tally::add(&stats.wake_ups, if self.is_contended() { self.times().into() } else { 1 });
        }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}
