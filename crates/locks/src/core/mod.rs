//! One lock word, one queue, one slow path: what the mutex and the read-write lock share.
//!
//! Origin: Linux' mutex and rwsem (optimistic spinning; read the word before a compare-exchange; one waker;
//! hand-off), with a queue on the waiters' stacks as in nsync and abseil. [`word`](crate::word) has the state
//! table.
//!
//! Gives: mutual exclusion as `fits` says; every waiter is let in or notified within a bounded number of
//! releases and about half a millisecond per waiter ahead of it, after waiting awake for a millisecond at
//! most; a release never touches the lock after the step that lets another thread in, unless a waiter keeps
//! it alive (R1), so that one may free it. Waiters of a higher real-time priority are let in first (Q6 in
//! `queue`); the bound above is for those of the highest that waits. Does not give: FIFO order (a running
//! thread may take the lock before a sleeping one, for at most `starvation_ns` per waiter that runs when its
//! turn comes); priority inheritance.
//!
//! Which threads wait awake, and which waiter is woken or left asleep, is up to a [`Policy`](crate::policy): no
//! invariant below leans on its answers. (Where a number of CPUs is named, it is the usual policy that asks.)
//!
//! # Transitions
//!
//! ```text
//!              T1 admits
//!   (out) ────────────────► (holds) ◄───────────────────────┐
//!     │ T2 spins, unless      ▲   ▲  T6 let in;              │ T7 acquires
//!     ▼    it backs off   T3  │   │  T14, T19 by itself      │
//!  (spins) ── is to queue ────┴─► (queued, asleep) ─ woken ─► (contends)
//!                          T4        │    ▲                   │
//!                                    │    └───── T8 lost ─────┘
//!                                    └── T9 deadline: leaves
//! ```
//!
//! | transition | the thread                                                       | function                         |
//! |------------|------------------------------------------------------------------|----------------------------------|
//! | T1         | acquires a lock that admits it                                   | `enter_uncontended`, `try_acquire` |
//! | T2         | spins, and acquires as T1                                        | `poll`                           |
//! | T3         | is to queue, and acquires instead: under the queue lock, it fits | `acquire_or_mark`                |
//! | T4         | stops spinning, or never began, and queues                       | `join`                           |
//! | T7         | was woken, and acquires                                          | `contend`                        |
//! | T8         | was woken, and lost: queues again, before others of its rank     | `rejoin`                         |
//! | T9         | leaves the queue at its deadline                                 | `leave`                          |
//! | T18        | gives up while it is awake and not queued                        | `give_up`                        |
//! | T19        | is queued, keeps its own time, and acquires as that ends         | `recheck`                        |
//!
//! T5 is the release: it drops the hold, and if the queue is its business (`needs_wake_pass`) in the same
//! step grants the lock, promises it, or sets `WAKING`. It wakes last.
//!
//! T6: readers at the head are granted the lock; an upgrade, whose thread has its upgradable hold, is handed
//! the writer's. Another writer never owns it before it takes it itself (H4): the lock is *promised* to a
//! writer that starved, or to a preferred one by the last reader; that is woken, and takes it (T7). Readers behind a head that has no room are let in
//! alongside those inside (`Action::LetIn` in [`wake_pass`]) once what has kept them out is gone: a request
//! (H3), or a woken waiter. One inside may wait for them. A release does not do that, nor a thread that queues.
//!
//! T10: a waiter of a condition variable is signalled by the lock's holder, which links it in the queue as
//! *deferred* ([`absorb`](LockCore::absorb)). The holder's release ends its wait: the waiter then acquires as
//! any thread (T1), unless it was promised the lock as the head (T6).
//!
//! T11: a thread leaves its call by unwinding ([`Platform::or_leave`]), in a sleep, as a woken waiter that
//! spins, or in the fence of A1: as T9 if it is linked or woken; one that is being notified awaits that. It
//! gives up the lock if that came first.
//!
//! T12: a real-time head is woken *alongside* a waiter that was woken before and has not come, for which
//! `WAKING` stays: that one may be kept from its CPU by real-time threads. The real-time waiter acquires,
//! queues again or leaves, with a wake pass.
//!
//! T13: where CPUs are to spare, a woken waiter that has waited for long wakes waiters behind it *early*:
//! their threads wake, see that they have not been notified, and sleep again, in the queue as before. To wake
//! a thread whose CPU sleeps deeply takes a third of a millisecond, which for hundreds of waiters that are
//! woken one at a time adds up to a tenth of a second. A thread that was woken early wakes fast the next
//! time. This changes nothing but the state of a node, and is as harmless as a wake-up for no reason.
//!
//! T14: a waiter with a timer that has slept for `probe_ns` (`least_probe_ns` with one or two CPUs), then for
//! twice as long each time, *probes* the lock by itself. It takes a free one, whatever is promised (L3). It
//! keeps its timer only as long as L3 needs it. A wake pass *appoints* a waiter that has none, which is woken
//! to set it.
//!
//! T15: a waiter that is to queue, and finds the queue locked for `probe_ns`, probes in the same way from
//! outside ([`slow_path`]): it withdraws what it has announced, and takes the lock, queues, or leaves at its
//! deadline.
//!
//! T16: where the process has one CPU, a mutex' waiter is woken *without a mark*, one by each release that
//! finds a queue. It does not come before the thread that has the CPU, which may acquire and release the lock
//! a hundred thousand times until then: with no waiter and no mark left, as if there were no other thread. It
//! owes a wake pass if it leaves, or queues again. If it finds the lock held (by a thread that lost its CPU
//! inside) it queues behind those that have starved, before the others. One that has waited for `unmarked_ns`
//! has starved: it is woken with a mark; and so is one after many that a thread has woken within its slice.
//! (Not of a read-write lock: readers that wait behind writers would find no mark to wait for.)
//!
//! T17: on two CPUs, a release leaves a `TIMED` head asleep if its thread is taken to come back at once (L1).
//! If that thread goes to sleep for another lock or a condition variable first, it wakes the head *early*,
//! which rechecks the lock at once: the head may hold what the thread waits for, and there may be no other
//! thread that runs. The thread does not touch the lock, which may be gone, but finds a note of the word that
//! the head sleeps on ([`notes_sleep`](spinpark_platform::Futex::notes_sleep)). Nothing relies on it: the
//! head's timer ends as before.
//!
//! # Trace
//!
//! `pthread_mutex_lock` and `pthread_mutex_unlock` through the drop-in, whose `mutex.rs` calls the fast path
//! here (`rwlock.rs` for a read-write lock). Each way is one file of this directory, which reads from top to
//! bottom.
//!
//! ```text
//! fast path     lock, free         1  enter_uncontended     one compare-exchange of the word (T1), unless this thread has waited lately
//!                                                          and finds the queue contended
//! (fast_path)   unlock, no waiter  2  release_uncontended   a restartable step: no LOCKED_OR_CONTENDED bit, plain store (A1; linux/rseq)
//!               lock, held         3  acquire               after attempt: one more try each, unless the thread skips it; then acquire_slow
//! midpath       with CPUs to spare 4  spin_in_queue         in the queue of spinners (spin_queue.rs), whose head polls the lock
//! (midpath)     else                  spin                  polls while the owner runs, within its budget (T2)
//! slow path     queue              5  join                  locks the queue; WAITERS, fence (A1), links the node (T3, T4)
//! (slow_path)   sleep              6  sleep_until_let_in    sleep_on, queue/node.rs park, patience.rs sleep: futex_wait_for
//! wake pass     unlock, waiter     7  release_contended     (fast_path) a compare-exchange, if the queue needs no wake pass; else
//! (wake_pass)                      8  release_slow          A: locks the queue, or pins it and leaves the rest to its holder (V1)
//!                                  9  wake_pass             B: Plan::choose; releases and sets WAKING (or promises) in one step; dequeues
//!                                 10  unlock_queue          C: unlocks the queue, as its guard is dropped
//!                                 11  WakePass::notify      D: queue/node.rs notify_all: linux/futex.rs wake
//! slow path     the woken waiter  12  contend               polls, acquires (T7); or rejoin: the head, TIMED (T8)
//! ```
//!
//! Releases have two entry points, [`LockCore::release_uncontended`] and [`LockCore::release_contended`], and
//! [`LockCore::release`] for both in turn. [`LockCore::release_fair`] requests the lock for the longest
//! waiter before that.
//!
//! An unlock with a plain waiter, one that was not woken before, is three steps of three words:
//!
//! ```text
//!                       lock word                     queue lock   node
//! before                token | WRITER | WAITERS      CONTENDED    PARKED
//! A  lock the queue     token | WRITER | WAITERS      LOCKED       PARKED
//! B  release, choose    WAKING                        LOCKED       PARKED     (no WAITERS: it was the only one)
//! C  unlock the queue   WAKING                        CONTENDED    PARKED
//! D  notify             WAKING                        CONTENDED    WOKEN      and futex_wake
//! T7 the waiter         its token | WRITER            CONTENDED    WOKEN
//! ```
//!
//! Four words: a *wake pass* of the queue is what a thread that has it locked does for the waiters
//! ([`wake_pass`]); a waiter that keeps its own time *rechecks* the lock as its timer ends ([`slow_path`]);
//! any waiter *probes* it after a long sleep (L3); one that has starved *requests a hand-off* (H1).
//!
//! # Invariants
//!
//! - **W1** With the queue lock free, `WAITERS` is set if and only if the list is not empty.
//! - **L1** (no lost wake-up) With the queue lock free: if `WAITERS` is set then there is no room for the
//!   head next to the present holds, or `WAKING` is set (and the head is urgent, if it is a real-time waiter:
//!   U1), or a waiter that was woken without a mark is on its way (T16), or the head is `TIMED` and a spinner
//!   is counted, or the head is `TIMED` and rechecks by itself within its span ([`patience`]). A thread that
//!   ends the last of these conditions makes a wake pass: a release (`needs_wake_pass`), an upgradable holder
//!   that came in (readers have room alongside it), and a thread that withdraws its announced state without
//!   acquiring, or was woken without a mark and leaves (T4, T8, T9, T18). The last condition is the only one
//!   that leans on a timer, and only on two CPUs, for a head that backs off: a release whose thread comes
//!   back at once leaves it asleep, one whose thread waits for something else next (`WriteToWait`) wakes it.
//!   (A thread that waits for something else after all wakes it early, T17: a hint, on which nothing relies.)
//! - **L2** (no starvation) A head that others may pass is `TIMED`, or `WAKING`, or the next release wakes it
//!   to time itself (a preferred writer, past which no plain reader joins readers, once it has starved, or the
//!   release that leaves the lock free; without a mark, it times itself once it has waited for `unmarked_ns`: T16). So it
//!   requests the lock `starvation_ns` after that; of readers, again and again (H3). A real-time waiter is
//!   woken by each release as the head, and also requests the lock once readers have passed it. A request is
//!   the head's, whichever waiter made it: a real-time waiter that comes later has it.
//! - **L3** (a wake-up owed has an end) Waiters rely on another thread than the holder
//!   ([`relies_on_another`](crate::word)): on a waiter that was woken (`WAKING`; or without a mark, and the
//!   lock is free), on a promise to it, on a head that keeps its own time (`TIMED`), or on one that requests
//!   the lock of readers. They do not rely on it for ever: its thread may be stopped, or be kept from its CPU
//!   by threads of a higher priority. With the queue lock free, if they rely on one, some waiter other than
//!   that has a timer ([`WaitNode::has_timer`](crate::queue::WaitNode)), the first or the last of the list:
//!   it set it as it queued, because they relied on one or a wake pass had woken one lately (`SERVED`); or
//!   the wake pass that is about to make them rely on one appoints the last waiter, and wakes it for that
//!   before it releases. Each change of the list is followed by a wake pass, and so is a request; a pass that
//!   has let readers in (`Action::Grant`, `Action::LetIn`) chooses again, so their timers count no more. A waiter
//!   whose timer ends probes the lock (T14). If they rely on the holder only, it sleeps on without a timer;
//!   so it does if it is neither the first nor the last one. If the lock is free, it takes it, and clears
//!   `WAKING`. If the lock is held in two probes in a row, and some waiter was on its way in both, it clears
//!   `WAKING`, so that the next release wakes a waiter. A thread whose `WAKING` was cleared may later clear
//!   that of another: that costs a wake-up too many, and loses none, since the other one is awake. So
//!   `WAKING` is set only while some thread that was woken has not settled. If a request of readers lasts
//!   longer than any whose waiter runs, it lets in the readers that are kept out. This is the last resort: no
//!   probe is made in a wait that is shorter than `probe_ns`. A probe needs the queue, and so does a queued
//!   waiter that leaves. If another thread has it locked and does not run, a thread outside does without
//!   (T15), also one whose own call has it locked, in a handler; a queued one waits for that thread. A
//!   real-time waiter lends it its priority.
//! - **U1** With the queue lock free and `WAITERS` set: `TIMED` is set along with `WAKING` if and only if the
//!   head is a real-time waiter (it is *urgent*). Without `WAKING` it is not set for a real-time head, except
//!   along with `HANDOFF`, in a pause (H3); a wake pass ends that early. Each wake pass sees to this
//!   (`led_by`), and each change of the list is followed by one. A thread that withdraws `WAKING` clears both
//!   in one step. So a release past a woken waiter makes a wake pass for an urgent head, and only for that;
//!   and a real-time head is left to no spinner.
//! - **D1** (no lost signal) A waiter is deferred only by the lock's writer, under the queue lock, and only
//!   if there are no flags, or the head is deferred and `WAKING` is not set. While the writer holds the lock,
//!   no wake pass sets `WAKING`, and `TIMED` is not set alongside a deferred head, nor a real-time one that
//!   comes before that. So the writer's release makes a wake pass (`needs_wake_pass`). A wake pass that finds
//!   a deferred head with the lock free notifies all that are deferred, unless a fair release has promised
//!   the lock to the head, or a waiter came back before it that had been woken without a mark: that is woken,
//!   and the others are notified by a later wake pass. A deferred waiter has no deadline; it is notified,
//!   woken by a promise, or appointed (L3), and nothing else ends its sleep.
//! - **H1** `HANDOFF` of a lock that is held is a *request*: the release that makes room for the head
//!   promises the lock to it, or leaves that to the thread that has the queue locked (V1), or to the waiter
//!   that is on its way already (`WAKING`). That one takes the lock first, and the request ends; its own
//!   release then wakes the head. (An upgrade, whose thread has its upgradable hold, is handed the writer's
//!   in the release of the last reader, and an upgradable waiter alongside readers is let in as they are.)
//! - **H2** (exit rule) A taken promise clears `HANDOFF` and `TIMED`; only a head that was woken after that,
//!   lost, and has waited for `starvation_ns` since it arrived sets it again (or a fair release does, or the
//!   last reader's, for a preferred writer that is awake or has waited so long). An
//!   upgrade, which goes before all others because they wait for its thread, leaves `HANDOFF` for the waiter
//!   behind it. With the queue lock free, `HANDOFF` is set alongside readers only if a queued waiter rechecks
//!   it by itself ([`WaitNode::rechecks`](crate::queue::WaitNode::rechecks)), or a wake pass was asked for: a
//!   wake pass that finds no such waiter ends the request, and wakes the head to keep its own time (L2). Such
//!   a wake pass follows each step that takes the last such waiter out, lets readers in alongside a request
//!   of a writer (a downgrade), or requests the lock for a head (a fair release, in its own wake pass). A
//!   waiter that rechecks and finds its request ended by another thread requests the lock again. A release by
//!   a thread of a higher real-time priority than the head's ends the request, and wakes the head as if it
//!   had not starved: that thread may come back before it. (If it leaves the wake pass to the thread that has
//!   the queue locked, V1, it does not know the head, and ends the request of any.)
//! - **H3** (dependent readers) `HANDOFF` keeps new readers out, unless `TIMED` is set alongside it. A waiter
//!   that requests the lock of readers ends its request by itself, and the readers that it kept out come in:
//!   see [`slow_path`]. So does a real-time waiter behind an upgrade, which keeps no time before it is woken.
//! - **H4** (promise) `HANDOFF` of a lock that is free is a *promise*: `word::admits` keeps the lock for a
//!   waiter that was woken. That owns nothing, and takes the lock as any thread does. The promise ends as it
//!   comes, or leaves with no waiter behind it. No thread depends on its coming: calls that do not wait
//!   ([`tries`](crate::tries)), or whose time is up, and threads with a real-time priority take the lock past
//!   a promise, which is a request then; waiters that probe (L3) do, and end it; a thread that came after the promise queues, and probes,
//!   so it heeds a promise until its first probe and its spin at the most. A writer's release past a woken
//!   waiter also promises the lock to it, once threads that run have passed it for long
//!   ([`Adaptive::has_passed_woken`](spinpark_platform::Adaptive)): it may be waiting for the CPU of one of
//!   them, which finds the promise when it comes back for the lock. (To yield the CPU in the release would be
//!   to yield it with other locks held.)
//! - **R1** (free after unlock) A release that leaves the lock free is the last access to it, or is made
//!   under the lock of a queue that is not empty: see [`wake_pass`].
//! - **V1** (no release waits for a waiter) A thread that has the queue locked may be stopped, or wait for a
//!   fence. A release that has to make a wake pass locks it or, in one compare-exchange of the queue lock's
//!   word, *pins* it and asks its holder for a wake pass. It then drops its hold and unpins: its last access.
//!   The holder does not unlock while there are pins, and makes a wake pass after the last of them has gone,
//!   before it unlocks. So the wake pass comes after the release (L1), and the lock is alive at the unpin
//!   (R1): the holder is inside a call that keeps it alive until the unlock (itself, by a hold, or by a
//!   waiter that is queued or not notified yet). Between pin and unpin a thread waits for nothing. A thread
//!   that keeps the lock alive anyway asks without a pin (`wake_pass_now`). (Of more than 31 releases at a
//!   time, the others wait until the last of those has unpinned.) A fair release waits, for
//!   `probe_ns` at the most, to request the lock for the head. What is not worth a wait is left out: a move
//!   of waiters ([`absorb`](LockCore::absorb)), a bias that is enabled. A reader that wakes a head to time
//!   itself (L2) leaves that to the next one.
//! - **M1** Every change of the word in a process with threads is a read-modify-write, but for a writer's
//!   release. So an acquire reads from the last writer's release or from its release sequence, to which every
//!   later release belongs.
//! - **A1** (asymmetric release) `WAITERS` and `WAKING` are *marks*. A writer releases by a plain store if
//!   the queue lock's word shows neither a locked queue nor `CONTENDED`. The store wipes out what others
//!   write to the lock word between the check and the store. So a thread that *marks* the lock (sets the
//!   first of `WAITERS` and `WAKING`) while a writer holds it does that under the queue lock, ends all such
//!   releases by [`Platform::asymmetric_barrier`], and checks whether its mark is there. From then on each
//!   release sees `LOCKED` or `CONTENDED` and is a read-modify-write: the queue is unlocked with `CONTENDED`.
//!   (`WAKING` is only ever set while `WAITERS` is.)
//! - **A2** A spinner sets `SPINNER` without a fence, and only along with `WAITERS` or readers: with an empty
//!   queue there is no waiter that a release would wake. A writer's release may wipe it out (A1), and then
//!   others may set and clear it: it is a hint; a thread that clears it without acquiring makes a wake pass
//!   (L1).
//! - **A3** A writer that finds `CONTENDED` but no flags may clear it ([`Platform::ends_contended`] says
//!   when), then releases by a read-modify-write, which fails if a waiter marked the lock meanwhile; the
//!   writer then restores it before it releases, unless the queue is locked: its holder does so as it
//!   unlocks. (The slow release need not lock the queue: it may leave a `TIMED` waiter asleep.) No other
//!   thread can release in between.
//! - **A4** (the bit stays) `CONTENDED` (`LOCKED` in its place while the queue is locked) stays when the
//!   marks have gone, until A3 clears it: a lock that was contended is so again soon, and the fence costs as
//!   much as thousands of dearer releases. So a thread that finds `CONTENDED` set as it locks the queue needs
//!   no fence: since the fence of A1, or since the lock's holder set it (`begin_contended`,
//!   `force_slow_release`, or the mark of `absorb`: no other thread can have been releasing then), no plain
//!   store has been under way. A queue inherited in a fork counts as one without it.
//!
//! # Orderings
//!
//! | operation                     | order   | pairs with        | because                                              |
//! |-------------------------------|---------|-------------------|------------------------------------------------------|
//! | acquire (T1, T2, T3, T7): CAS | Acquire | release           | the critical sections before this one                |
//! | release (T5): CAS, store      | Release | acquire           | this critical section                                |
//! | wake pass (T5, T6, H3): CAS   | AcqRel  | releases; acquire | one step for all plans. Of a grant: other readers'   |
//! |                               |         |                   | sections reach the grantee through this thread, then |
//! |                               |         |                   | through the node's notification                      |
//! | announce a spinner (T2): CAS  | Relaxed | –                 | a count, no data                                     |
//! | queue (T4, T8), leave (T9),   | Release | `release_slow`'s  | a thread that sees the flag must find the queue lock |
//! | request a hand-off: CAS, or   |         | load: Acquire     | taken by the thread that set it, not free before it  |
//! | clear flags in the queue: and | Relaxed | –                 | under the queue lock, which publishes them           |
//! | look before any of these      | Relaxed | –                 | the CAS, or the queue lock, decides                  |
//! | guard of a plain release      | Relaxed | barrier (A1)      | the barrier orders it, or aborts the step            |
//! | poll (T2, T7): load           | Relaxed | –                 | only decides whether to try the CAS                  |
//! | `begin_contended`: CAS        | Relaxed | –                 | read by the same thread's release, or through a CAS  |
//! |                               |         |                   | of the same word, which the value itself decides     |
//!
//! Checked by: loom models of mutex, rwlock and condvar in `verify` with mutants; native stress with 2, 16
//! and 256 threads; the POSIX programs of `testkit`.

mod fast_path;
mod midpath;
mod patience;
mod slow_path;
mod wake_pass;

use core::marker::PhantomData;

use spinpark_platform::{AtomicU32, Ordering::Relaxed, Platform};

use crate::policy::{Policy, Usual};
use crate::queue::{HasQueue, WaitQueue};
use crate::word;

/// How an attempt to acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The lock is held.
    Acquired,
    /// The deadline passed.
    TimedOut,
    /// Readers may be in slots, and the lock is wanted alone: the thread that wants it revokes the bias and
    /// tries again (G3 in [`bias`](crate::bias)).
    Biased,
    /// X1: other code has written the word. The lock is not held, and the thread is not in its queue.
    GlibcOwned,
}

/// Leave to take a lock past a promise (H4): of a call that does not wait ([`tries`](crate::tries)), or not any
/// more. A function that may wait has none: their types are private to the files of those calls.
pub(crate) trait NoWait {}

impl Outcome {
    fn of(acquired: bool) -> Self {
        if acquired {
            Self::Acquired
        } else {
            Self::TimedOut
        }
    }
}

/// A lock word with its queue: all state of a mutex or a read-write lock, 16 bytes.
#[repr(transparent)]
pub struct LockCore<P: Platform, Q: Policy<P> = Usual> {
    queue: WaitQueue<P>,
    policy: PhantomData<fn() -> Q>,
}

impl<P: Platform> LockCore<P> {
    /// An unlocked lock from an empty queue, for `const` initialisers.
    pub const fn from_queue(queue: WaitQueue<P>) -> Self {
        Self::with_policy(queue)
    }
}

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// [`LockCore::from_queue`] with a policy of its own.
    pub const fn with_policy(queue: WaitQueue<P>) -> Self {
        Self { queue, policy: PhantomData }
    }

    /// The lock whose queue is `queue`.
    ///
    /// # Safety
    ///
    /// `queue` came from [`HasQueue::queue`] of a `LockCore`, and the lock is alive for `'a`.
    #[allow(unsafe_code)] // a condition variable remembers its waiters' mutexes as pointers
    pub(crate) unsafe fn from_queue_ptr<'a>(queue: *const WaitQueue<P>) -> &'a Self {
        // SAFETY: `repr(transparent)`; the caller vouches for the pointer.
        unsafe { &*queue.cast::<Self>() }
    }

    #[inline]
    pub(crate) fn word(&self) -> &P::AtomicU32 {
        &self.queue.word
    }

    /// The word now; only a hint.
    #[inline]
    pub(crate) fn peek(&self) -> u32 {
        self.word().load(Relaxed)
    }

    /// The lock's name among those that a thread remembers.
    pub(crate) fn key(&self) -> usize {
        ::core::ptr::from_ref(self) as usize
    }

    /// Makes the writer, which is the calling thread, release by [`LockCore::release_contended`], for an
    /// observer. A hint: a waiter that leaves at its deadline may end it.
    ///
    /// `CONTENDED` without a mark is nothing new: a waiter that leaves between the check of the word and the
    /// unlock of the queue leaves it too. A3 clears it.
    pub(crate) fn force_slow_release(&self) {
        if !word::is_marked(self.peek()) {
            if let Some(mut queue) = self.try_lock_queue() {
                queue.force_slow_release();
            }
        }
    }

    /// In a forked child: forgets the waiters, spinners and promises of the parent's threads, which do not
    /// exist here. Runs before this process sets any flag of its own. `false`: there was nothing to do, or
    /// another thread of this process that has the queue locked has adopted it, or does so before anything
    /// else.
    #[cold]
    #[inline(never)]
    fn adopt(&self) -> bool {
        // To lock the queue is to adopt it; the guard is dropped at once.
        !self.queue.is_current() && self.try_lock_queue().is_some()
    }
}

impl<P: Platform, Q: Policy<P>> Default for LockCore<P, Q> {
    fn default() -> Self {
        Self::with_policy(WaitQueue::new())
    }
}
