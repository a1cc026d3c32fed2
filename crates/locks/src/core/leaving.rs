//! A thread leaves its call by unwinding: cancellation acts in its sleep, or a handler ends the thread
//! ([`or_leave`](spinpark_platform::Futex::or_leave)). The platform calls what is here first.
//!
//! | the thread                                  | does                                                                |
//! |---------------------------------------------|---------------------------------------------------------------------|
//! | sleeps, or polls its node                   | as at its deadline (T9); one that is being notified awaits that      |
//! | was woken, and polls the lock               | gives up (T9), unless the word names it as the owner. (Not a reader  |
//! |                                             | or a real-time waiter: its call goes on until that is decided.)      |
//! | is in the fence of A1, with the queue locked| takes its flags back, makes a wake pass, and unlocks the queue      |
//!
//! In the first two cases it gives up the lock if that came first.

use spinpark_platform::Platform;

use super::midpath::Spun;
use super::patience::Patience;
use super::LockCore;
use crate::policy::Policy;
use crate::queue::{QueueGuard, WaitNode};
use crate::word::{self, Announced, Release, Want};

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// The thread of `node`, which is queued, sleeps or polls that in `wait`.
    pub(super) fn or_leave_queue<R>(
        &self,
        node: &WaitNode<P>,
        patience: Patience,
        wait: impl FnOnce() -> R,
    ) -> R {
        P::or_leave(&|| self.abandon(node.want, self.time_out(node, patience)), wait)
    }

    /// The thread of `node`, which was woken and is not queued, polls the lock in `poll`.
    ///
    /// Only of a writer does the word tell whether it has the lock by now; and not of one that has locked it
    /// before.
    pub(super) fn or_give_up(
        &self,
        node: &WaitNode<P>,
        announced: Announced,
        poll: impl FnOnce() -> Spun,
    ) -> Spun {
        let (want, token) = (node.want, node.token);
        let owns = || word::owner(self.peek()) == token;
        if want.is_exclusive() && !owns() {
            P::or_leave(&|| self.abandon(want, owns() || self.give_up(want, token, announced)), poll)
        } else {
            poll()
        }
    }

    /// The fence of A1, by a thread that has the `queue` locked and has set `flags`.
    pub(super) fn fence_or_leave(&self, queue: Option<&QueueGuard<'_, P, Self>>, want: Want, flags: u32) {
        P::or_leave(&|| self.abandon_marked(queue, want, flags), || P::asymmetric_barrier());
    }

    /// The node is out: gives up the lock if that `came` first.
    #[cold]
    #[inline(never)]
    fn abandon(&self, want: Want, came: bool) {
        if came {
            self.release_contended(match want {
                Want::Write | Want::WriteFirst | Want::Lock | Want::Upgrade => Release::Write,
                Want::Read | Want::ReadAgain | Want::ReadBehindWaiters => Release::Read,
                Want::Upgradable => Release::Upgradable,
            });
        }
    }

    /// In the fence: the queue is as it was, but for what `flags` say.
    #[cold]
    #[inline(never)]
    #[allow(unsafe_code)] // see `QueueGuard::taken_over`
    fn abandon_marked(&self, queue: Option<&QueueGuard<'_, P, Self>>, want: Want, flags: u32) {
        let Some(queue) = queue else { return };
        // SAFETY: the thread does not go on in the frame that has the guard. Nor is that frame's guard
        // dropped: a program that can run this is built without unwinding of Rust frames (the drop-in).
        let queue = unsafe { queue.taken_over() };
        let heads = flags & (word::TIMED | word::HANDOFF) != 0;
        self.settle_flags(queue.head().is_some(), heads, want);
        self.wake_pass_and_unlock(queue);
    }
}
