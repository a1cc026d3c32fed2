//! Threads that all start, or none does anything.
//!
//! As a barrier, but for the day on which a thread cannot be created: those that are there already are sent
//! home, and the caller gets an error instead of waiting for ever.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

use thiserror::Error;

/// A thread that could not be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "cannot start thread {number} of {of}: {error}\nUse fewer threads, or allow more: `ulimit -u` (threads), `ulimit -v` (memory)"
)]
pub struct NoThread {
    number: usize,
    of: usize,
    error: String,
}

/// What the threads wait for.
#[derive(Debug, Default)]
pub struct StartGate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    /// Whether it is opened; false: all waiters leave.
    opened: Option<bool>,
}

impl StartGate {
    /// Waits until it is opened. False: there is nothing to do.
    pub fn pass(&self) -> bool {
        let mut state = self.state();
        state.arrived += 1;
        self.changed.notify_all();
        loop {
            if let Some(opened) = state.opened {
                return opened;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `threads` threads wait.
    pub fn wait_for(&self, threads: usize) {
        let state = self.state();
        let missing = |state: &mut State| state.arrived < threads;
        drop(self.changed.wait_while(state, missing).unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets them all go on.
    pub fn open(&self) {
        self.set(true);
    }

    fn set(&self, opened: bool) {
        self.state().opened = Some(opened);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a thread for each number below `threads`. Their `work` calls [`StartGate::pass`], and does nothing
/// if that is false.
///
/// # Errors
///
/// If one cannot be created. The others are sent home then.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    gate: &StartGate,
    threads: usize,
    work: impl Fn(usize) -> T + Copy + Send + 'scope,
) -> Result<Vec<ScopedJoinHandle<'scope, T>>, NoThread> {
    let start = |number: usize| {
        let spawned = thread::Builder::new().spawn_scoped(scope, move || work(number));
        spawned.map_err(|error| NoThread { number: number + 1, of: threads, error: error.to_string() })
    };
    (0..threads).map(start).collect::<Result<Vec<_>, _>>().inspect_err(|_| gate.set(false))
}

/// The one thread more that a process has.
///
/// # Errors
///
/// If it cannot be created.
pub fn start_one<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, NoThread> {
    let spawned = thread::Builder::new().spawn_scoped(scope, work);
    spawned.map_err(|error| NoThread { number: 1, of: 1, error: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pass_when_it_is_opened() {
        let gate = &StartGate::default();
        let passed = thread::scope(|scope| {
            let threads = start(scope, gate, 3, |number| (number, gate.pass())).unwrap();
            gate.wait_for(3);
            gate.open();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(passed, [(0, true), (1, true), (2, true)]);
    }

    #[test]
    fn no_thread_waits_for_a_thread_that_does_not_come() {
        let gate = &StartGate::default();
        let passed = thread::scope(|scope| {
            let threads = start(scope, gate, 2, |_| gate.pass()).unwrap();
            gate.set(false);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(passed, [false, false]);
    }
}
