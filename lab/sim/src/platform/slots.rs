//! Reader slots: a line of them for each CPU, in memory that costs what memory costs.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spinpark_platform::{AtomicU32 as _, Bias, Ordering::Acquire, ReadHolds, Reader, ReaderSlots, SlotLeft};

use super::{AtomicU32, Sim, Tuned, faulty, restart};
use crate::access::{access, touch};
use crate::check::Fault;
use crate::engine::{in_run, is_inside, settle, world};
use crate::world::locals::{COUNTED, GONE, Held, MARKED, SLOTS, SlotLine};
use crate::world::memory::{Access, Value, Write};

/// A slot that no reader has.
const FREE: usize = 0;
/// The only table.
const TABLE: u32 = 7;
/// As many CPUs as a machine has here at most.
const MOST_CPUS: u32 = 1024;

fn lines() -> Rc<[SlotLine]> {
    world(|world| {
        let shared = &mut world.shared;
        if shared.lines.is_none() {
            let lines: Rc<[_]> = world.cpus.iter().map(|_| SlotLine::default()).collect();
            shared.add_region(&lines);
            shared.lines = Some(lines);
        }
        Rc::clone(shared.lines.as_ref().expect("they were made above"))
    })
}

fn address(slot: &AtomicUsize) -> usize {
    std::ptr::from_ref(slot).addr()
}

/// What a slot holds. The slots of a line cost one access; in a run that is checked, they are read one after
/// the other all the same.
fn read(slot: &AtomicUsize) -> usize {
    if in_run(|world| world.checks.is_some()) {
        settle();
    }
    match world(|world| world.forwarded(address(slot))) {
        Some(Value::Slot(_, value)) => value,
        _ => slot.load(Relaxed),
    }
}

/// The read locks of the running thread; outside of a run there are none.
fn held<R: Default>(act: impl FnOnce(&mut Vec<Held>) -> R) -> R {
    in_run(|world| act(&mut world.threads[world.running].local.read))
}

/// The latest hold of the running thread on `lock` that is in a slot: its place among the holds, and the
/// slot. It has none while that is given back: a handler that comes meanwhile must not take it for its own.
fn take_latest(lock: usize) -> Option<(usize, (usize, usize))> {
    held(|held| {
        let found = held.iter().rposition(|held| held.lock == lock && held.slot.is_some())?;
        Some((found, held[found].slot.take()?))
    })
}

/// Does `act` to each slot of the table.
fn each(table: u32, mut act: impl FnMut(&AtomicUsize)) {
    if table != TABLE || !is_inside() {
        return;
    }
    for SlotLine(slots) in lines().iter() {
        touch(address(&slots[0]), Access::Load);
        slots.iter().for_each(&mut act);
    }
}

/// Replaces one mark of the slots of `lock` by another, by compare-exchanges; returns how many.
fn replace(table: u32, lock: usize, [from, to]: [usize; 2]) -> u32 {
    let mut count = 0;
    each(table, |slot| {
        if read(slot) == lock | from {
            access(address(slot), Access::Update);
            count += u32::from(slot.compare_exchange(lock | from, lock | to, Relaxed, Relaxed).is_ok());
        }
    });
    count
}

impl<T: Tuned> ReadHolds for Sim<T> {
    fn read_acquired(lock: usize) {
        held(|held| held.push(Held { lock, slot: None }));
    }

    fn read_released(lock: usize) {
        held(|held| {
            let counted = |held: &Held| held.lock == lock && held.slot.is_none();
            if let Some(found) = held.iter().rposition(counted) {
                held.swap_remove(found);
            }
        });
    }

    fn may_hold_read(lock: usize) -> bool {
        held(|held| held.iter().any(|held| held.lock == lock))
    }

    fn may_hold_two(lock: usize) -> bool {
        held(|held| held.iter().filter(|held| held.lock == lock).count() > 1)
    }
}

impl<T: Tuned> ReaderSlots for Sim<T> {
    const MOST_SLOT_READERS: u32 = MOST_CPUS * SLOTS as u32;

    fn reads_before_slots() -> u32 {
        if is_inside() {
            world(|world| world.shared.closing.reads(T::READS_PER_CPU * world.cpus.len() as u32))
        } else {
            u32::MAX
        }
    }

    fn is_sample(one_in: u32) -> bool {
        crate::here::random(one_in.into()) == 0
    }

    fn bias_revoked(took: u64) {
        in_run(|world| world.shared.closing.took(took));
    }

    fn slot_table() -> u32 {
        if in_run(|world| world.shared.has_steps()) { TABLE } else { 0 }
    }

    fn slot_enter(bias: &AtomicU32, lock: usize) -> bool {
        if bias.load(Relaxed) != TABLE || !is_inside() {
            return false;
        }
        let lines = lines();
        let cpu = world(|world| world.threads[world.running].cpu.0 as usize);
        let mut taken = 0;
        let look = || {
            if bias.load(Acquire) != TABLE {
                return None;
            }
            touch(address(&lines[cpu].0[0]), Access::Load);
            taken = lines[cpu].0.iter().position(|slot| read(slot) == FREE)?;
            Some(Write::slot(&lines[cpu].0[taken], lock))
        };
        let entered = restart::step(look);
        if entered {
            held(|held| held.push(Held { lock, slot: Some((cpu, taken)) }));
        }
        entered
    }

    fn slot_leave(bias: &AtomicU32, lock: usize) -> SlotLeft {
        let Some((place, (cpu, index))) = take_latest(lock) else { return SlotLeft::Counted };
        let lines = lines();
        let slot = &lines[cpu].0[index];
        let look = || {
            let is_open = bias.load(Relaxed) == TABLE;
            touch(address(slot), Access::Load);
            (is_open && read(slot) == lock).then(|| Write::slot(slot, FREE))
        };
        if restart::step(look) {
            held(|held| _ = held.remove(place));
            return SlotLeft::Left;
        }
        held(|held| held[place].slot = Some((cpu, index)));
        SlotLeft::Revoked
    }

    fn slot_take_back(lock: usize, bias: Bias) -> Reader {
        let Some((place, (cpu, index))) = take_latest(lock) else { return Reader::Counted };
        let lines = lines();
        let slot = &lines[cpu].0[index];
        // Compare-exchanges, on Linux.
        access(address(slot), Access::Update);
        let mark = slot.swap(FREE, Relaxed) ^ lock;
        held(|held| _ = held.remove(place));
        match mark {
            GONE => Reader::Gone,
            0 if bias == Bias::Revoked => Reader::Gone,
            COUNTED => Reader::Counted,
            _ => Reader::InSlot,
        }
    }

    fn has_slots(table: u32, lock: usize) -> bool {
        let mut found = false;
        each(table, |slot| found |= matches!(read(slot) ^ lock, 0 | MARKED));
        found
    }

    fn slots_mark(table: u32, lock: usize) -> u32 {
        if faulty::has(|fault| matches!(fault, Fault::NotMoved)) {
            return 0;
        }
        let count = replace(table, lock, [0, MARKED]);
        if faulty::has(|fault| matches!(fault, Fault::NotCounted)) {
            replace(table, lock, [MARKED, COUNTED]);
            return 0;
        }
        count
    }

    fn slots_settle(table: u32, lock: usize) -> u32 {
        if faulty::has(|fault| matches!(fault, Fault::NotSettled)) {
            let mut count = 0;
            each(table, |slot| count += u32::from(read(slot) == lock | MARKED));
            return count;
        }
        replace(table, lock, [MARKED, COUNTED])
    }

    fn slots_disown(table: u32, lock: usize) {
        let owns = faulty::has(|fault| matches!(fault, Fault::NotDisowned));
        each(table, |slot| {
            let mark = match read(slot) ^ lock {
                0 if !owns => GONE,
                MARKED => COUNTED,
                _ => return,
            };
            access(address(slot), Access::Update);
            slot.store(lock | mark, Relaxed);
        });
    }
}
