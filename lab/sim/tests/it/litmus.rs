//! Litmus tests: a few threads, a few stores and loads, over many seeds. What comes out is exactly what x86
//! allows.
//!
//! What that is, the test works out itself, for each program: it follows every run of the abstract machine of
//! Owens, Sarkar and Sewell (*A better x86 memory model: x86-TSO*, TPHOLs 2009): each thread has a queue of
//! stores, a load takes its own latest store or memory's value, and any queue's oldest store goes to memory
//! at any time. The names of the programs are theirs, and those of the Intel manual's examples (SDM vol. 3,
//! §8.2.3).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use spinpark_platform::{
    AsymmetricBarrier, AtomicU32 as _, Futex, Memory, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release, Ordering::SeqCst, SpinPolicy,
};
use spinpark_sim::machine::Machine;
use spinpark_sim::{AtomicU32, Chaos, Object, Order, Sim, Simulation, here};

const X: usize = 0;
const Y: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    /// A store of a value to a variable.
    W(usize, u32),
    /// The same by a restartable step, where the machine has them; it stores 0.
    Step(usize),
    /// The same by `XCHG`: a sequentially consistent store.
    Xchg(usize, u32),
    /// A load.
    R(usize),
    /// `MFENCE`.
    F,
    /// A read-modify-write of a variable of its own.
    Rmw,
    /// A system call.
    Call,
    /// The process-wide barrier.
    Barrier,
}
use Op::{Barrier, Call, F, R, Rmw, Step, W, Xchg};

type Program = &'static [&'static [Op]];

/// What the loads have seen, thread by thread, then what memory holds in the end.
type Seen = Vec<u32>;

fn variables(program: Program) -> usize {
    let of = |op: &Op| match op {
        W(place, _) | Step(place) | Xchg(place, _) | R(place) => place + 1,
        _ => 0,
    };
    program.iter().flat_map(|thread| thread.iter().map(of)).max().expect("there are some")
}

/// A state of the abstract machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Tso {
    memory: Vec<u32>,
    next: Vec<usize>,
    queues: Vec<Vec<(usize, u32)>>,
    loaded: Vec<Vec<u32>>,
}

/// What x86 allows.
fn allowed(program: Program, first: u32) -> BTreeSet<Seen> {
    let threads = program.len();
    let start = Tso {
        memory: vec![first; variables(program)],
        next: vec![0; threads],
        queues: vec![Vec::new(); threads],
        loaded: vec![Vec::new(); threads],
    };
    let (mut to_do, mut known, mut all) = (vec![start], BTreeSet::new(), BTreeSet::new());
    while let Some(state) = to_do.pop() {
        if !known.insert(state.clone()) {
            continue;
        }
        let mut is_end = true;
        for (thread, ops) in program.iter().enumerate() {
            if let Some(&(place, value)) = state.queues[thread].first() {
                let mut drained = state.clone();
                drained.queues[thread].remove(0);
                drained.memory[place] = value;
                to_do.push(drained);
                is_end = false;
            }
            let Some(&op) = ops.get(state.next[thread]) else { continue };
            is_end = false;
            let mut after = state.clone();
            after.next[thread] += 1;
            let is_drained = state.queues[thread].is_empty();
            match op {
                W(place, value) => after.queues[thread].push((place, value)),
                Step(place) => after.queues[thread].push((place, 0)),
                Xchg(place, value) if is_drained => after.memory[place] = value,
                R(place) => {
                    let own = state.queues[thread].iter().rev().find(|(other, _)| *other == place);
                    after.loaded[thread].push(own.map_or(state.memory[place], |(_, value)| *value));
                }
                F | Rmw | Call if is_drained => {}
                Barrier if state.queues.iter().all(Vec::is_empty) => {}
                _ => continue, // it waits
            }
            to_do.push(after);
        }
        if is_end {
            all.insert(state.loaded.concat().into_iter().chain(state.memory).collect());
        }
    }
    all
}

/// One run.
fn run(program: Program, first: u32, seed: u64, chaos: &Chaos, cpus: u32) -> Seen {
    let variables: Rc<[_]> = (0..variables(program)).map(|_| Object::new(AtomicU32::new(first))).collect();
    let loaded: Rc<Vec<Cell<Vec<u32>>>> = Rc::new(program.iter().map(|_| Cell::default()).collect());
    let mut machine = Machine::plain(cpus);
    machine.memory.spread = 0.2;
    // What is new is no line's first use only: the threads start with all of them in their caches, or in
    // another one's.
    let mut simulation = Simulation::new(&machine).seed(seed).chaos(chaos.clone());
    let started = Rc::new(Cell::new(0));
    for (number, ops) in program.iter().enumerate() {
        let (variables, loaded, started) = (Rc::clone(&variables), Rc::clone(&loaded), Rc::clone(&started));
        simulation.thread(move || {
            let (own, guard) = (AtomicU32::new(0), AtomicU32::new(0));
            for variable in variables.iter() {
                if here::random(2) == 0 {
                    variable.load(Relaxed);
                } else {
                    variable.fetch_add(0, Relaxed);
                }
            }
            started.set(started.get() + 1);
            while started.get() < program.len() {
                <Sim>::spin_hint();
            }
            here::compute(here::random(200));
            let mut seen = Vec::new();
            for &op in *ops {
                match op {
                    W(place, value) => {
                        variables[place].store(value, [Relaxed, Release][value as usize % 2]);
                    }
                    Step(place) => while !<Sim>::release_unless::<1>(&guard, &variables[place], || first) {},
                    Xchg(place, value) => variables[place].store(value, SeqCst),
                    R(place) => seen.push(variables[place].load(Acquire)),
                    F => <Sim>::full_fence(),
                    Rmw => drop(own.fetch_or(1, Relaxed)),
                    Call => drop(<Sim>::futex_wake(&own, 1)),
                    Barrier => <Sim>::asymmetric_barrier(),
                }
                if here::random(4) == 0 {
                    here::compute(here::random(100));
                }
            }
            loaded[number].set(seen);
        });
    }
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.failure, None);
    // Each thread has ended, and its stores with it.
    let last = variables.iter().map(|variable| variable.load(Relaxed));
    loaded.iter().flat_map(Cell::take).chain(last).collect()
}

/// As the machine's times are; with stores that stay in their buffers; the threads in order of rank.
fn kinds_of_run() -> [(&'static str, Chaos); 3] {
    let timed = Chaos { buffered: 0.5, delay_ns: 300.0, preempt: 0.05, ..Chaos::default() };
    let ranked = Chaos { order: Order::Rank, steps_between_changes: 4, buffered: 0.7, ..timed.clone() };
    [("as it is", Chaos::default()), ("delayed", timed), ("by rank", ranked)]
}

const SEEDS: u64 = 3_000;

/// Asserts that all of what is allowed comes out, and nothing else. Returns that.
fn exactly(program: Program) -> BTreeSet<Seen> {
    exactly_from(program, 0)
}

fn exactly_from(program: Program, first: u32) -> BTreeSet<Seen> {
    let allowed = allowed(program, first);
    let mut seen: BTreeMap<Seen, u64> = BTreeMap::new();
    for (kind, chaos) in kinds_of_run() {
        for seed in 0..SEEDS {
            // Too few CPUs, too: then threads are preempted with stores in their buffers.
            let cpus = if seed % 4 == 0 { 1 + (seed / 4 % 2) as u32 } else { 4 };
            let outcome = run(program, first, seed, &chaos, cpus);
            assert!(allowed.contains(&outcome), "{program:?}, {kind}, seed {seed}: {outcome:?} is forbidden");
            *seen.entry(outcome).or_default() += 1;
        }
    }
    println!("{program:?}: {seen:?}");
    let missing: Vec<_> = allowed.iter().filter(|outcome| !seen.contains_key(*outcome)).collect();
    assert!(missing.is_empty(), "{program:?}: {missing:?} are allowed, and never seen");
    allowed
}

/// Whether some outcome begins like that.
fn has(outcomes: &BTreeSet<Seen>, start: &[u32]) -> bool {
    outcomes.iter().any(|outcome| outcome.starts_with(start))
}

/// Store buffering: both loads may come before the other's store is seen.
#[test]
fn sb() {
    assert!(has(&exactly(&[&[W(X, 1), R(Y)], &[W(Y, 1), R(X)]]), &[0, 0]));
    // One fence is none.
    assert!(has(&exactly(&[&[W(X, 1), F, R(Y)], &[W(Y, 1), R(X)]]), &[0, 0]));
    let fenced: [Program; 4] = [
        &[&[W(X, 1), F, R(Y)], &[W(Y, 1), F, R(X)]],
        &[&[W(X, 1), Rmw, R(Y)], &[Xchg(Y, 1), R(X)]],
        &[&[W(X, 1), Call, R(Y)], &[W(Y, 1), F, R(X)]],
        &[&[W(X, 1), Call, R(Y)], &[W(Y, 1), Rmw, R(X)]],
    ];
    for program in fenced {
        assert!(!has(&exactly(program), &[0, 0]));
    }
}

/// The same with a barrier of the whole process on one side, and nothing on the other: an asymmetric fence.
#[test]
fn sb_with_a_process_wide_barrier() {
    assert!(!has(&exactly(&[&[W(X, 1), R(Y)], &[W(Y, 1), Barrier, R(X)]]), &[0, 0]));
    // A restartable step's store is one like others.
    assert!(has(&exactly_from(&[&[Step(X), R(Y)], &[W(Y, 0), R(X)]], 1), &[1, 1]));
    assert!(!has(&exactly_from(&[&[Step(X), R(Y)], &[W(Y, 0), Barrier, R(X)]], 1), &[1, 1]));
}

/// Message passing.
#[test]
fn mp() {
    assert!(!has(&exactly(&[&[W(X, 1), W(Y, 1)], &[R(Y), R(X)]]), &[1, 0]));
}

/// Load buffering.
#[test]
fn lb() {
    assert!(!has(&exactly(&[&[R(X), W(Y, 1)], &[R(Y), W(X, 1)]]), &[1, 1]));
}

/// Independent reads of independent writes: all threads see stores in one order.
#[test]
fn iriw() {
    let program: Program = &[&[W(X, 1)], &[W(Y, 1)], &[R(X), R(Y)], &[R(Y), R(X)]];
    assert!(!has(&exactly(program), &[1, 0, 1, 0]));
}

/// The last store to `Y`, and whether the load comes before `X` is seen.
#[test]
fn r() {
    assert!(exactly(&[&[W(X, 1), W(Y, 1)], &[W(Y, 2), R(X)]]).contains(&vec![0, 1, 2]));
    assert!(!exactly(&[&[W(X, 1), W(Y, 1)], &[W(Y, 2), F, R(X)]]).contains(&vec![0, 1, 2]));
}

/// Two stores each, in opposite orders.
#[test]
fn two_and_two_writes() {
    assert!(!exactly(&[&[W(X, 1), W(Y, 2)], &[W(Y, 1), W(X, 2)]]).contains(&vec![1, 1]));
}

/// A store is seen by its own thread before all others: forwarding.
#[test]
fn forwarding() {
    // n6.
    let n6 = exactly(&[&[W(X, 1), R(X), R(Y)], &[W(Y, 2), W(X, 2)]]);
    assert!(n6.contains(&vec![1, 0, 1, 2]));
    // n5: what both have seen has an order.
    assert!(!has(&exactly(&[&[W(X, 1), R(X)], &[W(X, 2), R(X)]]), &[2, 1]));
    // n4b.
    assert!(!has(&exactly(&[&[R(X), W(X, 1)], &[R(X), W(X, 2)]]), &[2, 1]));
    // Both threads see their own store first.
    let both = exactly(&[&[W(X, 1), R(X), R(Y)], &[W(Y, 1), R(Y), R(X)]]);
    assert!(has(&both, &[1, 0, 1, 0]));
}

/// Write-to-read causality: a store that a thread has seen, all see.
#[test]
fn wrc() {
    assert!(!has(&exactly(&[&[W(X, 1)], &[R(X), W(Y, 1)], &[R(Y), R(X)]]), &[1, 1, 0]));
}

/// The oldest store of several, and the latest of two to one word.
#[test]
fn several_stores() {
    let program: Program = &[&[W(X, 1), W(X, 2), W(Y, 1), R(X)], &[R(Y), R(X), R(X)]];
    let seen = exactly(program);
    assert!(!has(&seen, &[2, 1, 0]) && !has(&seen, &[2, 1, 1]) && !has(&seen, &[1]));
}
