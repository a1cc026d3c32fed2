//! Waits of known number and length for what Rust's std has: see `rounds.h`, of which this is the same in
//! Rust.

use std::hint::black_box;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Barrier, Condvar, Mutex, Once, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

include!("rounds.rs");

static MUTEX: Mutex<u32> = Mutex::new(0);
static RWLOCK: RwLock<u32> = RwLock::new(0);
static CHANGED: Condvar = Condvar::new();

scene! { mutex:
    comes(_round) { *MUTEX.lock().unwrap() += 1; }
    lets_go(_round) {
        let guard = MUTEX.lock().unwrap();
        let_come();
        drop(guard);
    }
}

scene! { read:
    comes(_round) { black_box(*RWLOCK.read().unwrap()); }
    lets_go(_round) {
        let guard = RWLOCK.write().unwrap();
        let_come();
        drop(guard);
    }
}

scene! { write:
    comes(_round) { *RWLOCK.write().unwrap() += 1; }
    lets_go(_round) {
        let guard = RWLOCK.read().unwrap();
        let_come();
        drop(guard);
    }
}

scene! { condvar:
    comes(round) {
        let mut count = MUTEX.lock().unwrap();
        while *count == round {
            count = CHANGED.wait(count).unwrap();
        }
    }
    lets_go(round) {
        let_come();
        *MUTEX.lock().unwrap() = round + 1;
        CHANGED.notify_one();
    }
}

scene! { timed_condvar:
    comes(round) {
        let count = MUTEX.lock().unwrap();
        let minute = Duration::from_secs(60);
        let (_count, result) = CHANGED.wait_timeout_while(count, minute, |count| *count == round).unwrap();
        assert!(!result.timed_out());
    }
    lets_go(round) {
        let_come();
        *MUTEX.lock().unwrap() = round + 1;
        CHANGED.notify_all();
    }
}

/// One that is made when it is first used.
struct Channel<S, R>(OnceLock<(S, Mutex<R>)>);

static CHANNEL: Channel<mpsc::Sender<u32>, mpsc::Receiver<u32>> = Channel(OnceLock::new());
static NARROW: Channel<mpsc::SyncSender<u32>, mpsc::Receiver<u32>> = Channel(OnceLock::new());

impl Channel<mpsc::Sender<u32>, mpsc::Receiver<u32>> {
    fn get(&self) -> &(mpsc::Sender<u32>, Mutex<mpsc::Receiver<u32>>) {
        self.0.get_or_init(|| {
            let (sender, receiver) = mpsc::channel();
            (sender, Mutex::new(receiver))
        })
    }
}

impl Channel<mpsc::SyncSender<u32>, mpsc::Receiver<u32>> {
    fn get(&self) -> &(mpsc::SyncSender<u32>, Mutex<mpsc::Receiver<u32>>) {
        self.0.get_or_init(|| {
            let (sender, receiver) = mpsc::sync_channel(0);
            (sender, Mutex::new(receiver))
        })
    }
}

scene! { channel:
    comes(round) { assert_eq!(CHANNEL.get().1.lock().unwrap().recv(), Ok(round)); }
    lets_go(round) {
        let sender = &CHANNEL.get().0;
        let_come();
        sender.send(round).unwrap();
    }
}

// A sender waits for a receiver.
scene! { narrow_channel:
    comes(round) { NARROW.get().0.send(round).unwrap(); }
    lets_go(round) {
        let receiver = &NARROW.get().1;
        let_come();
        assert_eq!(receiver.lock().unwrap().recv(), Ok(round));
    }
}

static BARRIER: OnceLock<Barrier> = OnceLock::new();

scene! { barrier:
    comes(_round) { BARRIER.get_or_init(|| Barrier::new(2)).wait(); }
    lets_go(_round) {
        let barrier = BARRIER.get_or_init(|| Barrier::new(2));
        let_come();
        barrier.wait();
    }
}

static ONCES: [Once; ROUNDS] = [const { Once::new() }; ROUNDS];

scene! { once:
    comes(round) { ONCES[round as usize].call_once(|| unreachable!()); }
    lets_go(round) { ONCES[round as usize].call_once(let_come); }
}

static CELLS: [OnceLock<u32>; ROUNDS] = [const { OnceLock::new() }; ROUNDS];

scene! { once_lock:
    comes(round) { black_box(CELLS[round as usize].get_or_init(|| unreachable!())); }
    lets_go(round) {
        CELLS[round as usize].get_or_init(|| {
            let_come();
            round
        });
    }
}

static PARKED: Mutex<Option<thread::Thread>> = Mutex::new(None);
static UNPARKED: AtomicU32 = AtomicU32::new(0);

scene! { park:
    comes(round) {
        while UNPARKED.load(SeqCst) == round {
            thread::park();
        }
    }
    lets_go(round) {
        let parked = PARKED.lock().unwrap().clone().unwrap();
        let_come();
        UNPARKED.store(round + 1, SeqCst);
        parked.unpark();
    }
    prepares { *PARKED.lock().unwrap() = Some(thread::current()); }
}

static MAY_END: AtomicU32 = AtomicU32::new(0);

fn until_it_may_end(round: u32) {
    until(|| MAY_END.load(SeqCst) > round);
}

scene! { scope:
    comes(round) {
        thread::scope(|scope| {
            scope.spawn(move || until_it_may_end(round));
        });
    }
    lets_go(round) {
        let_come();
        MAY_END.store(round + 1, SeqCst);
    }
}

static HANDLE: Mutex<Option<thread::JoinHandle<()>>> = Mutex::new(None);

scene! { join:
    comes(_round) {
        let handle = HANDLE.lock().unwrap().take().unwrap();
        handle.join().unwrap();
    }
    lets_go(round) {
        *HANDLE.lock().unwrap() = Some(thread::spawn(move || until_it_may_end(round)));
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
        timed_condvar::SCENE,
        channel::SCENE,
        narrow_channel::SCENE,
        barrier::SCENE,
        once::SCENE,
        once_lock::SCENE,
        park::SCENE,
        scope::SCENE,
        join::SCENE,
    ]);
}
