//! The slow way in: spin, queue, sleep, contend, and round again.

use spinpark_platform::{Deadline, Event, Platform, Spin, Spinning, Wait};

use super::patience::Patience;
use super::queued::Joined;
use super::spin::{has_cpus_to_spare, has_no_cpu_to_spare, Polls, Spun};
use super::LockCore;
use crate::queue::{Notice, Owner, WaitNode};
use crate::word::{self, Announced, Release, Want};

/// How an attempt to acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The lock is held.
    Acquired,
    /// The deadline passed.
    TimedOut,
    /// Readers may be in slots, and the lock is wanted alone: the thread that wants it revokes the bias and tries again (G3 in
    /// [`bias`](crate::bias)).
    Biased,
    /// X1: other code has written the word. The lock is not held, and the thread is not in its queue.
    Foreign,
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
    deadline.is_some_and(|deadline| deadline.left::<P>() == 0)
}

impl<P: Platform> LockCore<P> {
    /// Acquires for `want`, or gives up.
    pub(crate) fn acquire_slow(&self, want: Want, deadline: Option<Deadline>) -> Outcome {
        self.note_wait(want);
        let outcome = self.spin_then_queue(want, P::thread_token(), deadline);
        if outcome == Outcome::Acquired && want == Want::Upgradable && word::has_waiters(self.peek()) {
            self.service_now(); // L1: readers behind this one have room beside it
        }
        outcome
    }

    fn spin_then_queue(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Outcome {
        let backs_off = self.backs_off_for(want);
        let spun = self.spin_in_turn(want, token, deadline).unwrap_or_else(|| {
            self.adopt();
            if backs_off {
                Spun::Stopped(Announced::None)
            } else {
                self.spin(want, token, deadline)
            }
        });
        let announced = match spun {
            Spun::Acquired => {
                self.time_turn(want, false);
                return Outcome::Acquired;
            }
            Spun::Stopped(announced) => announced,
        };
        if is_past::<P>(deadline) {
            P::queues();
            return Outcome::of(self.give_up(want, token, announced) || self.last_look(want, token));
        }
        let node = WaitNode::new(want, token, core::ptr::null());
        let patience = Self::patience(&node);
        P::queues(); // late: what the node asks takes a system call
        let (joined, timed) = self.join(&node, announced, backs_off && !node.is_realtime(), deadline);
        match joined {
            Joined::Acquired => {
                self.time_turn(want, false);
                Outcome::Acquired
            }
            Joined::Queued => {
                P::sleeps_for(self.key()); // T17
                let patience = if timed { patience.lets_owner_go_on::<P>() } else { patience };
                self.wait_in_queue(&node, patience, deadline)
            }
            Joined::Biased => Outcome::Biased,
            Joined::Foreign => Outcome::Foreign,
            Joined::TimedOut => Outcome::TimedOut,
        }
    }

    /// Has the turn of a thread that waited for it, perhaps in the queue, timed now and then: see [`Platform::spinning`].
    #[inline(never)] // for the drop-in's size
    fn time_turn(&self, want: Want, queued: bool) {
        if want.is_write() && P::wants_time(self.key(), queued) {
            // So that the release is not a plain store, which nothing can time.
            if let Some(drawn) = self.queue().begin_attention(P::may_mark()) {
                P::turn_begins(self.key(), drawn);
            }
        }
    }

    /// Waits in the queue, where `node` is linked or dequeued, until the lock is held or `deadline` passes, or the word is
    /// found to be foreign.
    ///
    /// Also the end of every wait on a condition variable whose waiter was moved here.
    pub(crate) fn wait_queued(&self, node: &WaitNode<P>, deadline: Option<Deadline>) -> Outcome {
        self.note_wait(node.want);
        self.wait_in_queue(node, Self::patience(node), deadline)
    }

    /// Only writers guess that a lock is free ([`LockCore::enter_uncontended`]), and have turns.
    #[inline(never)] // for the drop-in's size
    fn note_wait(&self, want: Want) {
        if want.is_write() {
            P::waits_for(self.key());
        }
    }

    /// A real-time waiter keeps its time from the start, until it demands the lock.
    fn patience(node: &WaitNode<P>) -> Patience {
        let patience = Patience::on_arrival::<P>(node.want);
        if node.is_realtime() {
            patience.until_starved()
        } else {
            patience
        }
    }

    fn wait_in_queue(&self, node: &WaitNode<P>, patience: Patience, deadline: Option<Deadline>) -> Outcome {
        let outcome = self.wait_for_turn(node, patience, deadline);
        if outcome == Outcome::Acquired {
            self.time_turn(node.want, true);
        }
        outcome
    }

    fn wait_for_turn(
        &self,
        node: &WaitNode<P>,
        mut patience: Patience,
        deadline: Option<Deadline>,
    ) -> Outcome {
        loop {
            let mut hands_over = false;
            let joined = match self.sleep_on(node, patience, deadline) {
                Notice::Granted => return Outcome::Acquired,
                Notice::Released => return self.acquire(node.want, node.token, deadline),
                notice @ (Notice::Woken | Notice::Beside) => {
                    // T7: this thread is the one for which WAKING is set; or no mark stands for it (T12, T16).
                    let is_marked = notice == Notice::Woken;
                    let announced = if is_marked { Announced::Waking } else { Announced::Unmarked };
                    let backs_off = !node.is_realtime() && self.backs_off_for(node.want);
                    self.rouse_others(node, patience);
                    // A stream of readers passes a real-time writer once.
                    let passed = node.is_realtime() && word::readers(self.peek()) > 0;
                    let starved = if is_marked || node.is_realtime() {
                        passed || patience.is_over::<P>() && (!backs_off || patience.rechecks_early())
                    } else {
                        patience.is_over_unmarked::<P>()
                    };
                    if let Spun::Acquired = self.contend(node, announced, starved, backs_off, deadline) {
                        return Outcome::Acquired;
                    }
                    if is_past::<P>(deadline) {
                        return Outcome::of(self.give_up(node.want, node.token, announced));
                    }
                    patience = match (backs_off, starved) {
                        (_, true) => patience,
                        (true, false) => patience.lets_owner_go_on::<P>(),
                        (false, false) if is_marked => patience.until_starved(),
                        (false, false) => patience,
                    };
                    hands_over = starved;
                    self.rejoin(node, announced, starved, deadline)
                }
                // Nothing but the deadline ends a sleep without a recheck: what the kernel says of its clock is not asked again.
                Notice::TimedOut if patience.has_no_timer() || is_past::<P>(deadline) => {
                    return Outcome::of(
                        self.time_out(node, patience) || self.last_look(node.want, node.token),
                    );
                }
                Notice::TimedOut if patience.is_watch_due::<P>() => {
                    let (joined, is_waking) = self.watch(node, patience.saw_waking());
                    patience.has_watched::<P>(is_waking);
                    joined
                }
                Notice::TimedOut if !patience.rechecks() => Joined::Queued, // a clock was a little ahead
                Notice::TimedOut if patience.is_demanding() => {
                    self.consider_demand(node, &mut patience);
                    Joined::Queued
                }
                Notice::TimedOut if node.is_realtime() && self.comes_later(node, &mut patience) => {
                    Joined::Queued
                }
                Notice::TimedOut if patience.is_over::<P>() => {
                    hands_over = !node.want.joins_readers();
                    if !hands_over {
                        patience = Patience::on_arrival::<P>(node.want); // a reader asks again and again
                    }
                    self.recheck(node, true)
                }
                Notice::TimedOut if patience.rechecks_early() => {
                    // One that was roused (T17) has let its owner go on for a part of the time only.
                    if patience.is_recheck_due::<P>() {
                        patience = patience.lets_owner_go_on::<P>();
                    }
                    self.recheck(node, false)
                }
                // It was roused by a thread that left it asleep, and does not come back; or the two clocks disagree by a little.
                Notice::TimedOut => self.recheck(node, false),
            };
            match joined {
                Joined::Acquired => return Outcome::Acquired,
                Joined::Queued if hands_over => {
                    patience.demands::<P>(node.rechecks(), self.peek());
                    self.await_hand_over(node, patience);
                }
                Joined::Queued => {}
                // G3: only of a waiter that was woken beside another, and was in no flag meanwhile.
                Joined::Biased => return Outcome::Biased,
                Joined::Foreign => return Outcome::Foreign,
                Joined::TimedOut => return Outcome::TimedOut,
            }
        }
    }

    /// T13: rouses waiters behind this one if it has waited for long.
    fn rouse_others(&self, node: &WaitNode<P>, patience: Patience) {
        let seen = self.peek();
        // A promised lock is idle until it is taken.
        let waits = node.want.is_write()
            && !node.is_realtime()
            && word::has_waiters(seen)
            && !word::is_promised(seen);
        if waits && has_cpus_to_spare::<P>() && patience.is_long::<P>() {
            self.rouse(!node.was_roused(P::TUNING.deep_sleep_ns));
        }
    }

    /// Sleeps until notified, until the next recheck or until it is roused for one (T17), or until `deadline`.
    #[inline(never)] // for the drop-in's size
    fn sleep_on(&self, node: &WaitNode<P>, patience: Patience, deadline: Option<Deadline>) -> Notice {
        let may_be_left = self.may_be_left(node, patience);
        P::or_leave(&|| self.abandon(node.want, self.time_out(node, patience)), || {
            node.park(deadline, |word, expected, deadline| {
                if !may_be_left {
                    return patience.sleep::<P>(word, expected, deadline);
                }
                P::notes_sleep(self.key(), word);
                let slept = patience.sleep::<P>(word, expected, deadline);
                if P::was_roused(self.key(), word) {
                    Wait::TimedOut
                } else {
                    slept
                }
            })
        })
    }

    /// T17: whether a release may leave the waiter asleep because its thread comes back for the lock ([`LockCore::returns`]).
    fn may_be_left(&self, node: &WaitNode<P>, patience: Patience) -> bool {
        has_no_cpu_to_spare::<P>() && node.want.is_write() && !node.is_realtime() && patience.may_be_left()
    }

    /// Whether a waiter leaves the lock to its owner for a while instead of taking turns with it, because that gets more work
    /// done ([`Platform::spinning`]). With CPUs to spare, it watches the lock from afar instead.
    fn backs_off_for(&self, want: Want) -> bool {
        want.is_write()
            && has_no_cpu_to_spare::<P>()
            && P::spinning(self.key()) == Spinning::BackOff
            && P::has_fine_timers()
    }

    /// T7: the woken waiter contends with running threads.
    ///
    /// A real-time waiter polls once: its CPU may be the owner's. So does, with CPUs to spare, one that has starved: it demands the lock.
    fn contend(
        &self,
        node: &WaitNode<P>,
        announced: Announced,
        starved: bool,
        backs_off: bool,
        deadline: Option<Deadline>,
    ) -> Spun {
        let (want, token) = (node.want, node.token);
        if node.is_realtime() {
            return self.poll(want, token, announced, Polls::Once, deadline);
        }
        let polls = if backs_off || starved && has_cpus_to_spare::<P>() { Polls::Once } else { Polls::Alone };
        let poll = || self.poll(want, token, announced, polls, deadline);
        let owns = || word::owner(self.peek()) == token;
        // Only of a writer does the word tell whether it has the lock by now; and not of one that has locked it before.
        if want.is_exclusive() && !owns() {
            P::or_leave(&|| self.abandon(want, owns() || self.give_up(want, token, announced)), poll)
        } else {
            poll()
        }
    }

    /// T8: the next release hands the lock over: mostly in no time, so a sleep would only delay all waiters.
    fn await_hand_over(&self, node: &WaitNode<P>, patience: Patience) {
        if P::can_spin(Spin::HandOver) {
            let notified = P::or_leave(&|| self.abandon(node.want, self.time_out(node, patience)), || {
                node.watch(P::TUNING.spin_ns)
            });
            P::spun(Spin::HandOver, notified);
        }
    }

    /// T9: the deadline has passed, or the thread leaves its call by unwinding. `true` if the lock came first.
    fn time_out(&self, node: &WaitNode<P>, patience: Patience) -> bool {
        if self.leave(node) {
            P::event(Event::TimedOut);
            return false;
        }
        // Dequeued just now: the notification is on its way, and comes first (Q3).
        match self.sleep_on(node, patience.until_dequeued(), None) {
            Notice::Granted => true,
            Notice::Woken => self.give_up(node.want, node.token, Announced::Waking),
            Notice::Beside => self.give_up(node.want, node.token, Announced::Unmarked),
            Notice::Released | Notice::TimedOut => false,
        }
    }

    /// `core.T1` at the deadline: the lock may be free, as the thread that was woken for it, or to which it is promised, need not have run.
    #[cold]
    #[inline(never)] // for the drop-in's size
    fn last_look(&self, want: Want, token: u32) -> bool {
        self.try_once(want, token)
    }

    /// T11: the thread leaves its call by unwinding, and its node is out: it gives up the lock if that `came` first.
    #[cold]
    #[inline(never)]
    fn abandon(&self, want: Want, came: bool) {
        if came {
            self.release_contended(match want {
                Want::Write | Want::Lock | Want::Upgrade => Release::Write,
                Want::Read | Want::ReadAgain | Want::ReadBehindWaiters => Release::Read,
                Want::Upgradable => Release::Upgradable,
            });
        }
    }
}
