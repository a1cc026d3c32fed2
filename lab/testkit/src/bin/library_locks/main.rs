//! A program whose use of the Rust library's locks is known: it prints what it measured itself. Its recording
//! goes where `SPINPARK_PROFILE_DIR` says.
//!
//! `lock ROLE ADDRESS CONTENDED WAITED HELD`: threads that had to wait, times in ns; `HELD` by those.

mod turns;
mod unseen;

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use spinpark::{Condvar, Mutex, MutexGuard, RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard, profile};

use turns::{Truth, Waiting, let_come, rounds};

const HOLD: Duration = Duration::from_millis(10);

static STORE: Mutex<u32> = Mutex::new(0);

#[inline(never)]
fn update_store(waiting: &Waiting) {
    let mut store = STORE.lock();
    *store += 1;
    let_come(waiting);
    drop(store);
    black_box(());
}

#[inline(never)]
fn read_store(waiting: &Waiting, truth: &mut Truth) {
    waiting.announce();
    truth.wait(|| STORE.lock(), drop);
    black_box(());
}

fn mutex() {
    profile::name(&STORE, "store");
    // SAFETY: only its address is taken.
    rounds(update_store, read_store).print("write", unsafe { STORE.raw() });
}

fn timed() {
    let lock = Mutex::new(());
    let truth = rounds(
        |waiting| {
            let held = lock.lock();
            let_come(waiting);
            thread::sleep(HOLD * 3);
            drop(held);
        },
        |waiting, truth| {
            waiting.announce();
            let start = Instant::now();
            assert!(lock.try_lock_for(HOLD * 2).is_none());
            truth.waited += start.elapsed();
            truth.contended += 1;
        },
    );
    // SAFETY: only its address is taken.
    truth.print("write", unsafe { lock.raw() });
}

fn rwlock() {
    let lock = RwLock::new(0);
    profile::name(&lock, "table");
    let reading = rounds(
        |waiting| {
            let held = lock.write();
            let_come(waiting);
            drop(held);
        },
        |waiting, truth| {
            waiting.announce();
            truth.wait(|| lock.read(), drop);
        },
    );
    // SAFETY: only its address is taken.
    Truth { held: Duration::ZERO, ..reading }.print("read", unsafe { lock.raw() });
    let writing = rounds(
        |waiting| {
            let held = lock.read();
            let_come(waiting);
            drop(held);
        },
        |waiting, truth| {
            waiting.announce();
            truth.wait(
                || lock.write(),
                |held| {
                    let read = RwLockWriteGuard::downgrade(held);
                    thread::sleep(HOLD);
                    drop(read);
                },
            );
        },
    );
    // SAFETY: only its address is taken.
    writing.print("write", unsafe { lock.raw() });
}

fn condvar() {
    let (signalled_at, changed) = (Mutex::new(None), Condvar::new());
    profile::name(&changed, "changed");
    let back = std::sync::Mutex::new(Truth::default());
    let signalled = rounds(
        |waiting| {
            let_come(waiting);
            // A woken thread may run much later: that is not waiting for a signal.
            *signalled_at.lock() = Some(Instant::now());
            changed.notify_one();
        },
        |waiting, truth| {
            let mut signal = signalled_at.lock();
            waiting.announce();
            let start = Instant::now();
            changed.wait_while(&mut signal, |signal| signal.is_none());
            let end = Instant::now();
            let signal = signal.take().expect("a signal");
            truth.waited += signal - start;
            truth.contended += 1;
            let mut back = back.lock().expect("no thread panicked");
            back.waited += end - signal;
            back.contended += 1;
        },
    );
    signalled.print("signal", &changed);
    back.into_inner().expect("no thread panicked").print("back", &changed);
}

/// A thread that had to wait for a queue's mutex waits for a signal with it; and once with another one held
/// besides.
fn queue() {
    let (queue, ready) = (Mutex::new(()), Condvar::new());
    let book = Mutex::new(());
    profile::name(&queue, "queue");
    profile::name(&ready, "ready");
    profile::name(&book, "book");
    let wait_for_signal = |mut held: MutexGuard<'_, ()>| {
        assert!(ready.wait_for(&mut held, Duration::from_millis(1)).timed_out());
    };
    rounds(holding(&queue), |waiting, _| {
        waiting.announce();
        wait_for_signal(queue.lock());
    });
    rounds(holding(&book), |waiting, _| {
        waiting.announce();
        let _held = book.lock();
        wait_for_signal(queue.lock());
    });
}

/// Holds a mutex until the other thread waits for it.
fn holding(mutex: &Mutex<()>) -> impl Fn(&Waiting) + '_ {
    |waiting| {
        let held = mutex.lock();
        let_come(waiting);
        drop(held);
    }
}

/// Many threads and a lock that all of them want: times are not known, but none is lost.
fn crowd() {
    let (total, table, changed) = (Mutex::new(0_u64), RwLock::new(0_u64), Condvar::new());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..10_000 {
                    *total.lock() += 1;
                    let mut locked = total.lock();
                    *locked += 1;
                    match round % 16 {
                        0 => drop(changed.wait_for(&mut locked, Duration::from_micros(50))),
                        1 => MutexGuard::unlock_fair(locked),
                        2 => drop(changed.notify_all()),
                        _ => drop(changed.notify_one()),
                    }
                    use_table(&table, round);
                }
            });
        }
    });
    assert_eq!((*total.lock(), *table.read()), (160_000, 80_000));
}

/// Adds one, in every way.
fn use_table(table: &RwLock<u64>, round: u32) {
    match round % 6 {
        0 => drop(table.try_read_for(Duration::from_micros(20))),
        1 => drop(table.read()),
        _ => {}
    }
    match round % 5 {
        0 => *RwLockUpgradableReadGuard::upgrade(table.upgradable_read()) += 1,
        1 => {
            let mut written = table.write();
            *written += 1;
            RwLockWriteGuard::unlock_fair(written);
        }
        2 => {
            let mut written = table.write();
            *written += 1;
            drop(RwLockWriteGuard::downgrade(written));
        }
        3 => match table.try_write_for(Duration::from_micros(20)) {
            Some(mut written) => *written += 1,
            None => *table.write() += 1,
        },
        _ => *table.write() += 1,
    }
}

/// The child's waits are in a file of its own.
fn fork() {
    mutex();
    // SAFETY: the child goes on as a program of one thread that uses nothing which others may have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        mutex();
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: waits for the child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
}

fn main() {
    let profile = profile::start_from_environment().unwrap_or_else(|error| panic!("{error}"));
    println!("recording {}", profile.is_some());
    match std::env::args().nth(1).unwrap_or_default().as_str() {
        "mutex" => mutex(),
        "timed" => timed(),
        "rwlock" => rwlock(),
        "condvar" => condvar(),
        "queue" => queue(),
        "crowd" => crowd(),
        "fork" => fork(),
        "unseen-mutex" => unseen::unseen_mutex(),
        "unseen-rwlock" => unseen::unseen_rwlock(),
        other => panic!("no such scene: {other}"),
    }
}
