//! The shapes of `spinpark bench locks`: sections under a lock, with work outside.
//!
//! As there: a step of work takes about 2 ns at 2 GHz (a chain of six instructions), here in cycles of the machine; the
//! protected data is one cache line, or several, on lines of its own.

use std::rc::Rc;

use spinpark_platform::{AtomicU32 as _, Ordering::Relaxed};

use super::{Mode, Plan, SettingError, Workload};
use crate::here;
use crate::platform::AtomicU32;

/// Cycles of a step of work: a chain of six instructions, some of which the CPU runs side by side.
const STEP_CYCLES: f64 = 4.2;

/// A cache line of protected data.
#[derive(Debug)]
#[repr(align(128))]
struct Data(AtomicU32);

fn data(lines: usize) -> Rc<[Data]> {
    (0..lines).map(|_| Data(AtomicU32::new(0))).collect()
}

/// A load and a store to each line, as `+= 1` under a lock.
fn change(data: &[Data]) {
    for Data(word) in data {
        word.store(word.load(Relaxed) + 1, Relaxed);
    }
}

/// How much work there is.
#[derive(Clone, Copy)]
struct Section {
    locks: u64,
    lines: usize,
    inside: u32,
    outside: u32,
}

fn sections(plan: &mut Plan<'_>, shape: Section) -> Result<(), SettingError> {
    let step = STEP_CYCLES / plan.machine().ghz;
    let all = (0..shape.locks).map(|_| Ok((plan.mutex("lock")?, data(shape.lines))));
    let all: Rc<[_]> = all.collect::<Result<_, SettingError>>()?;
    for _ in 0..plan.setting().threads {
        let all = Rc::clone(&all);
        plan.worker(move |worker| {
            worker.repeat(|| {
                let (lock, data) = &all[here::random(shape.locks) as usize];
                lock.with(|| {
                    change(data);
                    here::compute_f64(step * f64::from(shape.inside));
                });
                here::compute_f64(step * f64::from(shape.outside));
            });
        });
    }
    Ok(())
}

fn shared(plan: &mut Plan<'_>, percent_writes: u64) -> Result<(), SettingError> {
    /// As in `bench`: steps inside and outside.
    const STEPS: f64 = 16.0;
    let step = STEP_CYCLES / plan.machine().ghz;
    let lock = plan.rwlock("lock")?;
    let words = data(1);
    for _ in 0..plan.setting().threads {
        let (lock, words) = (lock.clone(), Rc::clone(&words));
        plan.worker(move |worker| {
            worker.repeat(|| {
                if here::random(100) < percent_writes {
                    lock.write(|| change(&words));
                } else {
                    lock.read(|| {
                        words[0].0.load(Relaxed);
                    });
                }
                here::compute_f64(step * STEPS);
            });
        });
    }
    Ok(())
}

fn ping_pong(plan: &mut Plan<'_>) -> Result<(), SettingError> {
    if plan.setting().threads != 2 {
        return Err(SettingError::Unfit("condvar-ping-pong needs two threads: `--threads 2`".to_owned()));
    }
    let condvar = plan.condvar("mutex")?;
    let turn = Rc::new(std::cell::Cell::new(0));
    for me in 0..2 {
        let (condvar, turn) = (condvar.clone(), Rc::clone(&turn));
        plan.worker(move |worker| {
            condvar.with(|| {
                worker.repeat(|| {
                    while turn.get() != me && !here::is_over() {
                        condvar.wait();
                    }
                    turn.set(1 - me);
                    condvar.signal();
                });
                turn.set(1 - me);
                condvar.signal();
            });
        });
    }
    Ok(())
}

macro_rules! section {
    ($name:literal, $about:literal, $locks:literal, $lines:literal, $inside:literal, $outside:literal) => {
        Workload {
            name: $name,
            about: $about,
            mode: Mode::User,
            build: |plan| {
                sections(plan, Section { locks: $locks, lines: $lines, inside: $inside, outside: $outside })
            },
        }
    };
}

macro_rules! shared {
    ($name:literal, $about:literal, $percent:literal) => {
        Workload { name: $name, about: $about, mode: Mode::User, build: |plan| shared(plan, $percent) }
    };
}

/// All of them.
pub(super) const SHAPES: &[Workload] = &[
    section!("saturated", "one mutex, a section that changes one cache line, 16 steps outside", 1, 1, 0, 16),
    section!("hot-lock", "one mutex, 20 steps inside, 40 outside", 1, 1, 20, 40),
    section!(
        "five-lines",
        "one mutex, 100 steps inside over five cache lines, 1000 outside",
        1,
        5,
        100,
        1000
    ),
    section!("medium", "one mutex, 500 steps inside (about 1 µs), 500 outside", 1, 1, 500, 500),
    section!("long", "one mutex, 5000 steps inside (about 10 µs), 5000 outside", 1, 1, 5000, 5000),
    section!("random-32", "32 mutexes, one of them at random, no work outside", 32, 1, 0, 0),
    shared!("readers", "one read-write lock, only reading", 0),
    shared!("mixed-1", "one read-write lock, 1 % writes", 1),
    shared!("mixed-10", "one read-write lock, 10 % writes", 10),
    shared!("mixed-50", "one read-write lock, 50 % writes", 50),
    Workload {
        name: "condvar-ping-pong",
        about: "two threads in strict alternation, signal under the mutex",
        mode: Mode::User,
        build: ping_pong,
    },
];
