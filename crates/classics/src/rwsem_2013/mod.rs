//! The kernel's read-write semaphore of 2013: a count, a FIFO list of readers and writers, and a series of
//! patches.
//!
//! Origin: `lib/rwsem.c` of Linux 3.12, and document 002's nine patches ([`series`]). Gives: readers share,
//! writers exclude; readers and writers sleep in one line; readers in front of it come in together. A running
//! writer may steal a lock that is free past the line, so a waiter's wait has no bound; a reader queues as
//! soon as there are waiters.
//!
//! # State
//!
//! | word      | value          | meaning                                    | set by                                          |
//! |-----------|----------------|--------------------------------------------|-------------------------------------------------|
//! | `count`   | see `count.rs` | holders, threads that try, waiters         | every thread, by addition                       |
//! | `owner`   | a token        | patch 8: the writer that holds it: a guess | that writer, after it came in                   |
//! | `owner`   | 0              | no writer, or in one of two windows        | its release, before or (as sent) after it lets  |
//! |           |                |                                            | go; its downgrade, before it lets readers in    |
//! | `wakeup`  | 0 / 1          | patch 9: a release is about to wake        | that release; under `wait_lock` back to 0       |
//!
//! # Invariants
//!
//! - **S1** `count` has its waiting part from the first waiter's entry into the list to the last one's exit;
//!   both change together under the list's lock.
//! - **S2** A thread that fails on the fast path takes back what it added, and then looks, under the list's
//!   lock, whether it was the last one active: then it lets the line in, or comes in itself.
//! - **S3** A reader in the list is taken out by the thread that lets it in; a writer takes itself out, once
//!   it has the lock.
//! - **S4** (patch 9) A release that leaves the waking to another one finds it before that one has cleared
//!   `wakeup`; the woken thread looks at the count after that, under the list's lock. So it sees the release.
//!
//! # Orderings
//!
//! | operation                    | order   | pairs with         | because                                               |
//! |------------------------------|---------|--------------------|-------------------------------------------------------|
//! | `count`: all additions, CAS  | AcqRel  | each other         | full barriers there: sections before and after        |
//! | `count`: loads               | Relaxed | –                  | a CAS or an addition follows, or another look         |
//! | sleeping writer: full fence  | SeqCst  | release: fence     | it says that it sleeps, then looks; the release       |
//! |                              |         |                    | changes the count, then looks who sleeps. Under the   |
//! |                              |         |                    | list's lock (patch 9) that takes no fence             |
//! | a writer's first look:       | AcqRel; | the list's lock    | no fence: it is in the list before it looks, asleep   |
//! | addition, or load            | Relaxed |                    | as far as others see. A load only if another waiter   |
//! |                              |         |                    | is in front: that is woken first, and looks           |
//! | `wakeup`: full fences        | SeqCst  | each other         | S4: the release counts itself out, then reads         |
//! |                              |         |                    | `wakeup`; the waker clears it, then the count is read |
//! | `owner`, `wakeup`: all       | Relaxed | –                  | plain there; a guess, and the fences of `wakeup`      |
//!
//! Checked by: `verify` (`tests/it/document_002.rs`, `tests/it/classics_rwsem.rs`),
//! `tests/native/classics_stress.rs`.

mod count;
mod grant;
mod queue;
pub mod series;
mod spin;

use spinpark_platform::{AtomicU32, Ordering::AcqRel, Ordering::Relaxed, Platform};

use self::count::{ACTIVE, WAITING, WRITE};
use self::grant::Wake;
use crate::mcs::McsLock;
use crate::wait::WaitList;
use crate::{RawLock, RawRwLock};
pub use series::{AsSent, Full, NoSpin, Patches, Series, Vanilla};

/// No writer holds it, as far as is known.
pub const NO_OWNER: u32 = 0;

/// What a thread in the list waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reader,
    Writer,
}

/// The semaphore.
pub struct Rwsem<P: Platform, S: Series> {
    count: P::AtomicU32,
    owner: P::AtomicU32,
    wakeup: P::AtomicU32,
    waiters: WaitList<P, Kind>,
    spinners: McsLock<P, S::Mcs>,
}

impl<P: Platform, S: Series> RawRwLock for Rwsem<P, S> {
    fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            owner: AtomicU32::new(NO_OWNER),
            wakeup: AtomicU32::new(0),
            waiters: WaitList::new(),
            spinners: McsLock::new(),
        }
    }

    #[inline]
    fn read(&self) {
        if self.add(ACTIVE) <= 0 {
            self.read_slow();
        }
    }

    fn try_read(&self) -> bool {
        let mut seen = self.peek();
        while seen >= 0 {
            match self.exchange(seen, seen + ACTIVE) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    #[inline]
    fn unlock_read(&self) {
        let count = self.add(-ACTIVE);
        if count < -1 && count::is_idle(count) {
            self.wake();
        }
    }

    #[inline]
    fn write(&self) {
        if self.add(WRITE) == WRITE {
            self.note_owner();
        } else {
            self.write_slow();
        }
    }

    fn try_write(&self) -> bool {
        if S::READS_BEFORE_TRY && self.peek() != 0 {
            return false;
        }
        let taken = self.exchange(0, WRITE).is_ok();
        if taken {
            self.note_owner();
        }
        taken
    }

    #[inline]
    fn unlock_write(&self) {
        if S::SPINS && S::CLEARS_OWNER_FIRST {
            self.owner.store(NO_OWNER, Relaxed);
        }
        if self.add(-WRITE) < 0 {
            self.wake();
        }
        if S::SPINS && !S::CLEARS_OWNER_FIRST {
            self.owner.store(NO_OWNER, Relaxed);
        }
    }

    fn downgrade(&self) {
        if S::SPINS {
            self.owner.store(NO_OWNER, Relaxed);
        }
        if self.add(-WAITING) < 0 {
            let mut waiters = self.waiters.lock();
            self.wake_line(&mut waiters, Wake::BesideMe);
        }
    }
}

/// As a mutex: for writing only.
impl<P: Platform, S: Series> RawLock for Rwsem<P, S> {
    fn new() -> Self {
        <Self as RawRwLock>::new()
    }

    #[inline]
    fn lock(&self) {
        self.write();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.try_write()
    }

    #[inline]
    fn unlock(&self) {
        self.unlock_write();
    }
}

impl<P: Platform, S: Series> Rwsem<P, S> {
    /// The token of the writer that seems to hold it, or [`NO_OWNER`]. A guess, kept with patch 8 only.
    pub fn owner(&self) -> u32 {
        self.owner.load(Relaxed)
    }

    #[inline]
    fn note_owner(&self) {
        if S::SPINS {
            self.owner.store(P::thread_token(), Relaxed);
        }
    }

    /// Adds to the count; returns the sum.
    #[inline]
    fn add(&self, change: i32) -> i32 {
        (self.count.fetch_add(change as u32, AcqRel) as i32).wrapping_add(change)
    }

    #[inline]
    fn peek(&self) -> i32 {
        self.count.load(Relaxed) as i32
    }

    #[inline]
    fn exchange(&self, seen: i32, new: i32) -> Result<(), i32> {
        match self.count.compare_exchange(seen as u32, new as u32, AcqRel, Relaxed) {
            Ok(_) => Ok(()),
            Err(now) => Err(now as i32),
        }
    }
}
