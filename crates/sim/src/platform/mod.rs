//! `P = Sim`: the seam on the simulated machine.

mod atomic;
mod calls;
mod cell;
mod faulty;
mod life;
mod restart;
mod slots;

use std::fmt::Debug;
use std::marker::PhantomData;

use spinpark_platform::{
    Clock, Deadline, Event, Habits, OnCpu, Pace, Platform, SlotLeft, Spin, Tuning, Wait, WakeOp,
};

use crate::check::Fault;
use crate::engine::run::{is_inside, world};
use crate::engine::time::PS_PER_NS;
use crate::here;
use crate::report::index;
use crate::trace::Did;
pub use atomic::{AtomicPtr, AtomicU32};
pub use cell::Cell;
pub(crate) use faulty::set as set_faults;
use slots::Held;
pub(crate) use slots::Shared;

/// The constants with which locks run.
pub trait Tuned: Debug + Send + Sync + 'static {
    /// Them.
    const TUNING: Tuning;
    /// After so many reads for each CPU a read-write lock's readers use slots.
    const READS_PER_CPU: u32 = 128;
    /// Questions whose answers only speed or order may rest on (whether a thread is bound to a CPU, whether it will wait
    /// after a signal, its priority) are answered at random.
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
/// Locks of it work as usual outside of a simulation too, as long as no thread has to wait: they may be made before it and
/// looked at after it.
#[derive(Debug)]
pub struct Sim<T: Tuned = LinuxTuning>(PhantomData<T>);

/// What the platform keeps for a thread.
#[derive(Debug, Default)]
pub(crate) struct Local {
    habits: Habits,
    /// Its real-time priority, if that has been set.
    pub(crate) priority: Option<u8>,
    read: Vec<Held>,
    /// What it last wrote by a compare-exchange, and the same until the first load after a heavy fence: for a fault.
    written: u32,
    after_fence: Option<u32>,
}

/// The realtime clock is ahead of the monotonic one by so much, ns.
const REALTIME_AHEAD: u64 = 1_700_000_000_000_000_000;
/// The time at which a simulation starts, ns: no clock of a running machine shows 0.
const EPOCH: u64 = 1_000_000;

/// What clock `clock` shows at a virtual time, ns.
fn shown(clock: Clock, at: u64) -> u64 {
    let monotonic = at / PS_PER_NS + EPOCH;
    match clock {
        Clock::Monotonic => monotonic,
        Clock::Realtime => monotonic + REALTIME_AHEAD,
    }
}

/// The virtual time of a deadline.
fn at(deadline: Deadline) -> u64 {
    let monotonic = match deadline.clock {
        Clock::Monotonic => deadline.at,
        Clock::Realtime => deadline.at.saturating_sub(REALTIME_AHEAD),
    };
    monotonic.saturating_sub(EPOCH).saturating_mul(PS_PER_NS)
}

/// The habits of the running thread.
fn habits<R>(act: impl FnOnce(&mut Habits) -> R) -> R {
    world(|world| act(&mut world.threads[world.running].local.habits))
}

/// What the running thread has learnt about the lock at `lock`: with the lock's name, and the time, ns. Outside of a run, which
/// has no threads, nothing.
///
/// Threads remember locks by bits 4 and up of their addresses. Those differ from run to run, and one seed is one run: so a
/// lock's name is its place in the order in which locks were first named.
fn of_lock<R: Default>(lock: usize, act: impl FnOnce(&mut Habits, usize, u64) -> R) -> R {
    if !is_inside() {
        return R::default();
    }
    let (name, now) = world(|world| {
        let next = world.shared.names.len() + 1;
        let name = *world.shared.names.entry(lock).or_insert(next);
        (name << 4, shown(Clock::Monotonic, world.now))
    });
    habits(|habits| act(habits, name, now))
}

impl<T: Tuned> Platform for Sim<T> {
    type AtomicU32 = AtomicU32;
    type AtomicPtr<U> = AtomicPtr<U>;
    type Cell<U> = Cell<U>;
    type Room = ();
    type Gap = ();

    const TUNING: Tuning = T::TUNING;

    fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
        calls::wait(word, expected, deadline.map(at))
    }

    fn futex_wake(key: *const AtomicU32, count: u32) -> u32 {
        calls::wake(key.addr(), count)
    }

    fn futex_requeue(
        from: &AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const AtomicU32,
        moved: u32,
    ) -> Option<u32> {
        calls::requeue(from, expected, wake, to.addr(), moved)
    }

    fn futex_wake_op(
        first: *const AtomicU32,
        wake: u32,
        second: &AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32> {
        calls::wake_op(first.addr(), wake, second, op, wake_second)
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
        if is_inside() && !faulty::has(|fault| matches!(fault, Fault::NoFullFence)) {
            crate::access::drain();
            here::spend(|world| world.costs.fence);
        }
    }

    fn now(clock: Clock) -> u64 {
        here::read_clock(|at| shown(clock, at))
    }

    fn spin_hint() -> u32 {
        here::poll()
    }

    fn spin_for(span: u64) {
        if is_inside() {
            world(crate::engine::world::World::fall_behind); // it waits for others
        }
        here::compute(span);
    }

    fn need_resched() -> bool {
        world(|world| world.threads[world.running].to_leave)
    }

    fn cpus() -> u32 {
        if is_inside() { world(|world| world.cpus.len() as u32) } else { 1 }
    }

    fn only_cpu() -> Option<u32> {
        (T::GUESSES && is_inside() && here::random(2) == 0).then_some(0)
    }

    fn can_spin(kind: Spin) -> bool {
        is_inside() && world(|world| world.cpus.len() > 1) && habits(|habits| habits.spins_pay(kind))
    }

    fn spun(kind: Spin, paid: bool) {
        habits(|habits| habits.spun(kind, paid));
    }

    fn pace(lock: usize) -> Pace {
        of_lock(lock, |habits, lock, _| habits.pace(lock))
    }

    fn wants_time(lock: usize, queued: bool) -> bool {
        of_lock(lock, |habits, lock, _| habits.wants_time(lock, queued))
    }

    fn turn_begins(lock: usize, marked: bool) {
        of_lock(lock, |habits, lock, now| habits.turn_begins(lock, marked, now));
    }

    fn is_timed(lock: usize) -> bool {
        of_lock(lock, |habits, lock, _| habits.is_timed(lock))
    }

    fn turn_ends(lock: usize) {
        of_lock(lock, |habits, lock, now| habits.turn_ends(lock, now));
    }

    fn returns_to(lock: usize) {
        of_lock(lock, |habits, lock, now| habits.returns_to(lock, || now));
    }

    fn returns_soon(lock: usize) -> bool {
        of_lock(lock, |habits, lock, _| habits.returns_soon(lock))
    }

    fn waits_next(lock: usize) -> bool {
        if T::GUESSES && is_inside() {
            return here::random(2) == 0;
        }
        of_lock(lock, |habits, lock, _| habits.waits_next(lock))
    }

    fn releases_to_wait(lock: usize) {
        of_lock(lock, |habits, lock, _| habits.releases_to_wait(lock));
    }

    fn ends_contended(lock: usize) -> bool {
        of_lock(lock, |habits, lock, _| habits.ends_contended(lock, T::TUNING.quiet_releases, || true))
    }

    fn slots_closed(took: u64) {
        if is_inside() {
            world(|world| world.shared.closing.took(took));
        }
    }

    fn passed_woken() {
        let now = is_inside().then(|| world(|world| shown(Clock::Monotonic, world.now)));
        if now.is_some_and(|now| habits(|habits| habits.has_passed_for_long(|| now))) {
            here::yield_now();
        }
    }

    fn priority() -> u8 {
        let given = is_inside().then(|| world(|world| world.threads[world.running].local.priority)).flatten();
        given.unwrap_or_else(|| {
            if T::GUESSES && crate::check::has_priorities() { here::random_priority() } else { 0 }
        })
    }

    fn thread_token() -> u32 {
        if is_inside() { world(|world| world.running.0 + 1) } else { u32::MAX >> 10 }
    }

    fn generation() -> u32 {
        0
    }

    fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
        if owner == 0 { OnCpu::Unknown } else { calls::owner_on_cpu(owner, sample) }
    }

    fn read_acquired(lock: usize) {
        slots::read_acquired(lock);
    }

    fn read_released(lock: usize) {
        slots::read_released(lock);
    }

    fn may_hold_read(lock: usize) -> bool {
        slots::may_hold_read(lock)
    }

    const MOST_SLOT_READERS: u32 = slots::MOST_READERS;

    fn reads_before_slots() -> u32 {
        if is_inside() {
            world(|world| world.shared.closing.reads(T::READS_PER_CPU * world.cpus.len() as u32))
        } else {
            u32::MAX
        }
    }

    fn slot_table() -> u32 {
        slots::table()
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
        if is_inside() {
            world(|world| {
                world.counts.locks[index(event)] += 1;
                world.note(Did::Lock(event));
            });
            crate::check::note_event(event);
        }
    }
}
