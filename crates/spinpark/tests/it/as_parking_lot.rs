//! One program, compiled with `parking_lot` 0.12 and with `spinpark`: only the name differs.

macro_rules! program {
    ($name:ident, $library:ident) => {
        mod $name {
            use std::panic::{catch_unwind, AssertUnwindSafe};
            use std::sync::mpsc::channel;
            use std::sync::Arc;
            use std::thread;
            use std::time::{Duration, Instant};

            use $library::lock_api::ArcMutexGuard as GuardOfApi;
            use $library::{
                const_fair_mutex, const_mutex, const_reentrant_mutex, const_rwlock, ArcMutexGuard,
                ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
                ArcRwLockWriteGuard, Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard,
                MappedMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, Once,
                OnceState, RawFairMutex, RawMutex, RawRwLock, RawThreadId, ReentrantMutex,
                ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
                WaitTimeoutResult,
            };

            static MUTEX: Mutex<(u8, u8)> = const_mutex((1, 2));
            static FAIR: FairMutex<(u8, u8)> = const_fair_mutex((1, 2));
            static LOCK: RwLock<(u8, u8)> = const_rwlock((1, 2));
            static REENTRANT: ReentrantMutex<u8> = const_reentrant_mutex(1);

            #[test]
            fn guards() {
                let guard: MutexGuard<'_, (u8, u8)> = MUTEX.lock();
                let mut part: MappedMutexGuard<'_, u8> = MutexGuard::map(guard, |pair| &mut pair.1);
                *part += 1;
                MappedMutexGuard::unlock_fair(part);
                let guard: FairMutexGuard<'_, (u8, u8)> = FAIR.lock();
                let part: MappedFairMutexGuard<'_, u8> = FairMutexGuard::map(guard, |pair| &mut pair.1);
                assert!(FAIR.try_lock_for(Duration::from_millis(1)).is_none() && FAIR.is_locked());
                drop(part);
                // SAFETY: it is only looked at.
                let raw: &RawFairMutex = unsafe { FAIR.raw() };
                assert!(!<RawFairMutex as $library::lock_api::RawMutex>::is_locked(raw));
                let read: RwLockReadGuard<'_, (u8, u8)> = LOCK.read();
                let _part: MappedRwLockReadGuard<'_, u8> = RwLockReadGuard::map(read, |pair| &pair.0);
                drop(_part);
                let write: RwLockWriteGuard<'_, (u8, u8)> = LOCK.write();
                let _part: MappedRwLockWriteGuard<'_, u8> = RwLockWriteGuard::map(write, |pair| &mut pair.0);
                drop(_part);
                let upgradable: RwLockUpgradableReadGuard<'_, (u8, u8)> = LOCK.upgradable_read();
                *RwLockUpgradableReadGuard::upgrade(upgradable) = (3, 4);
                let outer: ReentrantMutexGuard<'_, u8> = REENTRANT.lock();
                assert_eq!((*outer, *REENTRANT.lock()), (1, 1));
            }

            #[test]
            fn guards_that_own_an_arc() {
                let mutex = Arc::new(Mutex::new(1));
                let mut guard: ArcMutexGuard<RawMutex, i32> = mutex.lock_arc();
                *guard += 1;
                let guard: GuardOfApi<RawMutex, i32> = guard;
                assert_eq!((*guard, mutex.try_lock_arc().is_none()), (2, true));
                let lock = Arc::new(RwLock::new(1));
                let read: ArcRwLockReadGuard<RawRwLock, i32> = lock.read_arc();
                drop(read);
                let upgradable: ArcRwLockUpgradableReadGuard<RawRwLock, i32> = lock.upgradable_read_arc();
                drop(upgradable);
                let write: ArcRwLockWriteGuard<RawRwLock, i32> = lock.write_arc();
                drop(write);
                let reentrant = Arc::new(ReentrantMutex::new(1));
                let guard: ArcReentrantMutexGuard<RawMutex, RawThreadId, i32> = reentrant.lock_arc();
                assert_eq!(*guard, 1);
            }

            #[test]
            fn condition_variables() {
                let (mutex, condvar) = (Mutex::new(false), Condvar::new());
                assert_eq!(format!("{condvar:?}"), "Condvar { .. }");
                let mut guard = mutex.lock();
                let result: WaitTimeoutResult = condvar.wait_for(&mut guard, Duration::from_millis(1));
                assert!(result.timed_out());
                assert!(condvar.wait_until(&mut guard, Instant::now()).timed_out());
                assert!(!condvar.notify_one() && condvar.notify_all() == 0);
                drop(guard);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        *mutex.lock() = true;
                        condvar.notify_all();
                    });
                    let mut guard = mutex.lock();
                    condvar.wait_while(&mut guard, |is_ready| !*is_ready);
                });
            }

            #[test]
            fn once() {
                static ONCE: Once = Once::new();
                assert_eq!(ONCE.state(), OnceState::New);
                let panics = || ONCE.call_once(|| panic!("as it should"));
                assert!(catch_unwind(panics).is_err() && ONCE.state().poisoned());
                assert!(catch_unwind(|| ONCE.call_once(|| {})).is_err());
                let (runs, is_running) = channel();
                let (may_go_on, written) = (Mutex::new(()), Mutex::new(0));
                let stays = may_go_on.lock();
                thread::scope(|scope| {
                    scope.spawn(|| {
                        ONCE.call_once_force(|state| {
                            assert!(state.poisoned());
                            runs.send(()).unwrap();
                            drop(may_go_on.lock());
                            *written.lock() += 1;
                        });
                    });
                    is_running.recv().unwrap();
                    assert_eq!(ONCE.state(), OnceState::InProgress);
                    let others = [0; 3].map(|_| {
                        scope.spawn(|| {
                            ONCE.call_once(|| *written.lock() += 1);
                            assert!(ONCE.state().done());
                            assert_eq!(*written.lock(), 1);
                        })
                    });
                    drop(stays);
                    others.into_iter().for_each(|other| other.join().unwrap());
                });
                ONCE.call_once_force(|_| unreachable!("it is done"));
                assert_eq!(format!("{ONCE:?}"), "Once { state: Done }");
            }

            /// A wait with a second mutex panics, and leaves that mutex free; the first wait goes on.
            #[test]
            fn one_mutex_at_a_time() {
                let (first, second, condvar) = (Mutex::new(false), Mutex::new(()), Condvar::new());
                let (waits, is_waiting) = channel();
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut guard = first.lock();
                        waits.send(()).unwrap();
                        condvar.wait_while(&mut guard, |is_done| !*is_done);
                    });
                    is_waiting.recv().unwrap();
                    // It waits once the mutex can be taken.
                    drop(first.lock());
                    let misuse = || condvar.wait_for(&mut second.lock(), Duration::from_secs(60));
                    let result = catch_unwind(AssertUnwindSafe(misuse));
                    *first.lock() = true;
                    condvar.notify_all();
                    assert!(result.is_err(), "it waited with two mutexes");
                    assert!(second.try_lock().is_some());
                });
                // While no thread waits, any mutex will do.
                assert!(condvar.wait_for(&mut second.lock(), Duration::from_millis(1)).timed_out());
            }
        }
    };
}

program!(with_parking_lot, parking_lot);
program!(with_spinpark, spinpark);
