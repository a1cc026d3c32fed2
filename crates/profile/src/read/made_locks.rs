//! Locks that programs make of a mutex and condition variables: to wait for a signal is to wait for such a
//! lock.
//!
//! A recording has, of each condition variable, the mutex that waiters have, where they wait, where the
//! signals come from that end their waits, and how often each thread waits and signals. Waits in one
//! function, with one mutex, are for a lock if
//!
//! - a method of a class that is named like a lock takes it there: `boost::shared_mutex::lock_shared`;
//! - or by their names one function takes a lock and the other one releases it: `gvl_acquire`, `gvl_release`;
//! - or several threads wait, each signals as often, and the signals come from functions that wait with this
//!   mutex, or from their callers. Each waiter of a lock becomes its owner, and ends another one's wait;
//!   consumers of a queue, workers and threads at a barrier do not;
//! - or the signals come from functions that use a lock with the same mutex, and the threads that wait signal
//!   at that lock: readers and writers wait at different condition variables.
//!
//! Everything else is work.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use spinpark_recorder::format::{self, HolderId};

use super::merge::Merge;
use super::thread_tables::Tables;
use crate::function_names::short;
use crate::known_locks;
use crate::model::{Frame, Kind, Role};

/// What waits at a condition variable on one stack are for.
#[derive(Clone, Debug)]
pub(super) struct MadeLock {
    /// Where the lock is: its mutex.
    pub(super) address: u64,
    pub(super) role: Role,
    /// Its class.
    pub(super) name: Option<String>,
}

/// By condition variable and stack.
pub(super) type MadeLocks = HashMap<(u32, u32), MadeLock>;

/// Waits in one function with one mutex.
#[derive(Debug, Default)]
struct Group {
    /// Condition variables and stacks.
    places: Vec<(u32, u32)>,
    /// The method of a lock's class that waits.
    method: Option<(String, Role)>,
    evidence: Evidence,
}

/// What is known of such waits.
#[derive(Debug, Default)]
struct Evidence {
    /// The function that waits, and those with their callers.
    function: String,
    /// The library that it is in, if it has no name.
    library: Option<String>,
    waits_in: BTreeSet<String>,
    signals: Vec<Signals>,
    /// Waits, and signals to the same condition variables, by thread.
    waits: BTreeMap<u32, u64>,
    sent: BTreeMap<u32, u64>,
    /// Signals, and those of them that were for all waiters.
    all_sent: u64,
    broadcasts: u64,
}

/// Signals from one place that ended waits.
#[derive(Clone, Debug, Default)]
struct Signals {
    function: String,
    /// The library that it is in, if it has no name.
    library: Option<String>,
    caller: Option<String>,
    count: u64,
}

/// How many of the waits have to have their counterpart.
const MOST: f64 = 0.6;
/// What threads do is evidence from this number of waits on, if two threads wait at least: a thread that is
/// asked to start, and reports that it has started, signals as often as it waits.
const ENOUGH: u64 = 4;
/// An object of a lock's class is not longer.
const LARGEST: u64 = 512;
/// The most readers that leave for one signal.
const READERS: u64 = 8;

impl Evidence {
    /// The share of signals of a kind.
    fn share(&self, is_counted: impl Fn(&Signals) -> bool) -> f64 {
        let sum = |is_counted: &dyn Fn(&Signals) -> bool| {
            self.signals
                .iter()
                .filter(|signals| is_counted(signals))
                .map(|signals| signals.count)
                .sum::<u64>()
        };
        sum(&is_counted) as f64 / sum(&|_| true).max(1) as f64
    }

    /// The share of waits to which the same thread has sent a signal; `each`: how many one may be for.
    fn returned(&self, sent: &BTreeMap<u32, u64>, each: u64) -> f64 {
        let all: u64 = self.waits.values().sum();
        let sent = |thread: &u32| sent.get(thread).map_or(0, |sent| sent.saturating_mul(each));
        let returned = self.waits.iter().map(|(thread, waits)| (*waits).min(sent(thread)));
        returned.sum::<u64>() as f64 / all.max(1) as f64
    }

    /// The share of signals from these functions, or functions that they call.
    fn share_from(&self, functions: &BTreeSet<String>) -> f64 {
        self.share(|signals| {
            functions.contains(&signals.function)
                || signals.caller.as_ref().is_some_and(|caller| functions.contains(caller))
        })
    }

    /// Whether the waits are for a lock, as names and threads tell; `waits_in`: where threads wait with this
    /// mutex.
    fn is_lock(&self, waits_in: &BTreeSet<String>) -> bool {
        if self.signals.is_empty() {
            return false;
        }
        if takes(&self.function) && self.share(|signals| releases(&signals.function)) >= MOST {
            return true;
        }
        let waited = self.waits.values().filter(|waits| **waits > 0);
        if self.waits.values().sum::<u64>() < ENOUGH || waited.count() < 2 {
            return false;
        }
        // Progress is announced to all that wait for it: a lock is given to one.
        let is_told_to_all = 2 * self.broadcasts >= self.all_sent;
        // At a barrier the last thread wakes the others, in the function in which they wait; whose turn it is
        // is announced to all.
        let is_barrier = is_told_to_all && self.share(|signals| signals.function == self.function) >= MOST;
        // In a library without names of its own, the functions of an object are what it has.
        let is_library =
            |signals: &Signals| !is_told_to_all && self.library.is_some() && signals.library == self.library;
        self.returned(&self.sent, 1) >= MOST
            && (self.share_from(waits_in) >= MOST || self.share(is_library) >= MOST)
            && !is_barrier
            && !self.is_work()
    }

    /// Whether names show that it is for work.
    fn is_work(&self) -> bool {
        let functions = self.signals.iter().map(|signals| &signals.function);
        functions.chain([&self.function]).any(|function| {
            let words = words(function);
            WORK.iter().any(|work| words.iter().any(|word| word == work))
        })
    }
}

/// What names of locks' functions have in them.
const TAKE: [&str; 10] =
    ["lock", "rdlock", "wrlock", "rlock", "wlock", "trylock", "timedlock", "acquire", "enter", "grab"];
const RELEASE: [&str; 8] =
    ["unlock", "rdunlock", "wrunlock", "runlock", "wunlock", "release", "leave", "exit"];
const READ: [&str; 8] = ["read", "reader", "readers", "rd", "rdlock", "rlock", "shared", "share"];
/// What those of queues, pools and the like have in them.
const WORK: [&str; 30] = [
    "queue", "dequeue", "enqueue", "push", "pop", "task", "tasks", "job", "jobs", "event", "events",
    "produce", "producer", "consume", "consumer", "submit", "schedule", "steal", "spawn", "recv", "receive",
    "send", "message", "channel", "pipe", "barrier", "latch", "future", "promise", "idle",
];

/// The words of a function's name and its class, in lower case: `read`, `lock` of `a::RwLock::readLock`.
fn words(function: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for character in short(function).chars() {
        let is_start = !character.is_alphanumeric() || character.is_uppercase() && before.is_lowercase();
        if is_start && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words.last_mut().expect("there is one").extend(character.to_lowercase());
        }
        before = character;
    }
    words
}

fn has(function: &str, wanted: &[&str]) -> bool {
    words(function).iter().any(|word| wanted.contains(&word.as_str()))
}

/// `gvl_acquire`; not `lock_release`.
fn takes(function: &str) -> bool {
    has(function, &TAKE) && !has(function, &RELEASE) && !has(function, &WORK)
}

fn releases(function: &str) -> bool {
    has(function, &RELEASE) && !has(function, &WORK)
}

/// A function, so that two are not taken for one.
fn function_of(frame: &Frame) -> String {
    match (&frame.function, frame.start) {
        (Some(function), _) => function.clone(),
        (None, Some(start)) => format!("{} {start:x}", frame.module),
        (None, None) => format!("{} at {:x}", frame.module, frame.offset),
    }
}

/// The library that a function without a name is in.
fn library_of(frame: &Frame) -> Option<String> {
    let is_library = frame.function.is_none() && frame.module.contains(".so");
    is_library.then(|| frame.module.clone())
}

impl Merge<'_> {
    /// The locks among the condition variables, of those at which threads wait on these stacks.
    pub(super) fn made_locks(&mut self, tables: &Tables, places: &BTreeSet<(u32, u32)>) -> MadeLocks {
        let mut groups: BTreeMap<(u64, String), Group> = BTreeMap::new();
        for (condvar, stack) in places {
            if self.wait_of(*stack).is_some_and(|wait| wait.kind != Kind::Condvar) {
                continue;
            }
            let Some(record) = self.view.lock(*condvar) else { continue };
            let address = match record.mutex.load(Relaxed) {
                0 => record.address,
                mutex => mutex,
            };
            let functions: Vec<String> = self.own_frames(*stack).iter().take(2).map(function_of).collect();
            let Some(function) = functions.first().cloned() else { continue };
            if self.is_runtimes(record.stack.load(Acquire), record.address, *stack) {
                continue;
            }
            let group = groups.entry((address, function.clone())).or_default();
            group.places.push((*condvar, *stack));
            group.method = group.method.take().or_else(|| self.method_of(*stack));
            group.evidence.function = function;
            group.evidence.library = self.own_frames(*stack).first().and_then(library_of);
            group.evidence.waits_in.extend(functions);
        }
        for group in groups.values_mut() {
            self.gather(tables, group);
        }
        let mut waits_in: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for ((address, _), group) in &groups {
            waits_in.entry(*address).or_default().extend(group.evidence.waits_in.iter().cloned());
        }
        let is_lock = |address: &u64, group: &Group| {
            group.method.is_some() || group.evidence.is_lock(&waits_in[address])
        };
        let mut locks: BTreeSet<&(u64, String)> = groups
            .iter()
            .filter(|((address, _), group)| is_lock(address, group))
            .map(|(key, _)| key)
            .collect();
        // What signals wake who wait for another role of a lock that is known.
        let linked: Vec<&(u64, String)> = groups
            .iter()
            .filter(|(key, group)| {
                let same = || locks.iter().filter(|lock| lock.0 == key.0).map(|lock| &groups[*lock].evidence);
                let uses = same().flat_map(|lock| {
                    lock.signals.iter().map(|signals| &signals.function).chain([&lock.function])
                });
                let uses: BTreeSet<String> = uses.cloned().collect();
                let mut sent = group.evidence.sent.clone();
                for (thread, more) in same().flat_map(|lock| &lock.sent) {
                    *sent.entry(*thread).or_default() += more;
                }
                let evidence = &group.evidence;
                evidence.share_from(&uses) >= MOST
                    && evidence.returned(&sent, READERS) >= MOST
                    && !evidence.is_work()
            })
            .map(|(key, _)| key)
            .collect();
        locks.extend(linked);
        let mut made = MadeLocks::new();
        // Of a class some condition variables have mutexes of their own; `locks` are in the order of
        // addresses.
        let mut whole: BTreeMap<&String, u64> = BTreeMap::new();
        for ((address, function), group) in locks.into_iter().map(|key| (key, &groups[key])) {
            let first = group.method.as_ref().map(|(class, _)| whole.entry(class).or_insert(*address));
            let address = match first {
                Some(first) if address.saturating_sub(*first) < LARGEST => &*first,
                Some(first) => {
                    *first = *address;
                    address
                }
                None => address,
            };
            let (name, role) = match &group.method {
                Some((class, role)) => (Some(class.clone()), *role),
                None if takes(function) && has(function, &READ) => (None, Role::Read),
                None => (None, Role::Write),
            };
            let lock = MadeLock { address: *address, role, name };
            made.extend(group.places.iter().map(|place| (*place, lock.clone())));
        }
        made
    }

    /// Which threads signal, and which wait and signal.
    fn gather(&mut self, tables: &Tables, group: &mut Group) {
        let role = format::Role::Signal;
        let condvars: BTreeSet<u32> = group.places.iter().map(|(condvar, _)| *condvar).collect();
        let evidence = &mut group.evidence;
        let mut signals: BTreeMap<u32, u64> = BTreeMap::new();
        for (condvar, stack) in &group.places {
            let which = (*condvar, role);
            for ((.., holder), sum) in tables.pairs.range((which, *stack, 0)..=(which, *stack, u32::MAX)) {
                if let HolderId::ReleasedAt(from) = HolderId::from_number(*holder) {
                    *signals.entry(from).or_default() += sum.count;
                }
            }
        }
        for (stack, count) in signals {
            let library = self.own_frames(stack).first().and_then(library_of);
            let mut functions = self.own_frames(stack).iter().map(function_of);
            if let Some(function) = functions.next() {
                evidence.signals.push(Signals { function, library, caller: functions.next(), count });
            }
        }
        for ((table, which, stack), (count, _)) in &tables.by_thread {
            if which.1 == role && group.places.contains(&(which.0, *stack)) {
                *evidence.waits.entry(*table).or_default() += count;
            }
        }
        for condvar in condvars {
            for ((_, table), (sent, broadcasts)) in tables.signals.range((condvar, 0)..=(condvar, u32::MAX)) {
                *evidence.sent.entry(*table).or_default() += sent;
                evidence.all_sent += sent;
                evidence.broadcasts += broadcasts;
            }
        }
    }

    /// Whether a condition variable hands over the lock of a runtime that has a sentence of its own.
    fn is_runtimes(&mut self, first: u32, address: u64, stack: u32) -> bool {
        let part = self.part(first, address);
        let call_site = self.call_site(stack).map(|call_site| &self.call_sites[call_site]);
        known_locks::is_handed_over(part.as_ref(), call_site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `threads`: waits and signals of each.
    fn evidence(
        function: &str,
        caller: &str,
        signals: &[(&str, &str, u64)],
        threads: &[(u64, u64)],
    ) -> Evidence {
        let owned = |name: &str| name.to_owned();
        let by_thread =
            |of: fn(&(u64, u64)) -> u64| (0..).zip(threads.iter().map(of)).collect::<BTreeMap<u32, u64>>();
        let sent = by_thread(|thread| thread.1);
        Evidence {
            function: owned(function),
            waits_in: [function, caller].map(owned).into(),
            signals: signals
                .iter()
                .map(|(function, caller, count)| Signals {
                    function: owned(function),
                    caller: Some(owned(caller)),
                    count: *count,
                    library: None,
                })
                .collect(),
            waits: by_thread(|thread| thread.0),
            all_sent: sent.values().sum(),
            sent,
            broadcasts: 0,
            library: None,
        }
    }

    impl Evidence {
        fn is_lock_here(&self) -> bool {
            self.is_lock(&self.waits_in)
        }
    }

    const EQUAL: [(u64, u64); 3] = [(10, 12), (11, 9), (9, 9)];

    #[test]
    fn locks() {
        let writers = evidence(
            "leveldb::DBImpl::Write(Batch*)",
            "put",
            &[("leveldb::DBImpl::Write(Batch*)", "put", 9)],
            &EQUAL,
        );
        assert!(writers.is_lock_here(), "each waiter signals the next");
        let guarded =
            evidence("begin(db*)", "store", &[("end(db*)", "store", 9), ("end(db*)", "load", 3)], &EQUAL);
        assert!(guarded.is_lock_here(), "one function takes it and has it released");
        let stripped = evidence("p 1180", "p 1240", &[("p 11c0", "p 1240", 9)], &EQUAL);
        assert!(stripped.is_lock_here());
        let readers = evidence("rw_read_lock", "get", &[("rw_write_unlock", "put", 9)], &[(10, 0), (0, 5)]);
        assert!(readers.is_lock_here(), "names tell");
        let gvl = evidence("gvl_acquire_common", "run", &[("gvl_release_common", "block", 9)], &[(10, 0)]);
        assert!(gvl.is_lock_here());
    }

    #[test]
    fn work() {
        let queue = evidence("get", "worker", &[("put", "main", 9)], &[(10, 0), (0, 10)]);
        assert!(!queue.is_lock_here(), "consumers do not signal");
        let pool = evidence("Pool::next", "worker", &[("Pool::add", "compute", 9)], &EQUAL);
        assert!(!pool.is_lock_here(), "tasks that make tasks");
        let own = evidence("Queue::pop", "worker", &[("Queue::push", "worker", 9)], &EQUAL);
        assert!(!own.is_lock_here(), "a name tells");
        let ring = evidence("stage", "start", &[("stage", "start", 9)], &[(10, 0), (9, 1)]);
        assert!(!ring.is_lock_here(), "each stage signals the next one's");
        let four = evidence("meet", "run", &[("meet", "run", 9)], &[(9, 3), (9, 3), (9, 3), (9, 3)]);
        assert!(!four.is_lock_here(), "a barrier");
        let two =
            Evidence { broadcasts: 10, ..evidence("meet", "run", &[("meet", "run", 9)], &[(5, 5), (5, 5)]) };
        assert!(!two.is_lock_here(), "a barrier of two");
        let library = Some(String::from("libx264.so"));
        let rows = |broadcasts| {
            let mut rows = evidence("lib 2650", "lib 9000", &[("lib 2610", "lib 7000", 20)], &EQUAL);
            rows.signals[0].library.clone_from(&library);
            Evidence { broadcasts, library: library.clone(), ..rows }
        };
        assert!(!rows(29).is_lock_here(), "progress of a stripped library's threads");
        assert!(rows(0).is_lock_here(), "a stripped library's lock");
        let handler = evidence("serve", "start", &[("stop", "serve", 1)], &[(1, 1)]);
        assert!(!handler.is_lock_here(), "a thread that tells once that it has started");
        let alone = evidence("serve", "start", &[("stop", "serve", 20)], &[(20, 20), (0, 3)]);
        assert!(!alone.is_lock_here(), "a lock has several owners");
        assert!(!evidence("lock", "run", &[], &EQUAL).is_lock_here(), "no signal was seen");
    }

    #[test]
    fn names_of_functions() {
        assert_eq!(words("a::RwLock::readLock(int)"), ["a", "rw", "lock", "read", "lock"]);
        assert!(takes("my_mutex_lock") && takes("Gate::enter") && !takes("lock_release") && !takes("block"));
        assert!(releases("my_mutex_unlock") && releases("ReleaseLock") && !releases("my_mutex_lock"));
        assert!(!takes("acquire_task") && !releases("job_exit"));
    }
}
