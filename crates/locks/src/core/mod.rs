//! One lock word, one queue, one slow path: what the mutex and the read-write lock share.
//!
//! Origin: Linux' mutex and rwsem (optimistic spinning; read the word before a compare-exchange; one waker;
//! hand-off), with a queue on the waiters' stacks as in nsync and abseil. [`word`](crate::word) has the state
//! table, and says which thread sets and clears each bit.
//!
//! Gives: mutual exclusion as `fits` says; every waiter is let in or notified within a bounded number of
//! releases and about half a millisecond per waiter ahead of it; waiters of a higher real-time priority
//! first (Q6 in `queue`); a lock that may be freed by the thread that its last release lets in (R1). Does not
//! give: FIFO order (a running thread may take the lock before a sleeping one, for `starvation_ns` per waiter
//! that runs when its turn comes); priority inheritance.
//!
//! Which threads wait awake and for how long, which waiter is woken or left asleep, is up to a
//! [`Policy`](crate::policy): no invariant leans on its answers. What is rare has a file of its own, with its
//! own invariants: [`realtime`] (U1), [`dependent_readers`] (H3), [`probe`] (L3: a woken thread does not run),
//! [`early`] (E1, E2: early wakes), [`leaving`] (by cancellation or unwinding), [`deferred`] (D1: signalled waiters of
//! condition variables), [`glibc_owned`] (X2, X3).
//!
//! # Transitions
//!
//! ```text
//!              T1 admits
//!   (out) ────────────────► (holds) ◄───────────────────────┐
//!     │                       ▲   ▲  T6 let in;              │ T1
//!     ▼ T2                 T1 │   │  T4 by itself            │
//!  (spins) ───────────────────┴─► (queued, asleep) ─ woken ─► (contends) T7
//!                          T3        │    ▲                   │
//!                                    │    └───── T8 lost ─────┘
//!                                    └── T9 leaves
//! ```
//!
//! | | the thread | function, file |
//! |---|---|---|
//! | T1 | acquires a lock that admits it: at first, awake, or as it is about to queue | `enter_uncontended`, `try_acquire`, fast_path; `take`, midpath; `acquire_or_mark`, slow_path |
//! | T2 | spins | `poll`, midpath |
//! | T3 | queues, behind all of its rank | `join`, slow_path |
//! | T4 | is queued, and rechecks the lock by its own timer (`TIMED`), or probes it after a long sleep | `recheck`, slow_path; probe |
//! | T5 | releases; in one step with the choice of a waiter, if the queue needs a wake pass | `release`, fast_path; wake_pass |
//! | T6 | is let in by a wake pass (readers, upgrades), or woken: with `WAKING`, unless the next head is a real-time one (U1); with a promise (H4); or without a mark (L4) | `Plan::choose`, wake_pass |
//! | T7 | was woken, and contends with running threads | `contend`, slow_path |
//! | T8 | was woken, and lost: queues again, before others of its rank | `rejoin`, slow_path |
//! | T9 | leaves, queued or not: at its deadline, or by unwinding | `leave`, `give_up`, slow_path |
//! | T10 | waits on a condition variable, and is signalled by the lock's holder: it is linked here as *deferred* | `absorb`, deferred |
//!
//! `pthread_mutex_lock` and `unlock` in the drop-in, whose `mutex.rs` calls the fast path here:
//!
//! ```text
//! lock, free         enter_uncontended      one compare-exchange of the word (T1)
//! unlock             release_uncontended    the queue lock is neither LOCKED nor CONTENDED: a plain store (A1), linux/rseq
//! lock, held         enter_past_flags, acquire   read, then try; then acquire_slow: spins as the policy says, then locks the queue
//!                    join                   sets WAITERS, fence (A1) unless CONTENDED was set, links the node (T3), unlocks the queue with CONTENDED
//!                    QueuedWait, park       futex_wait on the node (queue/node)
//! unlock, contended  release_contended      a compare-exchange, if the queue needs no wake pass; else
//!                    release_slow           locks the queue, releases and sets WAKING in one step, unlocks it; futex_wake
//! the woken waiter   contend                polls, acquires (T7); or rejoin: the head again, with TIMED (T8)
//! ```
//!
//! # Invariants
//!
//! W1 to L2 are meant with the queue lock free. Stated where they are upheld: A1 to A4 (a release that is a plain
//! store) in [`fast_path`], H2 and L4 in [`wake_pass`], and those of the rare files.
//!
//! - **W1** `WAITERS` is set if and only if the list is not empty.
//! - **L1** (no lost wake-up) If `WAITERS` is set, then the head has no room next to the present holds, or some
//!   thread that is awake comes for the lock: a woken waiter (`WAKING`; or one for which it is not set: L4, U1), a
//!   spinner or the head itself, if that is `TIMED`. A thread that ends the last of these conditions makes a wake pass: see [`wake_pass`].
//! - **L2** (no starvation) A head that others may pass is `TIMED`, or `WAKING` is set, or the next release wakes
//!   it to keep its own time. `starvation_ns` after it came, it requests a hand-off (H1).
//! - **H1** A request (`HANDOFF` of a held lock): the release that makes room for the head promises it the lock.
//! - **H4** A promise (`HANDOFF` of a free lock) keeps it for a waiter that was woken, which owns nothing and takes
//!   it as any thread does. No thread depends on its coming: see [`wake_pass`], as for H1 and H2 (its end).
//! - **R1** A release that leaves the lock free is the last access to it, or is made under the lock of a queue that
//!   is not empty.
//! - **V1** No release waits for a waiter, or for a thread that has the queue locked, but for those that
//!   [`wake_pass`] and X3 name.
//! - **M1** Every change of the word in a process with threads is a read-modify-write, but for a writer's release:
//!   an acquire reads from the last writer's release or from its release sequence.
//!
//! # Orderings
//!
//! | operation                     | order   | pairs with        | because                                              |
//! |-------------------------------|---------|-------------------|------------------------------------------------------|
//! | acquire (T1, T2, T4, T7): CAS | Acquire | release           | the critical sections before this one                |
//! | release (T5): CAS, store      | Release | acquire           | this critical section                                |
//! | wake pass (T5, T6, H3): CAS   | AcqRel  | releases; acquire | one step for all plans. Of a grant: other readers'   |
//! |                               |         |                   | sections reach the grantee through this thread, then |
//! |                               |         |                   | through the node's notification                      |
//! | announce a spinner (T2): CAS  | Relaxed | –                 | a count, no data                                     |
//! | queue (T3, T8), leave (T9),   | Release | `release_slow`'s  | a thread that sees the flag must find the queue lock |
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

mod deferred;
mod dependent_readers;
mod early;
mod fast_path;
mod glibc_owned;
mod leaving;
mod midpath;
mod patience;
mod probe;
mod realtime;
mod slow_path;
mod wake_pass;

use core::marker::PhantomData;

use spinpark_platform::{AtomicU32, Ordering::Relaxed, Platform};

use crate::policy::{Adaptive, Policy, Usual};
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

impl<P: Platform + Adaptive> LockCore<P> {
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
