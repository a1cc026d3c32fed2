//! Taking turns, or one at a time: what a thread learns from its own contended turns.

/// How a thread spins for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spinning {
    /// It polls often, and takes the lock as soon as it is free: the threads take turns.
    #[default]
    Eager,
    /// It backs off for many turns of the owner, which comes back for the lock faster than the lock can move.
    BackOff,
}

/// How many threads are to wait awake for a lock, with CPUs to spare, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Awake {
    /// Not known: all of them, for a short time.
    Briefly,
    /// All that come, for as long as the tuning says.
    #[default]
    All,
    /// So many; a thread that finds as many awake sleeps at once.
    AtMost(u32),
}

/// What a look at a lock has found, by a thread that wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The lock was free.
    Free,
    /// It was taken.
    Taken,
    /// There was no look: the thread joined others that wait awake.
    Omitted,
    /// The thread has waited in vain among others that wait awake.
    Late,
}

/// After a wait, a thread reads first in so many attempts ([`Pacing::reads_first`]). Fewer cost where half of all attempts find
/// a lock held, more cost where few do: `notes/tuning.md`, "Many locks".
pub const READS_AFTER_WAIT: u32 = 16;

/// How threads that contend for a lock share it. A machine that does not implement it has threads take turns.
///
/// Only speed rests on the answers. `lock` is an address, which is only compared.
pub trait Pacing: Sized + Send + Sync + 'static {
    /// How the calling thread is to wait for the lock at `lock`.
    fn spinning(lock: usize) -> Spinning {
        let _ = lock;
        Spinning::Eager
    }

    /// How many threads that wait awake keep the lock at `lock` busy. [`Awake::All`] is always a safe answer.
    fn awake(lock: usize) -> Awake {
        let _ = lock;
        Awake::All
    }

    /// Whether the calling thread has waited for a lock lately: then it reads the state of a lock before it takes the lock's line
    /// for writing, which would take it from the owner for nothing. Notes an attempt. `false` is always a safe answer.
    #[inline(always)]
    fn reads_first() -> bool {
        false
    }

    /// The calling thread has passed waiters: it [reads first](Pacing::reads_first) for some more attempts, as after a wait. It is likely
    /// to pass them again, and a guess that the lock has no waiters would fail.
    fn reads_on() {}

    /// Whether some of the calling thread's latest looks at locks have found them taken. `false` is always a safe answer.
    #[inline(always)]
    fn looked_in_vain() -> bool {
        false
    }

    /// Whether more than a quarter of them have: then it joins the queue of those that wait awake for a lock, if there are any, without a look at
    /// the lock, whose line that would take from its owner. Not without [`looked_in_vain`](Pacing::looked_in_vain).
    fn joins_unseen() -> bool {
        false
    }

    /// Notes a look, for the next answers of [`looked_in_vain`](Pacing::looked_in_vain) and
    /// [`joins_unseen`](Pacing::joins_unseen).
    fn looked(look: Look) {
        let _ = look;
    }

    /// Notes that the calling thread waits for the lock at `lock`, to write.
    fn waits_for(lock: usize) {
        let _ = lock;
    }

    /// Whether a lock may be marked as contended only so that a turn of the calling thread on it is timed. `false` is always a
    /// safe answer.
    fn may_mark() -> bool {
        true
    }

    /// Notes that the calling thread has just acquired a lock that it had found taken, awake. It looked at the clock at `looked`,
    /// then at the lock, and found it free: what that took is what it costs to move a lock.
    fn moved(looked: u64) {
        let _ = looked;
    }

    /// Whether the turn of the calling thread, which has just acquired the lock at `lock` after a wait, is to be timed: by
    /// [`turn_begins`](Pacing::turn_begins), then [`turn_ends`](Pacing::turn_ends) and [`returns_to`](Pacing::returns_to).
    ///
    /// `queued`: the wait was one in the lock's queue. It cost more than the timing does, and a thread has few of them.
    fn wants_time(lock: usize, queued: bool) -> bool {
        let _ = (lock, queued);
        false
    }

    /// Notes that a turn begins whose release will be timed; `marked`: the lock was marked as contended for that.
    fn turn_begins(lock: usize, marked: bool) {
        let _ = (lock, marked);
    }

    /// Whether the calling thread's release of the lock at `lock` is to be timed: then it calls
    /// [`turn_ends`](Pacing::turn_ends) after it, and [`returns_to`](Pacing::returns_to) as it tries to acquire the lock
    /// again.
    fn is_timed(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Notes that the calling thread has just released the lock that was at `lock`.
    fn turn_ends(lock: usize) {
        let _ = lock;
    }

    /// Notes an attempt to acquire the lock at `lock`.
    fn returns_to(lock: usize) {
        let _ = lock;
    }

    /// Whether the calling thread, which releases the lock at `lock`, comes back for it so soon that a waiter which keeps
    /// its own time is better left asleep. `false` is always a safe answer.
    fn returns_soon(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Notes that the calling thread is about to sleep in a wait for the lock at `lock`. If it has not come back for another one that
    /// it [was taken to](Pacing::returns_soon), it rouses the waiter that it has left asleep there, if that can be found
    /// ([`notes_sleep`](crate::Futex::notes_sleep)): the other lock itself may be gone by now.
    fn sleeps_for(lock: usize) {
        let _ = lock;
    }

    /// Whether the calling thread, which holds the lock at `lock` and signals, mostly waits for something itself soon after
    /// that. Notes the signal. `false` is always a safe answer.
    fn waits_next(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Notes that the calling thread is about to release the lock at `lock` to wait on a condition variable.
    fn releases_to_wait(lock: usize) {
        let _ = lock;
    }

    /// Whether a sleep of the calling thread that ends by its timer ends about then. `false`: the thread is not to leave a lock to
    /// its owner for a time, since nothing else may end its sleep.
    fn has_fine_timers() -> bool {
        true
    }

    /// Notes that the calling thread is about to release a lock that it had taken while a waiter that was woken for it has not come
    /// yet. Whether that has gone on for long: the waiter may be waiting for the caller's CPU, and the lock is kept for it then.
    fn has_passed_woken() -> bool {
        false
    }

    /// Whether the calling thread's release ends the mark of a lock that was contended, and has no waiters. A mark makes each
    /// release a little dearer; to set it again costs a [heavy fence](crate::AsymmetricBarrier::heavy_fence).
    fn ends_contended(lock: usize) -> bool {
        let _ = lock;
        true
    }
}
