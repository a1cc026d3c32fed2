//! `spinpark_rwlock_*`.

use core::mem::{MaybeUninit, align_of, size_of};

use libc::timespec;
use spinpark_linux::Linux;
use spinpark_locks::{Preference, RawRwLock, TryRwLock};
use spinpark_platform::Deadline;

use crate::misuse::misuse;
use crate::time;

/// Readers join readers, also recursively, until a writer has starved: what both standards' users expect.
const READERS: Preference = Preference::Readers;

/// `spinpark_rwlock_t`.
#[repr(C)]
pub struct RwLock {
    raw: RawRwLock<Linux>,
}

const _: () = assert!(size_of::<RwLock>() == 24 && align_of::<RwLock>() == 8, "the header's promise");

impl RwLock {
    /// What remains of a read after the try for a slot. Apart, for what it keeps in registers: a reader in a
    /// slot keeps nothing.
    #[inline(never)]
    fn read_counted(&self, deadline: Option<Deadline>) -> bool {
        self.raw.read_counted(READERS) || self.read_contended(deadline)
    }

    #[cold]
    #[inline(never)]
    fn read_contended(&self, deadline: Option<Deadline>) -> bool {
        if self.raw.is_write_locked_by_me() {
            misuse!(
                "spinpark_rwlock_read_lock",
                "the calling thread holds this lock for writing, and would wait for itself"
            );
        }
        self.raw.read_contended(READERS, deadline)
    }

    /// What remains of a write after the uncontended try.
    #[cold]
    #[inline(never)]
    fn write_contended(&self, deadline: Option<Deadline>) -> bool {
        if self.raw.is_write_locked_by_me() {
            misuse!(
                "spinpark_rwlock_write_lock",
                "the calling thread holds this lock for writing, and would wait for itself"
            );
        }
        self.raw.write_until(deadline)
    }
}

/// `spinpark_rwlock_init`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_init(lock: &mut MaybeUninit<RwLock>) {
    lock.write(RwLock { raw: RawRwLock::new() });
}

/// `spinpark_rwlock_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_destroy(lock: &RwLock) {
    if lock.raw.is_locked() {
        misuse!("spinpark_rwlock_destroy", "a thread holds this lock");
    }
}

/// `spinpark_rwlock_read_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_read_lock(lock: &RwLock) {
    if !lock.raw.read_in_slot() {
        lock.read_counted(None);
    }
}

/// `spinpark_rwlock_try_read_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_try_read_lock(lock: &RwLock) -> bool {
    lock.raw.try_read(READERS)
}

/// `spinpark_rwlock_read_lock_for`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_read_lock_for(lock: &RwLock, nanoseconds: u64) -> bool {
    lock.raw.try_read_simply(READERS) || lock.read_contended(Some(time::after(nanoseconds)))
}

/// `spinpark_rwlock_read_lock_until`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_read_lock_until(lock: &RwLock, deadline: &timespec) -> bool {
    let deadline = time::at(deadline);
    lock.raw.try_read_simply(READERS) || lock.read_contended(Some(deadline))
}

/// `spinpark_rwlock_read_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_read_unlock(lock: &RwLock) {
    if !lock.raw.unlock_counted(lock.raw.unlock_in_slot()) {
        if lock.raw.is_write_locked() {
            misuse!("spinpark_rwlock_read_unlock", "held for writing: call spinpark_rwlock_write_unlock");
        }
        misuse!("spinpark_rwlock_read_unlock", "no thread holds this lock");
    }
}

/// `spinpark_rwlock_write_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_write_lock(lock: &RwLock) {
    if !lock.raw.try_write_uncontended() {
        lock.write_contended(None);
    }
}

/// `spinpark_rwlock_try_write_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_try_write_lock(lock: &RwLock) -> bool {
    lock.raw.try_write()
}

/// `spinpark_rwlock_write_lock_for`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_write_lock_for(lock: &RwLock, nanoseconds: u64) -> bool {
    lock.raw.try_write_uncontended() || lock.write_contended(Some(time::after(nanoseconds)))
}

/// `spinpark_rwlock_write_lock_until`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_write_lock_until(lock: &RwLock, deadline: &timespec) -> bool {
    let deadline = time::at(deadline);
    lock.raw.try_write_uncontended() || lock.write_contended(Some(deadline))
}

/// `spinpark_rwlock_write_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_write_unlock(lock: &RwLock) {
    if !lock.raw.is_writing() {
        misuse!("spinpark_rwlock_write_unlock", "no thread holds this lock for writing");
    }
    lock.raw.unlock_write();
}
