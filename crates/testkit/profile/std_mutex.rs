//! Threads that wait for a lock of Rust's std most of the time.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

static TABLE: Mutex<u64> = Mutex::new(0);

fn main() {
    let end = Instant::now() + Duration::from_millis(800);
    let work = || {
        while Instant::now() < end {
            let mut table = TABLE.lock().expect("a lock");
            thread::sleep(Duration::from_millis(5));
            *table += 1;
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(work);
        }
    });
}
