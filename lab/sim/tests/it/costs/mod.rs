//! What accesses, computations and calls cost: exactly what the machine says.

mod ahead;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use spinpark_platform::{
    AtomicU32 as _, Clock, Clocks, Deadline, Futex, Memory, Ordering::Relaxed, SpinPolicy, Wait,
};
use spinpark_sim::machine::Machine;
use spinpark_sim::{AtomicU32, Object, Sim, Simulation, SimulationResult, here};

/// A word on a cache line of its own.
type Line = Object<AtomicU32>;

fn line() -> Rc<Line> {
    Object::new(AtomicU32::new(0))
}

/// Two sockets of two cores, with two hardware threads each.
fn two_sockets() -> Machine {
    let mut machine = Machine::plain(2);
    machine.shape.sockets = 2;
    machine.shape.threads = 2;
    machine.shape.usable = 8;
    machine.shape.hops = vec![vec![0, 1], vec![1, 0]];
    machine.memory.serial = 1.0;
    machine.cpu.window_ns = 0.0; // in order: each cost by itself
    machine
}

/// How long each of `steps` takes, ns, one after the other on the CPUs of their numbers.
fn times(machine: &Machine, steps: Vec<(u32, Box<dyn Fn()>)>) -> Vec<f64> {
    let turn = Rc::new(Cell::new(0));
    let times = Rc::new(RefCell::new(Vec::new()));
    let mut simulation = Simulation::new(machine);
    for (index, (cpu, step)) in steps.into_iter().enumerate() {
        let (turn, times) = (turn.clone(), times.clone());
        simulation.thread_on(cpu..cpu + 1, move || {
            while turn.get() != index {
                here::sleep(100_000);
            }
            here::compute(1);
            let start = here::now();
            step();
            times.borrow_mut().push(here::now() - start);
            turn.set(index + 1);
        });
    }
    assert_eq!(simulation.run().unwrap().failure, None);
    times.take()
}

fn about(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 0.01 * wanted.max(1.0), "{got} ns, not {wanted} ns");
}

#[test]
fn a_line_costs_what_its_distance_says() {
    let machine = two_sockets();
    let (step, memory) = (machine.cpu.step_ns, machine.memory.clone());
    let line = line();
    let store = |line: &Rc<Line>| {
        let line = Rc::clone(line);
        Box::new(move || assert!(line.swap(1, Relaxed) < 2)) as Box<dyn Fn()>
    };
    let load = |line: &Rc<Line>| {
        let line = Rc::clone(line);
        Box::new(move || assert!(line.load(Relaxed) < 2)) as Box<dyn Fn()>
    };
    // Cores 0 and 1 are in one socket, 2 and 3 in the other; CPUs 4 to 7 are the second threads.
    let got = times(
        &machine,
        vec![
            (0, store(&line)), // from memory
            (0, store(&line)), // its own
            (4, store(&line)), // its own core's
            (1, store(&line)), // from the core beside it
            (2, store(&line)), // from the other socket
            (3, load(&line)),  // from the core beside it, which changed it
            (2, load(&line)),  // its own copy
            (3, store(&line)), // takes away the copy of core 2
        ],
    );
    let hit = step + memory.hit_ns;
    let owned = step + memory.rmw_ns;
    let wanted = [
        owned + memory.dram_ns,
        owned,
        owned,
        owned + memory.near_ns,
        owned + memory.hop_ns[0],
        hit + memory.near_ns,
        hit,
        owned + memory.near_ns,
    ];
    for (got, wanted) in got.into_iter().zip(wanted) {
        about(got, wanted);
    }
}

#[test]
fn a_clean_line_is_served_by_the_last_level_cache() {
    let mut machine = Machine::plain(3);
    machine.cpu.window_ns = 0.0;
    let line = line();
    let load = || {
        let line = Rc::clone(&line);
        Box::new(move || assert!(line.load(Relaxed) < 2)) as Box<dyn Fn()>
    };
    let got = times(&machine, vec![(0, load()), (1, load()), (1, load())]);
    let hit = machine.cpu.step_ns + machine.memory.hit_ns;
    about(got[1], hit + machine.memory.shared_ns);
    about(got[2], hit);
}

/// What `step` takes, on its own CPU, after the other CPU has written `lines`.
fn after_writes(machine: &Machine, lines: usize, step: impl Fn(&[Rc<Line>]) + 'static) -> f64 {
    let all: Rc<Vec<_>> = Rc::new((0..lines).map(|_| line()).collect());
    let written = Rc::clone(&all);
    let write = move || written.iter().for_each(|line| line.store(1, Relaxed));
    times(machine, vec![(0, Box::new(write)), (1, Box::new(move || step(&all)))])[1]
}

fn store(lines: &[Rc<Line>]) {
    for line in lines {
        line.store(2, Relaxed);
    }
}

fn add(lines: &[Rc<Line>]) {
    for line in lines {
        line.fetch_add(1, Relaxed);
    }
}

/// A store that misses waits for its line in the store buffer, and its thread does not.
#[test]
fn stores_wait_for_their_lines_and_their_thread_does_not() {
    let mut machine = Machine::plain(2);
    machine.cpu.window_ns = 0.0;
    let (step, near, hit, rmw) =
        (machine.cpu.step_ns, machine.memory.near_ns, machine.memory.hit_ns, machine.memory.rmw_ns);
    about(after_writes(&machine, 8, store), 8.0 * step);
    // Whose loads of the same words have what it has stored, without their lines.
    let then_load = |lines: &[Rc<Line>]| {
        store(lines);
        lines.iter().for_each(|line| assert_eq!(line.load(Relaxed), 2));
    };
    about(after_writes(&machine, 8, then_load), 8.0 * (step + step + hit));
    // What waits for all stores: their lines come four at a time, and each is asked for one step after the
    // one before.
    let come = near + near + 4.0 * step;
    let then_fence = |lines: &[Rc<Line>]| {
        store(lines);
        <Sim>::full_fence();
    };
    about(after_writes(&machine, 8, then_fence), come + machine.cpu.fence_ns);
    let then_update = |lines: &[Rc<Line>]| {
        store(lines);
        assert_eq!(lines[7].fetch_add(1, Relaxed), 2);
    };
    about(after_writes(&machine, 8, then_update), come + rmw);
    let then_call = |lines: &[Rc<Line>]| {
        store(lines);
        assert_eq!(<Sim>::futex_wake(&raw const **lines[0], 1), 0);
    };
    let nothing_to_wait_for = after_writes(&machine, 8, |lines| {
        lines.iter().for_each(|line| assert_eq!(line.load(Relaxed), 1));
        let start = here::now();
        assert_eq!(<Sim>::futex_wake(&raw const **lines[0], 1), 0);
        assert!(here::now() - start < 300.0);
    }) - 8.0 * (step + hit + near);
    // The call's own time passes meanwhile, up to the first lock of the kernel.
    let call = machine.kernel.syscall_ns;
    about(after_writes(&machine, 8, then_call), come.max(8.0 * step + call) - call + nothing_to_wait_for);
}

/// A thread waits for its oldest store, if the buffer is full; without one it waits for each store.
#[test]
fn a_full_store_buffer_is_waited_for() {
    let mut machine = Machine::plain(2);
    machine.cpu.window_ns = 0.0;
    let (step, near) = (machine.cpu.step_ns, machine.memory.near_ns);
    machine.cpu.stores = 0;
    about(after_writes(&machine, 8, store), 8.0 * (step + near));
    machine.cpu.stores = 2;
    // Two lines are on their way at a time, one after the other by a step: the last two have been asked for
    // at the end.
    about(after_writes(&machine, 8, store), 3.0 * near + 2.0 * step);
    machine.cpu.stores = 7;
    about(after_writes(&machine, 8, store), near + step);
}

/// How long after a store was begun, by CPU 1, CPU 0 sees it, which looks again and again, by `look`.
fn seen_after_store(look: fn(&AtomicU32) -> u32) -> f64 {
    let line = line();
    let (stored, seen) = (Rc::new(Cell::new(0.0)), Rc::new(Cell::new(0.0)));
    let mut simulation = Simulation::new(&Machine::plain(2));
    let (looked_at, seen_at) = (Rc::clone(&line), Rc::clone(&seen));
    simulation.thread_on(0..1, move || {
        while look(&looked_at) == 0 {
            here::compute(1);
        }
        seen_at.set(here::now());
    });
    let stored_at = Rc::clone(&stored);
    simulation.thread_on(1..2, move || {
        here::compute(10_000);
        stored_at.set(here::now());
        line.store(1, Relaxed);
        here::compute(10_000);
    });
    assert_eq!(simulation.run().unwrap().failure, None);
    seen.get() - stored.get()
}

/// A thread that looks, in its own copy of the line or by atomic operations, sees a store when the storer has
/// got the line, and the line is back.
#[test]
fn a_store_is_not_seen_before_its_line_has_come() {
    let near = Machine::plain(2).memory.near_ns;
    for look in [|word: &AtomicU32| word.load(Relaxed), |word: &AtomicU32| word.fetch_add(0, Relaxed)] {
        let later = seen_after_store(look);
        assert!((1.5 * near..3.5 * near).contains(&later), "{later} ns: there, and back");
    }
}

/// A thread that polls sees a store when its line has arrived, and its own store at once.
#[test]
fn a_store_is_told_when_its_line_has_come() {
    let machine = Machine::plain(2);
    let line = line();
    let mut simulation = Simulation::new(&machine);
    let seen = Rc::new(Cell::new(0.0));
    let (polled, seen_at) = (Rc::clone(&line), Rc::clone(&seen));
    simulation.thread_on(0..1, move || {
        while polled.load(Relaxed) == 0 {
            <Sim>::spin_hint();
        }
        seen_at.set(here::now());
    });
    let stored = Rc::new(Cell::new(0.0));
    let stored_at = Rc::clone(&stored);
    simulation.thread_on(1..2, move || {
        here::compute(10_000);
        line.store(1, Relaxed);
        stored_at.set(here::now());
        assert_eq!(line.load(Relaxed), 1);
        here::compute(100_000);
    });
    assert_eq!(simulation.run().unwrap().failure, None);
    let later = seen.get() - stored.get();
    assert!((40.0..400.0).contains(&later), "{later} ns");
}

/// Transfers are spread evenly around what they take, and one seed is one run.
#[test]
fn transfers_differ() {
    let mut machine = Machine::plain(2);
    machine.cpu.window_ns = 0.0;
    machine.memory.spread = 0.2;
    let near = machine.memory.near_ns;
    let took = after_writes(&machine, 400, add) / 400.0 - machine.memory.rmw_ns - machine.cpu.step_ns;
    assert!((0.97 * near..1.03 * near).contains(&took), "{took} ns for each");
    let of_one = |seed| {
        let line = line();
        let mut simulation = Simulation::new(&machine).seed(seed);
        for cpu in 0..2 {
            let line = Rc::clone(&line);
            simulation.thread_on(cpu..cpu + 1, move || {
                here::compute(1_000 * u64::from(cpu));
                line.fetch_add(1, Relaxed);
            });
        }
        simulation.run().unwrap().elapsed_ns
    };
    assert_eq!(of_one(1), of_one(1));
    let all: std::collections::BTreeSet<u64> = (0..20).map(of_one).collect();
    assert!(all.len() > 4, "{all:?}");
}

#[test]
fn a_sibling_that_computes_slows_a_thread() {
    let machine = two_sockets();
    let mut simulation = Simulation::new(&machine);
    let took = Rc::new(Cell::new(0.0));
    simulation.thread_on(4..5, || here::compute(1_000_000));
    let result = took.clone();
    simulation.thread_on(0..1, move || {
        here::compute(10_000); // until both run
        let start = here::now();
        here::compute(60_000);
        result.set(here::now() - start);
    });
    simulation.run().unwrap();
    about(took.get(), 60_000.0 / machine.cpu.smt);
}

#[test]
fn clocks_and_timers() {
    let machine = Machine::plain(1);
    let mut simulation = Simulation::new(&machine);
    let slack = machine.kernel.timer_slack_ns;
    simulation.thread(move || {
        let word = AtomicU32::new(0);
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let before = <Sim>::now(clock);
            here::compute(500);
            assert!((500..700).contains(&(<Sim>::now(clock) - before)));
            let deadline = Deadline { clock, at: <Sim>::now(clock) + 1_000_000 };
            assert_eq!(<Sim>::futex_wait(&word, 0, Some(deadline)), Wait::TimedOut);
            let late = (<Sim>::now(clock) - deadline.at) as f64;
            assert!((slack..slack + 20_000.0).contains(&late), "{late} ns late");
        }
    });
    assert_eq!(simulation.run().unwrap().failure, None);
}

/// A run with all sorts of things in it.
fn busy(seed: u64) -> SimulationResult {
    let mut simulation = Simulation::new(&two_sockets()).seed(seed);
    let lock = Object::new(spinpark_locks::RawMutex::<Sim>::new());
    for _ in 0..12 {
        let lock = Rc::clone(&lock);
        simulation.thread(move || {
            for _ in 0..200 {
                lock.lock();
                here::compute(here::random(2_000));
                lock.unlock();
                here::compute(here::random(3_000));
            }
        });
    }
    simulation.run().unwrap()
}

#[test]
fn one_seed_is_one_run() {
    let once = serde_json::to_string(&busy(7)).unwrap();
    assert_eq!(once, serde_json::to_string(&busy(7)).unwrap());
    assert_ne!(once, serde_json::to_string(&busy(8)).unwrap());
    let elsewhere = std::thread::spawn(|| {
        let _shifts_the_heap = vec![0_u8; 12_345];
        serde_json::to_string(&busy(7)).unwrap()
    });
    assert_eq!(once, elsewhere.join().unwrap());
}

#[test]
fn a_core_asks_for_a_line_once() {
    // Both hardware threads of core 0 want a line that core 2 has changed: it moves once.
    let mut simulation = Simulation::new(&two_sockets());
    let line = line();
    for cpu in [2, 0, 4] {
        let line = Rc::clone(&line);
        simulation.thread_on(cpu..cpu + 1, move || {
            here::compute(if cpu == 2 { 1_000 } else { 20_000 });
            line.fetch_add(1, Relaxed);
        });
    }
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.counts.moves_far, 1);
}
