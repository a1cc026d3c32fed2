//! Releases: the step that needs no service of the queue, and the slow way out: lock the queue, let go and choose in one step,
//! then notify.
//!
//! ```text
//! release_slow:  A  lock the queue while still holding the lock
//!                B  in one compare-exchange, release and: grant the lock to all readers at the head
//!                                                         or promise it to a head that starved
//!                                                         or set WAKING for a head that sleeps
//!                                                         or wake a real-time head beside WAKING (T12)
//!                                                         or end the waits that the holder has signalled
//!                                                         or leave it to threads that are awake
//!                   and pop whom that concerns; then B again, without the release
//!                C  unlock the queue
//!                D  notify the dequeued waiters
//! ```
//!
//! If another thread has the queue locked, the release leaves steps B (but for letting go), C and D to that thread (V1):
//!
//! ```text
//! release_pinned:  1  pin the queue and ask its holder for a service; fails if the queue is unlocked meanwhile: then A
//!                  2  let go
//!                  3  unpin: the last access
//! holder:          4  wait until there are no pins; service; unlock, unless asked again
//! ```
//!
//! The queue lock is unlocked *after* the release (C after B). That is no access to a lock that might be gone (R1): in
//! B the queue is not empty, and a thread that is in it, or was dequeued from it, is still inside a call on this lock and
//! cannot get out of it before C (if it is queued, because leaving takes the queue lock) or D (if it was dequeued).

use spinpark_platform::{
    AtomicU32, Event, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as ReleaseOrder, Platform,
};

use super::plan::{Action, Plan};
use super::spin::has_no_cpu_to_spare;
use super::LockCore;
use crate::queue::{
    Ask, Chain, LockedQueue, Owner, QueueGuard, Told, WaitNode, BESIDE, CONTENDED, GRANTED, RELEASED, WOKEN,
};
use crate::word::{self, Release};

/// So many waiters are told while the queue is locked.
const TOLD_EARLY: usize = 4;

/// What a service of the queue led to.
pub(super) struct Serviced<P: Platform> {
    /// These hold the lock.
    granted: Chain<P>,
    /// This one is to contend for the lock.
    woken: Chain<P>,
    /// So is this real-time one, beside another.
    beside: Chain<P>,
    /// These were signalled by the lock's holder: they lock it as any thread.
    ended: Chain<P>,
    /// The release was made on the way. Not if the queue was empty.
    released: bool,
}

impl<P: Platform> Serviced<P> {
    pub(super) const fn new() -> Self {
        Self {
            granted: Chain::new(),
            woken: Chain::new(),
            beside: Chain::new(),
            ended: Chain::new(),
            released: false,
        }
    }

    /// What let in the readers `granted`.
    pub(super) const fn granting(granted: Chain<P>) -> Self {
        Self { granted, ..Self::new() }
    }

    /// Adds the waiters that `later`, a service without a release, has dequeued.
    pub(super) fn append(&mut self, later: Self) {
        self.granted.append(later.granted);
        self.woken.append(later.woken);
        self.beside.append(later.beside);
        self.ended.append(later.ended);
    }

    /// D, by a thread that keeps the lock alive until the queue is unlocked: tells the first waiters while the queue is locked still. If
    /// this thread is stopped before it has woken them, they find the notice as they look (L3). It wakes them afterwards, before it
    /// [notifies](Self::notify) the others.
    pub(super) fn tell(&mut self) -> [Told<P>; TOLD_EARLY] {
        let Self { granted, woken, beside, ended, .. } = self;
        let mut next = || {
            let next = |chain: &mut Chain<P>, state| chain.pop().map(|waiter| waiter.tell(state));
            next(woken, WOKEN)
                .or_else(|| next(beside, BESIDE))
                .or_else(|| next(granted, GRANTED))
                .or_else(|| next(ended, RELEASED))
        };
        core::array::from_fn(|_| next().unwrap_or(Told::NONE))
    }

    /// C, D: by a thread that keeps the lock alive.
    #[inline(never)] // for the drop-in's size
    pub(super) fn unlock_and_notify(mut self, queue: QueueGuard<'_, P, LockCore<P>>) {
        let told = self.tell();
        drop(queue);
        told.into_iter().for_each(Told::wake);
        self.notify();
    }

    /// D: notifies the waiters that the service dequeued. The queue is unlocked.
    pub(super) fn notify(self) {
        self.granted.notify_all(GRANTED);
        self.woken.notify_all(WOKEN);
        self.beside.notify_all(BESIDE);
        self.ended.notify_all(RELEASED);
    }
}

impl<P: Platform> LockCore<P> {
    /// T5: gives up the hold `release`.
    #[inline]
    pub(crate) fn release(&self, release: Release) {
        if !self.release_uncontended(release) {
            self.release_contended(release);
        }
    }

    /// T5 if no other thread needs to know: by the writer, probably the calling thread, of a lock whose queue is uncontended
    /// (A1). On `false` nothing was done, and [`LockCore::release_contended`] remains.
    #[inline(always)]
    pub(crate) fn release_uncontended(&self, release: Release) -> bool {
        match release {
            Release::Write | Release::WriteToWait => {
                P::release_unless::<CONTENDED>(self.queue.guard_word(), self.word(), || {
                    word::write_hold(P::thread_token())
                })
            }
            Release::Read | Release::Upgradable => self.release_in_one_step(release, self.peek()),
        }
    }

    /// T5 of a lock that has, or lately had, waiters.
    #[cold]
    #[inline(never)]
    pub(crate) fn release_contended(&self, release: Release) {
        if matches!(release, Release::Read | Release::Upgradable) {
            return self.release_slow(release);
        }
        let seen = self.peek();
        let key = self.key();
        let timed = P::is_timed(key);
        if word::is_mere_hold(seen, release) && !timed && P::ends_contended(key) {
            self.queue.end_attention();
            if !self.release_in_one_step(release, seen) {
                // A3: a waiter has marked the lock meanwhile, and this release may leave it asleep.
                self.queue.restore_attention();
                self.release_slow(release);
            }
            return;
        }
        if !self.release_in_one_step(release, seen) {
            self.release_slow(release);
        }
        if timed {
            P::turn_ends(key);
        }
    }

    /// T5, to the longest waiter if there is one and the lock becomes free: demands the hand-off on its behalf.
    #[inline]
    pub(crate) fn release_fair(&self, release: Release) {
        let seen = self.peek();
        let frees = word::has_waiters(seen) && !word::is_held(word::released(seen, release));
        if !frees || !self.release_to_head(release) {
            self.release(release);
        }
    }

    /// T5 from a word that was just seen, if no other thread needs to know; on `false` nothing was done.
    #[inline]
    fn release_in_one_step(&self, release: Release, seen: u32) -> bool {
        let after = word::released(seen, release);
        // A forked child may have inherited flags that mean nothing here; the slow path knows.
        let uncontended = word::is_mere_hold(seen, release)
            || (!word::is_foreign(seen)
                && !word::needs_service(seen, after, release, self.returns(seen, release))
                && P::generation() == 0);
        uncontended && {
            // H4: threads that run have passed the waiter that was woken for long. It may be waiting for the CPU of one of them.
            let promises = word::is_waking(seen) && word::is_write_held(seen) && P::has_passed_woken();
            let after = if promises { after | word::HANDOFF } else { after };
            self.word().compare_exchange(seen, after, ReleaseOrder, Relaxed).is_ok()
        }
    }

    /// T5 with flags set, or with a word that changes under us.
    #[cold]
    #[inline(never)]
    fn release_slow(&self, release: Release) {
        self.adopt();
        let generation = P::generation();
        loop {
            let seen = self.word().load(Acquire);
            if word::is_foreign(seen) {
                return self.release_foreign(seen);
            }
            let after = word::released(seen, release);
            if word::needs_service(seen, after, release, self.returns(seen, release)) {
                // V1: a reader that leaves others inside asks for nothing. A service without its release could do no more, and
                // the next release does it again; but the pins of a stream of such readers would keep the holder from unlocking.
                let stays = release == Release::Read && word::readers(after) > 0;
                let ask = if stays { Ask::Nothing } else { Ask::ServicePinned };
                let Some(mut queue) = self.lock_queue_or(ask) else {
                    if !stays {
                        return self.release_pinned(release, seen, generation);
                    }
                    if self.word().compare_exchange_weak(seen, after, ReleaseOrder, Relaxed).is_ok() {
                        return; // the last access
                    }
                    continue;
                }; // A
                let serviced = self.service(&mut queue, Some(release)); // B
                drop(queue); // C
                let released = serviced.released;
                serviced.notify(); // D
                if released {
                    return;
                }
            } else if self.word().compare_exchange_weak(seen, after, ReleaseOrder, Relaxed).is_ok() {
                return; // the last access
            }
        }
    }

    /// T5, with a demand on behalf of the head; on `false` nothing was done. If readers have come in meanwhile, the service that
    /// releases also ends the demand (H2). It waits for a thread that has the queue locked only as long as that may run.
    #[cold]
    #[inline(never)]
    fn release_to_head(&self, release: Release) -> bool {
        let Some(mut queue) = self.lock_queue_within(&|| P::TUNING.watch_ns) else { return false };
        if queue.head().is_none() {
            return false;
        }
        let before = self.word().fetch_or(word::HANDOFF, ReleaseOrder); // H1: the caller holds the lock
        if word::is_timed(before) {
            self.word().fetch_and(!word::TIMED, Relaxed); // H3: no reader is to come in before its release
        }
        queue.releases();
        let serviced = self.service(&mut queue, Some(release));
        drop(queue);
        let released = serviced.released;
        serviced.notify();
        released
    }

    /// V1: releases, whatever the word is by now, and leaves the service to the thread that has the queue locked. That thread's
    /// priority is not this one's: so a real-time thread ends a demand itself (H2), of whatever head.
    fn release_pinned(&self, release: Release, seen: u32, generation: u32) {
        let mut seen = seen;
        let after = |seen| word::released(Plan::without_lower_demand::<P>(seen, release, 0), release);
        while let Err(now) = self.word().compare_exchange_weak(seen, after(seen), ReleaseOrder, Relaxed) {
            seen = now;
        }
        if word::is_foreign(seen) {
            P::futex_wake(self.word(), 1); // X3
        }
        // A handler may have forked meanwhile: the pin is the parent's.
        if P::generation() == generation {
            self.queue().unpin(); // the last access
        }
    }

    /// Whether the releasing thread is about to come back for the lock, so that a head that keeps its own time is better left
    /// asleep.
    pub(super) fn returns(&self, seen: u32, release: Release) -> bool {
        release == Release::Write
            && word::is_timed(seen)
            && has_no_cpu_to_spare::<P>()
            && P::returns_soon(self.key())
    }

    /// Gives up part of a hold in favour of others: `change` maps the word. The caller still holds the lock
    /// afterwards, so the queue can be serviced then.
    pub(crate) fn downgrade(&self, change: impl Fn(u32) -> u32) {
        let mut seen = self.peek();
        while let Err(now) = self.word().compare_exchange_weak(seen, change(seen), ReleaseOrder, Relaxed) {
            seen = now;
        }
        if word::has_waiters(seen) {
            self.service_now();
        }
    }

    /// Takes over waiters that were dequeued from a condition variable's queue: they sleep on, in this queue, until the release of the
    /// calling thread, which holds the lock, ends their waits.
    ///
    /// Those whom it gives back are to be notified by the caller: others queue already, and would be served before them; or another
    /// thread has the queue locked, for which a signal does not wait.
    ///
    /// Nothing here is touched after the queue lock is released and before the notification: as soon as they are all
    /// served, the last of them may free the lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn absorb(&self, mut waiters: Chain<P>) -> Chain<P> {
        let Some(mut queue) = self.lock_queue_or(Ask::Nothing) else { return waiters };
        let uncontended = match queue.head() {
            None => self.peek() & word::FLAGS == 0,
            // Beside a woken waiter (after a fair release) the next release would leave the queue to that one.
            Some(head) => head.is_deferred() && !word::is_waking(self.peek()),
        };
        if !uncontended {
            return waiters;
        }
        while let Some(waiter) = waiters.pop() {
            P::event(Event::DeferredWake);
            waiter.move_to(&mut queue);
        }
        let serviced = self.service(&mut queue, None);
        drop(queue);
        serviced.notify();
        waiters
    }

    /// B: lets in, or wakes, the head of the queue, if there is room after `release` (or, without one,
    /// now) and no other thread will see to it; then the next one. Leaves `WAITERS` right for what is queued (W1).
    pub(super) fn service(&self, queue: &mut LockedQueue<'_, P>, release: Option<Release>) -> Serviced<P> {
        let mut release = release;
        let mut serviced = Serviced::new();
        let mut seen = self.peek();
        loop {
            if word::is_foreign(seen) {
                serviced.ended.append(Plan { word: seen, action: Action::EndAllWaits }.pop(queue)); // X2
                break;
            }
            let returns = release.is_some_and(|release| self.returns(seen, release));
            let Some(plan) = Plan::choose(seen, release, returns, queue) else { break };
            // A reader that leaves and one that comes in for it make no difference to the word, and are to be made all the
            // same. To end waits, or wake one beside another, makes no difference to it either, if others stay.
            let pops = matches!(plan.action, Action::EndWaits | Action::WakeBeside);
            if plan.word == seen && release.is_none() && !pops {
                break; // nothing to do, and nothing left to release
            }
            if let Err(now) = self.word().compare_exchange_weak(seen, plan.word, AcqRel, Relaxed) {
                seen = now;
                continue;
            }
            let before = core::mem::replace(&mut seen, plan.word);
            if word::wants_handoff(before & !seen) && matches!(plan.action, Action::Wake | Action::Nothing) {
                P::event(Event::WithdrewDemand);
            }
            // Those behind it come after a real-time waiter: the thread that settles `WAKING` services the queue again. So does one that
            // was woken without a mark (T16), or the next release.
            let is_last = match plan.action {
                Action::WakeBeside => true,
                Action::Wake | Action::Promise => queue.head().is_some_and(WaitNode::is_realtime),
                _ => false,
            };
            serviced.released |= release.take().is_some();
            match plan.action {
                Action::Nothing => {}
                Action::Wake | Action::Promise => serviced.woken.append(plan.pop(queue)),
                Action::WakeBeside => serviced.beside.append(plan.pop(queue)),
                Action::EndWaits | Action::EndAllWaits => serviced.ended.append(plan.pop(queue)),
                Action::Grant(_) | Action::HandOver => serviced.granted.append(plan.pop(queue)),
            }
            // A1: no fence. What marks the lock here is the first waiter that its holder defers: the calling thread, which releases it later,
            // and sees its own mark. Any other queue is marked already.
            if is_last {
                break;
            }
        }
        serviced
    }
}
