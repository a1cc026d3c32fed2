//! Crowds: many threads whose waits one thread ends at once, by a broadcast, or as a writer that lets readers
//! in. They are gathered on a word of that thread's stack, and woken by one call; some have deadlines, and go
//! to sleep again on words at the same addresses.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{Preference, RawRwLock};
use spinpark_platform::Deadline;
use spinpark_sim::{Sim, Tuned, here};

use super::condvar::Pair;
use super::subject::soon;
use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::guard::wander;
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// Threads that wait: more than are woken one by one, before the crowd.
const LEAST: usize = 6;
const MOST: usize = 16;
/// So often the thread that ends the waits finds that no other has come: those that it waits for sleep on.
const MOST_POLLS: u32 = 3_000;

struct Crowd<T: Tuned> {
    pair: Pair<T>,
    lock: Mortal<RawRwLock<Sim<T>>>,
    guard: Guard,
    /// Whether the waits are those of readers.
    reads: bool,
    /// Waiters that have come to their waits, in all rounds.
    come: Cell<u32>,
    /// The last round whose waits were ended.
    ended: Cell<u32>,
}

fn deadline() -> Option<Deadline> {
    (here::random(4) == 0).then(soon)
}

impl<T: Tuned> Crowd<T> {
    fn come(&self) {
        self.come.set(self.come.get() + 1);
    }

    fn wait(&self, round: u32) {
        if !self.reads {
            self.pair.lock();
            self.come();
            while self.ended.get() < round {
                self.pair.wait(deadline());
            }
            return self.pair.unlock();
        }
        // The next writer comes once all have read.
        while self.ended.get() < round {
            here::sleep(here::random(5_000));
        }
        while !self.lock.read_until(Preference::Readers, deadline()) {}
        self.guard.visit(Hold::Shared);
        self.lock.unlock_read();
        self.come();
    }

    fn end_waits(&self, round: u32, waiters: u32) {
        let all_have_come = |rounds: u32| {
            let (mut before, mut polls) = (0, 0);
            while self.come.get() < rounds * waiters {
                let come = self.come.get();
                polls = if std::mem::replace(&mut before, come) == come { polls + 1 } else { 0 };
                if polls == MOST_POLLS {
                    here::fail(format!("a crowd: {} waiters sleep on", rounds * waiters - come));
                }
                here::sleep(here::random(5_000));
            }
        };
        if self.reads {
            self.lock.write();
            self.guard.enter(Hold::Alone);
            self.ended.set(round);
            here::sleep(5_000 + here::random(20_000)); // most queue
            self.guard.leave(Hold::Alone);
            self.lock.unlock_write();
            return all_have_come(round);
        }
        all_have_come(round);
        self.pair.lock();
        self.ended.set(round);
        let under = here::random(2) == 0;
        if under {
            self.pair.condvar.broadcast();
        }
        self.pair.unlock();
        if !under {
            self.pair.condvar.broadcast();
        }
    }
}

/// One thread ends the waits of all others, again and again.
pub(super) fn any(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let waiters = (LEAST + program.random(MOST - LEAST + 1)) as u32;
        let rounds = program.rounds().min(6);
        let reads = program.random(2) == 0;
        let what = if reads { "readers behind a writer" } else { "waiters of a condition variable" };
        program.about(format!("a crowd of {waiters} {what}, {rounds} times"));
        program.most_steps(300_000); // ten times the longest run
        let pair = Pair::<T>::draw(program);
        let lock = Mortal::new(RawRwLock::new());
        program.name_fields("lock", &lock, decode::RWLOCK);
        let (come, ended) = (Cell::new(0), Cell::new(0));
        let crowd = Rc::new(Crowd { pair, lock, guard: Guard::new(), reads, come, ended });
        for _ in 0..waiters {
            let crowd = Rc::clone(&crowd);
            program.thread(move || {
                for round in 1..=rounds {
                    crowd.wait(round);
                    wander();
                }
            });
        }
        program.thread(move || (1..=rounds).for_each(|round| crowd.end_waits(round, waiters)));
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}
