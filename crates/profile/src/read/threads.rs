//! The threads of a [`Profile`](crate::model::Profile): how long they were there, and what they still waited
//! for at the end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use spinpark_recorder::format::{self, NONE};

use super::merge::{Merge, out_of_sight, role, text};
use super::thread_tables::{StripSum, Tables};
use super::waiting::{Holders, Waiter};
use crate::model::{CallSiteId, Holder, OutOfSight, Role, Thread, ThreadWait, Waiting};

impl Merge<'_> {
    /// How long a table's threads were there: each from its first use of a lock, its latest one until the end
    /// of the recording. The recorder does not see threads end, so time after the latest wait or measured
    /// hold counts, too.
    fn time_of(&self, table: &format::Thread, duration: u64) -> u64 {
        let since = self.clock.since_start(table.since);
        self.clock.ns(table.past.load(Relaxed)).saturating_add(duration.saturating_sub(since))
    }

    /// Whether the table's latest thread had ended before the recording did.
    pub(super) fn has_ended(&self, table: &format::Thread) -> bool {
        let (pid, id) = (self.view.header().pid, table.id.load(Relaxed));
        let is_gone = || {
            let tasks = Path::new("/proc").join(pid.to_string()).join("task");
            tasks.is_dir() && !tasks.join(id.to_string()).exists()
        };
        table.ended.load(Relaxed) != 0 || self.is_running && is_gone()
    }

    pub(super) fn threads(&self, duration: u64, waiters: &[Waiter], tables: &Tables) -> Vec<Thread> {
        let mut unclear: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        for ((table, (lock, wanted), _), (_, waited)) in &tables.by_thread {
            if role(*wanted) == Role::Wake {
                *unclear.entry(*table).or_default().entry(*lock).or_default() += waited;
            }
        }
        let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
        for (number, table) in self.view.threads() {
            let (signals, others) = tables.not_locks.get(&number).copied().unwrap_or_default();
            let unclear = unclear.remove(&number).unwrap_or_default().into_iter();
            let thread = Thread {
                id: table.id.load(Acquire),
                name: text(&table.name).next().unwrap_or_default(),
                users: table.users.load(Relaxed).max(1),
                time: self.time_of(table, duration),
                has_ended: self.has_ended(table),
                waits: table.waits.load(Relaxed),
                waited: self.clock.ns(table.waited.load(Relaxed)),
                signals: self.clock.ns(signals),
                others: self.clock.ns(others),
                unclear: unclear.map(|(lock, ticks)| (lock, self.clock.ns(ticks))).collect(),
                activity: StripSum::new(&table.activity).activity(),
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
                    known.signals = known.signals.saturating_add(thread.signals);
                    known.others = known.others.saturating_add(thread.others);
                    known.unclear.extend(&thread.unclear);
                    let [sum, more] = [&known.activity, &thread.activity].map(StripSum::of_activity);
                    known.activity = sum.and(&more).activity();
                }
            }
        }
        for waiter in waiters {
            if let Some(thread) = threads.get_mut(&waiter.thread) {
                thread.waits += 1;
                let time = self.clock.ns(waiter.ticks);
                thread.waited = thread.waited.saturating_add(time);
                match role(waiter.role) {
                    Role::Signal if !waiter.is_join => thread.signals = thread.signals.saturating_add(time),
                    Role::Wake if !waiter.was_never_woken(time, duration) => {
                        thread.others = thread.others.saturating_add(time);
                        thread.unclear.push((waiter.begun.lock, time));
                    }
                    Role::Signal | Role::Wake => thread.others = thread.others.saturating_add(time),
                    _ => {}
                }
            }
        }
        let mut threads: Vec<Thread> = threads.into_values().collect();
        threads.sort_by_key(|thread| (Reverse(thread.waited), thread.id));
        threads
    }

    /// Waits by the names of threads.
    pub(super) fn thread_waits(&mut self, tables: &Tables) -> Vec<ThreadWait> {
        let names: BTreeMap<u32, String> = self
            .view
            .threads()
            .map(|(number, table)| (number, text(&table.name).next().unwrap_or_default()))
            .collect();
        let groups = groups(names.values());
        let mut sums: BTreeMap<(String, u32, Role, CallSiteId), (u64, u64)> = BTreeMap::new();
        for ((table, (lock, wanted), stack), (count, waited)) in &tables.by_thread {
            let name = names.get(table).filter(|_| *waited > 0);
            let Some((name, call_site)) = name.zip(self.call_site(*stack)) else { continue };
            let group = groups.get(name).unwrap_or(name).clone();
            let sum = sums.entry((group, *lock, role(*wanted), call_site)).or_default();
            *sum = (sum.0 + count, sum.1.saturating_add(*waited));
        }
        let wait = |((thread, lock, role, call_site), (count, waited))| {
            let wait_total = self.clock.ns(waited);
            ThreadWait { thread, lock, role, call_site, count, wait_total }
        };
        sums.into_iter().map(wait).collect()
    }

    /// Waits that had not ended.
    pub(super) fn waiting(&mut self, waiters: &[Waiter], holders: &Holders, tables: &Tables) -> Vec<Waiting> {
        let tables_of_ended = self.view.threads().filter(|(_, table)| self.has_ended(table));
        let ids: BTreeSet<u32> = tables_of_ended.map(|(_, table)| table.id.load(Acquire)).collect();
        let ended = |thread: u32| ids.contains(&thread).then_some(OutOfSight::Ended);
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
                    doing: None,
                    out_of_sight: out_of_sight(stack).or_else(|| ended(thread)),
                }),
            }
        };
        waiters.iter().map(of_one).collect()
    }
}

/// The common name of threads of which the names differ by a number at the end: `worker-*`.
fn groups<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<String, String> {
    let mut by_start: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for name in names {
        let start = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
        by_start.entry(start).or_default().insert(name);
    }
    let groups = by_start.into_iter().filter(|(start, names)| !start.is_empty() && names.len() > 1);
    groups
        .flat_map(|(start, names)| names.into_iter().map(move |name| (name.clone(), format!("{start}*"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::groups;

    #[test]
    fn threads_that_differ_by_a_number_are_a_group() {
        let names = ["worker-1", "worker-2", "main", "io3", "7", "8"].map(String::from);
        let groups = groups(names.iter());
        let of = |name: &str| groups.get(name).map(String::as_str);
        assert_eq!((of("worker-1"), of("worker-2")), (Some("worker-*"), Some("worker-*")));
        assert_eq!((of("main"), of("io3"), of("7")), (None, None, None));
    }
}
