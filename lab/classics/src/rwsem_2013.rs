//! The kernel's read-write semaphore of 2013: a count, a FIFO list of readers and writers, and a series of
//! patches.
//!
//! Origin: `lib/rwsem.c` of Linux 3.12, and document 002's nine patches, each a switch ([`Series`]). Gives:
//! readers share, writers exclude; readers and writers sleep in one line; readers in front of it come in
//! together. A running writer may steal a lock that is free past the line, so a waiter's wait has no bound; a
//! reader queues as soon as there are waiters.
//!
//! # State
//!
//! | word      | value          | meaning                                    | set by                                          |
//! |-----------|----------------|--------------------------------------------|-------------------------------------------------|
//! | `count`   | see below      | holders, threads that try, waiters         | every thread, by addition                       |
//! | `owner`   | a token        | patch 8: the writer that holds it: a guess | that writer, after it came in                   |
//! | `owner`   | 0              | no writer, or in one of two windows        | its release, before or (as sent) after it lets  |
//! |           |                |                                            | go; its downgrade, before it lets readers in    |
//! | `wakeup`  | 0 / 1          | patch 9: a release is about to wake        | that release; under `wait_lock` back to 0       |
//!
//! The count is a signed number, 32 bits wide, as on 32-bit machines before 2019.
//!
//! | count        | meaning                                                                     |
//! |--------------|-----------------------------------------------------------------------------|
//! | `0x00000000` | free                                                                        |
//! | `0x0000000n` | n readers hold it, or try to                                                |
//! | `0xffff0000` | free, with waiters: a writer may steal it                                   |
//! | `0xffff0001` | a writer holds it, no waiters; or one reader does, with waiters             |
//! | `0xffff000n` | n readers, with waiters; or one writer tries while others do                |
//! | `0xfffe0001` | a writer holds it, with waiters                                             |
//!
//! # The patches
//!
//! | patch | what it changes                                                          | switch                          |
//! |-------|--------------------------------------------------------------------------|---------------------------------|
//! | 1     | a try for writing reads the count first, to avoid a failing exchange     | [`Series::READS_BEFORE_TRY`]    |
//! | 2, 3  | labels that are not needed: nothing at run time                          | –                               |
//! | 4     | letting readers in reads the count first, to avoid a needless addition   | [`Series::READS_BEFORE_GRANT`]  |
//! | 5     | moves the MCS lock to a file of its own: nothing at run time             | [`crate::mcs`]                  |
//! | 6     | the MCS lock without a needless store                                    | [`Series::Mcs`]                 |
//! | 7     | the barriers of the MCS lock                                             | [`Series::Mcs`]                 |
//! | 8     | a writer spins on the owner, in line, before it queues                   | [`Series::SPINS`]               |
//! | 9     | one release at a time wakes                                              | [`Series::ONE_WAKER`]           |
//!
//! Without patch 8 the MCS lock is unused, so 6 and 7 change nothing then.
//!
//! Two more switches are not patches, but readings. Patch 8 as sent clears the owner after the release; patch
//! 9 as sent lets the woken writer look at the count without `wait_lock`, and loses wake-ups
//! (`notes/verification.md`). The combinations here have the right reading; [`AsSent`] has the others.
//!
//! # Spinning
//!
//! A spinner at the head of the MCS queue polls the owner while that runs, and takes the lock when it is
//! released, past sleeping waiters. It leaves if the lock went to another thread (document 001's rule), and
//! each time it has tried it goes to the end of the queue. A spinner in the queue cannot leave it: the reason
//! why the kernel got another queue later. It spins behind others that run for as long as they do
//! ([`mcs`]).
//!
//! Differs from the patch: readers name no owner, and preemption cannot be disabled, so "no owner" may last.
//! A spinner polls that a thousand times in all, then queues; the patch polls until it has to be rescheduled,
//! as this does in a simulated kernel.
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

use core::marker::PhantomData;

use spinpark_platform::{AtomicU32, Event, Ordering::AcqRel, Ordering::Relaxed, Platform};

use crate::mcs::{self, McsLock};
use crate::wait::{Locked, Node, Oracle, WaitList, window_polls};
use crate::{RawLock, RawRwLock};

/// A thread that holds the semaphore or tries to.
const ACTIVE: i32 = 1;
/// The count of such threads.
const ACTIVE_MASK: i32 = 0xffff;
/// There are waiters.
const WAITING: i32 = -ACTIVE_MASK - 1;
/// A writer that holds it or tries to.
const WRITE: i32 = WAITING + ACTIVE;

/// Whether no thread holds it or tries to.
fn is_idle(count: i32) -> bool {
    count & ACTIVE_MASK == 0
}

/// Whether a writer holds it or tries to, with waiters in the list: readers in the list cannot be let in.
fn is_stolen(count: i32) -> bool {
    count < WAITING
}

/// A choice of patches.
pub trait Series: Send + Sync + 'static {
    /// Patch 1.
    const READS_BEFORE_TRY: bool;
    /// Patch 4.
    const READS_BEFORE_GRANT: bool;
    /// Patches 6 and 7.
    type Mcs: mcs::Shape;
    /// Patch 8.
    const SPINS: bool;
    /// Patch 9.
    const ONE_WAKER: bool;
    /// Whether a writer that was woken looks at the count under `wait_lock` only. What the comment in patch 9
    /// takes for granted, and needs; 3.12 looks without it first, which saves the lock if it is too late.
    const LOOKS_UNDER_LOCK: bool = Self::ONE_WAKER;
    /// Whether the owner is cleared before the release, so that it never wipes out the next one.
    const CLEARS_OWNER_FIRST: bool = true;
}

/// Patches 1, 4, 6, 7, 8 and 9, one by one.
#[derive(Debug)]
pub enum Patches<
    const P1: bool,
    const P4: bool,
    const P6: bool,
    const P7: bool,
    const P8: bool,
    const P9: bool,
> {}

impl<const P1: bool, const P4: bool, const P6: bool, const P7: bool, const P8: bool, const P9: bool> Series
    for Patches<P1, P4, P6, P7, P8, P9>
{
    const READS_BEFORE_TRY: bool = P1;
    const READS_BEFORE_GRANT: bool = P4;
    type Mcs = mcs::Patches<P6, P7, P7>;
    const SPINS: bool = P8;
    const ONE_WAKER: bool = P9;
}

/// Linux 3.12.
pub type Vanilla = Patches<false, false, false, false, false, false>;

/// All but patch 8: the document's "without optspin".
pub type NoSpin = Patches<true, true, true, true, false, true>;

/// All.
pub type Full = Patches<true, true, true, true, true, true>;

/// `S` with the readings of patches 8 and 9 as they were sent. It may hang, and names no owner at times.
#[derive(Debug)]
pub struct AsSent<S, const EIGHT: bool, const NINE: bool>(PhantomData<S>);

impl<S: Series, const EIGHT: bool, const NINE: bool> Series for AsSent<S, EIGHT, NINE> {
    const READS_BEFORE_TRY: bool = S::READS_BEFORE_TRY;
    const READS_BEFORE_GRANT: bool = S::READS_BEFORE_GRANT;
    type Mcs = S::Mcs;
    const SPINS: bool = S::SPINS;
    const ONE_WAKER: bool = S::ONE_WAKER;
    const LOOKS_UNDER_LOCK: bool = S::LOOKS_UNDER_LOCK && !NINE;
    const CLEARS_OWNER_FIRST: bool = S::CLEARS_OWNER_FIRST && !EIGHT;
}

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
        if count < -1 && is_idle(count) {
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

/// Waiting in line.
impl<P: Platform, S: Series> Rwsem<P, S> {
    #[cold]
    #[inline(never)]
    fn read_slow(&self) {
        let node = Node::new(Kind::Reader);
        let mut waiters = self.waiters.lock();
        let is_first = waiters.is_empty();
        let change = if is_first { WAITING - ACTIVE } else { -ACTIVE };
        // SAFETY: L1: the node is in this frame, which does not end before it was taken out and woken.
        unsafe { waiters.push_back(&node) };
        let count = self.add(change); // S1, S2
        let is_idle = count == WAITING;
        let are_readers = count > WAITING && is_first;
        if is_idle || are_readers {
            self.wake_line(&mut waiters, Wake::Any);
        }
        drop(waiters);
        node.schedule(); // S3
    }

    #[cold]
    #[inline(never)]
    fn write_slow(&self) {
        if S::SPINS {
            self.add(-WRITE);
            if self.spin() {
                return;
            }
        }
        let node = Node::new(Kind::Writer);
        let mut waiters = self.waiters.lock();
        let is_first = waiters.is_empty();
        let tried = if S::SPINS { 0 } else { -WRITE };
        let change = if is_first { tried + WAITING } else { tried };
        // SAFETY: L1: the node is in this frame, and is removed before its end.
        unsafe { waiters.push_back(&node) };
        let mut count = if change == 0 { self.peek() } else { self.add(change) }; // S1, S2
        if !is_first && count > WAITING {
            // Readers hold it: those in front of this writer may come in as well.
            self.wake_line(&mut waiters, Wake::Readers);
        }
        while !(is_idle(count) && self.take_from_line(&waiters)) {
            drop(waiters);
            (count, waiters) = self.sleep(&node);
        }
        // SAFETY: it was pushed above, and writers remove themselves (S3).
        unsafe { waiters.remove(&node) };
        drop(waiters);
        self.note_owner();
    }

    /// Takes the lock, if no thread is active, for a writer in the list (S1: the last one takes the waiting
    /// part along).
    fn take_from_line(&self, waiters: &Locked<'_, P, Kind>) -> bool {
        let new = if waiters.is_single() { WRITE } else { WRITE + WAITING };
        self.exchange(WAITING, new).is_ok()
    }

    /// Sleeps until no thread seems to be active; returns the count with the list's lock.
    fn sleep(&self, node: &Node<P, Kind>) -> (i32, Locked<'_, P, Kind>) {
        loop {
            node.schedule();
            if S::LOOKS_UNDER_LOCK {
                let waiters = self.waiters.lock();
                node.set_sleeping();
                P::full_fence(); // S4
                return (self.peek(), waiters);
            }
            node.set_sleeping();
            P::full_fence(); // a release sees that this thread sleeps, or is seen here
            let count = self.peek();
            if is_idle(count) {
                return (count, self.waiters.lock());
            }
        }
    }
}

/// What a spinner found at the head of the queue.
enum Attempt {
    Taken,
    Leave,
    /// Not free yet; whether there was an owner.
    Again {
        is_owned: bool,
    },
}

/// Patch 8: a writer spins on the owner before it queues, in line with other spinners.
impl<P: Platform, S: Series> Rwsem<P, S> {
    /// Spins while that may pay; returns whether it has the lock.
    fn spin(&self) -> bool {
        let mut oracle = Oracle::new();
        let owner = self.owner();
        if owner == NO_OWNER || !oracle.may_run::<P>(owner) {
            return false; // perhaps readers
        }
        let mut window = 0;
        loop {
            let is_owned = match self.spinners.with(|| self.attempt(&mut oracle)) {
                Attempt::Taken => {
                    P::event(Event::SpinAcquired);
                    return true;
                }
                Attempt::Leave => return false,
                Attempt::Again { is_owned } => is_owned,
            };
            if !is_owned && (P::need_resched() || window >= window_polls::<P>()) {
                return false;
            }
            let polls = P::spin_hint();
            window = if is_owned { window } else { window.saturating_add(polls) };
        }
    }

    fn attempt(&self, oracle: &mut Oracle) -> Attempt {
        let owner = self.owner();
        if owner != NO_OWNER && !self.spin_on(owner, oracle) {
            return Attempt::Leave;
        }
        if self.steal() { Attempt::Taken } else { Attempt::Again { is_owned: owner != NO_OWNER } }
    }

    /// Polls while `owner` holds the lock and runs; returns whether it was released.
    fn spin_on(&self, owner: u32, oracle: &mut Oracle) -> bool {
        while self.owner() == owner {
            if P::need_resched() {
                return false;
            }
            if !oracle.may_run::<P>(owner) {
                P::event(Event::SpinLeftOffCpu);
                return false;
            }
            oracle.poll::<P>();
        }
        let is_released = self.owner() == NO_OWNER;
        if !is_released {
            P::event(Event::SpinLeftOwnerChanged);
        }
        is_released
    }

    /// Takes the lock for writing if no thread is active, past all waiters: what a spinner tries.
    pub fn steal(&self) -> bool {
        let seen = self.peek();
        let is_free = seen == 0 || seen == WAITING;
        let taken = is_free && self.exchange(seen, seen + WRITE).is_ok();
        if taken {
            self.note_owner();
        }
        taken
    }
}

/// The waiters that may be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    /// The head, reader or writer: no thread may be active.
    Any,
    /// Readers only: readers may be active.
    Readers,
    /// Readers only: the caller holds it for reading, so no writer can steal it.
    BesideMe,
}

/// Letting the line in: a writer at its head is woken, and tries itself; readers at its head are let in
/// together.
impl<P: Platform, S: Series> Rwsem<P, S> {
    /// A release that leaves waiters behind. Patch 9: unless another one is about to wake (S4).
    #[cold]
    #[inline(never)]
    fn wake(&self) {
        if S::ONE_WAKER {
            P::full_fence();
            if self.wakeup.load(Relaxed) != 0 {
                return;
            }
            self.wakeup.store(1, Relaxed);
        }
        let mut waiters = self.waiters.lock();
        self.wake_line(&mut waiters, Wake::Any);
    }

    /// The next release wakes itself.
    fn end_wakeup(&self) {
        if S::ONE_WAKER {
            self.wakeup.store(0, Relaxed);
        }
    }

    /// Lets in, or wakes, the head of the line.
    fn wake_line(&self, waiters: &mut Locked<'_, P, Kind>, wake: Wake) {
        match waiters.first() {
            Some(Kind::Reader) => {
                self.end_wakeup();
                self.grant(waiters, wake);
            }
            Some(Kind::Writer) if wake == Wake::Any => {
                // It may be about to sleep: it says so, then looks at the count, which the caller has
                // changed. If it does both under the list's lock, it has done so before this, or sees the
                // change.
                if !S::LOOKS_UNDER_LOCK {
                    P::full_fence();
                }
                waiters.wake_first();
                P::event(Event::WokeHead);
                self.end_wakeup();
            }
            // No waiter: patch 9 says that only of a list that is not empty; or the writer is woken
            // later.
            Some(Kind::Writer) | None => self.end_wakeup(),
        }
    }

    /// Lets in the readers at the head, unless a writer was faster.
    fn grant(&self, waiters: &mut Locked<'_, P, Kind>, wake: Wake) {
        let early = if wake == Wake::BesideMe { 0 } else { ACTIVE };
        if early != 0 && !self.reserve() {
            return;
        }
        let (readers, are_all) = waiters.leading(|kind| kind == Kind::Reader);
        let waiting = if are_all { WAITING } else { 0 };
        let change = readers as i32 * ACTIVE - early - waiting;
        if change != 0 {
            self.add(change);
        }
        for _ in 0..readers {
            waiters.pop_wake();
        }
        P::event(Event::GrantedReaders);
    }

    /// Counts one reader in, so that no writer can steal the lock any more; `false` if one has.
    fn reserve(&self) -> bool {
        loop {
            if S::READS_BEFORE_GRANT {
                if S::ONE_WAKER {
                    P::full_fence(); // S4: the writer's release sees `wakeup` cleared, or is seen here
                }
                if is_stolen(self.peek()) {
                    return false;
                }
            }
            if !is_stolen(self.add(ACTIVE) - ACTIVE) {
                return true;
            }
            if !is_idle(self.add(-ACTIVE)) {
                return false; // its release wakes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        assert_eq!([WAITING, WRITE].map(|count| count as u32), [0xffff_0000, 0xffff_0001]);
        assert_eq!((WRITE + WAITING) as u32, 0xfffe_0001);
        assert_eq!(WRITE - WAITING, ACTIVE, "a downgrade takes the writer's part away");
        assert!(is_idle(0) && is_idle(WAITING) && !is_idle(WRITE) && !is_idle(3));
        assert!(is_stolen(WRITE + WAITING) && !is_stolen(WAITING) && !is_stolen(WAITING + 7));
    }
}
