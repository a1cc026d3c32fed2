//! Programs of our condition variable, with our mutex.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{
    LockCore, Policy, RawCondvar, RawMutex, TryMutex as _, Usual, WaitQueue, WaitResult, Waiter, WaiterRefs,
};
use spinpark_platform::{Deadline, Futex, Wait};
use spinpark_sim::{Sim, Tuned, here};

use super::order::{Monitor, order_of};
use super::subject::soon;
use crate::sim_programs::case::{tuned, with_a_policy};
use crate::sim_programs::decode;
use crate::sim_programs::guard::{stay, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// A mutex and a condition variable.
pub(super) struct Pair<T: Tuned, Q: Policy<Sim<T>> = Usual> {
    pub(super) mutex: Mortal<RawMutex<Sim<T>, Q>>,
    pub(super) condvar: Mortal<RawCondvar<Sim<T>, Q>>,
    refs: Mortal<WaiterRefs<Sim<T>>>,
    guard: Rc<Guard>,
}

impl<T: Tuned, Q: Policy<Sim<T>>> Clone for Pair<T, Q> {
    fn clone(&self) -> Self {
        let refs = self.refs.clone();
        Self { mutex: self.mutex.clone(), condvar: self.condvar.clone(), refs, guard: Rc::clone(&self.guard) }
    }
}

impl<T: Tuned, Q: Policy<Sim<T>>> Pair<T, Q> {
    pub(super) fn draw(program: &mut Program) -> Self {
        let mutex = Mortal::new(RawMutex::from_core(LockCore::with_policy(WaitQueue::new())));
        let condvar = Mortal::new(RawCondvar::with_policy(WaitQueue::new()));
        program.name_fields("mutex", &mutex, decode::MUTEX);
        program.name_fields("condvar", &condvar, decode::CONDVAR);
        let refs = Mortal::new(WaiterRefs::new());
        program.name("references", &refs);
        Self { mutex, condvar, refs, guard: Rc::new(Guard::new()) }
    }

    pub(super) fn lock(&self) {
        self.mutex.lock();
        self.guard.enter(Hold::Alone);
    }

    pub(super) fn unlock(&self) {
        self.guard.leave(Hold::Alone);
        self.mutex.unlock();
    }

    pub(super) fn wait(&self, deadline: Option<Deadline>) -> WaitResult {
        self.wait_and(deadline, || ())
    }

    /// A wait; `released`: it has released the mutex.
    pub(super) fn wait_and(&self, deadline: Option<Deadline>, released: impl FnOnce()) -> WaitResult {
        let waiter = Waiter::with_mutex(&self.mutex).cancellable(&self.refs);
        self.condvar.enqueue(&waiter);
        self.guard.leave(Hold::Alone);
        self.mutex.unlock_to_wait();
        released();
        waiter.sleep(deadline, <Sim<T>>::futex_wait);
        let result = self.condvar.finish(&waiter);
        if result == WaitResult::Signalled {
            self.condvar.settle(&waiter, false);
        }
        waiter.reacquire(result, &self.mutex);
        self.guard.enter(Hold::Alone);
        result
    }

    /// A wait that is cancelled at some time: it ends then, whatever has happened, and passes a signal on
    /// that it got.
    fn wait_cancelled(&self) -> WaitResult {
        let waiter = Waiter::with_mutex(&self.mutex).cancellable(&self.refs);
        self.condvar.enqueue(&waiter);
        self.unlock();
        let soon = soon();
        waiter.sleep(None, |word, value, _| match <Sim<T>>::futex_wait(word, value, Some(soon)) {
            Wait::ValueChanged => Wait::ValueChanged,
            _ => Wait::TimedOut,
        });
        let result = self.condvar.finish(&waiter);
        if result == WaitResult::Signalled {
            self.condvar.settle(&waiter, true);
        }
        waiter.reacquire(result, &self.mutex);
        self.guard.enter(Hold::Alone);
        WaitResult::TimedOut
    }

    /// A wait as with a mutex of another make.
    fn wait_alone(&self) -> WaitResult {
        let result = {
            let waiter = Waiter::without_mutex().cancellable(&self.refs);
            self.condvar.enqueue(&waiter);
            self.unlock();
            waiter.sleep(None, <Sim<T>>::futex_wait);
            let result = self.condvar.finish(&waiter);
            if result == WaitResult::Signalled {
                self.condvar.settle(&waiter, false);
            }
            result
        };
        self.lock();
        result
    }
}

/// Some put tokens and signal once for each; some take them; some wait once, impatiently, and pass a signal
/// on that they got. If a signal is spent on one who gives up, a taker sleeps for ever.
pub(super) fn tokens(program: &mut Program) {
    tuned!(program.case.constants, T => put_and_take::<T, Usual>(program));
}

/// The same, with any policy.
pub(super) fn policies(program: &mut Program) {
    with_a_policy!(program, Q => tuned!(program.case.constants, T => put_and_take::<T, Q>(program)));
}

fn put_and_take<T: Tuned, Q: Policy<Sim<T>>>(program: &mut Program) {
    let pair = Pair::<T, Q>::draw(program);
    program.about("our condition variable: tokens");
    let tokens = Rc::new(Cell::new(0u32));
    let rounds = program.rounds();
    // One of each kind at least.
    let takers = 1 + program.random(program.threads().div_ceil(2) as usize) as u32;
    let putters = 1 + program.random(takers as usize) as u32;
    let impatient = program.threads().saturating_sub(takers);
    let all = takers * rounds;
    for number in 0..putters {
        let (pair, tokens) = (pair.clone(), Rc::clone(&tokens));
        let mine = all / putters + u32::from(number < all % putters);
        program.thread(move || {
            for _ in 0..mine {
                pair.lock();
                tokens.set(tokens.get() + 1);
                let under = here::random(2) == 0;
                if under {
                    pair.condvar.signal();
                }
                stay();
                pair.unlock();
                if !under {
                    pair.condvar.signal();
                }
                wander();
            }
        });
    }
    for _ in 0..takers {
        let (pair, tokens) = (pair.clone(), Rc::clone(&tokens));
        program.thread(move || {
            for _ in 0..rounds {
                pair.lock();
                while tokens.get() == 0 {
                    match here::random(4) {
                        0 => pair.wait_alone(),
                        _ => pair.wait(None),
                    };
                }
                tokens.set(tokens.get() - 1);
                stay();
                pair.unlock();
                wander();
            }
        });
    }
    for _ in 0..impatient {
        let (pair, tokens) = (pair.clone(), Rc::clone(&tokens));
        program.thread(move || {
            for _ in 0..rounds {
                pair.lock();
                let mut result = WaitResult::TimedOut;
                if tokens.get() == 0 {
                    let is_timed = here::random(2) == 0;
                    result = if is_timed { pair.wait(Some(soon())) } else { pair.wait_cancelled() };
                }
                pair.unlock();
                if result == WaitResult::Signalled {
                    pair.condvar.signal();
                }
                wander();
            }
        });
    }
    program.after(move || {
        match (tokens.get(), pair.condvar.is_idle_with(&pair.refs), pair.condvar.has_waiters()) {
            (0, true, false) if pair.mutex.try_lock() && pair.mutex.unlock_alone() => Ok(()),
            state => Err(format!("tokens left, idle, waited for: {state:?}, or the mutex is not free")),
        }
    });
}

/// One waits, one signals until that has reached it, others come and go: a waiter is moved while its mutex is
/// released.
pub(super) fn tight(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let pair = Pair::<T>::draw(program);
        program.about("our condition variable: a waiter, a signaller without the mutex, and others");
        let rounds = program.rounds();
        let waiter = pair.clone();
        program.thread(move || {
            for _ in 0..rounds {
                waiter.lock();
                waiter.wait(None);
                waiter.unlock();
            }
        });
        let signaller = pair.clone();
        program.thread(move || {
            for _ in 0..rounds {
                while !signaller.condvar.signal() {
                    here::sleep(here::random(200));
                }
            }
        });
        for _ in 2..program.threads().min(4) {
            let pair = pair.clone();
            program.thread(move || {
                for _ in 0..rounds {
                    pair.lock();
                    here::compute(here::random(40));
                    pair.unlock();
                }
            });
        }
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}

impl<T: Tuned> Monitor for Pair<T> {
    const BY_PRIORITY: bool = true;

    fn lock(&self) {
        self.lock();
    }

    fn unlock(&self) {
        self.unlock();
    }

    fn wait(&self) {
        self.wait(None);
    }

    fn signal(&self) -> bool {
        self.condvar.signal()
    }

    fn broadcast(&self) -> u32 {
        self.condvar.broadcast()
    }
}

/// Signals and broadcasts under the mutex end the longest waits.
pub(super) fn order(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let pair = Pair::<T>::draw(program);
        program.about("our condition variable: order");
        order_of(program, pair);
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}

/// Variable and mutex are given back as soon as that is allowed: after signals and a broadcast, and by the
/// last one out.
pub(super) fn freed(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let pair = Pair::<T>::draw(program);
        program.about("our condition variable: destroyed right after a broadcast");
        let (users, is_gone) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let threads = program.threads();
        // All waiters of a condition variable have the same mutex.
        let is_alone = program.random(4) == 0;
        let leave = move |pair: &Pair<T>, users: &Cell<u32>| {
            users.set(users.get() + 1);
            let is_last = users.get() == threads;
            pair.unlock();
            if is_last {
                pair.mutex.destroy();
            }
        };
        for _ in 1..threads {
            let (pair, users, is_gone) = (pair.clone(), Rc::clone(&users), Rc::clone(&is_gone));
            program.thread(move || {
                pair.lock();
                if !is_gone.get() {
                    match here::random(3) {
                        _ if is_alone => pair.wait_alone(),
                        0 => pair.wait(Some(soon())),
                        1 => pair.wait_cancelled(),
                        _ => pair.wait(None),
                    };
                }
                leave(&pair, &users);
            });
        }
        program.thread(move || {
            here::sleep(here::random(50_000));
            pair.lock();
            is_gone.set(true);
            for _ in 0..here::random(3) {
                pair.condvar.signal();
            }
            pair.condvar.broadcast();
            // Waiters that have given up are still to unlink themselves, and some that were signalled hold
            // references.
            while !pair.condvar.is_idle_with(&pair.refs) {
                here::yield_now();
            }
            pair.condvar.destroy();
            pair.refs.destroy();
            leave(&pair, &users);
        });
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}
