//! Waits that had not ended: counted as if they had ended with the recording, and the cycles among them.
//!
//! A waiting thread notes what it waits for, the holder when the wait began, and what it holds itself. The
//! notes of other waiting threads tell which of them still hold it: a thread cannot release a lock while it
//! waits.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use spinpark_recorder::format::{Begun, Kind, NONE, Role, Thread, View};

use super::meaning::Meanings;
use super::thread_tables::Tables;

/// A thread that has been in one wait for this part of the run was never woken in it.
const NEVER: f64 = 0.9;

/// A thread that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    /// Its id.
    pub(super) thread: u32,
    /// What it noted; the lock is the record that counts.
    pub(super) begun: Begun,
    pub(super) role: Role,
    /// It waits for the end of a thread.
    pub(super) is_join: bool,
    /// Ticks until the end.
    pub(super) ticks: u64,
    table: u32,
    unseen_release: u64,
    /// Where the semaphore is that it waits for, if it is one.
    semaphore: Option<u64>,
    /// Semaphores that it has: of those that are used as locks.
    semaphores: Vec<u64>,
}

impl Waiter {
    /// Whether it has been in its wait, for what may be a lock or a signal, for nearly all of the recording.
    /// `time`: ns, as `duration`.
    pub(super) fn was_never_woken(&self, time: u64, duration: u64) -> bool {
        is_never_woken(self.role == Role::Wake, time, duration)
    }
}

/// The same of a wait; `may_be` for a lock or a signal: for another thread's wake.
pub(crate) fn is_never_woken(may_be: bool, time: u64, duration: u64) -> bool {
    may_be && time as f64 >= NEVER * duration as f64
}

/// The waits that had not ended at `end`, the longest first. `same`: records of locks that count;
/// `has_ended`: of a thread, which has left its wait then: by `pthread_exit` in a signal handler, or
/// cancelled.
pub(super) fn waiters(
    view: View<'_>,
    same: &HashMap<u32, u32>,
    meanings: &Meanings,
    end: u64,
    has_ended: impl Fn(&Thread) -> bool,
) -> Vec<Waiter> {
    let mut waiters: Vec<Waiter> = view
        .threads()
        .filter(|(_, table)| !has_ended(table))
        .filter_map(|(number, table)| {
            let begun = table.waiting.get()?;
            let lock = *same.get(&begun.lock)?;
            Some(Waiter {
                thread: table.id.load(Acquire),
                begun: Begun { lock, ..begun },
                role: meanings.role(begun.lock, Role::from_number(begun.role)?),
                is_join: meanings.is_join(begun.lock),
                ticks: end.saturating_sub(begun.since),
                table: number,
                unseen_release: table.unseen_release.load(Relaxed),
                semaphore: view
                    .lock(begun.lock)
                    .filter(|record| record.kind.load(Acquire) == Kind::Semaphore as u32)
                    .map(|record| record.address),
                semaphores: table
                    .semaphores
                    .iter()
                    .map(|address| address.load(Relaxed))
                    .take_while(|address| *address != 0)
                    .collect(),
            })
        })
        .collect();
    waiters.sort_by_key(|waiter| (waiter.begun.since, waiter.thread));
    waiters
}

impl Tables {
    /// Counts waits that had not ended. `same`: records of locks that count; `ns`: of a number of ticks;
    /// `end`: ns after the start.
    pub(super) fn count_waiters(
        &mut self,
        waiters: &[Waiter],
        same: &HashMap<u32, u32>,
        ns: impl Fn(u64) -> u64,
        end: u64,
    ) {
        for waiter in waiters {
            let Waiter { begun, role, ticks, .. } = waiter;
            // A thread that was never woken has had no work: that is listed as a wait that has not ended, and
            // in no sum.
            if waiter.was_never_woken(ns(*ticks), end) {
                continue;
            }
            let which = (begun.lock, *role);
            self.locks.entry(which).or_default().still_waits(*ticks, ns(*ticks), end);
            self.sites.entry((which, begun.stack)).or_default().still_waits(*ticks);
            if role.is_mutual() {
                self.pairs.entry((which, begun.stack, begun.holder)).or_default().still_waits(*ticks);
            }
        }
        // Only now it is known which locks were waited for.
        for Waiter { begun, role, ticks, table, .. } in waiters {
            let held = begun.holds.as_slice().iter().rev().filter_map(|hold| same.get(&hold.lock).copied());
            let outer = held.filter(|held| *held != begun.lock).find(|held| self.is_waited_for(*held));
            if let Some(outer) = outer {
                // In which role it is held is not noted.
                let is_read = self.locks.contains_key(&(outer, Role::Read));
                let how = (if is_read { Role::Read } else { Role::Write }, begun.is_timed);
                let sum = self.held_waits.entry(((begun.lock, *role), outer, how)).or_default();
                sum.waits.still_waits(*ticks);
                let behind = waiters.iter().filter(|other| other.begun.lock == outer);
                sum.blocked += behind.map(|other| other.ticks.min(*ticks)).sum::<u64>();
                sum.tables.insert(*table);
            }
        }
    }

    fn is_waited_for(&self, lock: u32) -> bool {
        let mut uses = self.locks.range((lock, Role::Write)..=(lock, Role::Late));
        uses.any(|(_, sum)| sum.contended > 0)
    }
}

/// The holders of what others wait for.
pub(super) struct Holders {
    /// By lock: waiters that hold it, and the stacks that took it.
    holders: HashMap<u32, Vec<(usize, u32)>>,
    /// By address, of semaphores.
    semaphores: HashMap<u64, Vec<usize>>,
    by_thread: HashMap<u32, usize>,
}

impl Holders {
    pub(super) fn new(waiters: &[Waiter], same: &HashMap<u32, u32>) -> Self {
        let mut holders: HashMap<u32, Vec<(usize, u32)>> = HashMap::new();
        let mut semaphores: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, waiter) in waiters.iter().enumerate() {
            for address in &waiter.semaphores {
                semaphores.entry(*address).or_default().push(index);
            }
            for hold in waiter.begun.holds.as_slice() {
                if let Some(lock) = same.get(&hold.lock) {
                    holders.entry(*lock).or_default().push((index, hold.stack));
                }
            }
        }
        let by_thread = waiters.iter().enumerate().map(|(index, waiter)| (waiter.thread, index)).collect();
        Self { holders, semaphores, by_thread }
    }

    /// The waiters that have what this one waits for, certainly, and the stacks that took it ([`NONE`]: not
    /// known).
    pub(super) fn of(&self, waiters: &[Waiter], waiter: &Waiter) -> Vec<(usize, u32)> {
        if let Some(address) = waiter.semaphore {
            // A thread that waits for a semaphore which it has waits for another one's post: Python's
            // condition variables are made so.
            return match self.semaphores.get(&address).map(Vec::as_slice) {
                Some([only]) if waiters[*only].thread != waiter.thread => vec![(*only, NONE)],
                _ => Vec::new(),
            };
        }
        if !waiter.role.is_mutual() {
            return Vec::new();
        }
        let begun = &waiter.begun;
        let mut found = self.holders.get(&begun.lock).cloned().unwrap_or_default();
        // Taken before any thread had waited for it, so not noted; and not released since the wait began.
        if let Some(index) = self.by_thread.get(&begun.owner).filter(|_| !begun.is_noted) {
            let has_it_still = waiters[*index].unseen_release <= begun.since;
            if has_it_still && found.iter().all(|(other, _)| other != index) {
                found.push((*index, NONE));
            }
        }
        found
    }

    /// Cycles of threads that wait for each other, as indices: each waits for what the next one holds, and
    /// the last one for what the first holds. None of them ends by itself: a wait with a deadline is in none.
    /// A thread is in one cycle at most. Any thread may post a semaphore: one counts as a lock only where the
    /// wait was `long`, ticks.
    pub(super) fn cycles(&self, waiters: &[Waiter], long: u64) -> Vec<Vec<usize>> {
        let next = |index: usize| -> Vec<usize> {
            let waiter = &waiters[index];
            if waiter.begun.is_timed || waiter.semaphore.is_some() && waiter.ticks < long {
                return Vec::new();
            }
            self.of(waiters, waiter).into_iter().map(|(holder, _)| holder).collect()
        };
        let mut cycles = Vec::new();
        let mut is_done = vec![false; waiters.len()];
        for start in 0..waiters.len() {
            // Depth first: the path from `start`, with what remains to be visited of each.
            let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
            if !is_done[start] {
                path.push((start, next(start)));
            }
            while let Some((index, left)) = path.last_mut() {
                let index = *index;
                let Some(holder) = left.pop() else {
                    is_done[index] = true;
                    path.pop();
                    continue;
                };
                if is_done[holder] {
                    continue;
                }
                match path.iter().position(|(other, _)| *other == holder) {
                    None => path.push((holder, next(holder))),
                    Some(from) => {
                        cycles.push(path[from..].iter().map(|(index, _)| *index).collect());
                        path.iter().for_each(|(index, _)| is_done[*index] = true);
                        path.clear();
                    }
                }
            }
        }
        cycles
    }
}
