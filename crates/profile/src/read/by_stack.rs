//! What waits are for of which the recorder knows less: a name from their stacks, by
//! [the table of waits](crate::waits).
//!
//! - **Futexes and semaphores.** The recorder knows no more than an address and a stack; each stack has a
//!   record of its own. What stands for one object becomes one.
//! - **Condition variables of runtimes that make locks of them**, one for each thread: Java's monitors,
//!   JavaScript's `Atomics.wait`. Which object a thread waits for, its stack shows; the condition variable
//!   does not. So waits at such stacks are taken out of it, and those in one function become one object.
//! - **Condition variables of locks that programs make** ([`made_locks`](super::made_locks)): waits for all
//!   of one lock become waits for that lock.
//!
//! Of the waits at a stack only number, sum and longest are recorded: their lengths have no histogram, and
//! they are spread over time as all waits for the condition variable are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering::Acquire;

use spinpark_recorder::format::{self, View, WaitOutcome};

use super::meaning::{Meanings, Moved, Taken, noted};
use super::merge::{Merge, kind};
use super::thread_tables::{LockSum, SiteSum, StripSum, Tables, Use};
use super::waiting::Waiter;
use crate::model::Kind;
use crate::waits::WaitTarget;

impl Merge<'_> {
    /// The meanings; in `same`, records that stand for one object have one number from now on.
    pub(super) fn meanings(&mut self, view: View<'_>, same: &mut HashMap<u32, u32>) -> Meanings {
        let mut meanings = Meanings::default();
        /// What distinguishes objects.
        #[derive(PartialEq, Eq, Hash)]
        enum Which {
            At(u64, u64),
            In(String),
        }
        let mut first: HashMap<(Kind, Option<String>, Which), u32> = HashMap::new();
        for (number, record) in view.locks() {
            let noted = format::Kind::from_number(record.kind.load(Acquire));
            let Some(noted) = noted.filter(|noted| noted.is_by_stack()) else { continue };
            let stack = record.stack.load(Acquire);
            let Some(kind) = kind(noted as u32) else { continue };
            let call_site = self.call_site(stack);
            let mut wait = self.wait_of(stack).cloned().unwrap_or_else(|| WaitTarget::of_kind(kind));
            // A job's end is waited for at a futex, and a thread's by libc.
            wait.kind = match (wait.kind, kind) {
                (_, Kind::Join) => Kind::Join,
                (Kind::Join, _) => Kind::Job,
                (kind, _) => kind,
            };
            let which = match call_site.filter(|_| wait.is_by_function) {
                _ if wait.is_single => Which::In(String::new()),
                Some(call_site) => Which::In(self.function_of(&wait, Some(call_site))),
                // Another one may have come to the address since.
                None => Which::At(record.address, 0),
            };
            let object = first.entry((wait.kind, wait.name.clone(), which)).or_insert(number);
            same.insert(number, *object);
            meanings.0.insert(number, wait);
        }
        meanings
    }
}

impl Merge<'_> {
    /// Takes them out. Waits that have not ended belong to these objects, too.
    pub(super) fn take_from_condvars(
        &mut self,
        tables: &mut Tables,
        waiters: &mut [Waiter],
    ) -> (Vec<Taken>, Moved) {
        let (mut taken, mut moved): (Vec<Taken>, Moved) = (Vec::new(), HashMap::new());
        let mut next = self.view.locks().map(|(number, _)| number + 1).max().unwrap_or(0);
        /// What distinguishes objects.
        #[derive(PartialEq, Eq, Hash)]
        enum Which {
            In(WaitTarget, String),
            At(u64),
        }
        let mut objects: HashMap<Which, usize> = HashMap::new();
        let is_condvars = |role: format::Role| {
            matches!(role, format::Role::Signal | format::Role::Back | format::Role::Late)
        };
        let sites = tables.sites.keys().filter(|((_, role), _)| is_condvars(*role));
        let at_sites = sites.map(|((lock, _), stack)| (*lock, *stack));
        let at_end = waiters.iter().filter(|waiter| waiter.role == format::Role::Signal);
        let places: BTreeSet<(u32, u32)> =
            at_sites.chain(at_end.map(|waiter| (waiter.begun.lock, waiter.begun.stack))).collect();
        let is_condvar = |(condvar, _): &(u32, u32)| {
            let record = self.view.lock(*condvar);
            record.is_some_and(|record| record.kind.load(Acquire) == format::Kind::Condvar as u32)
        };
        let places: BTreeSet<(u32, u32)> = places.into_iter().filter(is_condvar).collect();
        let made = self.made_locks(tables, &places);
        let mut condvars: BTreeSet<u32> = BTreeSet::new();
        for (condvar, stack) in places {
            let call_site = self.call_site(stack);
            let (wait, made_at) = match (self.wait_of(stack), made.get(&(condvar, stack))) {
                (Some(wait), _) if wait.kind != Kind::Condvar => {
                    // No thread's end is waited for so, but a job's.
                    let kind = if wait.kind == Kind::Join { Kind::Job } else { wait.kind };
                    (WaitTarget { kind, ..wait.clone() }, None)
                }
                (_, Some(lock)) => (WaitTarget::of_made(lock.role, lock.name.clone()), Some(lock.address)),
                _ => continue,
            };
            let (kind, role) = (wait.kind, wait.role);
            let which = match made_at {
                Some(address) => Which::At(address),
                None if wait.is_single => Which::In(wait.clone(), String::new()),
                None => Which::In(wait.clone(), self.function_of(&wait, call_site)),
            };
            let object = *objects.entry(which).or_insert_with(|| {
                taken.push(Taken { lock: next, wait, call_site, made_at });
                next += 1;
                taken.len() - 1
            });
            if kind == Kind::RwLock {
                taken[object].wait.kind = kind;
            }
            let to = (taken[object].lock, noted(role));
            for role in [format::Role::Signal, format::Role::Back, format::Role::Late] {
                tables.move_site(((condvar, role), stack), to);
            }
            tables.move_pairs(((condvar, format::Role::Signal), stack), to);
            moved.insert((condvar, stack), to);
            condvars.insert(condvar);
        }
        // Of condition variables that are for no lock it is enough to know where they are.
        let is_other = |lock: u32| {
            let record = self.view.lock(lock);
            record.is_some_and(|record| record.kind.load(Acquire) != format::Kind::Condvar as u32)
        };
        tables.pairs.retain(|((lock, role), ..), _| *role != format::Role::Signal || is_other(*lock));
        for condvar in condvars {
            tables.correct_longest((condvar, format::Role::Signal));
        }
        for waiter in waiters.iter_mut().filter(|waiter| waiter.role == format::Role::Signal) {
            if let Some((lock, role)) = moved.get(&(waiter.begun.lock, waiter.begun.stack)) {
                (waiter.begun.lock, waiter.role) = (*lock, *role);
            }
        }
        (taken, moved)
    }
}

impl Tables {
    /// The waits for a condition variable at a stack are for something else. The way back from one is a part
    /// of the same wait.
    fn move_site(&mut self, (from, stack): (Use, u32), to: Use) {
        let Some(mut site) = self.sites.remove(&(from, stack)) else { return };
        let is_signal = from.1 == format::Role::Signal;
        // The condition variable stays, with what is left: other records may name it.
        let (strip, timed_out) = self.locks.entry(from).or_default().take(&site);
        if !is_signal {
            (site.contended, site.acquisitions) = (0, 0);
        }
        // A lock is held until its owner signals. Whether it is from then on is not known.
        let is_lock = matches!(to.1, format::Role::Write | format::Role::Read);
        let signalled =
            self.pairs.range((from, stack, 0)..=(from, stack, u32::MAX)).map(|(_, sum)| sum.waited);
        let held = if is_lock && is_signal { signalled.sum::<u64>().min(site.waited) } else { 0 };
        let sum = self.locks.entry(to).or_default();
        sum.add_waits(&site, &strip, timed_out.min(site.contended), site.waited - held);
        self.sites.entry((to, stack)).or_default().merge(&site);
        let threads: BTreeMap<u32, (u64, u64)> = self
            .by_thread
            .iter()
            .filter(|((_, which, at), _)| *which == from && *at == stack)
            .map(|((table, ..), sum)| (*table, *sum))
            .collect();
        for (table, (count, waited)) in threads {
            self.by_thread.remove(&(table, from, stack));
            let sum = self.by_thread.entry((table, to, stack)).or_default();
            *sum = (sum.0 + if is_signal { count } else { 0 }, sum.1.saturating_add(waited));
            // Returns count as waiting for a lock there.
            let (signals, others) = self.not_locks.entry(table).or_default();
            if is_signal {
                *signals = signals.saturating_sub(waited);
            }
            match to.1 {
                format::Role::Signal => *signals = signals.saturating_add(waited),
                format::Role::Wake => *others = others.saturating_add(waited),
                _ => {}
            }
        }
    }

    /// The signals that ended the waits are releases of the lock.
    fn move_pairs(&mut self, (from, stack): (Use, u32), to: Use) {
        let at = |holder| (from, stack, holder);
        let pairs: Vec<u32> =
            self.pairs.range(at(0)..=at(u32::MAX)).map(|((.., holder), _)| *holder).collect();
        for holder in pairs {
            if let Some(sum) = self.pairs.remove(&at(holder)) {
                self.pairs.entry((to, stack, holder)).or_default().merge(&sum);
            }
        }
    }

    /// The longest of what is left.
    fn correct_longest(&mut self, of: Use) {
        let left = self.sites.range((of, 0)..=(of, u32::MAX)).map(|(_, site)| site.longest_wait).max();
        if let Some(sum) = self.locks.get_mut(&of) {
            sum.longest_wait = sum.longest_wait.min(left.unwrap_or(0));
        }
    }
}

impl LockSum {
    /// Takes the waits of a site away: their part of the strip, and how many of them have timed out at the
    /// least.
    fn take(&mut self, site: &SiteSum) -> (StripSum, u64) {
        let part = site.waited as f64 / self.waited.max(1) as f64;
        let mut strip = self.strip.clone();
        for (its, all) in strip.waited.iter_mut().zip(&mut self.strip.waited) {
            *its = ((*all as f64 * part).round() as u64).min(*all);
            *all -= *its;
        }
        let rest = 1.0 - (site.contended as f64 / self.contended.max(1) as f64).min(1.0);
        for bin in &mut self.waits {
            *bin = (*bin as f64 * rest).round() as u64;
        }
        self.contended = self.contended.saturating_sub(site.contended);
        self.acquisitions = self.acquisitions.saturating_sub(site.acquisitions);
        self.waited = self.waited.saturating_sub(site.waited);
        let timed_out = &mut self.outcomes[WaitOutcome::TimedOut as usize];
        let too_many = timed_out.saturating_sub(self.contended);
        *timed_out -= too_many;
        let parked = &mut self.outcomes[WaitOutcome::Parked as usize];
        *parked = parked.saturating_sub(site.contended.saturating_sub(too_many));
        (strip, too_many)
    }

    /// Adds the waits of a site; of `unsplit` ticks it is not known whether a lock was held or free.
    fn add_waits(&mut self, site: &SiteSum, strip: &StripSum, timed_out: u64, unsplit: u64) {
        self.contended = self.contended.saturating_add(site.contended);
        self.acquisitions = self.acquisitions.saturating_add(site.acquisitions);
        self.waited = self.waited.saturating_add(site.waited);
        self.longest_wait = self.longest_wait.max(site.longest_wait);
        self.unsplit = self.unsplit.saturating_add(unsplit);
        self.outcomes[WaitOutcome::TimedOut as usize] += timed_out;
        self.outcomes[WaitOutcome::Parked as usize] += site.contended - timed_out;
        self.strip.add(strip);
    }
}
