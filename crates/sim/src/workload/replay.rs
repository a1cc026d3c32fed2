//! What a recorded program does with its locks, as a workload.

use std::rc::Rc;

use super::data::{Data, change, data};
use super::recorded::{Replayed, Use};
use super::{Mode, Mutex, Plan, RwLock, SettingError, Workload};
use crate::here;
use crate::object::Object;

enum Lock {
    Mutex(Mutex),
    RwLock(RwLock),
}

struct Entry {
    lock: Lock,
    data: Rc<Object<Data>>,
    uses: [Use; 2],
}

/// The workload of [`Setting::replay`](super::Setting::replay): each thread computes, then takes one of the locks, at random by its share.
pub(super) const REPLAY: Workload = Workload {
    name: "replay",
    about: "the locks of a recorded program (`spinpark sim replay`)",
    mode: Mode::User,
    build,
};

fn build(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    let Some(replay) = plan.setting().replay.clone() else {
        return Err(SettingError::Unfit(String::from("replay needs a recording: `spinpark sim replay`")));
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
    let all = entries.iter().flat_map(|entry| &entry.uses).map(|used| used.acquisitions).sum::<u64>();
    if all == 0 {
        return Err(SettingError::Unfit(String::from("no acquisition was recorded")));
    }
    for _ in 0..plan.setting().threads {
        let (entries, outside_ns) = (Rc::clone(&entries), replay.outside_ns);
        plan.worker(move |worker| {
            worker.repeat(|| {
                here::compute_f64(exponential(outside_ns));
                act(&entries, here::random(all));
            });
        });
    }
    Ok(())
}

/// Acquisition number `number` of all, by lock and mode.
fn act(entries: &[Entry], mut number: u64) {
    for Entry { lock, data, uses } in entries {
        for (is_shared, used) in [false, true].into_iter().zip(uses) {
            let Some(rest) = number.checked_sub(used.acquisitions) else {
                let hold = used.draw();
                let section = || {
                    change(&data.0[..usize::from(!is_shared)]);
                    here::compute_f64(hold);
                };
                return match lock {
                    Lock::RwLock(lock) if is_shared => lock.read(section),
                    Lock::RwLock(lock) => lock.write(section),
                    Lock::Mutex(lock) => lock.with(section),
                };
            };
            number = rest;
        }
    }
}

fn exponential(mean: f64) -> f64 {
    const PARTS: u64 = 1 << 53;
    -mean * libm::log((here::random(PARTS) + 1) as f64 / PARTS as f64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Replay, Setting};
    use super::*;
    use crate::machine::Machine;

    fn run(replay: Replay, lock: &str, threads: u32) -> super::super::Report {
        let mut setting = Setting::new(Machine::plain(4), lock, "replay", threads);
        setting.replay = Some(Arc::new(replay));
        setting.for_ns = 10_000_000;
        setting.run().unwrap()
    }

    fn used(acquisitions: u64, ns: f64) -> Use {
        Use { acquisitions, holds: vec![(acquisitions, ns)] }
    }

    #[test]
    fn locks_have_their_shares_and_times() {
        let replay = Replay {
            locks: vec![
                Replayed { name: "a".into(), is_rwlock: false, uses: [used(300, 1000.0), Use::default()] },
                Replayed { name: "b".into(), is_rwlock: true, uses: [used(100, 500.0), used(600, 200.0)] },
            ],
            rwlock: "spinpark".into(),
            outside_ns: 4000.0,
        };
        let report = run(replay.clone(), "classic-mutex-2003", 1);
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
        let crowded =
            run(Replay { outside_ns: 0.0, locks: replay.locks[..1].to_vec(), ..replay }, "spinpark", 4);
        assert!(crowded.throughput() < 1.05e6, "{}", crowded.throughput());
    }

    #[test]
    fn it_needs_a_recording() {
        let setting = Setting::new(Machine::plain(2), "spinpark", "replay", 2);
        assert!(setting.check().unwrap_err().to_string().contains("no workload `replay`"));
    }
}
