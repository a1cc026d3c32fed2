//! What the models of condition variables share: tokens behind a mutex, threads that add them, and threads
//! that wait for them.

use std::sync::Arc;

use loom::thread::{self, JoinHandle};
use spinpark_classics::condvar_2003::{Condvar, Signalling};
use spinpark_classics::mutex_2003::Mutex;
use spinpark_locks::{RawCondvar, RawMutex};

use crate::{Guarded, Loom};

/// A condition variable and the mutex that it goes with.
pub trait Signals: Default + 'static {
    /// The mutex.
    type Mutex: Default + 'static;

    /// Locks the mutex.
    fn lock(mutex: &Self::Mutex);

    /// Unlocks it.
    fn unlock(mutex: &Self::Mutex);

    /// Waits without a deadline.
    fn wait(&self, mutex: &Self::Mutex);

    /// Wakes one waiter.
    fn signal(&self);
}

impl Signals for RawCondvar<Loom> {
    type Mutex = RawMutex<Loom>;

    fn lock(mutex: &Self::Mutex) {
        mutex.lock();
    }

    fn unlock(mutex: &Self::Mutex) {
        mutex.unlock();
    }

    fn wait(&self, mutex: &Self::Mutex) {
        self.wait(mutex, None);
    }

    fn signal(&self) {
        self.signal();
    }
}

impl<S: Signalling + 'static> Signals for Condvar<Loom, S> {
    type Mutex = Mutex<Loom>;

    fn lock(mutex: &Self::Mutex) {
        mutex.lock();
    }

    fn unlock(mutex: &Self::Mutex) {
        mutex.unlock();
    }

    fn wait(&self, mutex: &Self::Mutex) {
        self.wait(mutex, None);
    }

    fn signal(&self) {
        self.signal();
    }
}

/// Tokens, and those that were taken.
#[derive(Debug)]
pub struct Tokens<C: Signals> {
    /// The mutex.
    pub mutex: C::Mutex,
    /// Where threads wait for a token.
    pub condvar: C,
    /// What waiters wait for; guarded by the mutex.
    pub tokens: Guarded,
    /// Tokens taken; guarded by the mutex.
    pub taken: Guarded,
}

impl<C: Signals> Tokens<C> {
    /// No tokens.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: C::Mutex::default(),
            condvar: C::default(),
            tokens: Guarded::new(),
            taken: Guarded::new(),
        })
    }

    /// Another thread of the model.
    pub fn spawn(self: &Arc<Self>, run: impl FnOnce(&Self) + 'static) -> JoinHandle<()> {
        let shared = Arc::clone(self);
        thread::spawn(move || run(&shared))
    }

    /// Waits until there is a token, and takes it.
    pub fn take(&self) {
        C::lock(&self.mutex);
        while self.taken.get() == self.tokens.get() {
            self.condvar.wait(&self.mutex);
        }
        self.taken.add();
        C::unlock(&self.mutex);
    }

    /// Adds a token.
    pub fn put(&self) {
        C::lock(&self.mutex);
        self.tokens.add();
        C::unlock(&self.mutex);
    }

    /// Adds a token, and signals before the mutex is unlocked.
    pub fn put_and_signal(&self) {
        C::lock(&self.mutex);
        self.tokens.add();
        self.condvar.signal();
        C::unlock(&self.mutex);
    }
}
