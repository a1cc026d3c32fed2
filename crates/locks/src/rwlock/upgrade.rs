//! Upgradable holds, and the ways from one hold to another.
//!
//! An upgradable holder is beside readers, but alone among the upgradable: so there is never a second one
//! that waits for the first one to leave as it wants to be alone.

use spinpark_platform::{Deadline, Platform};

use super::RawRwLock;
use crate::word::{self, Release, Want, UNIT, UPGRADE};

impl<P: Platform> RawRwLock<P> {
    /// Acquires upgradably: beside readers, but alone among the upgradable. `false` once `deadline` has
    /// passed. Acquire ordering.
    pub fn upgradable(&self, deadline: Option<Deadline>) -> bool {
        self.note_upgradable(self.core.acquire_ours(Want::Upgradable, P::thread_token(), deadline))
    }

    /// Acquires upgradably if that is possible at once.
    pub fn try_upgradable(&self) -> bool {
        self.note_upgradable(self.core.try_once(Want::Upgradable, P::thread_token()))
    }

    /// An upgradable holder may read the lock as well, also while a writer waits.
    fn note_upgradable(&self, acquired: bool) -> bool {
        if acquired {
            P::read_acquired(self.key());
        }
        acquired
    }

    /// Releases an upgradable lock. Release ordering.
    pub fn unlock_upgradable(&self) {
        P::read_released(self.key());
        self.core.release(Release::Upgradable);
    }

    /// Turns an upgradable lock into the write lock; on `false`, at the deadline, it is still upgradable.
    pub fn upgrade(&self, deadline: Option<Deadline>) -> bool {
        self.note_upgrade(self.acquire_alone(Want::Upgrade, P::thread_token(), deadline))
    }

    /// Turns an upgradable lock into the write lock if there are no readers.
    pub fn try_upgrade(&self) -> bool {
        self.note_upgrade(self.try_alone(Want::Upgrade, P::thread_token()))
    }

    fn note_upgrade(&self, upgraded: bool) -> bool {
        if upgraded {
            P::read_released(self.key());
        }
        upgraded
    }

    /// Turns the write lock into a read lock; readers that wait come in.
    pub fn downgrade(&self) {
        P::read_acquired(self.key());
        self.bias.note_write_over();
        self.core.downgrade(|word| (word & word::FLAGS) + UNIT);
    }

    /// Turns the write lock into an upgradable one; readers that wait come in.
    pub fn downgrade_to_upgradable(&self) {
        P::read_acquired(self.key());
        self.bias.note_write_over();
        self.core.downgrade(|word| word & word::FLAGS | UPGRADE);
    }

    /// Turns an upgradable lock into a read lock.
    pub fn downgrade_upgradable(&self) {
        self.core.downgrade(|word| (word & !UPGRADE) + UNIT);
    }

    /// Releases an upgradable lock, to the longest waiter if there is no other holder.
    pub fn unlock_upgradable_fair(&self) {
        P::read_released(self.key());
        self.core.release_fair(Release::Upgradable);
    }
}
