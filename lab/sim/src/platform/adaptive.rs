//! How a simulated thread waits, by what it has learnt: its [`SpinStats`].
//!
//! Spinners queue in lines of the simulated memory.

use std::any::Any;
use std::rc::Rc;

use spinpark_locks::{
    Adaptive, Awake, Note, READS_AFTER_WAIT, Spin, SpinStats, Spinning, Timing, TransferCost, Tries,
};
use spinpark_platform::{AtomicU32 as _, Clock, Clocks, SpinLine, SpinPolicy, SpinnerSlots};

use crate::engine::{in_run, is_inside, world};
use crate::here;
use crate::platform::{AtomicU32, Sim, Tuned, calls, shown};
use crate::world::World;

/// The spin_stats of the running thread.
fn spin_stats<R>(act: impl FnOnce(&mut SpinStats) -> R) -> R {
    world(|world| act(&mut world.threads[world.running].local.spin_stats))
}

/// What the running thread has learnt about the lock at `lock`: with the lock's name, and the time, ns.
/// Outside of a run, which has no threads, nothing.
///
/// Threads remember locks by bits 4 and up of their addresses. Those are the allocator's, and one seed is one
/// run: so a lock's name is its number in the order in which locks were first named.
fn of_lock<R: Default>(lock: usize, act: impl FnOnce(&mut SpinStats, usize, u64) -> R) -> R {
    if !is_inside() {
        return R::default();
    }
    let (name, now) = world(|world| (world.name_of_lock(lock) << 4, shown(Clock::Monotonic, world.now)));
    spin_stats(|spin_stats| act(spin_stats, name, now))
}

/// What it costs to move a lock between the CPUs of the machine. Outside of a run, which has no threads: not
/// known.
fn transfer<R>(act: impl FnOnce(&mut TransferCost) -> R) -> R {
    if is_inside() {
        world(|world| act(&mut world.shared.transfer))
    } else {
        act(&mut TransferCost::default())
    }
}

impl<T: Tuned> SpinPolicy for Sim<T> {
    fn spin_hint() -> u32 {
        here::poll()
    }

    fn spin_for(span: u64) {
        if is_inside() {
            world(World::fall_behind); // it waits for others
        }
        here::compute(span);
    }

    fn need_resched() -> bool {
        world(|world| world.threads[world.running].to_leave)
    }

    fn with_spinner_slots<R>(lock: usize, act: impl FnOnce(SpinnerSlots<'_, AtomicU32>) -> R) -> Option<R> {
        if !is_inside() {
            return None;
        }
        let lines = lines()?;
        let name = world(|world| world.name_of_lock(lock));
        Some(act(SpinnerSlots {
            queue: &lines.queues[name % QUEUES],
            slots: &lines.slots,
            name: name as u32,
        }))
    }

    fn cpus() -> u32 {
        if is_inside() { world(|world| world.counted_cpus) } else { 1 }
    }

    fn wakes_unmarked() -> bool {
        // Not with a quota of one.
        in_run(|world| world.cpus.len() == 1)
    }

    fn only_cpu() -> Option<u32> {
        (T::GUESSES && is_inside() && here::random(2) == 0).then_some(0)
    }
}

/// A lock has moved: times that now and then.
fn moved<T: Tuned>(read: u64) {
    let cost = transfer(|cost| *cost);
    if spin_stats(|spin_stats| spin_stats.wants_sample(cost)) {
        let at = Sim::<T>::now(Clock::Monotonic);
        let clock = Sim::<T>::now(Clock::Monotonic).saturating_sub(at);
        transfer(|cost| cost.took(at.saturating_sub(read), clock));
    }
}

impl<T: Tuned> Adaptive for Sim<T> {
    fn can_spin(kind: Spin) -> bool {
        is_inside() && Self::cpus() > 1 && spin_stats(|spin_stats| spin_stats.spins_pay(kind))
    }

    fn notes(lock: usize, note: Note) {
        match note {
            Note::Waits => {
                in_run(|world| world.threads[world.running].local.reads_first = READS_AFTER_WAIT);
                of_lock(lock, |spin_stats, lock, _| spin_stats.waits_for(lock));
            }
            Note::Returns => of_lock(lock, |spin_stats, lock, now| spin_stats.returns_to(lock, || now)),
            Note::PassesWaiters => {}
            Note::Tried(found) if is_inside() => spin_stats(|spin_stats| spin_stats.tried(found)),
            Note::Tried(_) => {}
            Note::Moved { clock } if is_inside() => moved::<T>(clock),
            Note::Moved { .. } => {}
            Note::Spun(kind, paid) => spin_stats(|spin_stats| spin_stats.spun(kind, paid)),
            Note::Acquired { set_contended } => {
                of_lock(lock, |spin_stats, lock, now| spin_stats.acquired(lock, set_contended, now));
            }
            Note::Released => of_lock(lock, |spin_stats, lock, now| spin_stats.released(lock, || now)),
            Note::ReleasesToWait => of_lock(lock, |spin_stats, lock, _| spin_stats.releases_to_wait(lock)),
            Note::Sleeps => {
                // In a run that is checked, waiters are woken early for no reason, too.
                let is_guess = T::GUESSES && is_inside() && here::random(4) == 0;
                let left = of_lock(lock, |spin_stats, lock, _| {
                    spin_stats.unwoken_elsewhere(lock).or(is_guess.then_some(lock))
                });
                if let Some(left) = left {
                    calls::wake_left_early(left >> 4);
                }
            }
        }
    }

    fn spinning(lock: usize) -> Spinning {
        let transfer = transfer(TransferCost::ask);
        of_lock(lock, |spin_stats, lock, _| spin_stats.spinning(lock, transfer))
    }

    fn awake(lock: usize) -> Awake {
        if T::GUESSES && is_inside() {
            return match here::random(3) {
                0 => Awake::Briefly,
                1 => Awake::All,
                _ => Awake::AtMost(1 + here::random(2) as u32),
            };
        }
        of_lock(lock, |spin_stats, lock, _| spin_stats.awake(lock))
    }

    fn reads_first() -> bool {
        if T::GUESSES && is_inside() {
            return here::random(2) == 0;
        }
        in_run(|world| {
            let reads = &mut world.threads[world.running].local.reads_first;
            let is_left = *reads > 0;
            *reads -= u32::from(is_left);
            is_left
        })
    }

    fn returns_soon(lock: usize) -> bool {
        let transfer = transfer(TransferCost::ask);
        of_lock(lock, |spin_stats, lock, _| spin_stats.returns_soon(lock, transfer))
    }

    fn waits_next(lock: usize) -> bool {
        if T::GUESSES && is_inside() {
            return here::random(2) == 0;
        }
        of_lock(lock, |spin_stats, lock, _| spin_stats.waits_next(lock))
    }

    fn has_passed_woken() -> bool {
        let now = is_inside().then(|| world(|world| shown(Clock::Monotonic, world.now)));
        now.is_some_and(|now| spin_stats(|spin_stats| spin_stats.has_passed_for_long(|| now)))
    }

    fn ends_contended(lock: usize) -> bool {
        of_lock(lock, |spin_stats, lock, _| {
            spin_stats.ends_contended(lock, T::TUNING.quiet_releases, || true)
        })
    }

    fn tries() -> Tries {
        if T::GUESSES && is_inside() {
            return if here::random(2) == 0 { Tries::FailOften } else { Tries::FailSometimes };
        }
        if is_inside() { spin_stats(|spin_stats| spin_stats.tries()) } else { Tries::Succeed }
    }

    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        of_lock(lock, |spin_stats, lock, _| spin_stats.wants_time(lock, queued))
    }
}

/// As many as in the Linux platform.
const QUEUES: usize = 256;
const MOST_SLOTS: usize = SpinnerSlots::<AtomicU32>::MOST_SLOTS;
/// A run with few threads does without most slots, which take time to make; none of them is missed.
const SLOTS_PER_THREAD: usize = 16;
/// In a run that is checked there may be too few.
const FEW_SLOTS: usize = 3;

struct Lines {
    queues: Box<[SpinLine<AtomicU32>]>,
    slots: Box<[SpinLine<AtomicU32>]>,
}

impl Lines {
    fn new(slots: usize) -> Self {
        let line =
            |_| SpinLine { word: AtomicU32::new(0), about: AtomicU32::new(0), before: AtomicU32::new(0) };
        Self { queues: (0..QUEUES).map(line).collect(), slots: (0..slots).map(line).collect() }
    }
}

fn lines() -> Option<Rc<Lines>> {
    let made = world(|world| world.shared.spin_lines.clone());
    let lines = made.unwrap_or_else(|| {
        let slots = world(|world| match world.checks {
            Some(_) => FEW_SLOTS,
            None => (SLOTS_PER_THREAD * world.threads.0.len()).min(MOST_SLOTS),
        });
        let lines = Rc::new(Lines::new(slots));
        world(|world| {
            world.shared.add_region(&lines.queues);
            world.shared.add_region(&lines.slots);
            let lines: Rc<dyn Any> = lines;
            world.shared.spin_lines = Some(Rc::clone(&lines));
            lines
        })
    });
    lines.downcast().ok()
}
