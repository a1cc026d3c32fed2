//! Two threads that take turns, so that it is known which one waits, and for how long.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::HOLD;

const ROUNDS: u32 = 10;

/// What one thread measured.
#[derive(Default)]
pub(crate) struct Truth {
    pub(crate) contended: u32,
    pub(crate) waited: Duration,
    pub(crate) held: Duration,
}

impl Truth {
    pub(crate) fn print<T: ?Sized>(&self, role: &str, lock: &T) {
        let address: *const T = lock;
        let (address, contended) = (address.cast::<()>() as usize, self.contended);
        println!("lock {role} {address} {contended} {} {}", self.waited.as_nanos(), self.held.as_nanos());
    }

    /// Waits for a lock and holds it for a time.
    pub(crate) fn wait<G>(&mut self, lock: impl FnOnce() -> G, release: impl FnOnce(G)) {
        let start = Instant::now();
        let guard = lock();
        let had = Instant::now();
        thread::sleep(HOLD);
        self.held += had.elapsed();
        release(guard);
        self.waited += had - start;
        self.contended += 1;
    }
}

/// A thread that is about to wait, by its id.
#[derive(Default)]
pub(crate) struct Waiting(AtomicU32);

impl Waiting {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(crate) fn announce(&self) {
        self.0.store(rustix::thread::gettid().as_raw_pid().cast_unsigned(), SeqCst);
    }

    /// Until that thread has gone to sleep, and then some.
    pub(crate) fn watch(&self) {
        let is_asleep = || {
            let thread = self.0.load(SeqCst);
            let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
            thread != 0 && stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))
        };
        while !is_asleep() {
            thread::yield_now();
        }
        self.0.store(0, SeqCst);
        thread::sleep(HOLD);
    }
}

/// In each round one thread holds a lock until the other waits for it; what the other measured.
pub(crate) fn rounds(hold: impl Fn(&Waiting), wait: impl Fn(&Waiting, &mut Truth) + Sync) -> Truth {
    let waiting = Waiting::default();
    let turn = std::sync::Barrier::new(2);
    let mut truth = Truth::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                turn.wait();
                while waiting.0.load(SeqCst) != u32::MAX {
                    thread::yield_now();
                }
                wait(&waiting, &mut truth);
                turn.wait();
            }
        });
        for _ in 0..ROUNDS {
            turn.wait();
            hold(&waiting);
            turn.wait();
        }
    });
    truth
}

/// The lock is held: the other thread may come.
pub(crate) fn let_come(waiting: &Waiting) {
    waiting.0.store(u32::MAX, SeqCst);
    while waiting.0.load(SeqCst) == u32::MAX {
        thread::yield_now();
    }
    waiting.watch();
}
