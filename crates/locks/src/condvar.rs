//! A condition variable: a queue, by real-time priority and then FIFO. A signal wakes its waiter, which then
//! locks the mutex as any thread; or, if the calling thread holds the mutex and will wait for something
//! itself soon, or has the only CPU that the waiter can use, it *defers* that to the release of the mutex.
//!
//! Origin: wait morphing as in nsync and abseil; document 003 asked for one system call per signal. Those
//! *move* a waiter to the mutex' queue, asleep as it is, until its turn comes. But that puts its turn before
//! the work of the threads that run, which then wait for it one item at a time. A waiter that is woken at
//! once comes a little later, and until then they move hundreds of items without a sleep; on a second CPU it
//! may find the mutex free. But one that is woken while the signaller holds the mutex finds it held: that
//! pays where the signaller goes on, since the waiter then comes later, and costs time where it waits for the
//! waiter's work. `notes/tuning.md` ("Wake, move or leave it to the release") has the planes of queues that
//! decided it. And a waiter that was moved asleep looks at nothing by itself: if the one that is woken before
//! it is stopped, it would sleep at a free mutex (L3 in [`core`](crate::core)).
//!
//! Gives: that order among waiters; no lost and no stolen wake-up (a signal picks its waiter under the queue
//! lock, so glibc's bug 25847 cannot arise); the variable may be destroyed right after a broadcast: a waiter
//! that was signalled does not touch it, unless it holds a reference, for which destruction waits (C4). Does
//! not give: freedom from spurious wake-ups (a cancelled waiter that had been signalled passes the signal on,
//! perhaps to one too many); a return at the deadline if a thread that signals is stopped between its claim
//! of the waiter and its notification, or one that has the queue locked: the node is on the waiter's stack,
//! and that thread is about to write to it (Q3). glibc's waiter locks the variable at its deadline, and waits
//! then, too.
//!
//! # State
//!
//! `word` counts the waiters that are linked; changed only under the queue lock, read outside it as a hint.
//! Each node has a `claim`:
//!
//! | claim            | meaning                               | left by                                         |
//! |------------------|---------------------------------------|-------------------------------------------------|
//! | `WAITING`        | linked in this queue                  | a signal, under the queue lock, to one of the   |
//! |                  |                                       | next two; the waiter itself, at its deadline or |
//! |                  |                                       | when cancelled, to `GIVEN_UP`                   |
//! | `SIGNALLED`      | dequeued: notified, or belongs to the | –                                               |
//! |                  | mutex' queue                          |                                                 |
//! | `SIGNALLED_REF`  | the same, with a reference: it can be | the waiter, or a thread that leaves no other    |
//! |                  | cancelled, and others still waited    | waiter behind, to `SIGNALLED`; drops the        |
//! |                  |                                       | reference then                                  |
//! | `SIGNALLED_LAST` | dequeued as the last one, with a      | the waiter, which drops the reference then      |
//! |                  | reference: ends the others' (C5)      |                                                 |
//! | `GIVEN_UP`       | linked until it unlinks               | –                                               |
//!
//! # Invariants
//!
//! - **C1** Exactly one of signal and waiter ends `WAITING`. So a signal is never spent on a waiter that
//!   returns "timed out", and a waiter that was signalled without a reference never touches the variable
//!   again.
//! - **C2** A waiter is linked before it releases its mutex. So a signal by a thread that holds the mutex
//!   afterwards finds it.
//! - **C3** A `GIVEN_UP` waiter unlinks itself; signals step over it. [`RawCondvar::is_idle`] is what a
//!   destroyer waits for.
//! - **C4** A waiter that may pass its signal on holds a reference until it has woken up, and drops it,
//!   having passed the signal on if it was cancelled, before it takes the mutex. A destroyer waits until
//!   there are none ([`RawCondvar::is_idle_with`]).
//! - **C5** A destroyer may hold the mutex, so it waits for no thread that sleeps in the mutex' queue: with
//!   no waiter left in this queue a signal need not be passed on, so the thread that takes the last one out
//!   ends the references of the waiters in the mutex' queue. It finds them: a waiter with a reference is
//!   linked there before this queue is unlocked. If another thread has the mutex' queue locked, a signal does
//!   not wait for it. It gives the waiter that it takes out a reference (`SIGNALLED_LAST`), wakes it, and
//!   leaves the others' references to it. (It is woken, not deferred: it must not sleep in the mutex' queue
//!   before it has ended them.) That waiter, and a last one that gives up, lock the mutex' queue, then this
//!   one, and end the references if there is still no waiter; else a later last one does. No thread that has
//!   this queue locked waits for a mutex' queue, so this order cannot deadlock.
//! - **C6** A signal whose result is not asked for waits for no thread that has a queue locked. If this queue
//!   is locked, the signal leaves itself, in one step, to the thread that has it locked, which makes it
//!   before it unlocks. So it goes to a waiter that was linked then, or to that thread itself, and not to a
//!   later one. The step is the signaller's last access to the variable. The waiter is woken, never deferred.
//!
//! # Orderings
//!
//! | operation             | order   | pairs with | because                                                     |
//! |-----------------------|---------|------------|-------------------------------------------------------------|
//! | claim: CAS, both ends | Relaxed | –          | only decides which; the queue lock and the node's           |
//! |                       |         |            | notification carry the rest                                 |
//! | reference: CAS        | Relaxed | –          | decides which thread drops it; see `queue::node`            |
//! | count: load by signal | Relaxed | –          | a waiter that must be seen was linked before its mutex was  |
//! |                       |         |            | released, which the signaller acquired since (C2)           |
//!
//! Checked by: loom models with signal, broadcast and timeout against each other, and mutants; native stress;
//! the cancellation, destruction and lost-wake-up programs of `testkit`.

use ::core::cell::Cell;
use ::core::marker::PhantomData;

use spinpark_platform::{AtomicU32, Deadline, Event, Ordering::Relaxed, Platform, Wait};

use crate::core::{LockCore, Outcome};
use crate::mutex::RawMutex;
use crate::policy::{Adaptive, Note, OnRelease, Policy, Spin, Spinner, Usual};
use crate::queue::{
    Ask, Chain, HasQueue, LockedQueue, Notice, QueueGuard, WaitNode, WaitQueue, WaiterRefs, RELEASED,
};
use crate::word::{self, Want};

/// The waiter is linked.
pub const WAITING: u32 = 0;
/// A signal has taken it out.
pub const SIGNALLED: u32 = 1;
/// It has given up, and unlinks itself.
pub const GIVEN_UP: u32 = 2;
/// As `SIGNALLED`, with a reference.
pub const SIGNALLED_REF: u32 = 3;
/// As that, and the last one: it ends the others' (C5).
pub const SIGNALLED_LAST: u32 = 4;

/// A condition variable: 16 bytes, zero has no waiters.
#[repr(transparent)]
pub struct RawCondvar<P: Platform, Q: Policy<P> = Usual> {
    queue: WaitQueue<P>,
    policy: PhantomData<fn() -> Q>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// Signalled, or woken for no reason.
    Signalled,
    /// The deadline passed first; no signal was used up.
    TimedOut,
}

/// One thread's wait. Lives, pinned, on its stack until [`RawCondvar::finish`] and, with a mutex,
/// [`Waiter::reacquire`] are done.
pub struct Waiter<P: Platform, Q: Policy<P> = Usual> {
    node: WaitNode<P>,
    policy: PhantomData<fn() -> Q>,
}

impl<P: Platform, Q: Policy<P>> Waiter<P, Q> {
    /// A wait that ends with `mutex` held, to whose release a signal may leave it.
    pub fn with_mutex(mutex: &RawMutex<P, Q>) -> Self {
        let mut node = WaitNode::new(Want::Lock, P::thread_token(), mutex.core().queue());
        node.only_cpu = P::only_cpu();
        Self { node, policy: PhantomData }
    }

    /// A wait with a mutex of another make: a signal wakes it.
    pub fn without_mutex() -> Self {
        let node = WaitNode::new(Want::Lock, P::thread_token(), core::ptr::null());
        Self { node, policy: PhantomData }
    }

    /// A wait that can be cancelled: after [`RawCondvar::finish`] it is to be [settled](RawCondvar::settle),
    /// and the condition variable lives as long as it has references in `refs`.
    pub fn cancellable(mut self, refs: &WaiterRefs<P>) -> Self {
        self.node.refs = refs;
        self
    }

    /// Sleeps until signalled or until `deadline`, through `sleep` (the platform's wait, or a cancellation
    /// point).
    ///
    /// Stays awake for a moment first, if that has paid lately: threads that hand work back and forth answer
    /// each other faster than the kernel wakes a thread.
    ///
    /// Returns when there is something to [`finish`](RawCondvar::finish).
    pub fn sleep(
        &self,
        deadline: Option<Deadline>,
        mut sleep: impl FnMut(&P::AtomicU32, u32, Option<Deadline>) -> Wait,
    ) {
        if let Some(polling) = Q::spins(0, Spinner::Watches(Spin::Signal)) {
            let notified = self.node.watch(polling.span_ns);
            Q::learns(0, Note::Spun(Spin::Signal, notified));
        }
        let _ = self.node.park(deadline, |word, expected, deadline| sleep(word, expected, deadline).into());
    }
}

impl<P: Platform + Adaptive> RawCondvar<P> {
    /// A condition variable without waiters.
    pub fn new() -> Self {
        Self::from_queue(WaitQueue::new())
    }

    /// A condition variable from an empty queue, for `const` initialisers.
    pub const fn from_queue(queue: WaitQueue<P>) -> Self {
        Self::with_policy(queue)
    }
}

impl<P: Platform, Q: Policy<P>> RawCondvar<P, Q> {
    /// [`RawCondvar::from_queue`] with the policy of the mutexes that threads wait with.
    pub const fn with_policy(queue: WaitQueue<P>) -> Self {
        Self { queue, policy: PhantomData }
    }

    /// The queue, for the padding in it.
    #[inline(always)]
    pub fn queue(&self) -> &WaitQueue<P> {
        &self.queue
    }

    /// Waits for a signal, with `mutex` (held) released meanwhile; returns with it held.
    pub fn wait(&self, mutex: &RawMutex<P, Q>, deadline: Option<Deadline>) -> WaitResult {
        let waiter = Waiter::with_mutex(mutex);
        self.enqueue(&waiter);
        mutex.unlock_to_wait();
        waiter.sleep(deadline, P::futex_wait);
        let result = self.finish(&waiter);
        waiter.reacquire(result, mutex);
        result
    }

    /// Starts a wait: call it with the mutex held, release the mutex, [`Waiter::sleep`], then
    /// [`finish`](Self::finish). The waiter stays where it is until then.
    pub fn enqueue(&self, waiter: &Waiter<P, Q>) {
        self.enqueue_if(waiter, |_| true);
    }

    /// The same, unless a thread waits with another mutex: then it returns false, and no wait has started.
    #[must_use]
    pub fn enqueue_alike(&self, waiter: &Waiter<P, Q>) -> bool {
        self.enqueue_if(waiter, |first| first.mutex == waiter.node.mutex)
    }

    /// Starts a wait if no other thread waits, or `is_fit` says so of the first one.
    fn enqueue_if(&self, waiter: &Waiter<P, Q>, is_fit: impl FnOnce(&WaitNode<P>) -> bool) -> bool {
        let mut queue = self.lock_queue();
        if !queue.head().is_none_or(is_fit) {
            return false;
        }
        queue.push(&waiter.node);
        self.queue.word.fetch_add(1, Relaxed);
        true
    }

    /// Ends a wait: C1 decides whether by signal or not. Once signalled, the condition variable is not
    /// touched.
    ///
    /// If signalled, a wait that can be cancelled is to be [settled](Self::settle), and goes on in the mutex'
    /// queue: [`Waiter::reacquire`].
    pub fn finish(&self, waiter: &Waiter<P, Q>) -> WaitResult {
        let node = &waiter.node;
        if node.claim.compare_exchange(WAITING, GIVEN_UP, Relaxed, Relaxed).is_err() {
            if node.mutex.is_null() {
                // No mutex queue to wait in: what is left is the notification, so that the node may go (Q3).
                let sleep =
                    |word: &P::AtomicU32, expected, deadline| P::futex_wait(word, expected, deadline).into();
                while node.park(None, sleep) != Notice::Released {}
            }
            return WaitResult::Signalled;
        }
        let mut queue = self.lock_queue();
        let last = queue.remove(node) && self.queue.word.fetch_sub(1, Relaxed) == 1;
        let refs = Self::refs_of(node).filter(|refs| last && refs.any());
        refs.inspect(|refs| refs.add());
        drop(queue);
        refs.inspect(|refs| self.end_others(node, refs));
        P::event(Event::TimedOut);
        WaitResult::TimedOut
    }

    /// C4: after a signal has ended a wait, and before the mutex is taken. If it was cancelled, its signal
    /// goes to another waiter, if there is one that might have had it.
    pub fn settle(&self, waiter: &Waiter<P, Q>, is_cancelled: bool) {
        if let Some(refs) = Self::end_reference(&waiter.node) {
            if is_cancelled {
                self.send(false);
            }
            refs.drop_one();
        } else if waiter.node.claim.load(Relaxed) == SIGNALLED_LAST {
            Self::refs_of(&waiter.node).inspect(|refs| self.end_others(&waiter.node, refs));
        }
    }

    /// Ends the wait of the longest waiter of the highest priority; returns whether there was one. May wait
    /// for another thread that is in the queue.
    #[inline]
    pub fn signal(&self) -> bool {
        self.has_waiters() && self.signal_slow(false) > 0
    }

    /// Ends the wait of everyone who waits now; returns how many. May wait for another thread that is in the
    /// queue.
    #[inline]
    pub fn broadcast(&self) -> u32 {
        if self.has_waiters() {
            self.signal_slow(true)
        } else {
            0
        }
    }

    /// [`signal`](Self::signal), or, if for `all`, [`broadcast`](Self::broadcast), without a wait: a thread
    /// that is in the queue does it then (C6).
    #[inline]
    pub fn send(&self, all: bool) {
        if self.has_waiters() {
            self.send_slow(all);
        }
    }

    /// Whether there are waiters; a hint unless the caller holds the waiters' mutex.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        self.queue.word.load(Relaxed) != 0
    }

    /// Whether no waiter is linked and no thread is at work in the queue: the memory may go.
    pub fn is_idle(&self) -> bool {
        self.lock_queue().head().is_none()
    }

    /// [`is_idle`](Self::is_idle), and no waiter holds one of `refs`.
    pub fn is_idle_with(&self, refs: &WaiterRefs<P>) -> bool {
        let queue = self.lock_queue();
        queue.head().is_none() && !refs.any()
    }

    /// Whether a waiter is linked that has neither been signalled nor given up.
    pub fn is_waited_on(&self) -> bool {
        self.lock_queue().iter().any(|node| node.claim.load(Relaxed) == WAITING)
    }

    #[cold]
    #[inline(never)]
    fn signal_slow(&self, all: bool) -> u32 {
        self.signal_in(self.lock_queue(), all)
    }

    #[cold]
    #[inline(never)]
    fn send_slow(&self, all: bool) {
        if let Some(queue) = self.lock_queue_or(if all { Ask::WakePass } else { Ask::Signal }) {
            self.signal_in(queue, all);
        }
    }

    fn signal_in(&self, queue: QueueGuard<'_, P, Self>, all: bool) -> u32 {
        let mut queue = queue;
        let (waiters, count) = self.claim(&mut queue, all);
        let refers = waiters.first().is_some_and(|first| first.claim.load(Relaxed) == SIGNALLED_REF);
        Self::send_on(waiters, refers.then_some(queue));
        count
    }

    /// Pops the first waiter that has not given up, or all of them.
    #[inline(never)] // for the drop-in's size
    fn claim(&self, queue: &mut LockedQueue<'_, P>, all: bool) -> (Chain<P>, u32) {
        let waiting = |node: &&WaitNode<P>| node.claim.load(Relaxed) == WAITING;
        // A broadcast leaves no waiter; a signal perhaps.
        let last = all || queue.iter().filter(waiting).nth(1).is_none();
        let first = queue.iter().find(waiting).filter(|_| last);
        let refs = first.and_then(Self::refs_of).filter(|refs| refs.any());
        let mutex = refs.and(first).and_then(Self::mutex_of);
        let theirs = mutex.map(|mutex| mutex.try_lock_queue());
        let owes = Cell::new(matches!(theirs, Some(None)));
        let count = Cell::new(0);
        let take = |node: &WaitNode<P>| {
            let refs = Self::refs_of(node).filter(|_| !last || owes.get());
            refs.inspect(|refs| refs.add());
            let mark = match refs {
                None => SIGNALLED,
                Some(_) if last => SIGNALLED_LAST,
                Some(_) => SIGNALLED_REF,
            };
            let taken = node.claim.compare_exchange(WAITING, mark, Relaxed, Relaxed).is_ok();
            if taken {
                owes.set(owes.get() && mark != SIGNALLED_LAST);
            } else {
                refs.inspect(|refs| refs.drop_one());
            }
            count.set(count.get() + u32::from(taken));
            taken
        };
        let claimed = queue.pop_some(if all { u32::MAX } else { 1 }, take);
        self.queue.word.fetch_sub(count.get(), Relaxed);
        if let (Some(refs), Some(theirs), true) = (refs, theirs.flatten(), count.get() > 0) {
            Self::end_references(&theirs, refs);
        }
        (claimed, count.get())
    }

    /// Wakes each waiter, or leaves that to the mutex: those of one mutex together.
    ///
    /// The condition variable is not touched any more, but to unlock its `queue` if that is still locked
    /// (C5): a waiter that has been served may destroy it.
    fn send_on(mut waiters: Chain<P>, queue: Option<QueueGuard<'_, P, Self>>) {
        let mut defers = None;
        let mut woken = Chain::new();
        let mut next = waiters.pop();
        while let Some(first) = next.take() {
            let way = Self::way_to(first.node(), &mut defers);
            let Some(mutex) = Self::mutex_of(first.node()).filter(|_| way == Way::Defer) else {
                woken.push(first);
                next = waiters.pop();
                continue;
            };
            let mut group = Chain::new();
            let same = first.node().mutex;
            group.push(first);
            while let Some(dequeued) = waiters.pop() {
                if dequeued.node().mutex == same && Self::way_to(dequeued.node(), &mut defers) == way {
                    group.push(dequeued);
                } else {
                    next = Some(dequeued);
                    break;
                }
            }
            woken.append(mutex.absorb(group));
        }
        drop(queue);
        woken.notify_all(RELEASED);
    }
}

// ---- how a signal goes on with the waiter whose wait it ends, and how that takes the mutex back

/// What a signal does with a waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Wakes it.
    Wake,
    /// Leaves that to the calling thread's release of the mutex.
    Defer,
}

impl<P: Platform, Q: Policy<P>> RawCondvar<P, Q> {
    /// The mutex that a dequeued waiter takes back.
    #[allow(unsafe_code)] // waiters remember their mutexes as pointers
    fn mutex_of<'a>(waiter: &WaitNode<P>) -> Option<&'a LockCore<P, Q>> {
        let queue = waiter.mutex;
        // SAFETY: the pointer came from a `LockCore` in `with_mutex`, and a waiter that has not been notified
        // yet is going to take that mutex back, so its mutex is alive (Q3).
        (!queue.is_null()).then(|| unsafe { LockCore::from_queue_ptr(queue) })
    }

    /// How to go on with a waiter. `defers`: what was found out for those before it.
    #[inline(never)]
    fn way_to(waiter: &WaitNode<P>, defers: &mut Option<bool>) -> Way {
        let Some(mutex) = Self::mutex_of(waiter) else { return Way::Wake };
        if waiter.claim.load(Relaxed) == SIGNALLED_LAST {
            return Way::Wake; // C5
        }
        let holds = || word::owner(mutex.peek()) == P::thread_token();
        // It cannot run before the calling thread leaves its CPU, as far as is known.
        let asks = |asks| Q::on_release(mutex.key(), asks);
        let shares_cpu = || {
            asks(OnRelease::DefersWakes) || (waiter.only_cpu.is_some() && waiter.only_cpu == P::only_cpu())
        };
        if holds() && (shares_cpu() || *defers.get_or_insert_with(|| asks(OnRelease::DefersThisWake))) {
            Way::Defer
        } else {
            Way::Wake
        }
    }
}

impl<P: Platform, Q: Policy<P>> Waiter<P, Q> {
    /// After [`RawCondvar::finish`]: takes the mutex back, from its queue if the wait was deferred there.
    pub fn reacquire(&self, result: WaitResult, mutex: &RawMutex<P, Q>) {
        if !self.reacquire_shared(result, mutex) {
            P::overwritten(mutex.core().key());
        }
    }

    /// [`Waiter::reacquire`]; `false`: the mutex is not held, because other code has locked it
    /// ([`RawMutex::lock_or_glibc`]).
    #[must_use]
    pub fn reacquire_shared(&self, result: WaitResult, mutex: &RawMutex<P, Q>) -> bool {
        let outcome = match result {
            WaitResult::Signalled => mutex.core().wait_queued(&self.node, None),
            WaitResult::TimedOut => mutex.core().acquire(Want::Lock, self.node.token, None),
        };
        outcome == Outcome::Acquired
    }
}

// ---- the references of signalled waiters (C4), and how they end where no other waiter is left (C5)

impl<P: Platform, Q: Policy<P>> RawCondvar<P, Q> {
    #[allow(unsafe_code)] // waiters remember where references are counted as a pointer
    fn refs_of<'a>(waiter: &WaitNode<P>) -> Option<&'a WaiterRefs<P>> {
        // SAFETY: null or from `cancellable`. The callers hold the queue lock of the condition variable, or a
        // reference.
        unsafe { waiter.refs.as_ref() }
    }

    /// Makes the waiter's reference, if there is still one, the caller's to drop.
    fn end_reference<'a>(waiter: &WaitNode<P>) -> Option<&'a WaiterRefs<P>> {
        let ended = waiter.claim.compare_exchange(SIGNALLED_REF, SIGNALLED, Relaxed, Relaxed).is_ok();
        if ended {
            Self::refs_of(waiter)
        } else {
            None
        }
    }

    /// C5: of the waiters in a mutex' queue. The caller has it locked, and this one, which has no waiter.
    fn end_references(theirs: &LockedQueue<'_, P>, refs: &WaiterRefs<P>) {
        for node in theirs.iter().filter(|node| core::ptr::eq(node.refs, refs)) {
            Self::end_reference(node).inspect(|refs| refs.drop_one());
        }
    }

    /// C5: by the last waiter, awake and out of this queue, which takes its mutex back later, and has a
    /// reference until now.
    #[cold]
    #[inline(never)]
    fn end_others(&self, last: &WaitNode<P>, refs: &WaiterRefs<P>) {
        let theirs = Self::mutex_of(last).map(LockCore::lock_queue);
        let queue = self.lock_queue();
        if let Some(theirs) = theirs.as_ref().filter(|_| !self.has_waiters()) {
            Self::end_references(theirs, refs);
        }
        drop(queue);
        drop(theirs);
        refs.drop_one();
    }
}

// ---- how the queue is unlocked: after the signals that other threads leave to its holder

impl<P: Platform, Q: Policy<P>> HasQueue<P> for RawCondvar<P, Q> {
    #[inline(always)]
    fn queue(&self) -> &WaitQueue<P> {
        &self.queue
    }

    fn forget_waiters(&self) {
        self.queue.word.store(0, Relaxed);
    }

    /// C6.
    #[inline(never)] // for the drop-in's size
    fn unlock_queue(&self, queue: &mut LockedQueue<'_, P>) {
        let mut waiters = Chain::new();
        while let Some(asked) = queue.unlock(false, false) {
            let signals = asked.signals();
            let all = signals == u32::MAX;
            for _ in 0..if all { 1 } else { signals } {
                waiters.append(self.claim(queue, all).0);
            }
        }
        waiters.notify_all(RELEASED);
    }
}

impl<P: Platform + Adaptive> Default for RawCondvar<P> {
    fn default() -> Self {
        Self::new()
    }
}
