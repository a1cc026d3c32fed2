//! `P = Sim`: the platform on the simulated machine.

mod adaptive;
mod atomic;
mod calls;
mod cell;
mod clock;
mod faulty;
mod fence;
mod life;
mod restart;
mod slots;
mod spin_room;

use std::fmt::Debug;
use std::marker::PhantomData;

use spinpark_platform::{Event, Events, Layout, Memory, Platform, Threads, Tuning};

use crate::access::drain;
use crate::check::Fault;
use crate::engine::run::{is_inside, world};
use crate::engine::step::spend;
use crate::here;
use crate::report::index;
use crate::world::Did;
pub use atomic::{AtomicPtr, AtomicU32};
pub use cell::Cell;
pub(crate) use faulty::set as set_faults;

/// The constants with which locks run.
pub trait Tuned: Debug + Send + Sync + 'static {
    /// Them.
    const TUNING: Tuning;
    /// After so many reads for each CPU a read-write lock's readers use slots.
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
        let is_same = || faulty::has(|fault| matches!(fault, Fault::SameGeneration));
        if is_inside() && !is_same() { world(|world| world.generation) } else { 0 }
    }

    fn priority() -> u8 {
        let given = is_inside().then(|| world(|world| world.threads[world.running].local.priority)).flatten();
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
