//! A program in Rust that uses pthread's mutexes, as bindings of C libraries do. (std's own locks are
//! futexes, which cannot be interposed.)

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

impl Mutex {
    #[inline(always)]
    fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        // SAFETY: all zero is an unlocked mutex, and it does not move.
        unsafe { pthread_mutex_lock(self.0.get()) };
        let result = work();
        // SAFETY: locked above.
        unsafe { pthread_mutex_unlock(self.0.get()) };
        result
    }
}

static JOURNAL: Mutex = Mutex(UnsafeCell::new([0; 40]));

mod journal {
    use super::*;

    #[inline(never)]
    pub fn sync_to_disk() {
        JOURNAL.with(|| thread::sleep(Duration::from_millis(2)));
    }

    #[inline(never)]
    pub fn append(line: u64) -> u64 {
        JOURNAL.with(|| std::hint::black_box(line) + 1)
    }
}

fn main() {
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..3)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let mut line = 0;
                while !is_over.load(Ordering::Relaxed) {
                    line = journal::append(line);
                    thread::sleep(Duration::from_micros(200));
                }
                line
            })
        })
        .collect();
    for _ in 0..100 {
        journal::sync_to_disk();
        thread::sleep(Duration::from_micros(200));
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(writers.into_iter().map(|writer| writer.join().unwrap()).sum::<u64>() > 0);
}
