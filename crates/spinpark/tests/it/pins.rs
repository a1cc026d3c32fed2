//! More threads than a queue lock counts are in the middle of a release: one more sleeps until they have
//! ended.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinpark_linux::Linux;
use spinpark_locks::{LockCore, RawMutex, TryMutex as _, WaitQueue};
use spinpark_platform::{Cell, Futex, Threads};

// Of the lock word.
const WAITERS: u32 = 1 << 7;
const WRITER: u32 = 3;
// Of the queue lock.
const LOCKED: u32 = 1;
const PINS_SLEEPERS: u32 = 1 << 10;
const ASKED: u32 = 16;
const PINS: u32 = 0x1f * 32;

fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time there.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_release_beside_the_most_pins_sleeps() {
    const HELD: Duration = Duration::from_millis(200);
    // Held by this thread; another one has the queue locked, and as many as can be counted have pinned it.
    let word = AtomicU32::new(Linux::thread_token() << 10 | WRITER | WAITERS);
    let lock = AtomicU32::new(LOCKED | ASKED | PINS);
    let queue = WaitQueue::<Linux>::from_parts(word, lock, Cell::new(std::ptr::null()), (), ());
    let mutex = RawMutex::from_core(LockCore::from_queue(queue));
    let address = std::ptr::from_ref(&mutex) as usize;
    thread::scope(|scope| {
        // These threads, in one.
        scope.spawn(move || {
            // SAFETY: the word, and behind it the queue lock, of a mutex that lives until this thread has
            // ended (`repr(C)`).
            let [word, lock] = unsafe { &*(address as *const [AtomicU32; 2]) };
            thread::sleep(HELD);
            if lock.fetch_sub(PINS, Ordering::Release) & PINS_SLEEPERS != 0 {
                Linux::futex_wake(lock, u32::MAX);
            }
            while word.load(Ordering::Relaxed) & WRITER != 0 || lock.load(Ordering::Relaxed) & PINS != 0 {
                thread::yield_now();
            }
            word.fetch_and(!WAITERS, Ordering::Relaxed);
            lock.store(0, Ordering::Release);
        });
        let (since, used) = (Instant::now(), cpu_time());
        mutex.unlock();
        let (waited, used) = (since.elapsed(), cpu_time() - used);
        assert!(waited >= HELD / 2, "it came in after {waited:?}: the words are not where the test has them");
        assert!(used < HELD / 10, "it used {used:?} of {waited:?}");
    });
    assert!(mutex.try_lock());
    mutex.unlock();
}
