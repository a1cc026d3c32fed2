//! Sleeping on a word, and waking sleepers.

use crate::{Clock, Clocks, Deadline, Memory, WakeOp};

/// How a futex wait ended.
///
/// There is no `Interrupted`: a signal handler that ran is reported as [`Wait::Woken`], because every waiter
/// must check its word again after any return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Woken by a wake, by a signal handler, or for no reason. The caller checks its word.
    Woken,
    /// The word did not hold the expected value; the thread did not sleep.
    ValueChanged,
    /// The deadline passed. A wake may have happened as well; the caller checks its word.
    TimedOut,
}

/// Sleeping on words: `futex(2)`, private to the process.
///
/// None of it orders memory. A wake reaches threads that sleep; one that has not begun to sleep compares its
/// word.
pub trait Futex: Memory + Clocks {
    /// Sleeps while `word` holds `expected`, until a wake on `word` or until `deadline`.
    ///
    /// May return [`Wait::Woken`] at any time. The comparison and the start of the sleep are one step with
    /// respect to [`futex_wake`](Futex::futex_wake). Implies no memory ordering: the caller loads its word
    /// with the order it needs.
    fn futex_wait(word: &Self::AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait;

    /// The same for at most `span` ns of the monotonic clock. A waiter that rechecks by itself sleeps in this
    /// way.
    fn futex_wait_for(word: &Self::AtomicU32, expected: u32, span: u64) -> Wait {
        let at = Self::now(Clock::Monotonic).saturating_add(span);
        Self::futex_wait(word, expected, Some(Deadline { clock: Clock::Monotonic, at }))
    }

    /// Runs `sleep`, one of the two above, for a thread that waits for a lock: cancellation may act there.
    #[inline(always)]
    fn sleep_cancellably(sleep: &dyn Fn() -> Wait) -> Wait {
        sleep()
    }

    /// Runs `body`, a part of a call that waits for a lock. If the thread leaves that by unwinding (it is
    /// cancelled, or ends in a signal handler), `leave` runs before its stack goes, at whatever point of
    /// `body` that was.
    #[inline(always)]
    fn or_leave<R>(leave: &dyn Fn(), body: impl FnOnce() -> R) -> R {
        let _ = leave;
        body()
    }

    /// Notes that the calling thread is about to lock the queue of a lock, in a call that waits. Until that
    /// ends, it can be left by unwinding only in [`or_leave`](Futex::or_leave).
    #[inline(always)]
    fn queues() {}

    /// Notes that the calling thread is about to sleep on `word` with a timer of its own, so that releases of
    /// the lock at `lock` may leave it asleep. For `Note::Sleeps` of the locks.
    fn notes_sleep(lock: usize, word: &Self::AtomicU32) {
        let _ = (lock, word);
    }

    /// Takes that note back after the sleep. `true`: it has gone, because a thread that left this one asleep
    /// has woken it early, or another waiter's note has replaced it.
    fn sleep_note_was_taken(lock: usize, word: &Self::AtomicU32) -> bool {
        let _ = (lock, word);
        false
    }

    /// Notes that the calling thread is in no queue, and has none locked: its call can be left anywhere
    /// again.
    #[inline(always)]
    fn has_left_queues() {}

    /// Sleeps on `word`, the lock of a queue, while it holds `expected`, for at most `span` ns; for
    /// `u64::MAX` as long as it takes. A real-time thread lends its priority to the thread that has the queue
    /// locked, if this machine can do that: threads of priorities between theirs may keep that one from its
    /// CPU.
    fn wait_for_queue(word: &Self::AtomicU32, expected: u32, span: u64) -> Wait {
        if span == u64::MAX {
            Self::futex_wait(word, expected, None)
        } else {
            Self::futex_wait_for(word, expected, span)
        }
    }

    /// Notes that the calling thread is about to lock the queue whose lock is `word`, or has just done so.
    #[inline(always)]
    fn locks_queue(word: &Self::AtomicU32) {
        let _ = word;
    }

    /// Notes that the calling thread has just unlocked the queue whose lock was `key`, which is only a key;
    /// or has not locked it.
    #[inline(always)]
    fn unlocked_queue(key: *const Self::AtomicU32) {
        let _ = key;
    }

    /// Wakes up to `count` sleepers on `key`, oldest first (on Linux, of those of one priority: the highest
    /// comes first); returns how many.
    ///
    /// `key` is never dereferenced, so the object may be gone already. A stale key can wake a sleeper of
    /// another object at the same address, which its contract allows.
    fn futex_wake(key: *const Self::AtomicU32, count: u32) -> u32;

    /// Wakes up to `wake` sleepers on `from`, oldest first, and moves up to `moved` of those behind them to
    /// `to`, where they go on sleeping as its youngest, in the same order, whatever `from` holds. Returns how
    /// many were woken and moved together.
    ///
    /// With `expected`, only if `from` holds that: the comparison is one step with the rest, as in
    /// [`futex_wait`](Futex::futex_wait). `None`: nothing has happened, because `from` holds something else
    /// or this machine cannot do it; the caller falls back to [`futex_wake`](Futex::futex_wake). Without
    /// `expected`, `from` is only a key, as `to` always is. Implies no memory ordering.
    fn futex_requeue(
        from: &Self::AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const Self::AtomicU32,
        moved: u32,
    ) -> Option<u32>;

    /// Moves a sleeper on `key`, whose word is `notified`, to `crowd`, where it sleeps on: both are only keys. If
    /// another word may be where `key` was, a sleeper on it stays where it is, unless it holds the same.
    /// `None`: nothing has happened, because of that or because this machine cannot do it. Implies no memory
    /// ordering.
    fn futex_gather(key: *const Self::AtomicU32, notified: u32, crowd: *const Self::AtomicU32) -> Option<()>;

    /// Does `op` to `second` (AcqRel ordering), wakes up to `wake` sleepers on `first`, and, if the condition
    /// of `op` holds of what `second` held before, up to `wake_second` sleepers on `second`. Returns how many
    /// were woken.
    ///
    /// For sleepers on both words, and for a thread that compares them in [`futex_wait`](Futex::futex_wait),
    /// all of that is one step; for other accesses to `second`, `op` is. `None`: nothing has happened,
    /// because this machine cannot do it; the caller does the operation itself and falls back to
    /// [`futex_wake`](Futex::futex_wake).
    ///
    /// Neither count is 0: Linux would wake one all the same. `first` is only a key. `op` is the last access
    /// to `second`, which is only a key afterwards.
    fn futex_wake_op(
        first: *const Self::AtomicU32,
        wake: u32,
        second: &Self::AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32>;
}
