//! The threads of a [`Profile`](crate::model::Profile): how long they were there, and what they still waited for at the end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use spinpark_observe::format::{self, NONE};

use super::merge::{Merge, role, text};
use super::thread_tables::Tables;
use super::waiting::{Holders, Waiter};
use crate::model::{Holder, Thread, Waiting};

impl Merge<'_> {
    /// How long a table's threads were there: each from its first use of a lock, its latest one until the end of the recording.
    /// The recorder does not see threads end, so time after the latest wait or measured hold counts, too.
    fn time_of(&self, table: &format::Thread, duration: u64) -> u64 {
        let since = self.clock.since_start(table.since);
        self.clock.ns(table.past.load(Relaxed)) + duration.saturating_sub(since)
    }

    /// Whether the table's latest thread had ended before the recording did.
    fn has_ended(&self, table: &format::Thread) -> bool {
        let (pid, id) = (self.view.header().pid, table.id.load(Relaxed));
        let is_gone = || {
            let tasks = Path::new("/proc").join(pid.to_string()).join("task");
            tasks.is_dir() && !tasks.join(id.to_string()).exists()
        };
        table.ended.load(Relaxed) != 0 || self.is_running && is_gone()
    }

    pub(super) fn threads(&self, duration: u64, waiters: &[Waiter]) -> Vec<Thread> {
        let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
        for (_, table) in self.view.threads() {
            let thread = Thread {
                id: table.id.load(Acquire),
                name: text(&table.name).next().unwrap_or_default(),
                users: table.users.load(Relaxed).max(1),
                time: self.time_of(table, duration),
                has_ended: self.has_ended(table),
                waits: table.waits.load(Relaxed),
                waited: self.clock.ns(table.waited.load(Relaxed)),
            };
            match threads.get_mut(&thread.id) {
                None => drop(threads.insert(thread.id, thread)),
                // Two tables of one thread, which is counted in both.
                Some(known) => {
                    known.users += thread.users - 1;
                    known.time = known.time.max(thread.time);
                    known.has_ended &= thread.has_ended;
                    known.waits += thread.waits;
                    known.waited = known.waited.saturating_add(thread.waited);
                }
            }
        }
        for waiter in waiters {
            if let Some(thread) = threads.get_mut(&waiter.thread) {
                thread.waits += 1;
                thread.waited = thread.waited.saturating_add(self.clock.ns(waiter.ticks));
            }
        }
        let mut threads: Vec<Thread> = threads.into_values().collect();
        threads.sort_by_key(|thread| (Reverse(thread.waited), thread.id));
        threads
    }

    /// Waits that had not ended.
    pub(super) fn waiting(&mut self, waiters: &[Waiter], holders: &Holders, tables: &Tables) -> Vec<Waiting> {
        let of_one = |waiter: &Waiter| {
            let begun = &waiter.begun;
            let holder = match holders.of(waiters, waiter).first() {
                Some((index, stack)) => {
                    let stack = if *stack == NONE { begun.holder } else { *stack };
                    Some((waiters[*index].thread, stack, true))
                }
                None if begun.owner != 0 || begun.holder != NONE => Some((begun.owner, begun.holder, false)),
                None => None,
            };
            Waiting {
                thread: waiter.thread,
                lock: begun.lock,
                role: role(waiter.role),
                call_site: self.call_site(begun.stack),
                time: self.clock.ns(waiter.ticks),
                is_timed: begun.is_timed,
                holder: holder.map(|(thread, stack, is_sure)| Holder {
                    thread: (thread != 0).then_some(thread),
                    call_site: self.holder(tables, begun.lock, stack).0,
                    is_sure,
                }),
            }
        };
        waiters.iter().map(of_one).collect()
    }
}
