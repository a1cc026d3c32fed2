//! The slow way in: spin, queue, sleep, contend, and round again.

use spinpark_platform::{Clock, Deadline, Event, Platform, Spin};

use super::queued::Joined;
use super::spin::{has_cpus_to_spare, Spun};
use super::LockCore;
use crate::queue::{Notice, WaitNode};
use crate::word::{self, Credit, Want};

/// When a waiter has waited long enough to ask for more than its turn: so long after it queued.
#[derive(Clone, Copy)]
struct Patience {
    end: u64,
    /// Whether the waiter keeps its time: a reader always does, others once they have lost as the head (`TIMED`).
    kept: bool,
}

impl Patience {
    fn on_arrival<P: Platform>(want: Want) -> Self {
        let reader = want == Want::Read;
        let patience = if reader { P::TUNING.reader_patience_ns } else { P::TUNING.starvation_ns };
        Self { end: P::now(Clock::Monotonic).saturating_add(patience), kept: reader }
    }

    /// Its end on the clock of `deadline`, if the waiter keeps its time.
    fn sleep_until<P: Platform>(self, deadline: Option<Deadline>) -> Option<Deadline> {
        if !self.kept {
            return deadline;
        }
        let clock = deadline.map_or(Clock::Monotonic, |deadline| deadline.clock);
        let left = self.end.saturating_sub(P::now(Clock::Monotonic));
        let own = P::now(clock).saturating_add(left);
        let at = deadline.map_or(own, |deadline| deadline.at.min(own));
        Some(Deadline { clock, at })
    }

    fn is_over<P: Platform>(self) -> bool {
        P::now(Clock::Monotonic) >= self.end
    }
}

/// How an attempt to acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The lock is held.
    Acquired,
    /// The deadline passed.
    TimedOut,
    /// Readers may be in slots, and the lock is wanted alone: who wants it shuts the gate and tries again (G3 in
    /// [`gate`](crate::gate)).
    Gated,
}

impl Outcome {
    fn of(acquired: bool) -> Self {
        if acquired {
            Self::Acquired
        } else {
            Self::TimedOut
        }
    }
}

fn is_past<P: Platform>(deadline: Option<Deadline>) -> bool {
    deadline.is_some_and(|deadline| P::now(deadline.clock) >= deadline.at)
}

impl<P: Platform> LockCore<P> {
    /// Acquires for `want`, or gives up.
    #[cold]
    #[inline(never)]
    pub(crate) fn acquire_slow(&self, want: Want, deadline: Option<Deadline>) -> Outcome {
        self.adopt();
        let outcome = self.spin_then_queue(want, P::thread_token(), deadline);
        if outcome == Outcome::Acquired && want == Want::Upgradable && word::has_waiters(self.peek()) {
            self.look_now(); // L1: readers behind this one have room beside it
        }
        outcome
    }

    fn spin_then_queue(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Outcome {
        let credit = match self.spin(want, token, deadline) {
            Spun::Acquired => return Outcome::Acquired,
            Spun::Stopped(credit) => credit,
        };
        if is_past::<P>(deadline) {
            return Outcome::of(self.give_up(want, token, credit));
        }
        let node = WaitNode::new(want, token, core::ptr::null());
        match self.join(&node, credit) {
            Joined::Acquired => Outcome::Acquired,
            Joined::Queued => Outcome::of(self.wait_queued(&node, deadline)),
            Joined::Gated => Outcome::Gated,
        }
    }

    /// Waits in the queue, where `node` is linked or popped, until the lock is held or `deadline` passes.
    ///
    /// Also the end of every wait on a condition variable whose waiter was moved here.
    pub(crate) fn wait_queued(&self, node: &WaitNode<P>, deadline: Option<Deadline>) -> bool {
        let mut patience = Patience::on_arrival::<P>(node.want);
        loop {
            let notice = node.park(patience.sleep_until::<P>(deadline), P::futex_wait);
            let joined = match notice {
                Notice::Granted => return true,
                Notice::Released => {
                    unreachable!("only a condition variable's waiter without a mutex is released")
                }
                Notice::Woken => {
                    // T7: this thread is the one for which WAKING is set.
                    let starved = patience.is_over::<P>();
                    let seen = self.peek();
                    // Held by others: who holds it upgradably, or comes in beside readers, has room.
                    let crowd = starved || word::has_waiters(seen);
                    // With CPUs to spare, it keeps the lock busy if nobody else does.
                    let is_kept_busy = word::has_spinner(seen) || !has_cpus_to_spare::<P>();
                    if crowd && is_kept_busy && !word::admits(seen, node.want) {
                        node.nap(deadline);
                    }
                    let spun = self.poll(node.want, node.token, Credit::Waking, !starved, deadline);
                    if let Spun::Acquired = spun {
                        return true;
                    }
                    if is_past::<P>(deadline) {
                        return self.give_up(node.want, node.token, Credit::Waking);
                    }
                    // Who demands the lock sleeps until it gets it.
                    patience.kept = !starved;
                    self.rejoin(node, starved)
                }
                Notice::TimedOut if is_past::<P>(deadline) => return self.time_out(node),
                Notice::TimedOut if patience.is_over::<P>() => {
                    // A reader asks again and again.
                    patience = Patience::on_arrival::<P>(node.want);
                    self.demand(node)
                }
                Notice::TimedOut => Joined::Queued, // the two clocks disagree by a little
            };
            match joined {
                Joined::Acquired => return true,
                Joined::Queued if !patience.kept => Self::await_hand_over(node),
                Joined::Queued => {}
                Joined::Gated => unreachable!("G3: the gate is shut while an exclusive waiter is about"),
            }
        }
    }

    /// T8: the next release hands the lock over: mostly in no time, so a sleep would only delay everybody.
    fn await_hand_over(node: &WaitNode<P>) {
        if P::can_spin(Spin::HandOver) {
            let told = node.watch(P::TUNING.spin_ns);
            P::spun(Spin::HandOver, told);
        }
    }

    /// T9: the deadline has passed. `true` if the lock came first.
    fn time_out(&self, node: &WaitNode<P>) -> bool {
        if self.leave(node) {
            P::event(Event::TimedOut);
            return false;
        }
        // Popped just now: the notification is on its way, and comes first (Q3).
        match node.park(None, P::futex_wait) {
            Notice::Granted => true,
            _ => self.give_up(node.want, node.token, Credit::Waking),
        }
    }
}
