//! `P = Loom`: the seam under loom, which runs a model in every order that its bounds allow.
//!
//! Everything a lock does through the seam is visible to loom: atomics and cells are loom's own, sleeping is loom's
//! `park`, and the clock stands still unless the model moves it. The state (`World`) is made anew for each execution.
//!
//! Beyond the contract, this platform checks that the memory of an atomic or a cell is given back only after every
//! access to it (the *drop check*): a release that touches its lock too late, or a notification that touches a node
//! too late, is an error here and not just a race that happens to be lost.

mod atomic;
mod cell;
mod futex;
mod restart;
mod slots;
mod world;

pub use atomic::{AtomicPtr, AtomicU32};
pub use cell::Cell;
pub use spinpark_sim::check::{Fault, Faults, Kind, Op};
pub use world::{
    Config, advance, come_late, lead_in, leave_next_sleep, let_come, lose_full_fences, set_back,
    set_priority, stop_after, while_stopped,
};
pub(crate) use world::{begin, take_noted};

use loom::thread;
use spinpark_platform::{
    Clock, Deadline, Event, OnCpu, Ordering, Pace, Platform, SlotLeft, Spin, SpinLocks, Tuning, Wait, WakeOp,
};

use slots::Held;
use world::world;

/// The time at which the clock of each execution starts, ns.
pub const EPOCH_NS: u64 = 1_000;

/// A time that no model reaches.
pub const NEVER: u64 = u64::MAX;

/// The loom platform.
///
/// `STARVATION_NS`: 0 lets every waiter that lost once demand a hand-off; 1 only after the model has moved the clock.
/// `SPIN_NS`: how many polls a spinning phase has after the first one; each takes 1 ns, for its thread only.
/// `READER_PATIENCE_NS`, `DEMAND_NS`: as they say. `READS_BEFORE_SLOTS`: after so many reads a read-write lock opens its gate.
#[derive(Debug)]
pub enum Loom<
    const STARVATION_NS: u64 = 1,
    const SPIN_NS: u64 = 0,
    const READER_PATIENCE_NS: u64 = NEVER,
    const READS_BEFORE_SLOTS: u32 = { u32::MAX },
    const DEMAND_NS: u64 = NEVER,
> {}

impl<
    const STARVATION_NS: u64,
    const SPIN_NS: u64,
    const READER_PATIENCE_NS: u64,
    const READS_BEFORE_SLOTS: u32,
    const DEMAND_NS: u64,
> Platform for Loom<STARVATION_NS, SPIN_NS, READER_PATIENCE_NS, READS_BEFORE_SLOTS, DEMAND_NS>
{
    type AtomicU32 = AtomicU32;
    type AtomicPtr<T> = AtomicPtr<T>;
    type Cell<T> = Cell<T>;
    type Room = ();
    type Gap = ();

    const TUNING: Tuning = Tuning {
        spin_ns: SPIN_NS,
        keeper_spin_ns: SPIN_NS,
        company_spin_ns: SPIN_NS,
        close_gap_ns: 1,
        crowded_gap_ns: 1,
        apart_gap_ns: 1,
        oracle_ns: 1,
        starvation_ns: STARVATION_NS,
        demand_ns: DEMAND_NS,
        nap_ns: 1, // asleep only on request: of more than two CPUs, or of a waiter that lets its owner go on
        longest_wait_ns: 4,
        deep_sleep_ns: 1,
        pass_ns: 1,
        reader_patience_ns: READER_PATIENCE_NS,
        queue_polls: 0,
        quiet_releases: 1,
        spin_locks: SpinLocks::Preempted,
    };

    fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
        futex::wait(word, expected, deadline)
    }

    fn futex_wait_for(word: &AtomicU32, expected: u32, span: u64) -> Wait {
        futex::wait_for(word, expected, span)
    }

    fn sleep_or(sleep: &dyn Fn() -> Wait, leave: &dyn Fn()) -> Wait {
        if world::world().local(|local| std::mem::take(&mut local.leaves)) {
            leave();
            std::panic::resume_unwind(Box::new("left"));
        }
        sleep()
    }

    fn futex_wake(key: *const AtomicU32, count: u32) -> u32 {
        futex::wake(key as usize, count)
    }

    fn futex_requeue(
        from: &AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const AtomicU32,
        moved: u32,
    ) -> Option<u32> {
        futex::requeue(from, expected, wake, to as usize, moved)
    }

    fn futex_wake_op(
        first: *const AtomicU32,
        wake: u32,
        second: &AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32> {
        futex::wake_op(first as usize, wake, second, op, wake_second)
    }

    fn release_unless<const MASK: u32>(
        guard: &AtomicU32,
        word: &AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool {
        restart::release_unless(guard, MASK, word, likely)
    }

    fn heavy_fence() {
        restart::heavy_fence();
    }

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

    fn need_resched() -> bool {
        world().config.need_resched
    }

    fn now(clock: Clock) -> u64 {
        let world = world();
        world.now(clock) + world.local(|local| local.spun)
    }

    fn spin_for(span: u64) {
        world().local(|local| local.spun += span);
        Self::spin_hint();
    }

    fn spin_hint() -> u32 {
        if std::thread::panicking() {
            // A destructor spins while a failed execution unwinds: no thread is left to end that. The reason is out.
            std::process::abort();
        }
        thread::yield_now();
        1
    }

    fn cpus() -> u32 {
        world().config.cpus
    }

    fn pace(_: usize) -> Pace {
        if world().config.apart { Pace::Apart } else { Pace::Close }
    }

    fn returns_soon(_: usize) -> bool {
        world().config.apart
    }

    fn wants_time(_: usize, _: bool) -> bool {
        world().config.apart
    }

    fn waits_next(_: usize) -> bool {
        world().config.defers
    }

    fn ends_contended(_: usize) -> bool {
        !world().config.stays_contended
    }

    fn can_spin(_: Spin) -> bool {
        world().config.can_spin
    }

    fn priority() -> u8 {
        world().local(|local| local.priority)
    }

    fn thread_token() -> u32 {
        world().local(|local| local.token)
    }

    fn generation() -> u32 {
        0
    }

    fn owner_on_cpu(owner: u32, _: &mut u64) -> OnCpu {
        if owner == 0 { OnCpu::Unknown } else { world().config.oracle }
    }

    fn read_acquired(lock: usize) {
        world().local(|local| local.read.push(Held { lock, slot: None }));
    }

    fn read_released(lock: usize) {
        world().local(|local| {
            let counted = |held: &Held| held.lock == lock && held.slot.is_none();
            if let Some(found) = local.read.iter().rposition(counted) {
                local.read.swap_remove(found);
            }
        });
    }

    fn may_hold_read(lock: usize) -> bool {
        world().local(|local| local.read.iter().any(|held| held.lock == lock))
    }

    const MOST_SLOT_READERS: u32 = slots::MOST_READERS;

    fn reads_before_slots() -> u32 {
        READS_BEFORE_SLOTS
    }

    fn slot_table() -> u32 {
        slots::table_name()
    }

    fn slot_enter(gate: &AtomicU32, lock: usize) -> bool {
        slots::enter(gate, lock)
    }

    fn slot_leave(gate: &AtomicU32, lock: usize) -> SlotLeft {
        slots::leave(gate, lock)
    }

    fn slot_take_back(lock: usize) -> bool {
        slots::take_back(lock)
    }

    fn slots_count(table: u32, lock: usize) -> u32 {
        slots::count(table, lock)
    }

    fn slots_move(table: u32, lock: usize) {
        slots::move_readers(table, lock);
    }

    fn event(event: Event) {
        world::note(event);
    }
}
