//! What the platform keeps, for each thread and for all of them. `crate::platform` has what is done with it.

use std::any::Any;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;

use rustc_hash::FxHashMap;
use spinpark_locks::{SpinStats, TransferCost};
use spinpark_platform::ClosingCost;

use crate::world::memory::Place;
use crate::world::memory::object::Region;

/// Slots in a line.
pub(crate) const SLOTS: usize = 8;

/// A reader's slot holds the address of its lock, with this bit while the reader is being counted in the
/// lock.
pub(crate) const MARKED: usize = 1;
/// The same, with this bit once it is counted.
pub(crate) const COUNTED: usize = 2;
/// The same, with these bits if it is of another lock, which was at the address before.
pub(crate) const GONE: usize = MARKED | COUNTED;

/// The reader slots of a CPU.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct SlotLine(pub(crate) [AtomicUsize; SLOTS]);

/// What threads share besides their locks.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Locks by their places in memory, or by the numbers that a program gives for addresses where no memory
    /// is: each one's name is its number in the order in which they were first named.
    pub(crate) names: FxHashMap<Result<Place, usize>, usize>,
    /// What it costs to move a lock.
    pub(crate) transfer: TransferCost,
    /// What it costs to close a lock's slots.
    pub(crate) closing: ClosingCost,
    /// What spinners queue in, from the first use on: the platform's.
    pub(crate) spin_lines: Option<Rc<dyn Any>>,
    /// Where that, and the lines below, are.
    pub(crate) regions: Vec<Region>,
    /// A line for each CPU, from the first use on.
    pub(crate) lines: Option<Rc<[SlotLine]>>,
    /// By a lock's name, the word that a waiter sleeps on which releases may leave asleep: what it is, and
    /// its address then.
    pub(crate) unwoken: FxHashMap<usize, (Place, usize)>,
    /// The kernel has no restartable steps.
    pub(crate) without_steps: bool,
}

impl Shared {
    /// The name of a lock: not 0.
    pub(crate) fn name_of(&mut self, lock: Result<Place, usize>) -> usize {
        let next = self.names.len() + 1;
        *self.names.entry(lock).or_insert(next)
    }

    /// Threads have made `lines`, which are memory of the program's machine.
    pub(crate) fn add_region<T>(&mut self, lines: &[T]) {
        let place = lines.as_ptr_range();
        self.regions.push(Region::new(place.start.addr()..place.end.addr()));
    }

    pub(crate) fn has_steps(&self) -> bool {
        !self.without_steps
    }
}

/// A read lock that a thread holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) lock: usize,
    /// Where it says so, if it is not counted in the lock: which line, and where there.
    pub(crate) slot: Option<(usize, usize)>,
}

/// What a thread does before it leaves its call by unwinding.
#[derive(Clone, Copy)]
pub(crate) struct Leave(pub(crate) *const dyn Fn());

/// What the platform keeps for a thread.
#[derive(Default)]
pub(crate) struct Local {
    pub(crate) spin_stats: SpinStats,
    /// The attempts to acquire a lock in which it reads first.
    pub(crate) reads_first: u32,
    /// Its real-time priority, if that has been set.
    pub(crate) priority: Option<u8>,
    pub(crate) read: Vec<Held>,
    /// What it last wrote by a compare-exchange, and the same until the first load after a barrier: for a
    /// fault.
    pub(crate) written: u32,
    pub(crate) after_fence: Option<u32>,
    /// The sleeper that a mutant gathers at its next call, and the word where.
    pub(crate) gathers_late: Option<(usize, usize)>,
    /// Whether it may end in a call of a lock.
    pub(crate) exits: bool,
    /// What it does before it ends. Valid while its call is in `or_leave`, which takes it away again.
    pub(crate) leave: Option<Leave>,
    /// Whether it has queued for a lock, in the call in which it may end.
    pub(crate) has_queued: bool,
}
