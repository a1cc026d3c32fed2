//! `spinpark_mutex_*`.

use core::mem::{MaybeUninit, align_of, size_of};

use libc::timespec;
use spinpark_linux::Linux;
use spinpark_locks::{RawMutex, TryMutex};
use spinpark_platform::{Deadline, Threads};

use crate::misuse::misuse;
use crate::time;

/// `spinpark_mutex_t`.
#[repr(C)]
pub struct Mutex {
    pub(crate) raw: RawMutex<Linux>,
}

const _: () = assert!(size_of::<Mutex>() == 16 && align_of::<Mutex>() == 8, "the header's promise");

impl Mutex {
    pub(crate) fn unlocked() -> Self {
        Self { raw: RawMutex::new() }
    }

    /// What remains after the uncontended try; `false` once the deadline has passed.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        // Certain: only the thread itself puts its token there.
        if self.raw.owner() == Linux::thread_token() {
            misuse!(
                "spinpark_mutex_lock",
                "the calling thread holds this mutex already, and would wait for itself"
            );
        }
        self.raw.lock_contended_until(deadline)
    }

    /// The whole of `spinpark_mutex_lock`, by a thread's first call, or one that reads first.
    #[cold]
    #[inline(never)]
    fn lock_carefully(&self) {
        if !self.lock_at_once() {
            self.lock_contended(None);
        }
    }

    #[inline(always)]
    pub(crate) fn lock_at_once(&self) -> bool {
        self.raw.try_lock_uncontended(Linux::thread_token())
    }
}

/// `spinpark_mutex_init`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_mutex_init(mutex: &mut MaybeUninit<Mutex>) {
    mutex.write(Mutex::unlocked());
}

/// `spinpark_mutex_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_mutex_destroy(mutex: &Mutex) {
    if mutex.raw.is_locked() {
        misuse!("spinpark_mutex_destroy", "a thread holds this mutex");
    }
}

/// `spinpark_mutex_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_mutex_lock(mutex: &Mutex) {
    match spinpark_linux::ready_hold() {
        Some(hold) if mutex.raw.try_lock_free(hold) => {}
        Some(_) => _ = mutex.lock_contended(None),
        None => mutex.lock_carefully(),
    }
}

/// `spinpark_mutex_try_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_mutex_try_lock(mutex: &Mutex) -> bool {
    mutex.raw.try_lock()
}

/// `spinpark_mutex_lock_for`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_mutex_lock_for(mutex: &Mutex, nanoseconds: u64) -> bool {
    mutex.lock_at_once() || mutex.lock_contended(Some(time::after(nanoseconds)))
}

/// `spinpark_mutex_lock_until`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_mutex_lock_until(mutex: &Mutex, deadline: &timespec) -> bool {
    let deadline = time::at(deadline);
    mutex.lock_at_once() || mutex.lock_contended(Some(deadline))
}

/// `spinpark_mutex_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_mutex_unlock(mutex: &Mutex) {
    mutex.raw.unlock();
}
