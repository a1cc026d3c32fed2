//! System calls: their costs, and what happens under the lock of a futex' hash bucket.

use spinpark_platform::{Clock, Clocks, Deadline, Futex, NS_PER_MS, OnCpu, Owners, Wait, WakeOp};

use super::{AtomicU32, Sim, Tuned, faulty};
use crate::access::{access, drain};
use crate::check::Fault;
use crate::engine::{in_run, is_inside, note, settle, spend, suspend, world};
use crate::here;
use crate::platform::at;
use crate::world::locals::Leave;
use crate::world::memory::{Access, Place};
use crate::world::{Did, State, ThreadId, World};

/// Whether the running thread runs kernel code. For that, a futex stands for what it is made of: a state to
/// set and `schedule`, and `wake_up_process`. There is no system call, no bucket to look for, and none to
/// lock.
fn is_in_kernel() -> bool {
    world(|world| world.threads[world.running].in_kernel)
}

/// Enters the kernel.
fn enter() {
    if !is_in_kernel() {
        spend(|world| world.spread_call(world.costs.syscall));
        world(|world| {
            world.starts_over();
            world.counts.futex_calls += 1;
        });
    }
    settle();
    drain();
}

/// The futex at `address`: see [`World::futex`].
fn futex(address: usize) -> Option<Place> {
    world(|world| world.futex(address))
}

/// Takes the locks of the buckets of these futexes, in order.
fn lock(futexes: &[Option<Place>]) -> Vec<usize> {
    if is_in_kernel() {
        return Vec::new();
    }
    let mut buckets: Vec<usize> = futexes.iter().map(|&futex| world(|world| world.bucket(futex))).collect();
    buckets.sort_unstable();
    buckets.dedup();
    for &bucket in &buckets {
        settle();
        if world(|world| world.spin_lock(bucket)) {
            suspend();
        }
    }
    spend(|world| world.spread_call(world.costs.futex));
    settle();
    buckets
}

fn unlock(buckets: &[usize]) {
    world(|world| buckets.iter().for_each(|&bucket| world.spin_unlock(bucket)));
}

/// Takes up to `count` sleepers off a futex.
fn take(futex: Option<Place>, count: u32) -> Vec<ThreadId> {
    futex.map_or_else(Vec::new, |futex| world(|world| world.take_sleepers(futex, count)))
}

/// Makes them runnable, one after the other.
fn wake_all(threads: &[ThreadId]) {
    for &thread in threads {
        settle();
        world(|world| {
            let cost = world.wake(thread);
            world.threads[world.running].debt += cost;
        });
    }
}

/// A CPU that goes idle keeps the address space of the thread that sleeps, and gives it back when that one
/// runs again: Linux counts that in the address space (until 6.4). Only where a workload has said where:
/// `here::in_address_space`.
fn count_in_space() {
    if let Some(counter) = world(|world| world.threads[world.running].space) {
        access(counter, Access::Update);
    }
}

fn wake_on(futex: Option<Place>, address: usize, count: u32) -> u32 {
    let buckets = lock(&[futex]);
    let woken = take(futex, count);
    unlock(&buckets);
    wake_all(&woken);
    settle();
    world(|world| world.note(Did::Woke(address, woken.len() as u32)));
    woken.len() as u32
}

/// Wakes the waiter early that releases of the lock `name` have left asleep, if there is a note of it. That
/// may be an old one, of a word that is gone: the kernel's name of it is what counts.
pub(super) fn wake_left_early(name: usize) {
    if let Some((word, address)) = world(|world| world.shared.unwoken.remove(&name)) {
        enter();
        wake_on(Some(word), address, 1);
    }
}

/// Asks for the owner's CPU time, as on Linux; kernel code looks whether it has a CPU.
pub(super) fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
    let in_kernel = is_in_kernel();
    spend(|world| if in_kernel { world.costs.hit } else { world.spread_call(world.costs.cpu_clock) });
    if !in_kernel {
        drain();
    }
    world(|world| {
        let known = owner.checked_sub(1).filter(|&number| (number as usize) < world.threads.0.len());
        let Some(owner) = known.map(ThreadId) else { return OnCpu::Unknown };
        if world.chance(world.chaos.wrong_oracle) {
            return [OnCpu::Running, OnCpu::Off, OnCpu::Unknown][world.rng.usize(0..3)];
        }
        let asker = world.running;
        let runs = world.threads[owner].is_on_cpu();
        if runs && !world.threads[owner].asked_by.contains(&asker) {
            world.threads[owner].asked_by.push(asker);
        }
        if in_kernel {
            return if runs { OnCpu::Running } else { OnCpu::Off };
        }
        if world.threads[owner].state == State::Ended {
            return OnCpu::Unknown;
        }
        let used = world.used(owner) + 1;
        match std::mem::replace(sample, used) {
            0 => OnCpu::Unknown,
            before if before == used => OnCpu::Off,
            _ => OnCpu::Running,
        }
    })
}

/// The thread ends in a sleep, perhaps: before it, or after it.
fn exit_in_sleep() {
    if in_run(World::exits_in_sleep) {
        here::exit();
    }
}

/// Wakes and moves sleepers on the word at `address`, if `may`, in one step with that.
fn move_sleepers(
    address: usize,
    may: impl FnOnce() -> bool,
    wake: u32,
    to: usize,
    moved: u32,
) -> Option<u32> {
    if faulty::has(|fault| matches!(fault, Fault::OneWordOnly)) {
        return None;
    }
    enter();
    let (first, to) = (futex(address), futex(to));
    let buckets = lock(&[first, to]);
    if !may() {
        unlock(&buckets);
        return None;
    }
    let woken = take(first, wake);
    let followers = match (first, to) {
        (Some(first), Some(to)) => world(|world| world.move_sleepers(first, to, moved)),
        _ => 0,
    };
    unlock(&buckets);
    wake_all(&woken);
    Some(woken.len() as u32 + followers)
}

/// Of a mutant: moves the sleeper that the running thread was to gather at its last call; next is `gathered`.
fn gather_late(gathered: Option<(usize, usize)>) {
    let before =
        world(|world| std::mem::replace(&mut world.threads[world.running].local.gathers_late, gathered));
    if let Some((key, crowd)) = before {
        let _ = move_sleepers(key, || true, 0, crowd, 1);
    }
}

impl<T: Tuned> Futex for Sim<T> {
    fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
        assert!(is_inside(), "a thread outside of the simulation has to wait");
        enter();
        if world(|world| world.chance(world.chaos.spurious)) {
            return Wait::Woken;
        }
        let address = word.address();
        let Some(futex) = world(|world| world.alive(address)) else {
            suspend(); // for ever: the run has failed
            return Wait::Woken;
        };
        let ends = deadline.is_none() && faulty::has(|fault| matches!(fault, Fault::TimedSleeps));
        let deadline = if ends {
            Some(at(Deadline { clock: Clock::Monotonic, at: Self::now(Clock::Monotonic) + NS_PER_MS }))
        } else {
            deadline.map(at)
        };
        let buckets = lock(&[Some(futex)]);
        count_in_space();
        access(address, Access::Load);
        let changed = word.value() != expected && !faulty::has(|fault| matches!(fault, Fault::NoCompare));
        note(|| Did::Loaded(address, word.value()));
        let is_over = world(|world| deadline.is_some_and(|at| at <= world.now));
        if changed || is_over {
            unlock(&buckets);
            settle();
            return if changed { Wait::ValueChanged } else { Wait::TimedOut };
        }
        world(|world| {
            world.note(Did::Slept(address));
            buckets.iter().for_each(|&bucket| world.spin_unlock(bucket));
            world.sleep_on(futex, deadline);
        });
        suspend();
        count_in_space();
        let has_timed_out = world(|world| world.threads[world.running].has_timed_out);
        let outcome = if has_timed_out && !ends { Wait::TimedOut } else { Wait::Woken };
        world(|world| world.note(Did::Returned(outcome)));
        outcome
    }

    fn sleep_cancellably(sleep: &dyn Fn() -> Wait) -> Wait {
        exit_in_sleep();
        let wait = sleep();
        exit_in_sleep();
        wait
    }

    fn or_leave<R>(leave: &dyn Fn(), body: impl FnOnce() -> R) -> R {
        if !is_inside() {
            return body();
        }
        let leaves_at_once = |fault: &Fault| matches!(fault, Fault::LeavesAtOnce);
        let untold = faulty::faults().has(leaves_at_once);
        let nothing = || {
            faulty::has(leaves_at_once);
        };
        let leave = if untold { &nothing } else { leave };
        // SAFETY: only the lifetime changes; the pointer is used while `leave` is borrowed here.
        let leave: *const dyn Fn() = unsafe { std::mem::transmute(std::ptr::from_ref(leave)) };
        let set =
            |leave| world(|world| std::mem::replace(&mut world.threads[world.running].local.leave, leave));
        let outer = set(Some(Leave(leave)));
        let result = body();
        set(outer);
        result
    }

    fn queues() {
        in_run(|world| world.threads[world.running].local.has_queued = true);
    }

    fn notes_sleep(lock: usize, word: &AtomicU32) {
        if faulty::has(|fault| matches!(fault, Fault::NoSleepNotes)) {
            return;
        }
        let address = word.address();
        in_run(|world| {
            let name = world.name_of_lock(lock);
            if let Some(word) = world.alive(address) {
                world.shared.unwoken.insert(name, (word, address));
            }
        });
    }

    fn sleep_note_was_taken(lock: usize, word: &AtomicU32) -> bool {
        in_run(|world| {
            let name = world.name_of_lock(lock);
            let word = world.alive(word.address());
            let noted = world.shared.unwoken.get(&name).is_some_and(|note| Some(note.0) == word);
            if noted {
                world.shared.unwoken.remove(&name);
            }
            !noted
        })
    }

    fn has_left_queues() {
        in_run(|world| world.threads[world.running].local.has_queued = false);
    }

    fn futex_wake(key: *const AtomicU32, count: u32) -> u32 {
        let is_lost = |fault: &Fault| match fault {
            Fault::NoWakes => true,
            Fault::NoCrowdWakes => count == u32::MAX,
            _ => false,
        };
        if !is_inside() || faulty::has(is_lost) {
            return 0;
        }
        enter();
        let woken = wake_on(futex(key.addr()), key.addr(), count);
        if count == u32::MAX && faulty::has(|fault| matches!(fault, Fault::LateGathers)) {
            gather_late(None);
        }
        woken
    }

    fn futex_requeue(
        from: &AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const AtomicU32,
        moved: u32,
    ) -> Option<u32> {
        let address = from.address();
        let holds = |expected| {
            access(address, Access::Load);
            from.value() == expected
        };
        move_sleepers(address, || expected.is_none_or(holds), wake, to.addr(), moved)
    }

    /// A word has one life here: none is where another was.
    fn futex_gather(key: *const AtomicU32, _told: u32, crowd: *const AtomicU32) -> Option<()> {
        if faulty::has(|fault| matches!(fault, Fault::LateGathers)) {
            gather_late(Some((key.addr(), crowd.addr())));
            return Some(());
        }
        move_sleepers(key.addr(), || true, 0, crowd.addr(), 1).map(|_| ())
    }

    fn futex_wake_op(
        first: *const AtomicU32,
        wake: u32,
        second: &AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32> {
        if faulty::has(|fault| matches!(fault, Fault::OneWordOnly)) {
            return None;
        }
        enter();
        let address = second.address();
        let (first, futex) = (futex(first.addr()), futex(address));
        let buckets = lock(&[first, futex]);
        access(address, Access::Update);
        let old = second.value();
        second.set(op.apply(old));
        let mut woken = take(first, wake);
        if op.holds(old) {
            woken.extend(take(futex, wake_second));
        }
        unlock(&buckets);
        wake_all(&woken);
        Some(woken.len() as u32)
    }
}

impl<T: Tuned> Owners for Sim<T> {
    fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
        if owner == 0 { OnCpu::Unknown } else { owner_on_cpu(owner, sample) }
    }

    fn has_ended(thread: u32) -> bool {
        in_run(|world| world.has_exited(thread))
    }
}
