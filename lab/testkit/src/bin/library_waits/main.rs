//! Waits of known number and length for what libraries of Rust have: see `waits/rounds.h`, of which this is
//! the same in Rust.

use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, Once, RwLock};
use tokio::runtime::{Builder, Runtime};

include!("../../../waits/rounds.rs");

static MUTEX: Mutex<u32> = Mutex::new(0);
static RWLOCK: RwLock<u32> = RwLock::new(0);
static CHANGED: Condvar = Condvar::new();

scene! { mutex:
    comes(_round) { *MUTEX.lock() += 1; }
    lets_go(_round) {
        let guard = MUTEX.lock();
        let_come();
        drop(guard);
    }
}

scene! { read:
    comes(_round) { black_box(*RWLOCK.read()); }
    lets_go(_round) {
        let guard = RWLOCK.write();
        let_come();
        drop(guard);
    }
}

scene! { write:
    comes(_round) { *RWLOCK.write() += 1; }
    lets_go(_round) {
        let guard = RWLOCK.read();
        let_come();
        drop(guard);
    }
}

scene! { condvar:
    comes(round) {
        let mut count = MUTEX.lock();
        while *count == round {
            CHANGED.wait(&mut count);
        }
    }
    lets_go(round) {
        let_come();
        *MUTEX.lock() = round + 1;
        CHANGED.notify_one();
    }
}

static ONCES: [Once; ROUNDS] = [const { Once::new() }; ROUNDS];

scene! { once:
    comes(round) { ONCES[round as usize].call_once(|| unreachable!()); }
    lets_go(round) { ONCES[round as usize].call_once(let_come); }
}

static CHANNEL: LazyLock<(crossbeam_channel::Sender<u32>, crossbeam_channel::Receiver<u32>)> =
    LazyLock::new(crossbeam_channel::unbounded);

scene! { channel:
    comes(round) { assert_eq!(CHANNEL.1.recv(), Ok(round)); }
    lets_go(round) {
        let sender = &CHANNEL.0;
        let_come();
        sender.send(round).unwrap();
    }
}

static POOL: LazyLock<rayon::ThreadPool> =
    LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
static MAY_END: AtomicU32 = AtomicU32::new(0);

// A thread outside of the pool waits for a job in it.
scene! { job:
    comes(round) { POOL.install(|| until(|| MAY_END.load(SeqCst) > round)); }
    lets_go(round) {
        let_come();
        MAY_END.store(round + 1, SeqCst);
    }
}

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).build().unwrap());
static TOKIO_MUTEX: tokio::sync::Mutex<u32> = tokio::sync::Mutex::const_new(0);

// A thread waits for a lock of tokio's without a task.
scene! { blocking:
    comes(_round) { *TOKIO_MUTEX.blocking_lock() += 1; }
    lets_go(_round) {
        let guard = TOKIO_MUTEX.blocking_lock();
        let_come();
        drop(guard);
    }
}

// A thread waits for a task.
scene! { block_on:
    comes(round) {
        RUNTIME.block_on(async {
            RUNTIME.spawn_blocking(move || until(|| MAY_END.load(SeqCst) > round)).await.unwrap();
        });
    }
    lets_go(round) {
        let_come();
        MAY_END.store(round + 1, SeqCst);
    }
}

fn main() {
    run_scene(&[
        mutex::SCENE,
        read::SCENE,
        write::SCENE,
        condvar::SCENE,
        once::SCENE,
        channel::SCENE,
        job::SCENE,
        blocking::SCENE,
        block_on::SCENE,
    ]);
}
