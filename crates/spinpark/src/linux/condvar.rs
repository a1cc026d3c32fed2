//! [`Condvar`].

use std::fmt;
use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{self as locks, WaitResult, Waiter};
use spinpark_platform::{Deadline, Futex};
use spinpark_recorder::format::{Kind, Role};
use spinpark_recorder::{LockCall, Site};

use crate::linux::raw_mutex::RawMutex;
use crate::linux::{deadline, slow, MutexGuard};

/// Whether a timed wait ended at its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait ended at its deadline, without a notification.
    #[inline]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// A condition variable: threads wait for a change of what a [`Mutex`](crate::Mutex) protects; 16 bytes.
///
/// Waiters are woken in FIFO order. A notification wakes its waiter, at once or as the calling thread
/// releases the mutex. No notification is lost to a waiter that times out. Waits may end for no reason.
///
/// # Fairness
/// First in, first out. The woken thread takes the mutex as any other waiter does.
///
/// # Differences from std
/// `wait` borrows the guard and does not consume it. [`wait_while_for`](Self::wait_while_for) and
/// [`wait_while_until`](Self::wait_while_until) check their condition once more after the deadline, as std does and
/// `parking_lot` does not: a change that came with the deadline counts.
///
/// # Panics
/// Threads that wait at the same time must do so with one mutex; as with `parking_lot`, a wait with another one panics.
///
/// ```
/// use std::time::Duration;
/// use spinpark::{Condvar, Mutex};
///
/// let ready = Mutex::new(false);
/// let changed = Condvar::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *ready.lock() = true;
///         changed.notify_all();
///     });
///     let mut ready = ready.lock();
///     let result = changed.wait_while_for(&mut ready, |ready| !*ready, Duration::from_secs(60));
///     assert!(!result.timed_out());
/// });
/// ```
pub struct Condvar {
    raw: locks::RawCondvar<Linux>,
}

impl Condvar {
    /// A condition variable without waiters.
    #[inline]
    pub const fn new() -> Self {
        Self { raw: locks::RawCondvar::from_queue(crate::linux::empty_queue()) }
    }

    /// Ends the wait of the longest waiter; returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        // SAFETY: for a condition variable.
        self.raw.has_waiters() && unsafe { slow::slow(self, None, notify_one) }
    }

    /// Ends the waits of all current waiters; returns how many there were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.raw.has_waiters() && slow::watcher().is_some() {
            // SAFETY: for a condition variable.
            unsafe { slow::slow(self, None, note_signal) };
        }
        self.raw.broadcast() as usize
    }

    /// Releases the mutex, waits for a notification and acquires the mutex again.
    ///
    /// # Panics
    ///
    /// If another thread waits with another mutex; so do the other waits.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_deadline(guard, None);
    }

    /// The same as [`Condvar::wait`], at most until `deadline`.
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.wait_deadline(guard, Some(deadline::at(deadline)))
    }

    /// The same as [`Condvar::wait`], at most for `timeout`.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        self.wait_deadline(guard, Some(deadline::after(timeout)))
    }

    /// Waits until `condition` is false of the data.
    pub fn wait_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Waits until `condition` is false of the data, at most until `deadline`.
    pub fn wait_while_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.wait_while_deadline(guard, condition, deadline::at(deadline))
    }

    /// Waits until `condition` is false of the data, at most for `timeout`.
    pub fn wait_while_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_while_deadline(guard, condition, deadline::after(timeout))
    }

    fn wait_while_deadline<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: Deadline,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(guard) {
            result = self.wait_deadline(guard, Some(deadline));
        }
        // A change that came with the deadline counts as in time.
        WaitTimeoutResult(result.timed_out() && condition(guard))
    }

    fn wait_deadline<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Option<Deadline>,
    ) -> WaitTimeoutResult {
        // SAFETY: the guard holds this mutex, and the wait returns with it held again, also on a timeout;
        // nothing in between can unwind.
        let mutex = unsafe { MutexGuard::mutex(guard).raw() };
        let waiter = Waiter::with_mutex(&mutex.0);
        // Here, where it can unwind: nothing has been released or recorded yet.
        assert!(
            self.raw.enqueue_alike(&waiter),
            "attempted to use a condition variable with more than one mutex"
        );
        let wait = EnqueuedWait { condvar: self, mutex, waiter: &waiter };
        if slow::watcher().is_none() {
            return WaitTimeoutResult(wait.finish(|| mutex.0.unlock_to_wait(), deadline));
        }
        // SAFETY: for such a wait.
        WaitTimeoutResult(unsafe { slow::slow(&wait, deadline.as_ref(), wait_watched) })
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}

/// A wait that has been enqueued.
struct EnqueuedWait<'a> {
    condvar: &'a Condvar,
    mutex: &'a RawMutex,
    waiter: &'a Waiter<Linux>,
}

impl EnqueuedWait<'_> {
    /// The rest of the wait; returns whether it timed out.
    fn finish(&self, release: impl FnOnce(), deadline: Option<Deadline>) -> bool {
        let (condvar, mutex) = (&self.condvar.raw, &self.mutex.0);
        release();
        self.waiter.sleep(deadline, Linux::futex_wait);
        let result = condvar.finish(self.waiter);
        self.waiter.reacquire(result, mutex);
        result == WaitResult::TimedOut
    }

    /// The same with a release that is watched.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        // SAFETY: the caller holds it.
        self.finish(|| unsafe { lock_api::RawMutex::unlock(self.mutex) }, deadline)
    }
}

/// What a condition variable is called for.
pub(crate) fn call(condvar: &Condvar, site: Site) -> LockCall {
    let address: *const Condvar = condvar;
    LockCall { address: address as usize, role: Role::Signal, kind: |_| Kind::Condvar, site }
}

unsafe extern "C" fn wait_watched(wait: *const (), deadline: *const (), site: Site) -> bool {
    // SAFETY: the caller's wait.
    let wait = unsafe { &*wait.cast::<EnqueuedWait<'_>>() };
    // SAFETY: the caller's deadline, or null.
    let deadline = unsafe { slow::deadline(deadline) };
    match slow::watcher() {
        None => wait.wait(deadline),
        Some(watcher) => {
            let mutex = core::ptr::from_ref(wait.mutex) as usize;
            (watcher.wait)(&call(wait.condvar, site), mutex, deadline, &|| wait.wait(deadline))
        }
    }
}

unsafe extern "C" fn notify_one(condvar: *const (), _: *const (), site: Site) -> bool {
    // SAFETY: the caller's condition variable.
    let condvar = unsafe { &*condvar.cast::<Condvar>() };
    if let Some(watcher) = slow::watcher() {
        (watcher.signal)(&call(condvar, site));
    }
    condvar.raw.signal()
}

unsafe extern "C" fn note_signal(condvar: *const (), _: *const (), site: Site) -> bool {
    // SAFETY: the caller's condition variable.
    let condvar = unsafe { &*condvar.cast::<Condvar>() };
    if let Some(watcher) = slow::watcher() {
        (watcher.signal)(&call(condvar, site));
    }
    true
}
