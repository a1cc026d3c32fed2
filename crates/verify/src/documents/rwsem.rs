//! The writers' side of document 002's rwsem, for the claims about its patches 8 and 9.
//!
//! Re-implemented from the description, with the kernel's count encoding (32 bits). There are writers only, and at most
//! one of them spins, so the MCS queue of spinners is left out. `wake_up_process` and `schedule` are loom's `unpark` and
//! `park`, which forgive more: a wake-up that comes while the task runs is kept for its next sleep. Atomic
//! read-modify-writes are full barriers, as the kernel's are; `owner` and `wakeup` are plain there, relaxed here.

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicI32, fence};
use loom::sync::{Mutex, MutexGuard};
use loom::thread::{self, Thread};
use spinpark_platform::AtomicU32 as _;
use spinpark_platform::Ordering::{AcqRel, Relaxed, SeqCst};

use crate::platform::AtomicU32;

const ACTIVE_MASK: i32 = 0xffff;
const WAITING_BIAS: i32 = -ACTIVE_MASK - 1;
const WRITE_BIAS: i32 = WAITING_BIAS + 1;

const NOBODY: u32 = 0;

/// When the writer's release clears `owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clear {
    /// Before it releases the count, as later kernels do.
    Before,
    /// After that, as patch 8 does.
    After,
}

/// What keeps several releases from waking at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing: the series without patch 9.
    None,
    /// The plain `wakeup` flag of patch 9.
    Wakeup,
}

/// How a writer that was woken finds out whether it may try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// By reading the count, without `wait_lock`, and sleeping again if somebody is active: the code as it was.
    WithoutLock,
    /// Under `wait_lock` only: what the comment in patch 9 takes for granted.
    UnderLock,
}

/// The semaphore.
#[derive(Debug)]
pub struct Rwsem {
    count: AtomicI32,
    wait_lock: Mutex<VecDeque<Thread>>,
    owner: AtomicU32,
    wakeup: AtomicU32,
    clear: Clear,
    flag: Flag,
    recheck: Recheck,
}

impl Rwsem {
    /// Held for writing by `owner`.
    pub fn held_by(owner: u32, clear: Clear, flag: Flag, recheck: Recheck) -> Self {
        Self {
            count: AtomicI32::new(WRITE_BIAS),
            wait_lock: Mutex::new(VecDeque::new()),
            owner: AtomicU32::new(owner),
            wakeup: AtomicU32::new(0),
            clear,
            flag,
            recheck,
        }
    }

    /// Who seems to own it: a guess.
    pub fn owner(&self) -> u32 {
        self.owner.load(Relaxed)
    }

    /// Patch 8's steal: takes the lock if nobody is active, past whoever waits.
    pub fn steal(&self, me: u32) -> bool {
        let count = self.count.load(Relaxed);
        let is_free = count == 0 || count == WAITING_BIAS;
        let is_taken =
            is_free && self.count.compare_exchange(count, count + WRITE_BIAS, AcqRel, Relaxed).is_ok();
        if is_taken {
            self.owner.store(me, Relaxed);
        }
        is_taken
    }

    /// Patch 8's optimistic spin: while there is an owner, wait until it changes, then try. Owners always run here;
    /// the time slice ends after `polls` polls.
    fn spin(&self, me: u32, mut polls: u32) -> bool {
        if self.owner() == NOBODY {
            return false; // perhaps readers
        }
        loop {
            let owner = self.owner();
            while owner != NOBODY && self.owner() == owner {
                if polls == 0 {
                    return false;
                }
                polls -= 1;
                thread::yield_now();
            }
            if owner != NOBODY && self.owner() != NOBODY {
                return false; // document 001's rule: it went to somebody else
            }
            if self.steal(me) {
                return true;
            }
            if polls == 0 {
                return false;
            }
            polls -= 1;
            thread::yield_now();
        }
    }

    /// Acquires for writing; spins for `polls` polls at most.
    pub fn down_write(&self, me: u32, polls: u32) {
        if self.count.fetch_add(WRITE_BIAS, AcqRel) == 0 {
            self.owner.store(me, Relaxed);
            return;
        }
        self.count.fetch_sub(WRITE_BIAS, AcqRel);
        if self.spin(me, polls) {
            return;
        }
        let mut list = self.wait_lock.lock().unwrap();
        let is_first = list.is_empty();
        list.push_back(thread::current());
        let waiting = if is_first { WAITING_BIAS } else { 0 };
        let mut count = self.count.fetch_add(waiting, AcqRel) + waiting;
        loop {
            if count & ACTIVE_MASK == 0 {
                let others = if list.len() > 1 { WAITING_BIAS } else { 0 };
                let new = WRITE_BIAS + others;
                if self.count.compare_exchange(WAITING_BIAS, new, AcqRel, Relaxed).is_ok() {
                    break;
                }
            }
            drop(list);
            (count, list) = self.sleep();
        }
        let myself = thread::current().id();
        list.retain(|waiter| waiter.id() != myself);
        drop(list);
        self.owner.store(me, Relaxed);
    }

    /// Sleeps until nobody is active; returns with `wait_lock`.
    fn sleep(&self) -> (i32, MutexGuard<'_, VecDeque<Thread>>) {
        loop {
            thread::park();
            fence(SeqCst); // set_task_state
            match self.recheck {
                Recheck::WithoutLock => {
                    let count = self.count.load(Relaxed);
                    if count & ACTIVE_MASK == 0 {
                        return (count, self.wait_lock.lock().unwrap());
                    }
                }
                Recheck::UnderLock => {
                    let list = self.wait_lock.lock().unwrap();
                    fence(SeqCst);
                    return (self.count.load(Relaxed), list);
                }
            }
        }
    }

    /// Releases.
    pub fn up_write(&self) {
        if self.clear == Clear::Before {
            self.owner.store(NOBODY, Relaxed);
        }
        let count = self.count.fetch_sub(WRITE_BIAS, AcqRel) - WRITE_BIAS;
        fence(SeqCst);
        if count < 0 {
            self.wake();
        }
        if self.clear == Clear::After {
            self.owner.store(NOBODY, Relaxed);
        }
    }

    fn wake(&self) {
        if self.flag == Flag::Wakeup {
            if self.wakeup.load(Relaxed) != 0 {
                return; // somebody else is about to wake
            }
            self.wakeup.store(1, Relaxed);
        }
        let list = self.wait_lock.lock().unwrap();
        if let Some(first) = list.front() {
            first.unpark();
        }
        self.wakeup.store(0, Relaxed);
    }
}
