//! Waiting awake in order: where CPUs are to spare, the writers that spin for a lock do so in a queue, and only its head polls the
//! lock.
//!
//! Origin: the kernel's osq (document 002: each poll of the lock by a second spinner takes the line from the owner). Beyond that, a
//! thread whose looks at locks have mostly been in vain joins the queue *unseen*, without a look at the lock, as an MCS lock's
//! waiters do. Otherwise a thread that comes takes a free lock, whichever threads spin: an owner that comes back at once acquires
//! the lock many times in a row, without a transfer of its line.
//!
//! Nothing in [`core`](super) rests on the order: a thread that leaves the queue, or finds no room in it, goes on as one that
//! spins alone. Real-time threads do not queue here: others' polls are not worth their wait.

use spinpark_platform::{Clock, Deadline, Event, Look, Platform, Spin, Spinning};

use super::spin::{has_cpus_to_spare, Polls, Spun};
use super::LockCore;
use crate::spin_queue::{Entered, SpinQueue};
use crate::word::{self, Announced, Want};

impl<P: Platform> LockCore<P> {
    /// Whether to join the queue of spinners without a look at the lock. Not if the threads had better not take turns, as far as
    /// this one knows: the lock may be free for it.
    #[cold]
    #[inline(never)]
    pub(super) fn joins_unseen(&self) -> bool {
        has_cpus_to_spare::<P>()
            && P::joins_unseen()
            && P::with_spin_room(self.key(), |room| SpinQueue::<P>::new(room).is_joined()) == Some(true)
            && P::spinning(self.key()) == Spinning::Eager
    }

    /// T2, in the queue of spinners; `None`: not there.
    #[inline(never)]
    pub(super) fn spin_in_turn(&self, want: Want, token: u32, deadline: Option<Deadline>) -> Option<Spun> {
        if want != Want::Write || !has_cpus_to_spare::<P>() || P::priority() > 0 {
            return None;
        }
        if !P::can_spin(Spin::Lock) {
            return Some(Spun::Stopped(Announced::None));
        }
        P::with_spin_room(self.key(), |room| {
            let queue = SpinQueue::<P>::new(room);
            let spun = match queue.enter(token, Self::keep_spinning(deadline)) {
                Entered::NoRoom => None,
                Entered::Head(_head) => Some(self.spin_at_head(token, deadline)),
                Entered::Left => {
                    P::event(Event::SpinLeftBudget);
                    P::spun(Spin::Lock, false);
                    P::looked(Look::Late);
                    Some(Spun::Stopped(Announced::None))
                }
            };
            spun // the head's position has been passed on
        })?
    }

    /// Whether a spinner that is not the head stays: for `queue_spin_ns`, and not beyond its deadline.
    fn keep_spinning(deadline: Option<Deadline>) -> impl FnMut() -> bool {
        let start = P::now(Clock::Monotonic);
        let longest = match deadline {
            Some(Deadline { clock: Clock::Monotonic, at }) => at.saturating_sub(start),
            // It may overstay on the other clock: by no more than a timer's slack.
            Some(_) => P::TUNING.spin_ns,
            None => u64::MAX,
        };
        let span = P::TUNING.queue_spin_ns.min(longest);
        let mut reads_left = span; // each takes more than 1 ns, in case that the clock stands still
        move || {
            reads_left = reads_left.saturating_sub(1);
            reads_left > 0 && P::now(Clock::Monotonic).wrapping_sub(start) < span
        }
    }

    fn spin_at_head(&self, token: u32, deadline: Option<Deadline>) -> Spun {
        self.adopt();
        let seen = self.peek();
        if Self::is_in_vain(seen, Want::Write, Announced::None) || word::is_foreign(seen) {
            return Spun::Stopped(Announced::None);
        }
        self.poll(Want::Write, token, Announced::None, Polls::AtHead, deadline)
    }
}
