//! `spinpark_recursive_mutex_*`: a mutex, and which thread holds it how often. Only the owner writes those
//! two, so what a thread reads of its own hold is certain.

use core::mem::{MaybeUninit, align_of, size_of};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

use libc::timespec;
use spinpark_linux::Linux;
use spinpark_locks::TryMutex;
use spinpark_platform::{Deadline, Threads};

use crate::misuse::misuse;
use crate::mutex::Mutex;
use crate::time;

/// `spinpark_recursive_mutex_t`.
#[repr(C)]
pub struct RecursiveMutex {
    mutex: Mutex,
    /// The token of the thread that holds it, or 0.
    owner: AtomicU32,
    /// How often it does.
    depth: AtomicU32,
}

const _: () =
    assert!(size_of::<RecursiveMutex>() == 24 && align_of::<RecursiveMutex>() == 8, "the header's promise");

impl RecursiveMutex {
    /// Once more if the calling thread holds it already; else by `acquire`, which reports whether it did.
    #[inline(always)]
    fn lock_by(&self, acquire: impl FnOnce(u32) -> bool) -> bool {
        let token = Linux::thread_token();
        if self.owner.load(Relaxed) == token {
            let Some(depth) = self.depth.load(Relaxed).checked_add(1) else {
                misuse!(
                    "spinpark_recursive_mutex_lock",
                    "the calling thread holds this mutex 4294967295 times"
                );
            };
            self.depth.store(depth, Relaxed);
            return true;
        }
        let acquired = acquire(token);
        if acquired {
            self.depth.store(1, Relaxed);
            // A signal handler that finds the owner finds the depth.
            compiler_fence(SeqCst);
            self.owner.store(token, Relaxed);
        }
        acquired
    }

    #[inline(always)]
    fn lock(&self, deadline: impl FnOnce() -> Option<Deadline>) -> bool {
        let mutex = &self.mutex;
        self.lock_by(|token| mutex.raw.try_lock_uncontended(token) || mutex.lock_contended(deadline()))
    }
}

/// `spinpark_recursive_mutex_init`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_recursive_mutex_init(mutex: &mut MaybeUninit<RecursiveMutex>) {
    mutex.write(RecursiveMutex {
        mutex: Mutex::unlocked(),
        owner: AtomicU32::new(0),
        depth: AtomicU32::new(0),
    });
}

/// `spinpark_recursive_mutex_destroy`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_recursive_mutex_destroy(mutex: &RecursiveMutex) {
    if mutex.mutex.raw.is_locked() {
        misuse!("spinpark_recursive_mutex_destroy", "a thread holds this mutex");
    }
}

/// `spinpark_recursive_mutex_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_recursive_mutex_lock(mutex: &RecursiveMutex) {
    mutex.lock(|| None);
}

/// `spinpark_recursive_mutex_try_lock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_recursive_mutex_try_lock(mutex: &RecursiveMutex) -> bool {
    mutex.lock_by(|_| mutex.mutex.raw.try_lock())
}

/// `spinpark_recursive_mutex_lock_for`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_recursive_mutex_lock_for(mutex: &RecursiveMutex, nanoseconds: u64) -> bool {
    mutex.lock(|| Some(time::after(nanoseconds)))
}

/// `spinpark_recursive_mutex_lock_until`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_recursive_mutex_lock_until(mutex: &RecursiveMutex, deadline: &timespec) -> bool {
    let deadline = time::at(deadline);
    mutex.lock(|| Some(deadline))
}

/// `spinpark_recursive_mutex_unlock`.
#[unsafe(no_mangle)]
pub extern "C" fn spinpark_recursive_mutex_unlock(mutex: &RecursiveMutex) {
    if mutex.owner.load(Relaxed) != Linux::thread_token() {
        misuse!("spinpark_recursive_mutex_unlock", "the calling thread does not hold this mutex");
    }
    let depth = mutex.depth.load(Relaxed) - 1;
    mutex.depth.store(depth, Relaxed);
    if depth == 0 {
        mutex.owner.store(0, Relaxed);
        mutex.mutex.raw.unlock();
    }
}
