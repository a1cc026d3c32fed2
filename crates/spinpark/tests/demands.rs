//! A reader that a writer's demand keeps out comes in soon, also if the writer has gone: it does not wait until its own patience
//! (100 ms) ends.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use spinpark::{RwLock, RwLockUpgradableReadGuard};

const MS: Duration = Duration::from_millis(1);
/// Another program may delay one attempt; what this is about delays each.
const ATTEMPTS: u32 = 5;
const SOON: Duration = Duration::from_millis(50);

/// How long a new thread waits for a read lock.
fn reader_waits(lock: &RwLock<()>) -> Duration {
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let since = Instant::now();
            drop(lock.read());
            since.elapsed()
        });
        reader.join().unwrap()
    })
}

fn comes_in_soon(attempt: fn() -> Duration) {
    let waits: Vec<_> = (0..ATTEMPTS).map(|_| attempt()).collect();
    assert!(waits.iter().any(|&waited| waited < SOON), "{waits:?}");
}

/// A writer has demanded the lock of readers, an upgrade goes before it, and the writer gives up.
#[test]
fn a_writer_leaves_a_demand_to_an_upgrade() {
    comes_in_soon(|| {
        let lock = RwLock::new(());
        let is_upgradable = AtomicBool::new(false);
        let reads = lock.read();
        thread::scope(|scope| {
            scope.spawn(|| {
                let held = lock.upgradable_read();
                is_upgradable.store(true, Relaxed);
                thread::sleep(10 * MS);
                drop(RwLockUpgradableReadGuard::upgrade(held));
            });
            while !is_upgradable.load(Relaxed) {
                thread::yield_now();
            }
            scope.spawn(|| drop(lock.try_write_for(15 * MS)));
            for _ in 0..8 {
                thread::sleep(MS);
                drop(lock.read()); // the writer is woken, loses, and demands the lock
            }
            thread::sleep(10 * MS);
            let waited = reader_waits(&lock);
            drop(reads);
            waited
        })
    });
}
