//! Condition variables of runtimes that make locks of them, one for each thread: Java's monitors, V8's `Atomics.wait`. Which object a
//! thread waits for, its stack tells; the condition variable does not. So waits at such stacks are taken out of it, and those in one function
//! become one object.
//!
//! Of the waits at a stack only number, sum and longest are recorded: their lengths have no histogram, and they are spread over time as all
//! waits for the condition variable are.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Acquire;

use spinpark_observe::format::{self, Outcome};

use super::merge::Merge;
use super::thread_tables::{LockSum, SiteSum, Tables};
use crate::model::{CallSiteId, Kind, Lock, Role};
use crate::waits::Wait;

/// The object that such waits were for.
pub(super) struct Taken {
    /// A number that no record has.
    pub(super) lock: u32,
    pub(super) wait: Wait,
    call_site: Option<CallSiteId>,
}

/// By condition variable and stack: the number of the object, and the role.
pub(super) type Moved = HashMap<(u32, u32), (u32, format::Role)>;

/// The role as recordings have it.
pub(super) fn noted(role: Role) -> format::Role {
    match role {
        Role::Write => format::Role::Write,
        Role::Read => format::Role::Read,
        Role::Wake => format::Role::Wake,
        _ => format::Role::Signal,
    }
}

impl Merge<'_> {
    /// Takes them out.
    pub(super) fn take_from_condvars(&mut self, tables: &mut Tables) -> (Vec<Taken>, Moved) {
        let (mut taken, mut moved): (Vec<Taken>, Moved) = (Vec::new(), HashMap::new());
        let mut next = self.view.locks().map(|(number, _)| number + 1).max().unwrap_or(0);
        let mut objects: HashMap<(Wait, String), usize> = HashMap::new();
        let signals: Vec<(u32, u32)> = tables
            .sites
            .keys()
            .filter(|((_, role), _)| *role == format::Role::Signal)
            .map(|((lock, _), stack)| (*lock, *stack))
            .collect();
        for (condvar, stack) in signals {
            let record = self.view.lock(condvar);
            if record.is_none_or(|record| record.kind.load(Acquire) != format::Kind::Condvar as u32) {
                continue;
            }
            let call_site = self.call_site(stack);
            let Some(wait) = self.wait_of(stack).filter(|wait| wait.kind != Kind::Condvar).cloned() else {
                continue;
            };
            let function = call_site.map_or_else(String::new, |call_site| self.function(call_site));
            let object = *objects.entry((wait.clone(), function)).or_insert_with(|| {
                taken.push(Taken { lock: next, wait, call_site });
                next += 1;
                taken.len() - 1
            });
            let to = (taken[object].lock, noted(taken[object].wait.role));
            tables.move_site((condvar, stack), to, taken[object].wait.kind);
            moved.insert((condvar, stack), to);
        }
        (taken, moved)
    }

    /// The objects, as locks.
    pub(super) fn taken_locks(taken: &[Taken]) -> impl Iterator<Item = Lock> {
        taken.iter().map(|taken| Lock {
            id: taken.lock,
            label: String::new(),
            name: None,
            address: 0,
            kind: taken.wait.kind,
            type_name: taken.wait.name.clone(),
            is_several: true,
            creation_site: taken.call_site,
            is_created: false,
            is_destroyed: false,
            roles: Vec::new(),
        })
    }
}

impl Tables {
    /// The waits for signals of a condition variable at a stack are for something else.
    fn move_site(&mut self, (condvar, stack): (u32, u32), to: (u32, format::Role), kind: Kind) {
        let from = (condvar, format::Role::Signal);
        let Some(site) = self.sites.remove(&(from, stack)) else { return };
        let left = self.locks.entry(from).or_default();
        let strip = left.take(&site);
        if left.contended == 0 {
            self.locks.remove(&from);
        }
        self.locks.entry(to).or_default().add_waits(&site, strip);
        self.sites.entry((to, stack)).or_default().merge(&site);
        let threads: BTreeMap<u32, (u64, u64)> = self
            .by_thread
            .iter()
            .filter(|((_, which, at), _)| *which == from && *at == stack)
            .map(|((table, ..), sum)| (*table, *sum))
            .collect();
        for (table, sum) in threads {
            self.by_thread.remove(&(table, from, stack));
            self.by_thread.insert((table, to, stack), sum);
            let (signals, others) = self.not_locks.entry(table).or_default();
            if to.1 != format::Role::Signal || kind == Kind::Join {
                *signals = signals.saturating_sub(sum.1);
            }
            if to.1 == format::Role::Wake {
                *others = others.saturating_add(sum.1);
            }
        }
    }
}

impl LockSum {
    /// Takes the waits of a site away; their part of the strip.
    fn take(&mut self, site: &SiteSum) -> super::thread_tables::StripSum {
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
        let parked = &mut self.outcomes[Outcome::Parked as usize];
        *parked = parked.saturating_sub(site.contended);
        strip
    }

    /// Adds the waits of a site.
    fn add_waits(&mut self, site: &SiteSum, strip: super::thread_tables::StripSum) {
        self.contended += site.contended;
        self.acquisitions += site.acquisitions;
        self.waited = self.waited.saturating_add(site.waited);
        self.longest_wait = self.longest_wait.max(site.longest_wait);
        // When they were woken is not known, so neither is when a lock was free.
        self.unsplit = self.unsplit.saturating_add(site.waited);
        self.outcomes[Outcome::Parked as usize] += site.contended;
        self.strip.add(&strip);
    }
}
