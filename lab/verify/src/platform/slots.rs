//! Reader slots: each thread has a line of its own, as if on a CPU of its own.
//!
//! (Threads that share a line take turns on it, so nothing is lost by that.)

use loom::sync::atomic::AtomicUsize;
use spinpark_platform::{
    AtomicU32 as _, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use spinpark_platform::{Bias, ReadHolds, Reader, ReaderSlots, SlotLeft};

use super::Loom;
use super::atomic::AtomicU32;
use super::restart;
use super::slot_lines::{FREE, Held, SLOTS};
use super::steps::MOST_THREADS;
use super::world::world;
use spinpark_sim::check::Fault;

const MARKED: usize = 1;
const COUNTED: usize = 2;
const GONE: usize = MARKED | COUNTED;
/// The only table.
const TABLE: u32 = 7;

pub(super) const MOST_READERS: u32 = (MOST_THREADS * SLOTS) as u32;

pub(super) fn table_name() -> u32 {
    if world().config.restartable { TABLE } else { 0 }
}

pub(super) fn enter(bias: &AtomicU32, lock: usize) -> bool {
    // A bias that was never enabled costs no exploration: no other thread can have revoked it.
    if !world().config.restartable || std::thread::panicking() || bias.load(Relaxed) != TABLE {
        return false;
    }
    let slot = restart::step(|me| {
        if bias.load(Acquire) != TABLE {
            return None;
        }
        let line = &world().slots[me];
        let free = line.iter().position(|slot| slot.load(Acquire) == FREE)?;
        line[free].store(lock, Release);
        Some((me, free))
    });
    if slot.is_some() {
        world().local(|local| local.read.push(Held { lock, slot }));
    }
    slot.is_some()
}

/// The place of the calling thread's latest hold on `lock` that is in a slot, and the slot.
fn latest(lock: usize) -> Option<(usize, (usize, usize))> {
    world().local(|local| {
        let found = local.read.iter().rposition(|held| held.lock == lock && held.slot.is_some())?;
        Some((found, local.read[found].slot?))
    })
}

fn has_fault(fault: impl Fn(&Fault) -> bool) -> bool {
    world().config.faults.any(fault)
}

fn forget(place: usize) {
    world().local(|local| local.read.remove(place));
}

pub(super) fn leave(bias: &AtomicU32, lock: usize) -> SlotLeft {
    let Some((place, (line, index))) = latest(lock) else { return SlotLeft::Counted };
    if std::thread::panicking() {
        return SlotLeft::Left;
    }
    let left = restart::step(|_| {
        let slot = &world().slots[line][index];
        let mine = bias.load(Relaxed) == TABLE && slot.load(Relaxed) == lock;
        if mine {
            slot.store(FREE, Release);
        }
        mine
    });
    if left {
        forget(place);
        return SlotLeft::Left;
    }
    SlotLeft::Revoked
}

pub(super) fn take_back(lock: usize, bias: Bias) -> Reader {
    if bias != Bias::Kept && has_fault(|fault| matches!(fault, Fault::Unsure)) {
        return Reader::Unsure;
    }
    let Some((place, (line, index))) = latest(lock) else { return Reader::Counted };
    let slot = &world().slots[line][index];
    let mark = slot.swap(FREE, AcqRel) ^ lock;
    forget(place);
    match mark {
        GONE => Reader::Gone,
        0 if bias == Bias::Revoked => Reader::Gone,
        COUNTED => Reader::Counted,
        _ => Reader::InSlot,
    }
}

/// How many slots of the table are `wanted`.
fn count(table: u32, wanted: impl Fn(&AtomicUsize) -> bool) -> u32 {
    if table != TABLE {
        return 0;
    }
    world().slots.iter().flatten().filter(|slot| wanted(slot)).count() as u32
}

/// Replaces one mark of the slots of `lock` by another; returns how many.
fn replace(table: u32, lock: usize, [from, to]: [usize; 2]) -> u32 {
    count(table, |slot| {
        slot.load(Acquire) == lock | from
            && slot.compare_exchange(lock | from, lock | to, AcqRel, Acquire).is_ok()
    })
}

pub(super) fn has(table: u32, lock: usize) -> bool {
    count(table, |slot| matches!(slot.load(Acquire) ^ lock, 0 | MARKED)) > 0
}

pub(super) fn mark(table: u32, lock: usize) -> u32 {
    if has_fault(|fault| matches!(fault, Fault::NotMoved)) {
        return 0;
    }
    let count = replace(table, lock, [0, MARKED]);
    if has_fault(|fault| matches!(fault, Fault::NotCounted)) {
        replace(table, lock, [MARKED, COUNTED]);
        return 0;
    }
    count
}

pub(super) fn settle(table: u32, lock: usize) -> u32 {
    if has_fault(|fault| matches!(fault, Fault::NotSettled)) {
        return count(table, |slot| slot.load(Acquire) == lock | MARKED);
    }
    replace(table, lock, [MARKED, COUNTED])
}

pub(super) fn disown(table: u32, lock: usize) {
    replace(table, lock, [MARKED, COUNTED]);
    if !has_fault(|fault| matches!(fault, Fault::NotDisowned)) {
        replace(table, lock, [0, GONE]);
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> ReadHolds
    for Loom<S, N, P, R, D, W>
{
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

    fn may_hold_two(lock: usize) -> bool {
        world().local(|local| local.read.iter().filter(|held| held.lock == lock).count() > 1)
    }
}

impl<const S: u64, const N: u64, const P: u64, const R: u32, const D: u64, const W: u64> ReaderSlots
    for Loom<S, N, P, R, D, W>
{
    const MOST_SLOT_READERS: u32 = MOST_READERS;

    fn reads_before_slots() -> u32 {
        R
    }

    fn slot_table() -> u32 {
        table_name()
    }

    fn slot_enter(bias: &AtomicU32, lock: usize) -> bool {
        enter(bias, lock)
    }

    fn slot_leave(bias: &AtomicU32, lock: usize) -> SlotLeft {
        leave(bias, lock)
    }

    fn slot_take_back(lock: usize, bias: Bias) -> Reader {
        take_back(lock, bias)
    }

    fn has_slots(table: u32, lock: usize) -> bool {
        has(table, lock)
    }

    fn slots_mark(table: u32, lock: usize) -> u32 {
        mark(table, lock)
    }

    fn slots_settle(table: u32, lock: usize) -> u32 {
        settle(table, lock)
    }

    fn slots_disown(table: u32, lock: usize) {
        disown(table, lock);
    }
}
