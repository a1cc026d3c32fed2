//! Which acquisitions pass which on a read-write lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use spinpark::{RwLock, RwLockUpgradableReadGuard};

/// The longest wait of a test that can only fail by hanging.
const FOREVER: Duration = Duration::from_secs(60);

/// Runs `body` in a thread of its own; fails if it does not come to an end.
fn comes_to_an_end(body: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || {
        body();
        done.send(()).expect("the test waits");
    });
    wait.recv_timeout(FOREVER).expect("it hangs");
}

#[test]
fn overlapping_readers_do_not_starve_a_writer() {
    comes_to_an_end(|| {
        let lock = RwLock::new(());
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        let _held = lock.read();
                        thread::sleep(Duration::from_micros(300));
                    }
                });
            }
            for _ in 0..20 {
                drop(lock.write());
            }
            over.store(true, Relaxed);
        });
    });
}

#[test]
fn upgrades_do_not_starve_a_writer() {
    comes_to_an_end(|| {
        let lock = RwLock::new(());
        let over = AtomicBool::new(false);
        let upgrades = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        let _held = lock.read();
                        thread::sleep(Duration::from_micros(300));
                    }
                });
            }
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    drop(RwLockUpgradableReadGuard::upgrade(lock.upgradable_read()));
                    upgrades.fetch_add(1, Relaxed);
                }
            });
            for _ in 0..50 {
                drop(lock.write());
            }
            over.store(true, Relaxed);
        });
    });
}

#[test]
fn a_reader_recurses_while_a_writer_starves() {
    comes_to_an_end(|| {
        let lock = RwLock::new(());
        thread::scope(|scope| {
            let outer = lock.read();
            let writer = scope.spawn(|| drop(lock.write()));
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(20) {
                drop(lock.read());
            }
            drop(outer);
            writer.join().expect("the writer gets in");
        });
    });
}

#[test]
fn a_reader_that_a_reader_waits_for_gets_in() {
    comes_to_an_end(|| {
        let lock = RwLock::new(());
        thread::scope(|scope| {
            let outer = lock.read();
            let writer = scope.spawn(|| drop(lock.write()));
            thread::sleep(Duration::from_millis(10)); // the writer is owed the lock by now
            scope.spawn(|| drop(lock.read())).join().expect("the helper gets in");
            drop(outer);
            writer.join().expect("the writer gets in");
        });
    });
}

#[test]
fn a_reader_behind_an_upgradable_one_gets_in() {
    comes_to_an_end(|| {
        let lock = RwLock::new(());
        thread::scope(|scope| {
            let held = lock.write();
            let upgradable = scope.spawn(|| {
                let held = lock.upgradable_read();
                thread::sleep(Duration::from_millis(5));
                drop(held);
            });
            let reader = scope.spawn(|| drop(lock.read()));
            thread::sleep(Duration::from_millis(5));
            drop(held);
            reader.join().expect("the reader gets in");
            upgradable.join().expect("the upgradable one gets in");
        });
    });
}
