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
    /// What remains of `spinpark_rwlock_read_lock` after one try for a slot. Apart, for what it keeps in
    /// registers: a reader in a slot keeps nothing, and has no frame.
    #[inline(never)]
    fn read_on(&self) {
        if !self.raw.read_in_slot_or_counted(READERS) {
            self.read_contended(None);
        }
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

    /// The whole of `spinpark_rwlock_write_lock`, by a thread's first call, or one that reads first.
    #[cold]
    #[inline(never)]
    fn write_carefully(&self) {
        if !self.raw.try_write_uncontended() {
            self.write_contended(None);
        }
    }

    /// What remains of `spinpark_rwlock_read_unlock` after one try to leave a slot: of a reader that is counted,
    /// as a rule. Apart, as `read_on`.
    #[inline(never)]
    fn unlock_on(&self) {
        if !self.raw.unlock_counted(self.raw.unlock_in_slot()) {
            if self.raw.is_write_locked() {
                misuse!("spinpark_rwlock_read_unlock", "held for writing: call spinpark_rwlock_write_unlock");
            }
            misuse!("spinpark_rwlock_read_unlock", "no thread holds this lock");
        }
    }

    /// What remains of `spinpark_rwlock_write_unlock` of a lock that is not held for writing. It may return, as far
    /// as the compiler knows, so that the call is a jump, for which the release needs no frame.
    #[cold]
    #[inline(never)]
    fn unlock_another(&self) {
        if !self.raw.is_writing() {
            misuse!("spinpark_rwlock_write_unlock", "no thread holds this lock for writing");
        }
        self.raw.unlock_write();
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
    if !lock.raw.read_in_slot_once() {
        lock.read_on();
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
    if !lock.raw.unlock_in_slot_once() {
        lock.unlock_on();
    }
}

/// `spinpark_rwlock_write_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_rwlock_write_lock(lock: &RwLock) {
    match spinpark_linux::ready_hold() {
        Some(hold) if lock.raw.try_write_free(hold) => {}
        Some(_) => _ = lock.write_contended(None),
        None => lock.write_carefully(),
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
    if lock.raw.is_writing() {
        lock.raw.unlock_write();
    } else {
        lock.unlock_another();
    }
}
