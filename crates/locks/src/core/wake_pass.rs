//! The wake pass: a release that has waiters to see to. It locks the queue, releases and chooses in one step,
//! then notifies.
//!
//! ```text
//! release_slow:  A  lock the queue while still holding the lock
//!                B  in one compare-exchange, release and: grant the lock to all readers at the head
//!                                                         or promise it to a head that starved, or is preferred
//!                                                         or set WAKING for a head that sleeps, or wake it without a mark (L4)
//!                                                         or end the waits that the releasing thread has signalled
//!                                                         or leave it to threads that are awake
//!                   and pop whom that concerns; then B again, without the release
//!                C  unlock the queue
//!                D  notify the dequeued waiters
//! ```
//!
//! If another thread has the queue locked, the release leaves steps B (but for letting go), C and D to that
//! thread (V1):
//!
//! ```text
//! release_delegated:  1  pin the queue and ask the queue holder for a wake pass; fails if the queue is unlocked meanwhile: then A
//!                     2  let go
//!                     3  unpin: the last access
//! queue holder:       4  wait until there are no pins; wake pass; unlock, unless asked again
//! ```
//!
//! The queue lock is unlocked *after* the release (C after B). That is no access to a lock that might be gone
//! (R1): in B the queue is not empty, and a thread that is in it, or was dequeued from it, is still inside a
//! call on this lock and cannot get out of it before C (if it is queued, because leaving takes the queue
//! lock) or D (if it was dequeued).
//!
//! An unlock with a plain waiter, one that was not woken before, is four steps on three words:
//!
//! ```text
//!                       lock word                     queue lock   node
//! before                token | WRITER | WAITERS      CONTENDED    PARKED
//! A  lock the queue     token | WRITER | WAITERS      LOCKED       PARKED
//! B  release, choose    WAKING                        LOCKED       PARKED     (no WAITERS: it was the only one)
//! C  unlock the queue   WAKING                        CONTENDED,   PARKED
//! D  notify             WAKING                        SERVED       WOKEN      and futex_wake
//! the waiter (T7)       its token | WRITER            CONTENDED    WOKEN
//! ```
//!
//! # Which steps are followed by a wake pass (L1, L2)
//!
//! - A release, if `needs_wake_pass` finds so. It need not be, past a woken waiter, or a spinner or a thread that
//!   comes back at once while the head is `TIMED`. That a `TIMED` head rechecks by itself is the only condition of
//!   L1 that leans on a timer, and only on two CPUs, where a release leaves a `TIMED` head (one that backs off, or was
//!   woken and lost) to its timer because its thread comes back at once. A thread that waits for something else next
//!   (`WriteToWait`) wakes it in any case.
//! - An upgradable holder that came in: readers have room alongside it.
//! - A thread that withdraws its announced state without acquiring, or was woken without a mark and leaves (T3,
//!   T8, T9).
//! - Each change of the list, and each request.
//!
//! Readers behind a head that has no room are let in alongside those inside (`Action::LetIn`) once what has kept
//! them out is gone: a request (H3), or a woken waiter. One inside may wait for them. A release does not do that,
//! nor a thread that queues.
//!
//! Without a mark, a head times itself once it has waited for `unmarked_ns` (L4). A preferred writer, past which no
//! plain reader joins readers, is woken for that once it has starved, or by the release that leaves the lock free.
//! A real-time waiter requests the lock once readers have passed it. A request is the head's, whichever waiter
//! made it.
//!
//! - **L4** (without a mark) Where the process has one CPU, a mutex' waiter is woken without `WAKING`, one by each
//!   release that finds a queue. It does not come before the thread that has the CPU, which may acquire and release
//!   the lock a hundred thousand times until then: with no waiter and no mark left, as if there were no other
//!   thread. It owes a wake pass if it leaves, or queues again. If it finds the lock held (by a thread that lost its
//!   CPU inside) it queues behind those that have starved, before the others. One that has waited for `unmarked_ns`
//!   has starved: it is woken with a mark; and so is one after many that a thread has woken within its slice. (Not
//!   of a read-write lock: readers that wait behind writers would find no mark to wait for.)
//!
//! # The hand-off (H1, H4)
//!
//! The release that makes room for a head that requests the lock promises it to that, or leaves that to the thread that has the
//! queue locked (V1), or to the waiter that is on its way already (`WAKING`). That one takes the lock first, and the
//! request ends; its own release then wakes the head. (An upgrade, whose thread has its upgradable hold, is handed
//! the writer's in the release of the last reader, and an upgradable waiter alongside readers is let in as they
//! are.) The last reader also promises the lock to a preferred writer that is awake, or has waited for long.
//!
//! Then `word::admits` keeps the lock for a waiter that was woken. The promise ends as that one comes, or leaves
//! with no waiter behind it. Calls that do not wait ([`tries`](crate::tries)), or whose time is up, and threads with a
//! real-time priority take the lock past a promise, which is a request then; waiters that probe (L3) do, and end it;
//! a thread that came after the promise queues, and probes, so it heeds a promise until its first probe and its spin
//! at the most. A writer's release past a woken waiter also promises the lock to it, once threads that run have
//! passed it for long: it may be waiting for the CPU of one of them, which finds the promise when it comes back for
//! the lock. (To yield the CPU in the release would be to yield it with other locks held.)
//!
//! - **H2** (exit rule) A taken promise clears `HANDOFF` and `TIMED`; only a head that was woken after that, lost (or backs off), and
//!   has waited for `starvation_ns` since it arrived sets it again (or a fair release does, or the last reader's). An
//!   upgrade, which goes before all others because they wait for its thread, leaves `HANDOFF` for the waiter behind
//!   it. With the queue lock free, `HANDOFF` is set alongside readers only if a queued waiter rechecks it by itself
//!   ([`WaitNode::rechecks`]), or a wake pass was asked for: a wake pass that finds no such waiter ends the request,
//!   and wakes the head to keep its own time (L2). Such a pass follows each step that takes the last such waiter out,
//!   lets readers in alongside a request of a writer (a downgrade), or requests the lock for a head (a fair release,
//!   in its own wake pass). A waiter that rechecks and finds its request ended by another thread requests the lock
//!   again. A release by a thread of a higher real-time priority than the head's ends the request, and wakes the head
//!   as if it had not starved: that thread may come back before it. (If it leaves the wake pass to the thread that
//!   has the queue locked, it does not know the head, and ends the request of any.)
//!
//! # No release waits (V1)
//!
//! A thread that has the queue locked may be stopped, or wait for a fence. A release that has to make a wake pass locks
//! it or, in one compare-exchange of the queue lock's word, *pins* it and asks its holder for a wake pass. It then drops
//! its hold and unpins: its last access. The holder does not unlock while there are pins, and makes a wake pass after the
//! last of them has gone, before it unlocks. So the wake pass comes after the release (L1), and the lock is alive at the
//! unpin (R1): the holder is inside a call that keeps it alive until the unlock (itself, by a hold, or by a waiter that
//! is queued or not notified yet). Between pin and unpin a thread waits for nothing. A thread that keeps the lock alive
//! anyway asks without a pin (`wake_pass_now`). (Of more releases at a time than can be counted, the others wait until
//! the last of those has unpinned.) A fair release waits, for `probe_ns` at the most, to request the lock for the head.
//! What is not worth a wait is left out: a move of waiters ([`absorb`](LockCore::absorb)), a bias that is enabled. A
//! reader that wakes a head to time itself (L2) leaves that to the next one.

use spinpark_platform::{
    AtomicU32, Event, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as ReleaseOrder, Platform,
};

use super::realtime::without_lower_request;
use super::LockCore;
use crate::policy::{OnRelease, Policy};
use crate::queue::{
    Ask, Chain, HasQueue, LockedQueue, QueueGuard, WaitNode, WaitQueue, GRANTED, RELEASED, UNMARKED, WOKEN,
};
use crate::word::{self, Release, Want};

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// T5 with flags set, or with a word that changes under us.
    #[cold]
    #[inline(never)]
    pub(super) fn release_slow(&self, release: Release) {
        self.adopt();
        let generation = P::generation();
        loop {
            let seen = self.word().load(Acquire);
            if word::is_glibc_owned(seen) {
                return self.release_glibc_owned(seen);
            }
            let after = word::released(seen, release);
            if word::needs_wake_pass(seen, after, release, self.comes_back(seen, release)) {
                // V1: a reader that leaves others inside asks for nothing. A wake pass without its release
                // could do no more, and the next release does it again; but the pins of a stream of such
                // readers would keep the holder from unlocking.
                let others_stay = release == Release::Read && word::readers(after) > 0;
                let ask = if others_stay { Ask::Nothing } else { Ask::PinnedWakePass };
                let Some(mut queue) = self.lock_queue_or(ask) else {
                    if !others_stay {
                        return self.release_delegated(release, seen, generation);
                    }
                    if self.word().compare_exchange_weak(seen, after, ReleaseOrder, Relaxed).is_ok() {
                        return; // the last access
                    }
                    continue;
                }; // A
                let pass = self.wake_pass(&mut queue, Some(release)); // B
                drop(queue); // C
                let released = pass.released;
                // D after C: this thread no longer keeps the lock alive, and a waiter that is told may free
                // it (R1).
                pass.notify();
                if released {
                    return;
                }
            } else if self.word().compare_exchange_weak(seen, after, ReleaseOrder, Relaxed).is_ok() {
                return; // the last access
            }
        }
    }

    /// T5, with a request on behalf of the head; on `false` nothing was done. If readers have come in
    /// meanwhile, the wake pass that releases also ends the request (H2). It waits for a thread that has the
    /// queue locked only as long as that may run.
    #[cold]
    #[inline(never)]
    pub(super) fn release_to_head(&self, release: Release) -> bool {
        let Some(mut queue) = self.lock_queue_within(&|| Q::TIMES.probe_ns) else { return false };
        if queue.head().is_none() {
            return false;
        }
        let before = self.word().fetch_or(word::HANDOFF, ReleaseOrder); // H1: the caller holds the lock
        if word::is_timed(before) {
            self.word().fetch_and(!word::TIMED, Relaxed); // H3: no reader is to come in before its release
        }
        queue.releases();
        let pass = self.wake_pass(&mut queue, Some(release));
        drop(queue);
        let released = pass.released;
        pass.notify();
        released
    }

    /// V1: releases, whatever the word is by now, and leaves the wake pass to the thread that has the queue
    /// locked. That thread's priority is not this one's: so a real-time thread ends a request itself (H2), of
    /// whatever head.
    fn release_delegated(&self, release: Release, seen: u32, generation: u32) {
        let mut seen = seen;
        let after = |seen| word::released(without_lower_request::<P>(seen, release, 0), release);
        while let Err(now) = self.word().compare_exchange_weak(seen, after(seen), ReleaseOrder, Relaxed) {
            seen = now;
        }
        if word::is_glibc_owned(seen) {
            P::futex_wake(self.word(), 1); // X3
        }
        // A handler may have forked meanwhile: the pin is the parent's.
        if P::generation() == generation {
            self.queue().unpin(); // the last access
        }
    }

    /// Gives up part of a hold in favour of others: `change` maps the word. The caller still holds the lock
    /// afterwards, so the wake pass can be made then.
    pub(crate) fn downgrade(&self, change: impl Fn(u32) -> u32) {
        let mut seen = self.peek();
        while let Err(now) = self.word().compare_exchange_weak(seen, change(seen), ReleaseOrder, Relaxed) {
            seen = now;
        }
        if word::has_waiters(seen) {
            self.wake_pass_now();
        }
    }

    /// B: lets in, or wakes, the head of the queue, if there is room after `release` (or, without one, now)
    /// and no other thread will see to it; then the next one. Leaves `WAITERS` right for what is queued (W1).
    pub(super) fn wake_pass(&self, queue: &mut LockedQueue<'_, P>, release: Option<Release>) -> WakePass<P> {
        // Past a head without room: nothing that kept a reader out has gone by a release, or by a newcomer.
        let lets_in = release.is_none() && !queue.has_joined();
        let mut release = release;
        let mut pass = WakePass::new();
        let mut seen = self.peek();
        loop {
            if word::is_glibc_owned(seen) {
                pass.ended.append(Plan { word: seen, action: Action::EndAllWaits }.pop(queue)); // X2
                break;
            }
            let comes_back = release.is_some_and(|release| self.comes_back(seen, release));
            let Some(plan) = Plan::choose::<P, Q>(seen, release, comes_back, lets_in, queue) else { break };
            // A reader that leaves and one that comes in for it make no difference to the word, and are to be
            // made all the same. To end waits, or to wake one without `WAKING`, makes no difference to it
            // either, if others stay.
            let pops = !matches!(plan.action, Action::Nothing);
            let wakes = matches!(plan.action, Action::Wake | Action::Promise | Action::WakeUnmarked);
            if wakes {
                queue.set_served(true);
            }
            // L3: before the step, so that the others do not rely on this thread either.
            self.see_to_timer(queue, plan.word, wakes);
            if plan.word == seen && release.is_none() && !pops {
                break; // nothing to do, and nothing left to release
            }
            if let Err(now) = self.word().compare_exchange_weak(seen, plan.word, AcqRel, Relaxed) {
                seen = now;
                continue;
            }
            let before = core::mem::replace(&mut seen, plan.word);
            if word::wants_handoff(before & !seen) && matches!(plan.action, Action::Wake | Action::Nothing) {
                P::event(Event::WithdrewRequest);
            }
            // Those behind it come after a real-time waiter, for which `WAKING` may not be set (U1): its release
            // makes a wake pass again, or its next step. So does that of one that was woken without a mark (L4).
            let is_last = match plan.action {
                Action::WakeUnmarked => true,
                Action::Wake | Action::Promise => {
                    queue.head().is_some_and(WaitNode::is_realtime) && !word::is_held(seen)
                }
                _ => false,
            };
            pass.released |= release.take().is_some();
            match plan.action {
                Action::Nothing => {}
                Action::Wake | Action::Promise => pass.woken.append(plan.pop(queue)),
                Action::WakeUnmarked => pass.unmarked.append(plan.pop(queue)),
                Action::EndWaits | Action::EndAllWaits => pass.ended.append(plan.pop(queue)),
                Action::Grant(_) | Action::LetIn(_) | Action::LetInUpgradable | Action::HandOver => {
                    pass.granted.append(plan.pop(queue));
                }
            }
            // A1: no fence. What marks the lock here is the first waiter that its holder defers: the calling
            // thread, which releases it later, and sees its own mark. Any other queue is marked already.
            if is_last {
                break;
            }
        }
        pass
    }
}

// ---- step B: what a wake pass does next, in one compare-exchange of the word

/// How far one release searches for readers to let in (rwsem's number): its own thread has work to do, and
/// others wait for the queue lock.
const READERS_PER_GRANT: usize = 256;

/// One way to go on: the word that records it, and the waiters that it lets in.
struct Plan {
    word: u32,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    /// Wakes no waiter; the release, if there is one, is made all the same.
    Nothing,
    /// Lets in this number of readers.
    Grant(u32),
    /// Lets in this number of readers past a head that has no room.
    LetIn(u32),
    /// So an upgradable waiter.
    LetInUpgradable,
    /// Turns the upgradable hold of a waiter into a writer's, or lets in an upgradable one alongside readers.
    HandOver,
    Wake,
    /// Wakes a waiter for which the lock is kept.
    Promise,
    /// Wakes the head without a mark (L4).
    WakeUnmarked,
    /// Ends the waits of those that the holder has signalled.
    EndWaits,
    /// Ends all waits (X2).
    EndAllWaits,
}

impl Plan {
    /// What to do about the queue; `None` if it is empty. `lets_in`: something that kept readers out may have
    /// gone, so that they may be let in past a head without room.
    ///
    /// For a mutex with one waiter that was not woken before, this is `wake()` at the end: everything before
    /// that is for starved, real-time and signalled waiters, readers and upgrades.
    fn choose<P: Platform, Q: Policy<P>>(
        seen: u32,
        release: Option<Release>,
        comes_back: bool,
        lets_in: bool,
        queue: &LockedQueue<'_, P>,
    ) -> Option<Self> {
        let head = queue.head()?;
        let realtime = head.is_realtime();
        let seen = if realtime { word::led_by_realtime(seen) } else { seen }; // U1
        let seen = release.map_or(seen, |release| without_lower_request::<P>(seen, release, head.rank));
        let after = release.map_or(seen, |release| word::released(seen, release));
        let next = queue.iter().nth(1);
        let nothing = Self { word: after | word::WAITERS, action: Action::Nothing };
        let wake = || Self {
            word: Self::without_head(after & !word::HANDOFF | word::WAKING, head.want, next),
            action: Action::Wake,
        };
        if !word::fits(after, head.want) {
            // L2: readers that come and go may pass this head; it must know that it is the head to time
            // itself.
            let timed = word::is_timed(seen) || word::is_waking(seen) || word::wants_handoff(seen);
            let passed = release == Some(Release::Read) && !timed && head.may_be_passed::<Q>();
            // H2: readers would be kept out for a request that no waiter rechecks. The next head is to keep
            // its own time.
            let left = word::wants_handoff(after)
                && !word::is_write_held(after)
                && !queue.iter().any(WaitNode::rechecks);
            let wakes = passed || left && !word::is_waking(seen);
            if lets_in && !wakes && !left && word::admits_readers_freely(after) && queue.joiners() > 0 {
                // Readers that were kept out by a request, or behind a woken waiter, which has left: they would
                // be admitted if they came now, and one inside may wait for them. So may it for an upgradable
                // one.
                let joins = |node: &&WaitNode<P>| node.want.joins_readers();
                let room = word::MAX_READERS.saturating_sub(word::readers(after));
                let count = room.min(queue.iter().filter(joins).count() as u32);
                if count > 0 {
                    return Some(Self {
                        word: nothing.word + count * word::UNIT,
                        action: Action::LetIn(count),
                    });
                }
                let is_upgradable = |node: &WaitNode<P>| node.want == Want::Upgradable;
                if word::fits(after, Want::Upgradable) && queue.iter().any(is_upgradable) {
                    return Some(Self {
                        word: nothing.word | word::UPGRADE,
                        action: Action::LetInUpgradable,
                    });
                }
            }
            return Some(if wakes {
                wake()
            } else if left {
                Self { word: nothing.word & !word::HANDOFF, ..nothing }
            } else {
                nothing
            });
        }
        // A fair release has promised the lock to the head.
        if head.is_deferred() && !word::wants_handoff(seen) {
            let others = queue.iter().find(|node| !node.is_deferred());
            return Some(Self {
                word: Self::without_head(after, head.want, others),
                action: Action::EndWaits,
            });
        }
        if head.want.is_read() {
            // The lock is promised to the waiter that was woken, or owed to it, after a thread that need not
            // heed that has taken it.
            if word::wants_handoff(after) && word::is_waking(after) && !realtime {
                return Some(nothing);
            }
            if head.want == Want::ReadBehindWaiters && word::is_waking(seen) && !realtime {
                return Some(nothing); // behind the woken waiter, which makes a wake pass when it has settled
            }
            let room = word::MAX_READERS.saturating_sub(word::readers(after));
            // A real-time reader came before writers that have waited longer: it does not take the readers
            // behind them along.
            // One walk: the waiters' stacks are in no cache.
            let (mut count, mut others) = (0, None);
            for (place, node) in queue.iter().enumerate() {
                let is_read = node.want.is_read();
                let ends = place == READERS_PER_GRANT || count == room || realtime && !is_read;
                if ends || !is_read {
                    others = others.or(Some(node)); // the next head
                }
                if ends {
                    break;
                }
                count += u32::from(is_read);
            }
            let word = Self::without_head(after, head.want, others) + count * word::UNIT;
            return Some(Self { word, action: Action::Grant(count) });
        }
        // Alongside readers, an upgradable waiter is granted the lock as they are.
        let is_beside = word::is_held(after) && !word::is_waking(after);
        if word::wants_handoff(seen) && (head.want == Want::Upgrade || is_beside) {
            let rest = Self::without_head(after, head.want, next);
            return Some(Self { word: word::taken(rest, head.want, head.token), action: Action::HandOver });
        }
        // H4: a lock that prefers writers; else the readers that leave come back before the writer. Not for a
        // thread of a lower priority than this one's, as in H2. (A pass that is left to another thread, V1,
        // promises nothing by that.)
        let first = release == Some(Release::Read) && head.goes_first::<Q>() && head.rank >= P::priority();
        if (word::wants_handoff(seen) || first) && !word::is_waking(after) {
            let rest = Self::without_head(after, head.want, next);
            return Some(Self { word: rest | word::HANDOFF | word::WAKING, action: Action::Promise });
        }
        let unmarked = || {
            let may_be = head.want == Want::Lock && !head.has_starved() && !realtime;
            may_be && Q::on_release(0, OnRelease::WakesUnmarked)
        };
        Some(if word::is_left_to_others(seen, comes_back) {
            nothing
        } else if unmarked() {
            Self { word: Self::without_head(after, head.want, next), action: Action::WakeUnmarked }
        } else {
            wake()
        })
    }

    /// The word once the head has gone: its own two flags are cleared (H2), `WAITERS` as the queue will be
    /// (W1), and no `WAKING` alongside a real-time `next` (U1).
    ///
    /// An upgrade that went before everyone passes a request on: it may have been that of the waiter behind
    /// it (L2).
    fn without_head<P: Platform>(word: u32, head: Want, next: Option<&WaitNode<P>>) -> u32 {
        let passes_on = head == Want::Upgrade && next.is_some();
        let word = word & !(word::TIMED | if passes_on { 0 } else { word::HANDOFF });
        match next {
            None => word & !word::WAITERS,
            Some(next) if next.is_realtime() => word::led_by_realtime(word) | word::WAITERS,
            Some(_) => word | word::WAITERS,
        }
    }

    /// Pops the waiters that the plan lets in or wakes.
    fn pop<P: Platform>(self, queue: &mut LockedQueue<'_, P>) -> Chain<P> {
        let (count, event) = match self.action {
            Action::Nothing => return Chain::new(),
            Action::LetIn(count) => {
                P::event(Event::GrantedReaders);
                return queue.pop_some(count, |node| node.want.joins_readers());
            }
            Action::LetInUpgradable => {
                P::event(Event::GrantedReaders);
                return queue.pop_some(1, |node| node.want == Want::Upgradable);
            }
            Action::Grant(count) => (count, Some(Event::GrantedReaders)),
            Action::HandOver | Action::Promise => (1, Some(Event::HandedOff)),
            Action::Wake => (1, Some(Event::WokeHead)),
            Action::WakeUnmarked => (1, Some(Event::WokeUnmarked)),
            Action::EndWaits => return queue.pop_some(u32::MAX, WaitNode::is_deferred),
            Action::EndAllWaits => (u32::MAX, None),
        };
        if let Some(event) = event {
            P::event(event);
        }
        let readers = matches!(self.action, Action::Grant(_));
        queue.pop_some(count, |node| !readers || node.want.is_read())
    }
}

// ---- steps C and D: the queue is unlocked, the dequeued waiters are notified

/// How many waiters are notified while the queue is locked.
const NOTIFIED_EARLY: usize = 4;

/// What a wake pass of the queue led to.
pub(super) struct WakePass<P: Platform> {
    /// These hold the lock.
    granted: Chain<P>,
    /// This one is to contend for the lock.
    woken: Chain<P>,
    /// So is this one, for which `WAKING` does not stand.
    unmarked: Chain<P>,
    /// The waits of these in this queue are over, as the lock's holder has signalled them, or by X2: they
    /// acquire as any thread.
    ended: Chain<P>,
    /// The release was made on the way. Not if the queue was empty.
    released: bool,
}

impl<P: Platform> WakePass<P> {
    const fn new() -> Self {
        Self {
            granted: Chain::new(),
            woken: Chain::new(),
            unmarked: Chain::new(),
            ended: Chain::new(),
            released: false,
        }
    }

    /// What let in the readers `granted`.
    pub(super) const fn granting(granted: Chain<P>) -> Self {
        Self { granted, ..Self::new() }
    }

    /// Adds the waiters that `later`, a wake pass without a release, has dequeued.
    fn append(&mut self, later: Self) {
        self.granted.append(later.granted);
        self.woken.append(later.woken);
        self.unmarked.append(later.unmarked);
        self.ended.append(later.ended);
    }

    /// D, by a thread that keeps the lock alive until the queue is unlocked: notifies the first waiters while
    /// the queue is locked still. They may hold the lock, so they must not sleep on if this thread is stopped.
    /// It [notifies](Self::notify) the others after the unlock.
    fn notify_first(&mut self) {
        let mut first = Self::new();
        let chains = [
            (&mut self.woken, &mut first.woken),
            (&mut self.unmarked, &mut first.unmarked),
            (&mut self.granted, &mut first.granted),
            (&mut self.ended, &mut first.ended),
        ];
        let mut left = NOTIFIED_EARLY;
        for (from, to) in chains {
            while left > 0 {
                let Some(waiter) = from.pop() else { break };
                to.push(waiter);
                left -= 1;
            }
        }
        first.notify();
    }

    /// C, D: by a thread that keeps the lock alive.
    #[inline(never)] // for the drop-in's size
    pub(super) fn unlock_and_notify<Q: Policy<P>>(mut self, queue: QueueGuard<'_, P, LockCore<P, Q>>) {
        self.notify_first();
        drop(queue);
        self.notify();
    }

    /// D: notifies the waiters that the wake pass dequeued: those first that hold the lock, for which no timer
    /// makes good (L3) if this thread loses its CPU to one that it wakes.
    pub(super) fn notify(self) {
        self.granted.notify_all(GRANTED);
        self.woken.notify_all(WOKEN);
        self.unmarked.notify_all(UNMARKED);
        self.ended.notify_all(RELEASED);
    }
}

// ---- how the queue is unlocked: with the pass that its holder owes to threads that did not wait for it

impl<P: Platform, Q: Policy<P>> HasQueue<P> for LockCore<P, Q> {
    #[inline(always)]
    fn queue(&self) -> &WaitQueue<P> {
        &self.queue
    }

    fn forget_waiters(&self) {
        self.word().fetch_and(!word::FLAGS, Relaxed);
    }

    #[inline(never)] // for the drop-in's size
    fn unlock_queue(&self, queue: &mut LockedQueue<'_, P>) {
        if queue.unlock(self.is_contended(queue), true).is_some() {
            self.delegated_wake_pass(queue);
        }
    }
}

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// Whether releases have to read the word from now on (A1).
    fn is_contended(&self, queue: &LockedQueue<'_, P>) -> bool {
        // A glibc-owned word has lost the marks of those that are queued (X2).
        let is_marked = |seen| word::is_marked(seen) || word::is_glibc_owned(seen);
        queue.was_contended() || is_marked(self.peek())
    }

    /// V1: other threads have asked for it. Unlocks the queue.
    #[cold]
    #[inline(never)]
    fn delegated_wake_pass(&self, queue: &mut LockedQueue<'_, P>) {
        let mut pass = WakePass::new();
        queue.set_joined(false);
        loop {
            pass.append(self.wake_pass(queue, None));
            if queue.keeps_alive() {
                pass.notify_first();
            }
            if queue.unlock(self.is_contended(queue), true).is_none() {
                break;
            }
        }
        pass.notify();
    }
}
