//! A waiter: one node on the stack of the thread that waits, and how it is notified that its wait is over.
//!
//! # State of `state` (the word that the waiter sleeps on)
//!
//! | value         | meaning                                             | left by                                       |
//! |---------------|-----------------------------------------------------|-----------------------------------------------|
//! | `AWAKE`       | waits, awake                                        | the waiter to `PARKED`; the dequeuer; the     |
//! |               |                                                     | queue's holder to `APPOINTED`                 |
//! | `PARKED`      | waits, asleep or about to sleep; or rechecks,       | the dequeuer; the queue's holder to           |
//! |               | probes or polls after a sleep that timed out        | `WOKEN_EARLY` or `APPOINTED`                  |
//! | `WOKEN`       | dequeued: awake on the lock's behalf (`WAKING`)     | the waiter, when it queues again              |
//! | `GRANTED`     | dequeued: holds the lock already                    | –                                             |
//! | `RELEASED`    | dequeued: the wait in this queue is over (T10, X2), | –                                             |
//! |               | and the thread acquires as any other                |                                               |
//! | `WOKEN_EARLY` | as `PARKED`; was woken early                        | the dequeuer; another thread to `APPOINTED`   |
//! | `APPOINTED`   | is to set its timer (L3); woken for that if it slept| the waiter to `PARKED`; the dequeuer          |
//! | `UNMARKED`    | dequeued: awake, and `WAKING` does not stand for it | the waiter, when it queues again              |
//!
//! # Orderings
//!
//! | operation                        | order   | pairs with    | because                                             |
//! |----------------------------------|---------|---------------|-----------------------------------------------------|
//! | notify: swap                     | Release | waiter's load | a granted waiter enters the critical section; for a |
//! |                                  |         |               | dequeued node it also gives the memory back         |
//! | waiter: load                     | Acquire | notify        | as above                                            |
//! | waiter: CAS to `PARKED`          | Relaxed | –             | only asks for a wake; on failure the load follows   |
//! | wake early: CAS to `WOKEN_EARLY`,| Relaxed | –             | only has the thread check its state, and sleep      |
//! | `APPOINTED`, and from that       |         |               |                                                     |
//! | reset to `AWAKE`: store          | Relaxed | –             | under the queue lock, which publishes it            |
//! | is it awake? load                | Relaxed | –             | only decides whether a lock is promised             |
//!
//! # References of signalled waiters
//!
//! A waiter that was signalled passes the signal on if it is cancelled, so it touches the condition variable
//! once more (C4 in [`condvar`](crate::condvar)). It counts only if others were still waiting when it was
//! signalled. Destruction waits for these references, as for glibc's `__wrefs`.
//!
//! | operation     | order   | pairs with    | because                                                            |
//! |---------------|---------|---------------|--------------------------------------------------------------------|
//! | add           | Relaxed | –             | under the queue lock, as the check                                 |
//! | drop          | Release | is there any? | the dropping thread's accesses to the variable come before its end |
//! | is there any? | Acquire | drop          | as above                                                           |

use core::mem::offset_of;
use core::ptr;

use spinpark_platform::{
    AtomicU32, Cell, Clock, Deadline, Event, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
    Platform, Wait, HIGHEST_PRIORITY,
};

use super::WaitQueue;
use crate::policy::Policy;
use crate::word::Want;

/// The waiter is awake.
pub const AWAKE: u32 = 0;
/// The waiter sleeps, or is about to.
pub const PARKED: u32 = 1;
/// As `PARKED`; the waiter was woken early.
pub const WOKEN_EARLY: u32 = 6;
/// As `PARKED`; the waiter was woken to set its timer.
pub const APPOINTED: u32 = 7;
/// The waiter is awake and `WAKING` stands for it.
pub const WOKEN: u32 = 2;
/// The waiter holds the lock.
pub const GRANTED: u32 = 3;
/// The waiter is awake and owes nothing.
pub const RELEASED: u32 = 4;
/// The waiter is awake, `WAKING` does not stand for it, and it owes a wake pass unless it acquires.
pub const UNMARKED: u32 = 5;

/// The rank of an upgrade: all others wait for its thread's own hold.
const FIRST: u8 = u8::MAX;
const _: () = assert!(HIGHEST_PRIORITY < FIRST, "an upgrade goes before real-time waiters");

/// How a wait on a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// `WAKING` was set for this thread, unless a real-time waiter is the head (U1 in `core`): it tries to take
    /// the lock.
    Woken,
    /// It tries to take the lock, and `WAKING` does not stand for it: it was woken without a mark (L4 in
    /// `core`).
    Unmarked,
    /// The lock is this thread's.
    Granted,
    /// The wait in this queue is over, with nothing held and nothing owed: signalled (T10), or X2.
    Released,
    /// Nothing yet: the waiter is to set its timer (L3 in `core`). It [accepts](WaitNode::accepts) that.
    Appointed,
    /// Nothing yet; but the deadline or the time of a recheck has come, or another thread has woken this one
    /// early, to recheck (E2 in `core`).
    Due,
}

/// How a waiter's sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// At its deadline, or as another thread has woken it to recheck: the waiter has something to do.
    Due,
    /// In any other way: its state says whether it is notified, and else it sleeps again.
    Woken,
}

impl From<Wait> for Slept {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::TimedOut => Self::Due,
            Wait::Woken | Wait::ValueChanged => Self::Woken,
        }
    }
}

/// The neighbours in a circular list; under the queue lock (Q1), or the dequeuer's (Q2).
#[repr(C)] // a debugger follows `next`
pub(super) struct Links<P: Platform> {
    pub(super) next: *const WaitNode<P>,
    pub(super) prev: *const WaitNode<P>,
}

impl<P: Platform> Clone for Links<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Links<P> {}

impl<P: Platform> Links<P> {
    pub(super) const OUT: Self = Self { next: ptr::null(), prev: ptr::null() };
}

/// A thread that waits for a lock, or for a condition variable and then for its mutex.
///
/// The drop-in's script for gdb reads `links`, `want` and `token` of it. Where the fields are matters: with
/// `links` 8 bytes longer, a barrier of two threads had 0.6 of the throughput (`bench grid --plane handoff
/// --quick`, 2 CPUs of an Intel Xeon, 2026-11-30; why is not known).
#[repr(C)]
pub struct WaitNode<P: Platform> {
    state: P::AtomicU32,
    /// Of the first one of a list: how many in it may come in alongside readers; else 0. Only under the queue
    /// lock.
    joiners: P::Cell<u32>,
    links: P::Cell<Links<P>>,
    /// Whether the node is in a list. Only under the queue lock, also when the node is dequeued: its thread
    /// may read it while the dequeuer writes `links`.
    linked: P::Cell<bool>,
    /// The thread.
    pub(crate) token: u32,
    /// What the thread waits for.
    pub(crate) want: Want,
    /// When the thread last found itself woken early, ns on the monotonic clock. Only its own.
    woken_early_at: P::Cell<u64>,
    /// Whether the thread rechecks its request of readers by itself (H3 in `core`). Written by the thread,
    /// under the queue lock.
    rechecks: P::Cell<bool>,
    /// Whether it is to be woken with a mark (L4 in `core`). Only under the queue lock.
    has_starved: P::Cell<bool>,
    /// Whether the thread probes the lock by a timer of its own, or is appointed to (L3 in `core`). Only under
    /// the queue lock.
    has_timer: P::Cell<bool>,
    /// Its place in a list: those of a higher one are before it. The thread's real-time priority, or
    /// [`FIRST`].
    pub(crate) rank: u8,
    /// When it came, ns on the monotonic clock; of a preferred writer only.
    since: u64,
    /// Condition variables: whether a signal or the waiter itself ends the wait; see `condvar`.
    pub(crate) claim: P::AtomicU32,
    /// Condition variables: the queue of the mutex that the waiter moves to, or null if it just wakes.
    pub(crate) mutex: *const WaitQueue<P>,
    /// Condition variables: where the references of signalled waiters are counted, or null if this one never
    /// holds one.
    pub(crate) refs: *const WaiterRefs<P>,
    /// Condition variables: the CPU that the waiter is bound to.
    pub(crate) only_cpu: Option<u32>,
    /// Condition variables: whether the mutex' next release is to end the wait. Written while the node is
    /// dequeued, read under the queue lock.
    deferred: P::Cell<bool>,
    /// Condition variables: whether a signal has moved the waiter to the mutex' queue. Only under that
    /// queue's lock.
    moved: P::Cell<bool>,
}

impl<P: Platform> WaitNode<P> {
    /// Where a debugger finds the next node, the thread's id, and what it waits for (a byte: [`Want`]'s
    /// number), in bytes.
    #[must_use]
    pub const fn layout() -> [usize; 3] {
        [offset_of!(Self, links), offset_of!(Self, token), offset_of!(Self, want)]
    }

    pub(crate) fn new(want: Want, token: u32, mutex: *const WaitQueue<P>) -> Self {
        Self {
            state: AtomicU32::new(AWAKE),
            joiners: Cell::new(0),
            links: Cell::new(Links::OUT),
            linked: Cell::new(false),
            want,
            since: if let Want::WriteFirst = want { P::now(Clock::Monotonic) } else { 0 },
            rank: if let Want::Upgrade = want { FIRST } else { P::priority() },
            token,
            woken_early_at: Cell::new(0),
            rechecks: Cell::new(false),
            has_starved: Cell::new(false),
            has_timer: Cell::new(false),
            claim: AtomicU32::new(0),
            mutex,
            refs: ptr::null(),
            only_cpu: None,
            deferred: Cell::new(false),
            moved: Cell::new(false),
        }
    }

    pub(super) fn links(&self) -> Links<P> {
        // SAFETY: Q1, Q2: the caller holds the queue lock or owns the dequeued node.
        self.links.with(|links| unsafe { *links })
    }

    pub(super) fn set_links(&self, new: Links<P>) {
        // SAFETY: Q1, Q2: as above.
        self.links.with_mut(|links| unsafe { *links = new });
    }

    /// Whether the thread is a real-time one, which lower-priority threads are not to delay. An upgrade goes
    /// first anyway.
    pub(crate) fn is_realtime(&self) -> bool {
        (1..FIRST).contains(&self.rank)
    }

    /// Whether the thread rechecks its request by itself. For others, under the queue lock.
    pub(crate) fn rechecks(&self) -> bool {
        // SAFETY: the caller holds the queue lock, under which it is written, or is the thread that writes
        // it.
        self.rechecks.with(|rechecks| unsafe { *rechecks })
    }

    /// The thread has requested the lock, or not: of readers, so that it `rechecks` it by itself. It holds
    /// the queue lock.
    pub(crate) fn set_rechecks(&self, rechecks: bool) {
        // SAFETY: Q1: the caller holds the queue lock.
        self.rechecks.with_mut(|place| unsafe { *place = rechecks });
    }

    /// Whether the last reader leaves the lock to the thread: a preferred writer that is awake, and takes it at
    /// once, or has waited for long. While another one wakes up, a running thread may have the lock.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn goes_first<Q: Policy<P>>(&self) -> bool {
        self.want == Want::WriteFirst
            && (self.state.load(Relaxed) == AWAKE || self.waited() >= Q::TIMES.preferred_ns)
    }

    /// Whether readers that come may pass the thread, as it wants the lock alone. Plain ones do not join readers
    /// past a preferred writer, but recursive and upgradable ones do: once that has starved, it counts as passed.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn may_be_passed<Q: Policy<P>>(&self) -> bool {
        match self.want {
            Want::WriteFirst => self.waited() >= Q::TIMES.starvation_ns,
            want => want.is_exclusive(),
        }
    }

    /// How long a preferred writer has waited, ns.
    fn waited(&self) -> u64 {
        P::now(Clock::Monotonic).saturating_sub(self.since)
    }

    /// Whether the thread has starved in wakes without a mark: the next one is with a mark (L4 in `core`).
    pub(crate) fn has_starved(&self) -> bool {
        // SAFETY: Q1: the caller holds the queue lock.
        self.has_starved.with(|starved| unsafe { *starved })
    }

    /// Says that, or that it has not. The thread holds the queue lock.
    pub(crate) fn set_starved(&self, starved: bool) {
        // SAFETY: Q1: the caller holds the queue lock.
        self.has_starved.with_mut(|place| unsafe { *place = starved });
    }

    /// What the waiter adds to [`WaitNode::joiners`].
    pub(super) fn joins(&self) -> u32 {
        u32::from(self.want.joins_readers() || self.want == Want::Upgradable)
    }

    pub(super) fn joiners(&self) -> u32 {
        // SAFETY: Q1: the caller holds the queue lock.
        self.joiners.with(|joiners| unsafe { *joiners })
    }

    /// Not written if it is that already: the waiter may poll the line.
    pub(super) fn set_joiners(&self, joiners: u32) {
        if self.joiners() != joiners {
            // SAFETY: Q1: the caller holds the queue lock.
            self.joiners.with_mut(|place| unsafe { *place = joiners });
        }
    }

    /// The count, which is another one's to have now.
    pub(super) fn take_joiners(&self) -> u32 {
        let joiners = self.joiners();
        self.set_joiners(0);
        joiners
    }

    /// Whether the thread probes the lock by itself, or is appointed to. The caller holds the queue lock.
    pub(crate) fn has_timer(&self) -> bool {
        // SAFETY: Q1: the caller holds the queue lock.
        self.has_timer.with(|has| unsafe { *has })
    }

    /// Says that, or that it does not. The caller holds the queue lock.
    pub(crate) fn set_timer(&self, has_timer: bool) {
        // SAFETY: Q1: the caller holds the queue lock.
        self.has_timer.with_mut(|place| unsafe { *place = has_timer });
    }

    /// L3 in `core`: has the thread of this node, which is linked in the queue whose lock the caller holds, set
    /// its timer: wakes it for that, if it sleeps.
    #[cold]
    #[inline(never)]
    pub(crate) fn appoint(&self) {
        self.set_timer(true);
        let mut seen = self.state.load(Relaxed);
        while matches!(seen, AWAKE | PARKED | WOKEN_EARLY) {
            match self.state.compare_exchange(seen, APPOINTED, Relaxed, Relaxed) {
                Ok(_) if seen == AWAKE => return,
                Ok(_) => {
                    P::event(Event::Appointed);
                    P::futex_wake(&raw const self.state, 1);
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// The thread sets its timer; `false`: it has been notified meanwhile.
    pub(crate) fn accepts(&self) -> bool {
        self.state.compare_exchange(APPOINTED, PARKED, Relaxed, Relaxed).is_ok()
    }

    pub(super) fn is_linked(&self) -> bool {
        // SAFETY: Q1: the caller holds the queue lock.
        self.linked.with(|linked| unsafe { *linked })
    }

    /// Within one access, with its check: in the simulator each costs time, and a build with assertions is to
    /// take no more.
    pub(super) fn set_linked(&self, new: bool) {
        self.linked.with_mut(|linked| {
            // SAFETY: Q1: the caller holds the queue lock.
            let was = unsafe { core::mem::replace(&mut *linked, new) };
            debug_assert!(was != new, "Q2: a node is in one list at most, and taken out of it once");
        });
    }

    /// Whether the mutex' next release is to end the wait.
    pub(crate) fn is_deferred(&self) -> bool {
        // SAFETY: Q1, Q2: the caller holds the queue lock; the thread that wrote this has linked the node
        // under that lock since.
        self.deferred.with(|deferred| unsafe { *deferred })
    }

    /// Whether the node is the condition variable's, or on its way from there to the queue of the mutex,
    /// whose lock the caller holds.
    pub(crate) fn is_elsewhere(&self) -> bool {
        // SAFETY: Q1: the lock of the mutex' queue is held, under which it is written.
        !self.mutex.is_null() && !self.moved.with(|moved| unsafe { *moved })
    }

    pub(super) fn update_links(&self, change: impl FnOnce(&mut Links<P>)) {
        let mut links = self.links();
        change(&mut links);
        self.set_links(links);
    }

    /// Waits as new. The node is out of every list, and the caller is about to link it under the queue lock.
    pub(crate) fn reset(&self) {
        self.state.store(AWAKE, Relaxed);
    }

    /// The notification so far, without sleeping.
    pub(crate) fn notice(&self) -> Option<Notice> {
        match self.state.load(Acquire) {
            WOKEN => Some(Notice::Woken),
            GRANTED => Some(Notice::Granted),
            RELEASED => Some(Notice::Released),
            UNMARKED => Some(Notice::Unmarked),
            _ => None,
        }
    }

    /// E1 in `core`: has the thread woken early, if it sleeps; if that was done before, only
    /// `again`. The node stays where it is: linked, in the queue whose lock the caller holds.
    pub(crate) fn wake_early(&self, again: bool) -> Option<EarlyWake<P>> {
        let has_changed = |from| self.state.compare_exchange(from, WOKEN_EARLY, Relaxed, Relaxed).is_ok();
        let sleeps = has_changed(PARKED) || again && has_changed(WOKEN_EARLY);
        sleeps.then_some(EarlyWake(&raw const self.state))
    }

    /// Whether the thread woke ahead of its turn, at most `span` ns ago. For the thread itself.
    pub(crate) fn was_woken_early(&self, span: u64) -> bool {
        // SAFETY: only the node's own thread uses this.
        let woken_early_at = self.woken_early_at.with(|woken_early_at| unsafe { *woken_early_at });
        P::now(Clock::Monotonic).saturating_sub(woken_early_at) <= span
    }

    /// Waits awake for at most `span` ns for a notification; returns whether it came. Polls this node only,
    /// whose line no other thread reads.
    pub(crate) fn watch(&self, span: u64) -> bool {
        let end = P::now(Clock::Monotonic).saturating_add(span);
        loop {
            if self.notice().is_some() {
                return true;
            }
            if P::now(Clock::Monotonic) >= end {
                return false;
            }
            P::spin_hint();
        }
    }

    /// Sleeps until notified, or until something is [due](Notice::Due): at `deadline`, or as `sleep` says,
    /// which is the platform's futex wait, or does more (a cancellation point).
    pub(crate) fn park(
        &self,
        deadline: Option<Deadline>,
        mut sleep: impl FnMut(&P::AtomicU32, u32, Option<Deadline>) -> Slept,
    ) -> Notice {
        loop {
            if let Some(notice) = self.notice() {
                return notice;
            }
            // On failure the node is parked already (a sleep that ended early) or has been notified: the
            // loads decide.
            let expected = match self.state.compare_exchange(AWAKE, PARKED, Relaxed, Relaxed) {
                Err(WOKEN_EARLY) => {
                    // SAFETY: only the node's own thread uses this.
                    self.woken_early_at
                        .with_mut(|woken_early_at| unsafe { *woken_early_at = P::now(Clock::Monotonic) });
                    WOKEN_EARLY
                }
                Err(APPOINTED) => return Notice::Appointed,
                _ => PARKED,
            };
            P::event(Event::Parked);
            if sleep(&self.state, expected, deadline) == Slept::Due {
                return self.notice().unwrap_or(Notice::Due);
            }
        }
    }
}

/// A node that its owner took from a list: to be notified exactly once.
#[must_use = "Q3: the waiter sleeps until it is notified"]
pub(crate) struct Dequeued<P: Platform>(*const WaitNode<P>);

impl<P: Platform> Dequeued<P> {
    pub(super) fn new(node: *const WaitNode<P>) -> Self {
        Self(node)
    }

    /// The node, which lives until it is notified.
    pub(crate) fn node(&self) -> &WaitNode<P> {
        // SAFETY: Q3: a dequeued node is alive until it is notified, which consumes `self`.
        unsafe { &*self.0 }
    }

    /// Links the waiter into `queue` behind all of its rank, asleep or awake as it is (Q2: the list owns it
    /// then). The next release ends its wait.
    pub(crate) fn move_to(self, queue: &mut super::LockedQueue<'_, P>) {
        // SAFETY: Q2: the dequeued node is the caller's.
        self.node().deferred.with_mut(|it| unsafe { *it = true });
        // SAFETY: Q1: `queue` is locked.
        self.node().moved.with_mut(|it| unsafe { *it = true });
        queue.push(self.node());
    }

    /// Tells the waiter `state` and wakes it if it sleeps.
    pub(crate) fn notify(self, state: u32) {
        self.tell(state).wake();
    }

    /// Tells the waiter `state`. It is to be woken then.
    pub(crate) fn tell(self, state: u32) -> Told<P> {
        let word: *const P::AtomicU32 = &self.node().state;
        // SAFETY: Q3, as in `node`. The node may be gone right after the swap (Q4).
        let sleeps = unsafe { (*word).swap(state, Release) } != AWAKE;
        Told(if sleeps { word } else { ptr::null() })
    }
}

/// A waiter that has been told the end of its wait, and perhaps sleeps still: a key, as its node may be gone
/// (Q4).
#[must_use = "the waiter may sleep on"]
pub(crate) struct Told<P: Platform>(*const P::AtomicU32);

impl<P: Platform> Told<P> {
    pub(crate) fn wake(self) {
        if !self.0.is_null() {
            P::futex_wake(self.0, 1);
        }
    }

    /// Has the waiter, which was told `state`, sleep on `crowd`; wakes it if this machine cannot do that.
    fn gather(self, state: u32, crowd: *const P::AtomicU32) {
        if !self.0.is_null() && P::futex_gather(self.0, state, crowd).is_none() {
            P::futex_wake(self.0, 1);
        }
    }
}

/// A sleeping waiter that is to be woken early: a key for that, as its node may be gone by then
/// (Q4).
pub(crate) struct EarlyWake<P: Platform>(*const P::AtomicU32);

impl<P: Platform> EarlyWake<P> {
    /// Wakes the thread. It sleeps again, if it has not been notified meanwhile; but its CPU has left its
    /// deep sleep, and the next wake is a fast one.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn wake(self) {
        P::event(Event::EarlyWake);
        P::futex_wake(self.0, 1);
    }
}

/// This number of waiters of a crowd, if they do not hold the lock yet, is woken one by one: they go on at once.
/// Else a barrier of four threads has 0.6 of the throughput (`bench grid --plane handoff --quick`, 2 CPUs of an
/// Intel Xeon, 2026-11-30; cells of that plane differ from themselves by up to a fifth).
const FEW: usize = 4;

/// Dequeued nodes in order, linked through their own links.
#[must_use = "Q3: the waiters sleep until they are notified"]
pub(crate) struct Chain<P: Platform> {
    first: *const WaitNode<P>,
    last: *const WaitNode<P>,
}

impl<P: Platform> Chain<P> {
    pub(crate) const fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null() }
    }

    /// The oldest one.
    pub(crate) fn first(&self) -> Option<&WaitNode<P>> {
        // SAFETY: Q3: `first` is dequeued and not notified, so it is alive.
        unsafe { self.first.as_ref() }
    }

    /// Appends `dequeued`.
    pub(crate) fn push(&mut self, dequeued: Dequeued<P>) {
        let node = dequeued.0;
        // SAFETY: Q3: `last` is dequeued and not notified, so it is alive.
        match unsafe { self.last.as_ref() } {
            None => self.first = node,
            Some(last) => last.set_links(Links { next: node, ..Links::OUT }),
        }
        self.last = node;
    }

    /// Appends all of `other`, without a walk.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn append(&mut self, other: Self) {
        // SAFETY: Q3: `last` is dequeued and not notified, so it is alive.
        match unsafe { self.last.as_ref() } {
            None => *self = other,
            Some(last) if !other.first.is_null() => {
                last.set_links(Links { next: other.first, ..Links::OUT });
                self.last = other.last;
            }
            Some(_) => {}
        }
    }

    /// Takes the first one out.
    pub(crate) fn pop(&mut self) -> Option<Dequeued<P>> {
        // SAFETY: Q3: `first` is dequeued and not notified, so it is alive.
        let first = unsafe { self.first.as_ref() }?;
        self.first = first.links().next;
        if self.first.is_null() {
            self.last = ptr::null();
        }
        first.set_links(Links::OUT);
        Some(Dequeued::new(first))
    }

    /// Tells every waiter `state`, oldest first, and wakes those that sleep.
    ///
    /// A crowd is gathered on one word first, which costs a fraction of a wake-up each, and woken by one call:
    /// a thread that is woken by itself may take this thread's CPU at once, and the next one, which may hold the
    /// lock already, sleeps until this thread has a CPU again.
    #[inline(never)] // for the drop-in's size
    pub(crate) fn notify_all(mut self, state: u32) {
        for _ in 0..if state == GRANTED { 0 } else { FEW } {
            match self.pop() {
                Some(dequeued) => dequeued.notify(state),
                None => return,
            }
        }
        let Some(first) = self.pop() else { return };
        if self.first.is_null() {
            return first.notify(state);
        }
        // On this stack: no other thread sleeps on it, or wakes sleepers there.
        let crowd = P::AtomicU32::new(0);
        first.tell(state).gather(state, &raw const crowd);
        while let Some(dequeued) = self.pop() {
            dequeued.tell(state).gather(state, &raw const crowd);
        }
        P::futex_wake(&raw const crowd, u32::MAX);
    }
}

// ---- references of signalled waiters

/// How many signalled waiters may still touch the condition variable. Eight bytes; zero is none.
#[repr(C)]
pub struct WaiterRefs<P: Platform> {
    count: P::AtomicU32,
    /// The process generation in which `count` counts: a forked child does not have the threads of its
    /// parent. Changed only under the queue lock.
    generation: P::AtomicU32,
}

impl<P: Platform> WaiterRefs<P> {
    /// No references.
    pub fn new() -> Self {
        Self { count: AtomicU32::new(0), generation: AtomicU32::new(0) }
    }

    /// Makes it none, whatever it was. The caller is the only one that uses it.
    pub fn reset(&self) {
        self.count.store(0, Relaxed);
        self.generation.store(0, Relaxed);
    }

    fn is_current(&self) -> bool {
        self.generation.load(Relaxed) == P::generation()
    }

    /// Whether there are references. The caller holds the queue lock.
    pub(crate) fn any(&self) -> bool {
        self.is_current() && self.count.load(Acquire) != 0
    }

    /// Adds one. The caller holds the queue lock.
    pub(crate) fn add(&self) {
        if !self.is_current() {
            self.count.store(0, Relaxed);
            self.generation.store(P::generation(), Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
    }

    /// Drops the caller's: its last access to the condition variable.
    pub(crate) fn drop_one(&self) {
        self.count.fetch_sub(1, Release);
    }
}

impl<P: Platform> Default for WaiterRefs<P> {
    fn default() -> Self {
        Self::new()
    }
}
