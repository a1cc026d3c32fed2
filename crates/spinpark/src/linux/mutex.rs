//! [`Mutex`] and its guards.

use crate::linux::RawMutex;

/// Mutual exclusion of the data inside; 16 bytes and the data.
///
/// A waiter spins for a bounded time, or until the present holder is found to be off its CPU; then it parks.
///
/// # Fairness
/// Running threads may take a free mutex before one that sleeps. A waiter that has waited for 0.5 ms, and finds the mutex
/// taken when it is woken, is handed it by the next release; waiters queue in order. `MutexGuard::unlock_fair` hands it
/// over at once, as each release of a [`FairMutex`](crate::FairMutex) does.
///
/// # Differences from std
/// `lock` returns the guard, not a `Result`. There are timed acquisitions (`try_lock_for`, `try_lock_until`), guards of a
/// part of the data (`MutexGuard::map`) and guards that own an `Arc` (`lock_arc`). A mutex must not move while it is
/// held or waited for, which borrows rule out. In a child made by `fork`, mutexes that other threads held stay held.
///
/// # Poisoning
/// None: a panic releases the mutex, and the data is as the panic has left it.
///
/// # Panics
/// Never. A thread that locks a mutex that it holds waits for itself for ever: [`ReentrantMutex`](crate::ReentrantMutex)
/// can be locked again.
///
/// ```
/// use std::{sync::Arc, thread, time::Duration};
/// use spinpark::Mutex;
///
/// let total = Arc::new(Mutex::new(0));
/// let workers: Vec<_> = (0..4)
///     .map(|_| {
///         let total = Arc::clone(&total);
///         thread::spawn(move || *total.lock() += 1)
///     })
///     .collect();
/// for worker in workers {
///     worker.join().unwrap();
/// }
/// assert_eq!(*total.lock(), 4);
///
/// let held = total.lock();
/// assert!(total.try_lock().is_none());
/// assert!(total.try_lock_for(Duration::from_millis(1)).is_none());
/// drop(held);
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// Access to the data of a [`Mutex`]; releases it when dropped. It stays on its thread: not `Send`.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// Access to a part of the data of a [`Mutex`].
///
/// ```
/// use spinpark::{Mutex, MutexGuard};
///
/// let pair = Mutex::new((1, 2));
/// *MutexGuard::map(pair.lock(), |pair| &mut pair.1) += 1;
/// assert_eq!(*pair.lock(), (1, 3));
/// ```
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex around `value`, in a constant.
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, value)
}
