//! The calls that do not wait. They take a lock past a promise (H4 in [`core`](crate::core)): the waiter that
//! has it may not run, and a call that does not wait cannot leave the lock to it for a time.
//!
//! A call that may wait makes none of these calls, not even first: such calls come again and again, and would
//! pass the waiter each time.

use spinpark_platform::Platform;

use crate::core::NoWait;
use crate::mutex::RawMutex;
use crate::policy::Policy;
use crate::rwlock::{Preference, RawRwLock};
use crate::word::Want;

/// Of the calls here.
struct OfTry;

impl NoWait for OfTry {}

/// The calls of a mutex that do not wait.
///
/// A trait, so that a function that may wait does not reach them by accident: import it in those that do not.
pub trait TryMutex {
    /// Acquires if the mutex is free. Acquire ordering on success.
    fn try_lock(&self) -> bool;

    /// What remains of [`TryMutex::try_lock`] after [`RawMutex::try_lock_uncontended`].
    fn try_lock_contended(&self, token: u32) -> bool;
}

/// The calls of a read-write lock that do not wait. A trait for the same reason as [`TryMutex`].
pub trait TryRwLock {
    /// Acquires for reading if that is possible at once. Acquire ordering on success.
    fn try_read(&self, preference: Preference) -> bool;

    /// `try_read`, as a thread that holds a read lock already.
    fn try_read_recursive(&self) -> bool;

    /// Acquires for writing if the lock is free. Acquire ordering on success.
    fn try_write(&self) -> bool;

    /// Acquires upgradably if that is possible at once.
    fn try_upgradable(&self) -> bool;

    /// Turns an upgradable lock into the write lock if there are no readers.
    fn try_upgrade(&self) -> bool;
}

impl<P: Platform, Q: Policy<P>> TryMutex for RawMutex<P, Q> {
    #[inline]
    fn try_lock(&self) -> bool {
        let token = P::thread_token();
        self.core().try_uncontended(token) || self.try_lock_contended(token)
    }

    #[inline]
    fn try_lock_contended(&self, token: u32) -> bool {
        // Tried again and again, mostly, while it is held. In a forked child, the flags may be the parent's.
        let is_held = self.is_locked() && P::generation() == 0;
        !is_held && try_lock_once(self, token)
    }
}

#[cold]
#[inline(never)]
fn try_lock_once<P: Platform, Q: Policy<P>>(mutex: &RawMutex<P, Q>, token: u32) -> bool {
    mutex.core().try_once(Want::Lock, token, OfTry)
}

impl<P: Platform, Q: Policy<P>> TryRwLock for RawRwLock<P, Q> {
    fn try_read(&self, preference: Preference) -> bool {
        self.read_in_slot_again()
            || self.note_read_again(
                self.core.try_once(preference.read(), 0, OfTry)
                    || (P::may_hold_read(self.key()) && self.core.try_once(Want::ReadAgain, 0, OfTry)),
            )
    }

    fn try_read_recursive(&self) -> bool {
        self.read_in_slot_again() || self.note_read_again(self.core.try_once(Want::ReadAgain, 0, OfTry))
    }

    #[inline]
    fn try_write(&self) -> bool {
        try_alone(self, Want::Write, P::thread_token())
    }

    fn try_upgradable(&self) -> bool {
        self.note_upgradable(self.core.try_once(Want::Upgradable, P::thread_token(), OfTry))
    }

    fn try_upgrade(&self) -> bool {
        self.note_upgrade(try_alone(self, Want::Upgrade, P::thread_token()))
    }
}

#[inline(never)] // for the drop-in's size
fn try_alone<P: Platform, Q: Policy<P>>(lock: &RawRwLock<P, Q>, want: Want, token: u32) -> bool {
    lock.revoke_bias();
    let acquired = lock.core.try_once(want, token, OfTry);
    if acquired {
        lock.bias.note_write();
    }
    acquired
}
