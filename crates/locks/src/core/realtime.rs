//! Real-time waiters: let in before others, and left to no thread that may be kept from its CPU.
//!
//! The list is sorted by priority (Q6 in `queue`). Beyond that:
//!
//! - **U1** With the queue lock free and a real-time head, neither `TIMED` nor `WAKING` is set, except along with
//!   `HANDOFF`: `WAKING` with a promise (H4), which may have been passed since, `TIMED` in a pause (H3), which any
//!   wake pass ends. So each release that makes room makes a wake pass, which wakes such a head, and leaves it to no
//!   waiter that was woken before: that one may be kept from its CPU by real-time threads. Each wake pass sees to
//!   this ([`led_by_realtime`](crate::word::led_by_realtime)), and so does a step that ends a request. A waiter that
//!   was woken before, and for which `WAKING` is not set any more, or never was, goes on as if a probe had cleared
//!   it (L3).
//! - A real-time thread heeds no promise to another waiter ([`Promise::Passes`]), and its release hands the lock
//!   over to no waiter of a lower priority (H2): it may come back before that one.
//! - A real-time waiter polls once as it is woken: its CPU may be the owner's. A stream of readers passes it once,
//!   then it requests the lock.
//!
//! Its wait for the queue lock lends its priority to the holder
//! ([`wait_for_queue`](spinpark_platform::Futex::wait_for_queue)). Priority inheritance of the lock itself is
//! glibc's: a mutex with that protocol is not served here.

use spinpark_platform::Platform;

use super::patience::{in_ns, Patience};
use super::LockCore;
use crate::policy::Policy;
use crate::queue::{HasQueue, WaitNode};
use crate::word::{self, Release, Want};

impl<P: Platform, Q: Policy<P>> LockCore<P, Q> {
    /// Whether a real-time waiter, whose time is up, does not recheck: one of a higher priority is queued, or
    /// the lock is free for one that was woken and may be on its way. It waits for a woken one once only:
    /// that may be kept from its CPU (U1). It rechecks behind an upgrade, which keeps no time before it is
    /// woken: else a request might have no waiter that rechecks it (H2).
    #[cold]
    #[inline(never)]
    pub(super) fn comes_later(&self, node: &WaitNode<P>, patience: &mut Patience) -> bool {
        let queue = self.lock_queue();
        let leads = queue.head().is_none_or(|head| core::ptr::eq(head, node) || head.want == Want::Upgrade);
        let seen = self.peek();
        let is_owed = word::is_waking(seen) && !word::is_held(seen);
        if !leads {
            *patience = patience.until_notified(); // the next release wakes it, once it is the head
            return true;
        }
        let later = is_owed && !patience.rechecks_early();
        if later {
            patience.rechecks_later::<P, Q>();
        }
        later
    }
}

impl Patience {
    /// Rechecks later, once: of a real-time waiter that leaves the lock to one that was woken for it. It gives
    /// that one as long as readers give a writer.
    pub(super) fn rechecks_later<P: Platform, Q: Policy<P>>(&mut self) {
        let pause = Q::TIMES.reader_patience_ns;
        self.request = pause.saturating_mul(2);
        self.end = in_ns::<P>(pause);
        self.recheck = self.end;
        self.span = 1;
    }
}

/// H2: `word`, before a `release` by the calling thread, without the request of a head of `rank` that the
/// release would hand the lock over to, if the thread has a higher priority.
pub(super) fn without_lower_request<P: Platform>(word: u32, release: Release, rank: u8) -> u32 {
    let hands_over = word::wants_handoff(word) && !word::is_held(word::released(word, release));
    if hands_over && rank < P::priority() {
        word::without_request(word)
    } else {
        word
    }
}
