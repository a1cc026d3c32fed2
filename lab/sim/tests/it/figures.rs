//! One seed is one run on every build: its figures are those of the committed file, whatever the tree was
//! compiled with, and wherever it and its memory lie.
//!
//! A change of a lock, of a workload or of the machine changes them: `INSTA_UPDATE=always cargo test -p
//! spinpark-sim`. A test that fails here without such a change has found something that comes from the build.

use std::cell::Cell;
use std::fmt::Write as _;
use std::hash::Hasher;
use std::rc::Rc;

use rustc_hash::FxHasher;
use spinpark_classics::{RawLock, mcs_mutex};
use spinpark_locks::{Preference, RawMutex, RawRwLock};
use spinpark_platform::{AtomicU32 as _, Futex, Ordering::Relaxed};
use spinpark_sim::locks::locks;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::Setting;
use spinpark_sim::{AtomicU32, Chaos, Object, Order, Record, Sim, Simulation, here};

/// The run in figures, with a hash of everything that happened in it: each access, with its time, word and
/// value.
fn figures(machine: &str, lock: &str, workload: &str, threads: u32, seed: u64, chaos: &Chaos) -> String {
    let machine = Machine::choose(machine).expect("there is such a machine");
    let name = machine.name.clone();
    let mut setting = Setting::new(machine, lock, workload, threads);
    setting.seed = seed;
    setting.for_ns = 200_000;
    setting.chaos = chaos.clone();
    setting.record = Record { last_steps: usize::MAX, ..Record::default() };
    let report = setting.run().expect("it can be run");
    let mut trace = FxHasher::default();
    report.outcome.interleaving.iter().for_each(|step| trace.write(step.as_bytes()));
    let counts = &report.outcome.counts;
    format!(
        "{name} {lock} {workload} × {threads}, seed {seed}: {} operations, {} events, {} steps, {} moves, {} switches, \
         {} futex calls, {} ns, trace {:016x}{}",
        report.total(),
        counts.events,
        counts.steps,
        counts.moves(),
        counts.switches,
        counts.futex_calls,
        report.outcome.elapsed_ns,
        trace.finish(),
        report.outcome.failure.map(|failure| format!(", {failure}")).unwrap_or_default(),
    )
}

/// What goes wrong in some of the runs.
fn trouble(order: Order) -> Chaos {
    Chaos {
        order,
        steps_between_changes: 8,
        delay: 0.01,
        delay_ns: 500.0,
        preempt: 0.01,
        spurious: 0.1,
        interrupt: 0.1,
        late: 0.1,
        wrong_oracle: 0.1,
        abort: 0.1,
        weak: 0.1,
        buffered: 0.1,
    }
}

#[test]
fn figures_are_those_of_every_build() {
    let mut all = String::new();
    let mut add = |machine: &str, lock: &str, workload: &str, threads: u32, seed: u64, chaos: &Chaos| {
        let _ = writeln!(all, "{}", figures(machine, lock, workload, threads, seed, chaos));
    };
    let none = Chaos::default();
    for lock in locks() {
        for kind in lock.kinds() {
            match kind {
                "mutex" => {
                    add("plain-4", lock.name, "random-32", 6, 0, &none);
                    add("westmere-ex-40", lock.name, "hot-lock", 12, 1, &none);
                }
                "read-write lock" => add("nehalem-ex-64", lock.name, "mixed-10", 12, 2, &none),
                _ => add("plain-1", lock.name, "condvar", 2, 3, &none),
            }
        }
    }
    for (seed, order) in [(4, Order::Time), (5, Order::Rank)] {
        add("plain-2", "spinpark", "hot-lock", 5, seed, &trouble(order));
        add("plain-4", "spinpark", "mixed-10", 9, seed, &trouble(order));
        add("plain-4", "classic-mcs", "plane-30-30", 9, seed, &trouble(order));
    }
    for workload in ["creat", "fserver", "select", "mmap-touched"] {
        let lock = if workload == "mmap-touched" { "classic-rwsem-full" } else { "classic-mutex-fixed" };
        add("westmere-ex-40", lock, workload, 16, 6, &none);
    }
    insta::assert_snapshot!(all);
}

/// Calls `act` with this number of frames between it and its caller.
#[inline(never)]
fn deeper(frames: usize, act: &mut dyn FnMut()) {
    let room = std::hint::black_box([frames; 3]);
    if room[0] == 0 {
        act();
    } else {
        deeper(room[0] - 1, act);
    }
    std::hint::black_box(room);
}

/// What a frame is made of is the compiler's: here threads wait for locks at other depths of their stacks,
/// and at several of them in one run.
#[test]
fn the_depth_of_a_stack_does_not_matter() {
    let run = |least: usize, many: usize| {
        let locks =
            Object::new((RawMutex::<Sim>::new(), RawRwLock::<Sim>::new(), mcs_mutex::McsMutex::<Sim>::new()));
        let mut simulation = Simulation::new(&Machine::plain(4))
            .seed(8)
            .record(Record { last_steps: usize::MAX, ..Record::default() });
        for _ in 0..9 {
            let locks = Rc::clone(&locks);
            simulation.thread(move || {
                for round in 0..40 {
                    let (mutex, rwlock, mcs) = &**locks;
                    let mut section = || match here::random(4) {
                        0 => {
                            mutex.lock();
                            here::compute(400);
                            mutex.unlock();
                        }
                        1 => {
                            rwlock.write();
                            here::compute(400);
                            rwlock.unlock_write();
                        }
                        2 => {
                            rwlock.read(Preference::default());
                            here::compute(800);
                            rwlock.unlock_read();
                        }
                        _ => {
                            mcs.lock();
                            here::compute(100);
                            mcs.unlock();
                        }
                    };
                    deeper(least + round % many, &mut section);
                }
            });
        }
        simulation.run().expect("there is memory for a few stacks")
    };
    let first = run(0, 1);
    assert_eq!(first.failure, None);
    for (least, many) in [(1, 1), (2, 1), (3, 2), (0, 7), (30, 5)] {
        assert!(run(least, many) == first, "{least} frames, and up to {many} more");
    }
}

/// How a run of these threads fails.
fn failure(threads: Vec<Box<dyn FnOnce()>>) -> String {
    let mut simulation = Simulation::new(&Machine::plain(2));
    threads.into_iter().for_each(|thread| simulation.thread(thread));
    simulation.run().expect("there is memory for two stacks").failure.expect("it fails").to_string()
}

/// What the compiler or the allocator would decide is no run.
#[test]
fn what_would_depend_on_the_build_fails() {
    let in_a_box = Box::new(AtomicU32::new(0));
    let told = failure(vec![Box::new(move || assert_eq!(in_a_box.load(Relaxed), 0))]);
    assert!(told.contains("neither on a simulated stack nor in an `Object`"), "{told}");

    let is_moved = || {
        let word = AtomicU32::new(0);
        word.store(1, Relaxed);
        drop(Box::new(word));
    };
    let told = failure(vec![Box::new(is_moved)]);
    assert!(told.contains("moved, forgotten"), "{told}");

    let key = Rc::new(Cell::new(std::ptr::null()));
    let (given, taken) = (Rc::clone(&key), key);
    let sleeps = move || {
        let word = AtomicU32::new(0);
        given.set(&raw const word);
        <Sim>::futex_wait(&word, 0, None);
    };
    let wakes = move || {
        here::compute(100_000);
        <Sim>::futex_wake(taken.get(), 1);
    };
    let told = failure(vec![Box::new(sleeps), Box::new(wakes)]);
    assert!(told.contains("has not changed that lately"), "{told}");
}
