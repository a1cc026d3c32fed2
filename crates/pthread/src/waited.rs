//! A mutex that a wait on a condition variable releases and takes back.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use libc::EPERM;
use spinpark_linux::thread_id;

use crate::fields::Mutex;

impl Mutex {
    /// Before a wait on a condition variable: prepares the release of a mutex that is ours, however often it is held, and
    /// returns how often beyond the first time, with which [`Mutex::hold_again`] restores it; or EPERM.
    pub(crate) fn check_wait(&self) -> Result<u32, c_int> {
        let mut depth = 0;
        if !self.is_plain() {
            if !self.is_owned_by(thread_id()) {
                return Err(EPERM);
            }
            self.owner().store(0, Relaxed);
            depth = self.count().load(Relaxed).wrapping_sub(1);
            self.count().store(0, Relaxed);
        }
        self.count_waiter(1);
        Ok(depth)
    }

    /// No read-modify-write: the calling thread holds the mutex. Not below 0: a program may initialise the mutex anew
    /// meanwhile.
    fn count_waiter(&self, change: i32) {
        self.waiters().store(self.waiters().load(Relaxed).saturating_add_signed(change), Relaxed);
    }

    /// After the wait, with the mutex held again.
    pub(crate) fn hold_again(&self, depth: u32) {
        self.count_waiter(-1);
        self.acquired_by(thread_id());
        self.held_more_often(depth);
    }

    /// [`Mutex::hold_again`] of a mutex that is held by glibc's functions.
    pub(crate) fn hold_foreign_again(&self, depth: u32) -> c_int {
        let error = self.lock_foreign(depth);
        self.count_waiter(-1);
        error
    }
}
