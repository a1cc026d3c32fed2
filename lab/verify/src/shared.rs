//! What most models share: a lock, data that it guards, and threads that use both.

use std::sync::Arc;

use loom::thread::{self, JoinHandle};
use spinpark_classics::RawLock;
use spinpark_locks::{Policy, Preference, RawMutex, RawRwLock, TryMutex as _};
use spinpark_platform::{Clock, Deadline, Platform};

use crate::Guarded;
use crate::platform::EPOCH_NS;

/// A lock and what it guards.
#[derive(Debug)]
pub struct Shared<L> {
    /// The lock.
    pub lock: L,
    /// The data.
    pub data: Guarded,
}

impl<L: 'static> Shared<L> {
    /// `lock`, with 0 behind it.
    pub fn new(lock: L) -> Arc<Self> {
        Arc::new(Self { lock, data: Guarded::new() })
    }

    /// Another thread of the model.
    pub fn spawn(self: &Arc<Self>, run: impl FnOnce(&Self) + 'static) -> JoinHandle<()> {
        let shared = Arc::clone(self);
        thread::spawn(move || run(&shared))
    }
}

impl<P: Platform, Q: Policy<P>> Shared<RawMutex<P, Q>> {
    /// One critical section.
    pub fn section(&self) {
        self.lock.lock();
        self.data.add();
        self.lock.unlock();
    }

    /// The same, if the mutex can be had until `deadline`.
    pub fn timed_section(&self, deadline: u64) {
        if self.lock.lock_until(after(deadline)) {
            self.data.add();
            self.lock.unlock();
        }
    }

    /// All others are done: the mutex is free, and no flag was left behind. Returns the sum.
    pub fn finish(&self) -> u32 {
        assert!(self.lock.try_lock(), "it is free");
        let sum = self.data.get();
        assert!(self.lock.unlock_alone(), "a flag was left behind");
        sum
    }
}

impl<P: Platform, Q: Policy<P>> Shared<RawRwLock<P, Q>> {
    /// One critical section of a writer.
    pub fn write(&self) {
        self.lock.write();
        self.data.add();
        self.lock.unlock_write();
    }

    /// The same, of a lock that prefers writers.
    pub fn write_first(&self) {
        self.lock.write_until_as(Preference::Writers, None);
        self.data.add();
        self.lock.unlock_write();
    }

    /// One of a writer, if the lock can be had until `deadline`.
    pub fn timed_write(&self, deadline: u64) {
        if self.lock.write_until(Some(after(deadline))) {
            self.data.add();
            self.lock.unlock_write();
        }
    }

    /// One critical section of a reader.
    pub fn read(&self, preference: Preference) {
        self.lock.read(preference);
        self.data.get();
        self.lock.unlock_read();
    }
}

/// Each thread makes this number of critical sections. Then the lock is free, and no section was lost.
pub fn sections<L: RawLock + 'static>(threads: u32, sections: u32) {
    let run = move |shared: &Shared<L>| {
        for _ in 0..sections {
            shared.lock.lock();
            shared.data.add();
            shared.lock.unlock();
        }
    };
    let shared = Shared::new(L::new());
    let others: Vec<_> = (1..threads).map(|_| shared.spawn(run)).collect();
    run(&shared);
    join_all(others);
    assert!(shared.lock.try_lock(), "it is free");
    assert_eq!(shared.data.get(), threads * sections);
}

/// So long after the start of the execution.
pub fn after(ns: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, at: EPOCH_NS + ns }
}

/// Waits for all of `threads`.
pub fn join_all(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}
