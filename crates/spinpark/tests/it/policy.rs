//! Locks with a policy of their own.

use std::mem::size_of;
use std::thread;
use std::time::{Duration, Instant};

use spinpark::policy::{
    BackOff, CountedReaders, Eager, InOrder, Learned, MutexWith, ParkAtOnce, Policy, RwLockWith,
};
use spinpark::{Mutex, RwLock};

static MUTEX: MutexWith<InOrder, u32> = MutexWith::<InOrder, _>::new(1);
static RWLOCK: RwLockWith<CountedReaders, u32> = RwLockWith::<CountedReaders, _>::new(2);

#[test]
fn they_are_constants_and_no_larger() {
    fn is_as_large<P: Policy>() {
        assert_eq!(size_of::<MutexWith<P, ()>>(), size_of::<Mutex<()>>());
        assert_eq!(size_of::<RwLockWith<P, ()>>(), size_of::<RwLock<()>>());
    }
    is_as_large::<Learned>();
    is_as_large::<Eager>();
    is_as_large::<BackOff>();
    is_as_large::<ParkAtOnce>();
    is_as_large::<InOrder>();
    is_as_large::<CountedReaders>();
    assert_eq!(*MUTEX.lock() + *RWLOCK.read(), 3);
    let usual: MutexWith<Learned, u32> = Mutex::new(4);
    assert_eq!(*usual.lock(), 4);
}

/// Four threads, which wait in each way that there is.
fn counts<P: Policy>()
where
    MutexWith<P, [u64; 2]>: Sync,
    RwLockWith<P, [u64; 2]>: Sync,
{
    const ROUNDS: u64 = 500;
    let mutex: MutexWith<P, [u64; 2]> = MutexWith::<P, _>::new([0; 2]);
    let rwlock: RwLockWith<P, [u64; 2]> = RwLockWith::<P, _>::new([0; 2]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let soon = Duration::from_micros(50);
                    let mut pair = match round % 2 {
                        0 => mutex.lock(),
                        _ => mutex.try_lock_for(soon).unwrap_or_else(|| mutex.lock()),
                    };
                    pair[0] += 1;
                    if round % 100 == 0 {
                        thread::sleep(soon);
                    }
                    pair[1] += 1;
                    drop(pair);
                    let read = rwlock.read();
                    assert_eq!(read[0], read[1]);
                    drop(read);
                    if round % 5 == 0 {
                        let mut pair = rwlock.try_write_for(soon).unwrap_or_else(|| rwlock.write());
                        pair[0] += 1;
                        pair[1] += 1;
                    }
                }
            });
        }
    });
    assert_eq!(mutex.into_inner(), [4 * ROUNDS; 2]);
    assert_eq!(rwlock.into_inner(), [4 * ROUNDS / 5; 2]);
}

#[test]
fn locks_of_each_policy_exclude() {
    counts::<Learned>();
    counts::<Eager>();
    counts::<BackOff>();
    counts::<ParkAtOnce>();
    counts::<InOrder>();
    counts::<CountedReaders>();
}

/// A deadline passes, whatever the policy.
#[test]
fn a_wait_for_a_held_lock_ends_at_its_deadline() {
    fn ends<P: Policy>()
    where
        MutexWith<P, ()>: Sync,
    {
        let mutex = MutexWith::<P, _>::new(());
        let held = mutex.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let start = Instant::now();
                assert!(mutex.try_lock_for(Duration::from_millis(5)).is_none());
                start.elapsed()
            });
            assert!(waiter.join().expect("no panic") >= Duration::from_millis(5));
        });
        drop(held);
    }
    ends::<Eager>();
    ends::<BackOff>();
    ends::<ParkAtOnce>();
    ends::<InOrder>();
}
