//! Scenes in which a lock goes to another thread by the fast path, which the recorder does not see; then the
//! program is killed.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

use spinpark::{Mutex, RwLock};

use crate::turns::Waiting;
use crate::{HOLD, STORE};

/// Until another thread has got so far.
fn await_stage(stage: &AtomicU32, number: u32) {
    while stage.load(SeqCst) < number {
        thread::yield_now();
    }
}

fn wait_for_ever() -> ! {
    loop {
        thread::park();
    }
}

static TABLE: RwLock<u32> = RwLock::new(0);
static OTHER: Mutex<u32> = Mutex::new(0);
static STAGE: AtomicU32 = AtomicU32::new(0);
static WAITING: Waiting = Waiting::new();

/// Waits for a lock, so that it is noted as its holder, and releases it by the fast path, which is not seen:
/// a waiter has given up.
fn hold_and_let_go_unseen<G>(
    lock: impl Fn() -> G + Send + Copy + 'static,
    give_up: impl FnOnce() + Send + 'static,
) {
    let first = thread::spawn(move || {
        let held = lock();
        STAGE.store(1, SeqCst);
        WAITING.watch();
        drop(held);
    });
    await_stage(&STAGE, 1);
    WAITING.announce();
    let held = lock();
    thread::spawn(give_up).join().expect("it gives up");
    drop(held);
    first.join().expect("it ends");
}

/// A thread that takes the other lock, and then waits for this one.
fn take_other_and_wait<G>(lock: impl Fn() -> G + Send + 'static) {
    thread::spawn(move || {
        let _other = OTHER.lock();
        STAGE.store(2, SeqCst);
        WAITING.announce();
        drop(lock());
    });
    await_stage(&STAGE, 2);
    WAITING.watch();
}

/// Waits for the other lock, and is killed then.
fn wait_for_other() {
    thread::spawn(|| {
        WAITING.watch();
        std::process::abort();
    });
    WAITING.announce();
    let _other = OTHER.lock();
}

/// Another thread takes the lock and keeps it; one that has the other lock waits for it; and this one waits
/// for that.
pub(crate) fn unseen_mutex() {
    hold_and_let_go_unseen(|| STORE.lock(), || assert!(STORE.try_lock_for(HOLD).is_none()));
    STAGE.store(0, SeqCst);
    thread::spawn(|| {
        let _held = STORE.lock();
        STAGE.store(1, SeqCst);
        wait_for_ever();
    });
    await_stage(&STAGE, 1);
    take_other_and_wait(|| STORE.lock());
    wait_for_other();
}

/// The note of the first hold is found to be stale by a writer that waits for readers; then the lock is taken
/// again, fast.
pub(crate) fn unseen_rwlock() {
    hold_and_let_go_unseen(|| TABLE.write(), || assert!(TABLE.try_write_for(HOLD).is_none()));
    let read = TABLE.read();
    thread::scope(|scope| {
        scope.spawn(|| {
            WAITING.announce();
            drop(TABLE.write());
        });
        WAITING.watch();
        drop(read);
    });
    let held = TABLE.write();
    STAGE.store(0, SeqCst);
    // The first waiter is let in, and keeps it.
    thread::spawn(|| {
        WAITING.announce();
        let _held = TABLE.write();
        STAGE.store(3, SeqCst);
        wait_for_ever();
    });
    WAITING.watch();
    take_other_and_wait(|| TABLE.write());
    drop(held);
    await_stage(&STAGE, 3);
    wait_for_other();
}
