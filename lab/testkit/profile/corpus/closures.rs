//! A Rust program whose closures hold a pthread mutex and wait for it, as bindings of C libraries do.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

#[repr(C, align(8))]
struct Mutex(UnsafeCell<[u8; 40]>);
// SAFETY: what it is for.
unsafe impl Sync for Mutex {}

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut [u8; 40]) -> i32;
    fn pthread_mutex_unlock(mutex: *mut [u8; 40]) -> i32;
}

static HANDLE: Mutex = Mutex(UnsafeCell::new([0; 40]));
static TAKEN: AtomicU32 = AtomicU32::new(0);
static SERVED: AtomicU32 = AtomicU32::new(0);
const ROUNDS: u32 = 8;

fn await_at_least(number: &AtomicU32, least: u32) {
    while number.load(Ordering::SeqCst) < least {
        thread::sleep(Duration::from_millis(1));
    }
}

fn lock() {
    // SAFETY: all zero is an unlocked mutex, and it does not move.
    unsafe { pthread_mutex_lock(HANDLE.0.get()) };
}

fn unlock() {
    // SAFETY: the caller has locked it.
    unsafe { pthread_mutex_unlock(HANDLE.0.get()) };
}

#[inline(never)]
fn checkpointer() -> thread::JoinHandle<()> {
    thread::spawn(|| {
        for round in 1..=ROUNDS {
            lock();
            TAKEN.store(round, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(40));
            unlock();
            await_at_least(&SERVED, round);
        }
    })
}

#[inline(never)]
fn committer() -> thread::JoinHandle<()> {
    thread::spawn(|| {
        for round in 1..=ROUNDS {
            await_at_least(&TAKEN, round);
            lock();
            unlock();
            SERVED.store(round, Ordering::SeqCst);
        }
    })
}

fn main() {
    let threads = [checkpointer(), committer()];
    for thread in threads {
        thread.join().expect("no panic");
    }
}
