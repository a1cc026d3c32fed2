//! `pools rayon`: jobs without locks. `pools tokio`: tasks that write with a std mutex.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rayon::prelude::*;

static JOURNAL: Mutex<Vec<u64>> = Mutex::new(Vec::new());

#[inline(never)]
fn write_journal(entry: u64) {
    let mut journal = JOURNAL.lock().unwrap();
    std::thread::sleep(Duration::from_millis(1));
    journal.push(entry);
}

fn digest(from: u64) -> u64 {
    (0..400_000u64).fold(from, |sum, i| (sum ^ i).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17))
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("rayon") {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let sum = pool.install(|| (0..1_500u64).into_par_iter().map(digest).reduce(|| 0, u64::wrapping_add));
        println!("{sum}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let handle = Arc::new(());
    runtime.block_on(async {
        let tasks: Vec<_> = (0..1_000)
            .map(|entry| {
                let handle = handle.clone();
                tokio::spawn(async move {
                    write_journal(digest(entry));
                    drop(handle);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    println!("{}", JOURNAL.lock().unwrap().len());
}
