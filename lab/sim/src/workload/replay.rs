//! What a recorded program does with its locks, as a workload: which it acquires how often, on its own or
//! while it holds another one, for how long it holds them, and for how long it computes in between.

use std::rc::Rc;

use crate::here;
use crate::workload::plan::Worker;
use crate::workload::sections::{Data, change, data};
use crate::workload::{Mutex, Plan, RwLock, SettingError, Workload};
use crate::world::memory::object::Object;

enum Lock {
    Mutex(Mutex),
    RwLock(RwLock),
}

struct Entry {
    lock: Lock,
    data: Rc<Object<Data>>,
    uses: [Use; 2],
}

/// The workload of [`Setting::replay`](crate::workload::Setting::replay): each thread computes, then acquires
/// one of the locks, at random by how often that is the outermost one, and others while it holds it. An
/// operation is an acquisition.
pub(super) const REPLAY: Workload =
    Workload::user("replay", "the locks of a recorded program (`spinpark-lab sim replay`)", build);

fn build(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let Some(replay) = plan.setting().replay.clone() else {
        return Err(SettingError::Unfit(String::from("replay needs a recording: `spinpark-lab sim replay`")));
    };
    let mut entries = Vec::new();
    for Replayed { name, is_rwlock, uses } in &replay.locks {
        let lock = if *is_rwlock {
            Lock::RwLock(plan.rwlock_of(&replay.rwlock, name)?)
        } else {
            Lock::Mutex(plan.mutex(name)?)
        };
        entries.push(Entry { lock, data: data(), uses: uses.clone() });
    }
    let entries: Rc<[Entry]> = entries.into();
    let all = entries.iter().flat_map(|entry| &entry.uses).map(|used| used.outermost).sum::<u64>();
    if all == 0 {
        return Err(SettingError::Unfit(String::from("no acquisition was recorded")));
    }
    plan.workers(move |worker| {
        while !here::is_over() {
            let (lock, is_shared) = outermost(&entries, here::random(all));
            here::compute_f64(entries[lock].uses[usize::from(is_shared)].non_critical.draw());
            acquire(&entries, (lock, is_shared), &worker);
        }
    });
    Ok(())
}

/// The lock and the mode of number `number` of all outermost acquisitions.
fn outermost(entries: &[Entry], number: u64) -> (usize, bool) {
    let uses = entries.iter().enumerate().flat_map(|(lock, entry)| {
        let uses = [false, true].into_iter().zip(&entry.uses);
        uses.map(move |(is_shared, used)| (used.outermost, (lock, is_shared)))
    });
    of_number(uses, number).expect("the number is below their sum")
}

/// The item with number `number`, where each item has as many numbers as stand beside it.
fn of_number<T>(items: impl Iterator<Item = (u64, T)>, mut number: u64) -> Option<T> {
    for (numbers, item) in items {
        match number.checked_sub(numbers) {
            Some(rest) => number = rest,
            None => return Some(item),
        }
    }
    None
}

/// One acquisition, with those while the lock is held: their share of the section is between any two of them.
fn acquire(entries: &[Entry], (lock, is_shared): (usize, bool), worker: &Worker) {
    let Entry { lock, data, uses } = &entries[lock];
    let used = &uses[usize::from(is_shared)];
    let section = || {
        change(&data.0[..usize::from(!is_shared)]);
        let numbers: Vec<u32> = used.inner.iter().map(|inner| inner.draw()).collect();
        let part = used.hold.draw() / f64::from(1 + numbers.iter().sum::<u32>());
        here::compute_f64(part);
        for (inner, number) in used.inner.iter().zip(numbers) {
            for _ in 0..number {
                acquire(entries, (inner.lock, inner.is_shared), worker);
                here::compute_f64(part);
            }
        }
    };
    match lock {
        Lock::RwLock(lock) if is_shared => lock.read(section),
        Lock::RwLock(lock) => lock.write(section),
        Lock::Mutex(lock) => lock.with(section),
    }
    worker.did_one();
}

/// A program's use of its locks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// Its locks.
    pub locks: Vec<Replayed>,
    /// Which read-write lock stands for its own.
    pub rwlock: String,
}

/// A lock of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Its name in reports.
    pub name: String,
    /// It is a read-write lock.
    pub is_rwlock: bool,
    /// Exclusive acquisitions, and shared ones.
    pub uses: [Use; 2],
}

/// Acquisitions in one mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Use {
    /// How many there were by threads that held no other lock.
    pub outermost: u64,
    /// For how long a thread computes before such an acquisition.
    pub non_critical: Lengths,
    /// For how long it holds the lock, without what its acquisitions of others meanwhile take.
    pub hold: Lengths,
    /// What it acquires while it holds the lock. Following these numbers never leads back to the same lock.
    pub inner: Vec<Inner>,
}

/// Acquisitions while another lock is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inner {
    /// The lock, as an index of [`Replay::locks`].
    pub lock: usize,
    /// It is acquired for reading.
    pub is_shared: bool,
    /// How often while the outer lock is held once, on average.
    pub number: f64,
}

impl Inner {
    /// How often this time.
    pub(super) fn draw(&self) -> u32 {
        let whole = self.number.trunc();
        whole as u32 + u32::from(uniform() < self.number - whole)
    }
}

/// Lengths of time, ns.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Exponentially distributed, with this mean.
    Exponential(f64),
    /// Uniformly distributed within each of these.
    Parts(Vec<Part>),
}

/// This number of lengths from `low` to `high` ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// How many.
    pub number: u64,
    /// ns.
    pub low: f64,
    /// ns.
    pub high: f64,
}

impl Default for Lengths {
    fn default() -> Self {
        Self::Parts(Vec::new())
    }
}

impl Lengths {
    /// All of this length.
    #[must_use]
    pub fn all(number: u64, ns: f64) -> Self {
        Self::Parts(vec![Part { number, low: ns, high: ns }])
    }

    /// The mean, ns; 0 if there are none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Exponential(mean) => *mean,
            Self::Parts(parts) => {
                let sum: f64 =
                    parts.iter().map(|part| part.number as f64 * (part.low + part.high) / 2.0).sum();
                sum / number(parts).max(1) as f64
            }
        }
    }

    /// With each length changed; of an exponential distribution, the mean.
    fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        let changed =
            |part: &Part| Part { low: change(part.low), high: change(part.high), number: part.number };
        match self {
            Self::Exponential(mean) => Self::Exponential(change(*mean)),
            Self::Parts(parts) => Self::Parts(parts.iter().map(changed).collect()),
        }
    }

    /// Each × `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        self.map(|length| length * factor)
    }

    /// Each shorter by `ns`, as far as it is that long; of an exponential distribution, which is a guess, the
    /// mean.
    #[must_use]
    pub fn shortened(&self, ns: f64) -> Self {
        self.map(|length| (length - ns).max(0.0))
    }

    /// None longer than `most` ns; of an exponential distribution, the mean.
    #[must_use]
    pub fn capped(&self, most: f64) -> Self {
        self.map(|length| length.min(most))
    }

    /// One of them, drawn at random.
    pub(super) fn draw(&self) -> f64 {
        match self {
            Self::Exponential(mean) => -mean * libm::log(1.0 - uniform()),
            Self::Parts(parts) => {
                let all = number(parts);
                if all == 0 {
                    return 0.0;
                }
                let drawn = of_number(parts.iter().map(|part| (part.number, part)), here::random(all));
                drawn.map_or(0.0, |part| part.low + (part.high - part.low) * uniform())
            }
        }
    }
}

fn number(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.number).sum()
}

/// In [0, 1).
fn uniform() -> f64 {
    const PARTS: u64 = 1 << 53;
    here::random(PARTS) as f64 / PARTS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::machine::Machine;
    use crate::workload::{Report, Setting};

    fn run(replay: Replay, lock: &str, threads: u32) -> Report {
        let mut setting = Setting::new(Machine::plain(4), lock, "replay", threads);
        setting.replay = Some(Arc::new(replay));
        setting.for_ns = 10_000_000;
        setting.run().unwrap()
    }

    fn used(outermost: u64, hold: f64, non_critical: f64) -> Use {
        Use {
            outermost,
            hold: Lengths::all(1, hold),
            non_critical: Lengths::Exponential(non_critical),
            inner: Vec::new(),
        }
    }

    fn mutex(name: &str, used: Use) -> Replayed {
        Replayed { name: name.into(), is_rwlock: false, uses: [used, Use::default()] }
    }

    fn replay(locks: Vec<Replayed>) -> Replay {
        Replay { locks, rwlock: "spinpark".into() }
    }

    #[test]
    fn locks_have_their_shares_and_times() {
        let rwlock = Replayed {
            name: "b".into(),
            is_rwlock: true,
            uses: [used(100, 500.0, 4000.0), used(600, 200.0, 4000.0)],
        };
        let locks = replay(vec![mutex("a", used(300, 1000.0, 4000.0)), rwlock]);
        let report = run(locks, "classic-mutex-2003", 1);
        let place = |name: &str| report.places.iter().find(|place| place.name == name).unwrap();
        let all = report.acquisitions() as f64;
        for (name, share, hold) in [("a", 0.3, 1000.0), ("b", 0.1, 500.0), ("b (read)", 0.6, 200.0)] {
            let place = place(name);
            assert!((place.acquisitions as f64 / all - share).abs() < 0.05, "{name}: {}", place.acquisitions);
            let mean = place.hold_ns / place.acquisitions as f64;
            // The core begins a section's work while the lock's line is on its way.
            assert!((hold * 0.95..hold * 1.3).contains(&mean), "{name}: {mean}");
        }
        // 4,470 ns each, and what the locks take.
        assert!((report.throughput() * 4550e-9 - 1.0).abs() < 0.1, "{}", report.throughput());
        // Sections under one lock do not scale.
        let crowded = run(replay(vec![mutex("a", used(300, 1000.0, 0.0))]), "spinpark", 4);
        assert!(crowded.throughput() < 1.05e6, "{}", crowded.throughput());
    }

    /// A list under a lock, whose elements have locks of their own: each section of 1 µs has 2.5 of 400 ns in
    /// it.
    #[test]
    fn locks_are_held_within_others() {
        let inner = Inner { lock: 1, is_shared: false, number: 2.5 };
        let list = Use { inner: vec![inner], ..used(1, 1000.0, 2000.0) };
        let locks = || replay(vec![mutex("list", list.clone()), mutex("element", used(0, 400.0, 0.0))]);
        let alone = run(locks(), "classic-mutex-2003", 1);
        let place = |name: &str| alone.places.iter().find(|place| place.name == name).unwrap();
        let (list, element) = (place("list"), place("element"));
        let number = element.acquisitions as f64 / list.acquisitions as f64;
        assert!((2.2..2.8).contains(&number), "{number}");
        let mean = list.hold_ns / list.acquisitions as f64;
        assert!((2000.0..2400.0).contains(&mean), "{mean}");
        // 3.5 acquisitions in 4 µs.
        assert!((alone.throughput() / (3.5 / 4e-6) - 1.0).abs() < 0.12, "{}", alone.throughput());
        // The list's lock is what limits: 3.5 in 2 µs.
        let crowded = run(locks(), "spinpark", 4).throughput() / (3.5 / 2e-6);
        assert!((0.7..1.0).contains(&crowded), "{crowded}");
    }

    /// As long as they were recorded, the rare long ones too.
    #[test]
    fn lengths_are_drawn_from_what_was_recorded() {
        let part = |number, low, high| Part { number, low, high };
        let hold = Lengths::Parts(vec![part(90, 100.0, 200.0), part(10, 10_000.0, 20_000.0)]);
        let report = run(replay(vec![mutex("a", Use { hold, ..used(1, 0.0, 100.0) })]), "spinpark", 1);
        let place = &report.places[0];
        let mean = place.hold_ns / place.acquisitions as f64;
        assert!((mean / 1635.0 - 1.0).abs() < 0.15, "{mean}");
        assert!((15_000.0..20_500.0).contains(&place.longest_hold_ns), "{}", place.longest_hold_ns);
    }

    #[test]
    fn it_needs_a_recording() {
        let setting = Setting::new(Machine::plain(2), "spinpark", "replay", 2);
        assert!(setting.check().unwrap_err().to_string().contains("no workload `replay`"));
    }

    #[test]
    fn lengths_and_their_means() {
        let lengths = Lengths::Parts(vec![
            Part { number: 3, low: 100.0, high: 200.0 },
            Part { number: 1, low: 1000.0, high: 3000.0 },
        ]);
        assert_eq!(lengths.mean(), 612.5);
        assert_eq!(lengths.scaled(2.0).mean(), 1225.0);
        assert_eq!(lengths.shortened(150.0).mean(), (3.0 * 25.0 + 1850.0) / 4.0);
        assert_eq!(lengths.capped(1000.0).mean(), (3.0 * 150.0 + 1000.0) / 4.0);
        assert_eq!(Lengths::default().mean(), 0.0);
        assert_eq!(Lengths::all(7, 30.0).mean(), 30.0);
        assert_eq!(Lengths::Exponential(50.0).scaled(0.5).mean(), 25.0);
    }
}
