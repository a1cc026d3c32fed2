//! Native stress of the classic locks: what they protect is two copies of a number that only a writer makes
//! differ.
//!
//! `SPINPARK_STRESS_SECONDS` says how long in all (default 6): each lock has its share, for 2, 16 and 64
//! threads. A lost wake-up hangs the test.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use spinpark_classics::mcs::{Corrected, McsLock};
use spinpark_classics::mcs_mutex::McsMutex;
use spinpark_classics::mtx_2006::profiling::{self, Profiled};
use spinpark_classics::mtx_2006::{Absent, Alone};
use spinpark_classics::mutex_2010::{Fixed, Mutex, NoSpin as Sleeps, OldSpin};
use spinpark_classics::osq::Osq;
use spinpark_classics::rwsem_2013::{Full, NoSpin, Patches, Rwsem, Series, Vanilla};
use spinpark_classics::tas::{self, TasLock, TestAndSet, TestAndTestAndSet};

use spinpark_classics::{RawLock, RawRwLock, TicketLock};
use spinpark_linux::Linux;

const THREADS: [usize; 3] = [2, 16, 64];

/// The locks below.
const LOCKS: usize = 19;

/// What a lock protects. Atomics that are used as plain numbers: if a lock does not exclude, writes are lost.
#[derive(Default)]
struct Pair(AtomicU64, AtomicU64);

impl Pair {
    fn bump(&self) {
        let old = self.check();
        self.0.store(old + 1, Relaxed);
        std::hint::spin_loop();
        self.1.store(old + 1, Relaxed);
    }

    fn check(&self) -> u64 {
        let (first, second) = (self.0.load(Relaxed), self.1.load(Relaxed));
        assert_eq!(first, second, "a writer is inside");
        first
    }
}

/// Runs `act` in each of many threads until time is over; it returns how often it has written.
fn stress(name: &str, act: impl Fn(u64) -> u64 + Sync, check: impl Fn() -> u64) {
    let seconds: f64 =
        std::env::var("SPINPARK_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6.0);
    let mut written = 0;
    for threads in THREADS {
        let over = AtomicBool::new(false);
        written += thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut round, mut written) = (0, 0);
                        while !over.load(Relaxed) || round == 0 {
                            written += act(round);
                            round += 1;
                        }
                        written
                    })
                })
                .collect();
            thread::sleep(Duration::from_secs_f64(seconds / (LOCKS * THREADS.len()) as f64));
            over.store(true, Relaxed);
            workers.into_iter().map(|worker| worker.join().expect("an invariant failed")).sum::<u64>()
        });
        assert_eq!(check(), written, "{name}, {threads} threads: a write was lost");
    }
    eprintln!("{name}: {written} writes");
}

fn lock<L: RawLock>(name: &str) {
    let (lock, pair) = (L::new(), Pair::default());
    let act = |round| {
        if round % 8 == 7 {
            if !lock.try_lock() {
                return 0;
            }
        } else {
            lock.lock();
        }
        pair.bump();
        if round % 64 == 0 {
            thread::sleep(Duration::from_micros(20)); // an owner that is off the CPU
        }
        lock.unlock();
        1
    };
    stress(name, act, || pair.check());
}

fn rwlock<S: Series>(name: &str) {
    let (lock, pair) = (<Rwsem<Linux, S> as RawRwLock>::new(), Pair::default());
    let act = |round| match round % 8 {
        0 | 5 => {
            lock.write();
            pair.bump();
            if round % 64 == 0 {
                thread::sleep(Duration::from_micros(20));
            }
            lock.unlock_write();
            1
        }
        3 => {
            lock.write();
            pair.bump();
            lock.downgrade();
            pair.check();
            lock.unlock_read();
            1
        }
        6 if lock.try_write() => {
            pair.bump();
            lock.unlock_write();
            1
        }
        7 if lock.try_read() => {
            pair.check();
            lock.unlock_read();
            0
        }
        _ => {
            lock.read();
            pair.check();
            lock.unlock_read();
            0
        }
    };
    stress(name, act, || pair.check());
}

#[test]
fn every_classic_lock() {
    lock::<Mutex<Linux, OldSpin>>("mutex 2.6.34");
    lock::<Mutex<Linux, Fixed>>("mutex, fixed");
    lock::<Mutex<Linux, Sleeps>>("mutex that sleeps");
    lock::<TasLock<Linux, TestAndSet>>("test and set");
    lock::<TasLock<Linux, TestAndTestAndSet>>("test and test-and-set");
    lock::<TasLock<Linux, tas::BackOff>>("test and set with back-off");
    lock::<TicketLock<Linux>>("ticket");
    lock::<McsMutex<Linux>>("classic-mcs");
    lock::<Alone<Linux, Absent>>("mtx");
    lock::<Alone<Linux, Profiled>>("mtx, profiled");
    lock::<Alone<Linux, profiling::BackOff>>("mtx with back-off");
    lock::<Rwsem<Linux, Full>>("rwsem as a mutex");
    rwlock::<Vanilla>("rwsem 3.12");
    rwlock::<Patches<true, true, true, true, true, false>>("rwsem, up to patch 8");
    rwlock::<Patches<false, false, false, false, false, true>>("rwsem, patch 9");
    rwlock::<NoSpin>("rwsem without optspin");
    rwlock::<Full>("rwsem, all");
    mcs();
    osq();
}

fn mcs() {
    let (lock, pair) = (McsLock::<Linux, Corrected>::new(), Pair::default());
    let act = |round| {
        if round % 8 == 7 {
            return u64::from(lock.try_with(|| pair.bump()).is_some());
        }
        lock.with(|| pair.bump());
        1
    };
    stress("mcs", act, || pair.check());
}

/// One head at a time; some spinners leave before they are the head, and some find no slot.
fn osq() {
    let (queue, pair) = (Osq::<Linux, 4>::new(), Pair::default());
    let act = |round: u64| {
        let mut polls = [0, 1, 20, 1_000][round as usize % 4];
        let stays = || {
            polls = u64::saturating_sub(polls, 1);
            polls > 0
        };
        let Some(_spot) = queue.enter(stays) else { return 0 };
        pair.bump();
        1
    };
    stress("osq", act, || {
        assert!(queue.is_empty(), "a slot was left in the queue");
        pair.check()
    });
}

/// An enabled profile sees every hold.
#[test]
fn holds_are_recorded() {
    let lock = Alone::<Linux, Profiled>::new();
    lock.lock();
    lock.unlock();
    assert_eq!((lock.globals.holds().count, lock.globals.acquisitions()), (0, 1), "compiled in, not enabled");
    lock.globals.enable();
    for _ in 0..3 {
        lock.lock();
        lock.unlock();
    }
    let holds = lock.globals.holds();
    assert_eq!((holds.count, lock.globals.acquisitions()), (3, 4));
    assert!(holds.longest_ns <= holds.total_ns && holds.total_ns <= 3 * holds.longest_ns);
}
