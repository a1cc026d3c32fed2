//! `P = Loom`: the platform under loom, which runs a model in every order that its bounds allow.
//!
//! Everything a lock does through the platform is visible to loom: atomics and cells are loom's own, sleeping
//! is loom's `park`, and the clock stands still unless the model moves it. The state (`World`) is made anew
//! for each execution.
//!
//! Beyond the contract, this platform checks that the memory of an atomic or a cell is given back only after
//! every access to it (the *drop check*): a release that touches its lock too late, or a notification that
//! touches a node too late, is an error here and not just a race that happens to be lost.

mod atomic;
mod cell;
mod fence;
mod futex;
mod restart;
mod sleepers;
mod slot_lines;
mod slots;
mod steps;
mod world;

pub use atomic::{AtomicPtr, AtomicU32};
pub use cell::Cell;
pub use spinpark_sim::check::{Fault, Faults, Kind, Op};
pub use world::{
    Config, advance, come_late, lead_in, leave_next_sleep, let_come, lose_full_fences, noted, set_back,
    set_priority, stop_after, while_stopped,
};
pub(crate) use world::{begin, take_noted};

use loom::thread;
use spinpark_locks::{Adaptive, Spin, Spinning, Timing};
use spinpark_platform::{
    Clock, Clocks, Event, Events, Layout, Memory, OnCpu, Ordering, Owners, Platform, SpinLocks, SpinPolicy,
    Threads, Tuning,
};

use world::world;

/// The time at which the clock of each execution starts, ns.
pub const EPOCH_NS: u64 = 1_000;

/// A time that no model reaches.
pub const NEVER: u64 = u64::MAX;

/// The loom platform.
///
/// `STARVATION_NS`: 0 lets every waiter that lost once request a hand-off; 1 only after the model has moved
/// the clock. `SPIN_NS`: how many polls a spinning phase has after the first one; each takes 1 ns, for its
/// thread only. `READER_PATIENCE_NS`, `REQUEST_NS`, `PROBE_NS`: as they say. `READS_BEFORE_SLOTS`: after so
/// many reads a read-write lock enables its bias.
#[derive(Debug)]
pub enum Loom<
    const STARVATION_NS: u64 = 1,
    const SPIN_NS: u64 = 0,
    const READER_PATIENCE_NS: u64 = NEVER,
    const READS_BEFORE_SLOTS: u32 = { u32::MAX },
    const REQUEST_NS: u64 = NEVER,
    const PROBE_NS: u64 = NEVER,
> {}

impl<
    const STARVATION_NS: u64,
    const SPIN_NS: u64,
    const READER_PATIENCE_NS: u64,
    const READS_BEFORE_SLOTS: u32,
    const REQUEST_NS: u64,
    const PROBE_NS: u64,
> Platform for Loom<STARVATION_NS, SPIN_NS, READER_PATIENCE_NS, READS_BEFORE_SLOTS, REQUEST_NS, PROBE_NS>
{
    const TUNING: Tuning = Tuning {
        spin_ns: SPIN_NS,
        primary_spin_ns: SPIN_NS,
        secondary_spin_ns: SPIN_NS,
        queue_spin_ns: SPIN_NS,
        eager_gap_ns: 1,
        crowded_gap_ns: 1,
        back_off_gap_ns: 1,
        owner_probe_ns: 1,
        starvation_ns: STARVATION_NS,
        preferred_ns: STARVATION_NS,
        request_ns: REQUEST_NS,
        repark_ns: 1, // asleep only on request: of a waiter that lets its owner go on
        longest_wait_ns: 4,
        deep_sleep_ns: 1,
        pass_ns: 1,
        reader_patience_ns: READER_PATIENCE_NS,
        unmarked_ns: STARVATION_NS,
        probe_ns: PROBE_NS,
        least_probe_ns: 0,
        longest_probe_ns: PROBE_NS,
        queue_polls: 0,
        quiet_releases: 1,
        spin_locks: SpinLocks::Preempted,
    };
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Layout
    for Loom<S, N, P, R, D, W>
{
    type Padding = ();
    type Gap = ();
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Memory
    for Loom<S, N, P, R, D, W>
{
    type AtomicU32 = AtomicU32;
    type AtomicPtr<T> = AtomicPtr<T>;
    type Cell<T> = Cell<T>;

    fn full_fence() {
        if std::thread::panicking() {
            return;
        }
        let world = world();
        let is_left_out = |fault: &Fault| matches!(fault, Fault::NoFullFence);
        if !world.config.faults.any(is_left_out) && !world.local(|local| local.loses_full_fences) {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Clocks
    for Loom<S, N, P, R, D, W>
{
    fn now(clock: Clock) -> u64 {
        let world = world();
        world.now(clock) + world.local(|local| local.spun)
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Threads
    for Loom<S, N, P, R, D, W>
{
    fn thread_token() -> u32 {
        world().local(|local| local.token)
    }

    fn generation() -> u32 {
        0
    }

    fn priority() -> u8 {
        let world = world();
        let priority = world.local(|local| local.priority);
        let is_lost = |fault: &Fault| matches!(fault, Fault::NoPriorities);
        if priority != 0 && world.config.faults.any(is_lost) { 0 } else { priority }
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Owners
    for Loom<S, N, P, R, D, W>
{
    fn owner_on_cpu(owner: u32, _: &mut u64) -> OnCpu {
        if owner == 0 { OnCpu::Unknown } else { world().config.oracle }
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> SpinPolicy
    for Loom<S, N, P, R, D, W>
{
    fn spin_hint() -> u32 {
        if std::thread::panicking() {
            // A destructor spins while a failed execution unwinds: no thread is left to end that. The reason
            // is out.
            std::process::abort();
        }
        thread::yield_now();
        1
    }

    fn spin_for(span: u64) {
        world().local(|local| local.spun += span);
        Self::spin_hint();
    }

    fn need_resched() -> bool {
        world().config.need_resched
    }

    fn cpus() -> u32 {
        world().config.cpus
    }

    fn wakes_unmarked() -> bool {
        world().config.unmarked
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Adaptive
    for Loom<S, N, P, R, D, W>
{
    fn can_spin(_: Spin) -> bool {
        world().config.can_spin
    }

    fn reads_first() -> bool {
        !world().config.never_reads
    }

    fn spinning(_: usize) -> Spinning {
        if world().config.backs_off { Spinning::BackOff } else { Spinning::Eager }
    }

    fn wants_time(_: usize, _: bool) -> Option<Timing> {
        world().config.backs_off.then_some(Timing { may_set_contended: true })
    }

    fn returns_soon(_: usize) -> bool {
        world().config.backs_off
    }

    fn waits_next(_: usize) -> bool {
        world().config.defers
    }

    fn ends_contended(_: usize) -> bool {
        !world().config.stays_contended
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> Events
    for Loom<S, N, P, R, D, W>
{
    fn event(event: Event) {
        world::note(event);
    }
}
