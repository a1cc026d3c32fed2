//! `P = Sim`: the platform on the simulated machine. Here are its tuning, threads, clocks and events, and the
//! kernel's part of an asymmetric barrier: every CPU is interrupted, and its stores drain.

mod adaptive;
mod atomic;
mod calls;
mod faulty;
mod restart;
mod slots;

use std::fmt::Debug;
use std::marker::PhantomData;

use spinpark_platform::{Clock, Clocks, Deadline, Event, Events, Layout, Memory, Platform, Threads, Tuning};

pub use self::atomic::{AtomicPtr, AtomicU32, Cell};
pub(crate) use self::faulty::set as set_faults;
use crate::access::{drain, enter_kernel, wait_for_fence};
use crate::check::Fault;
use crate::engine::{in_run, is_inside, settle, spend, world};
use crate::here;
use crate::here::random;
use crate::outcome::index;
use crate::time::PS_PER_NS;
use crate::world::{Did, World};

/// The constants with which locks run.
pub trait Tuned: Debug + Send + Sync + 'static {
    /// Them.
    const TUNING: Tuning;
    /// After this number of reads for each CPU a read-write lock's readers use slots.
    const READS_PER_CPU: u32 = 128;
    /// Questions whose answers only speed or order may rest on (whether a thread is bound to a CPU, whether
    /// it will wait after a signal, its priority) are answered at random.
    const GUESSES: bool = false;
}

/// Those of Linux.
#[derive(Debug)]
pub enum LinuxTuning {}

impl Tuned for LinuxTuning {
    const TUNING: Tuning = Tuning::LINUX;
}

/// The simulated machine.
///
/// Locks of it work as usual outside of a simulation too, as long as no thread has to wait: they may be made
/// before it and looked at after it.
#[derive(Debug)]
pub struct Sim<T: Tuned = LinuxTuning>(PhantomData<T>);

impl<T: Tuned> Platform for Sim<T> {
    const TUNING: Tuning = T::TUNING;
}

impl<T: Tuned> Layout for Sim<T> {
    type Padding = ();
    type Gap = ();
}

impl<T: Tuned> Memory for Sim<T> {
    type AtomicU32 = AtomicU32;
    type AtomicPtr<U> = AtomicPtr<U>;
    type Cell<U> = Cell<U>;

    fn full_fence() {
        if is_inside() && !faulty::has(|fault| matches!(fault, Fault::NoFullFence)) {
            drain();
            spend(|world| world.costs.fence);
        }
    }
}

impl<T: Tuned> Threads for Sim<T> {
    fn thread_token() -> u32 {
        if is_inside() { world(|world| world.running.0 + 1) } else { u32::MAX >> 10 }
    }

    fn generation() -> u32 {
        let generation = in_run(|world| world.generation);
        let is_same = || faulty::has(|fault| matches!(fault, Fault::SameGeneration));
        if generation != 0 && is_same() { 0 } else { generation }
    }

    fn priority() -> u8 {
        let given = in_run(|world| world.threads[world.running].local.priority);
        let guessed = || if T::GUESSES && here::has_priorities() { here::random_priority() } else { 0 };
        given.unwrap_or_else(guessed)
    }
}

impl<T: Tuned> Events for Sim<T> {
    fn event(event: Event) {
        if is_inside() {
            world(|world| {
                world.counts.locks[index(event)] += 1;
                world.note(Did::Lock(event));
            });
            here::note_event(event);
        }
    }
}

/// The realtime clock is ahead of the monotonic one by so much, ns.
const REALTIME_AHEAD: u64 = 1_700_000_000_000_000_000;
/// The time at which a simulation starts, ns: no clock of a running machine shows 0.
const EPOCH: u64 = 1_000_000;

/// What clock `clock` shows at a virtual time, ns.
pub(super) fn shown(clock: Clock, at: u64) -> u64 {
    let monotonic = at / PS_PER_NS + EPOCH;
    match clock {
        Clock::Monotonic => monotonic,
        Clock::Realtime => monotonic + REALTIME_AHEAD,
    }
}

/// The virtual time of a deadline.
pub(super) fn at(deadline: Deadline) -> u64 {
    let monotonic = match deadline.clock {
        Clock::Monotonic => deadline.at,
        Clock::Realtime => deadline.at.saturating_sub(REALTIME_AHEAD),
    };
    monotonic.saturating_sub(EPOCH).saturating_mul(PS_PER_NS)
}

impl<T: Tuned> Clocks for Sim<T> {
    fn now(clock: Clock) -> u64 {
        here::read_clock(|at| shown(clock, at))
    }
}

/// In a run that is checked, CPUs are interrupted one after the other: one that has been goes on while the
/// next one has not.
fn interrupt_each() {
    let cpus = world(|world| world.cpus.len());
    let first = random(cpus as u64) as usize;
    let mut any = false;
    for number in 0..cpus {
        let interrupted = world(|world| world.interrupt_at((first + number) % cpus));
        spend(|world| if interrupted { world.costs.kick } else { 0 });
        settle();
        any |= interrupted;
    }
    if any {
        spend(|world| world.wait_for_last());
    }
}

/// Interrupts all CPUs, if the machine has restartable steps.
fn interrupt_cpus() {
    if in_run(|world| world.shared.has_steps()) {
        enter_kernel(|world| world.costs.syscall);
        world(|world| world.note(Did::Said("asymmetric barrier")));
        if world(|world| world.checks.is_some()) {
            interrupt_each();
        } else {
            spend(World::interrupt_all);
        }
        settle();
        wait_for_fence();
    }
}
