//! Reader slots: where a thread notes which lock it reads, on a cache line that no other CPU writes.
//!
//! One line of eight slots for each CPU, in a table that the process maps when it starts and never unmaps. A
//! slot is claimed in a restartable sequence on its own CPU, so without an atomic read-modify-write; it
//! belongs to the claimer until that thread gives it back, wherever it runs by then. What the slots mean to a
//! lock is in `spinpark-locks` (`bias`).
//!
//! # A slot
//!
//! | value       | meaning                                                 | set by                                         |
//! |-------------|---------------------------------------------------------|------------------------------------------------|
//! | 0           | of a line that is not in use                            | the kernel, which maps zeros                   |
//! | `FREE`      | of a line in use                                        | the first reader of a CPU; each slot's owner   |
//! | address     | a thread reads the lock at this address                 | the thread, if the lock's bias is enabled      |
//! | + `MARKED`  | that reader is being counted in the lock itself         | the thread that revokes the bias, under its queue lock |
//! | + `COUNTED` | that reader is counted in the lock itself by now        | the same                                       |
//! | + `UNSURE`  | one of the last two: `MARKED` at a fork                 | the forked child                               |
//!
//! # Invariants
//!
//! - **T1** Of the steps that claim a slot of a line, one runs at a time: on the line's CPU, restarted if
//!   interrupted.
//! - **T2** A slot that is not free is written by its owner, or by the holder of its lock's queue lock that
//!   has revoked the bias and fenced: no step that saw the bias enabled is under way then. Both use a
//!   compare-exchange then, so that the owner has left uncounted, or is counted, and both know it. It waits
//!   for no thread.
//! - **T4** (signal handlers) A handler that reads locks may run between any two instructions here. It leaves
//!   the thread's memory of read locks as it finds it, from its end on, so an entry is in that memory before
//!   its slot is claimed, and has no slot (as that of a reader that is counted) while the slot is claimed or
//!   given back: a handler never takes the entry for its own.
//! - **T3** The name of a table is its address without the sixteen zeros at its end; a bias holds the name of
//!   the table in which its readers are. Libraries that each have a copy of this code have a table each, and
//!   a reader uses a slot only if the bias names its own.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

use spinpark_platform::{ClosingCost, Reader, ReaderSlots, SlotLeft};

use crate::generation::generation;
use crate::memory::{LinuxWith, LockPadding};
use crate::raw::call6;
use crate::slot::{COUNTED, CPUS, FREE, LINE, MARKED, UNSURE};
use crate::{cpu, mapping, rseq, thread};

/// How many bits of a table's address are zero.
const NAME_SHIFT: u32 = 16;

/// The most readers that can be in slots.
pub(crate) const MOST_READERS: u32 = (CPUS * SLOTS) as u32;
const SLOTS: usize = LINE / core::mem::size_of::<usize>();

#[repr(C, align(64))]
struct Line([AtomicUsize; SLOTS]);

#[repr(C, align(64))]
struct Table {
    /// Lines in use have lower numbers.
    used: AtomicU32,
    lines: [Line; CPUS],
}

/// See [`ReaderSlots::reads_before_slots`].
const READS_PER_CPU: u32 = 128;
/// The process' [`ClosingCost`].
static CLOSING: AtomicU32 = AtomicU32::new(0);

/// The process in which [`in_forked_child`] has run.
static HANDLED: AtomicU32 = AtomicU32::new(0);

/// No bias holds it.
const NO_TABLE: u32 = u32::MAX;
/// The name of this copy's table.
static NAME: AtomicU32 = AtomicU32::new(NO_TABLE);

/// # Safety
///
/// `name` is that of a table: tables are never unmapped.
unsafe fn table(name: u32) -> &'static Table {
    // SAFETY: T3.
    unsafe { &*(((name as usize) << NAME_SHIFT) as *const Table) }
}

/// The name of this copy's table; 0 if there are no slots.
///
/// A single-threaded process has them, too: a slot costs no system call there, neither to claim nor to free
/// it, and less than a read-modify-write.
#[cold]
pub(crate) fn table_name() -> u32 {
    thread::token(); // whose first call maps the table, if the initialiser has not
    match NAME.load(Acquire) {
        NO_TABLE => 0,
        _ if rseq::area() == 0 => 0,
        name => name,
    }
}

/// Maps the table. Once, from [`start`](crate::start), if there are restartable sequences.
pub(crate) fn start() {
    const SIZE: usize = core::mem::size_of::<Table>();
    const ALIGN: usize = 1 << NAME_SHIFT;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let arguments = [0, SIZE + ALIGN, protection as usize, flags as usize, usize::MAX, 0];
    // SAFETY: new memory, wherever the kernel likes.
    let mapped = unsafe { call6(libc::SYS_mmap, arguments) };
    let Ok(mapped) = usize::try_from(mapped) else { return };
    if let Ok(name) = u32::try_from((mapped + ALIGN - 1) >> NAME_SHIFT) {
        NAME.store(name, Release);
    }
}

#[inline(always)]
pub(crate) fn enter(bias: &AtomicU32, lock: usize) -> bool {
    let (open, area) = (bias.load(Relaxed), rseq::area());
    if open != NAME.load(Relaxed) || area == 0 {
        return false;
    }
    // SAFETY: the area is this thread's; the table has that name, which is not `NO_TABLE`, for no bias holds
    // it.
    match unsafe { claim(area, bias, open, lock) } {
        Claimed::Yes => true,
        Claimed::NotNow => enter_again(bias, open, lock),
        Claimed::Full => false,
    }
}

enum Claimed {
    Yes,
    /// The bias was revoked, this CPU's line is full or not in use yet, or the step was interrupted.
    NotNow,
    /// This thread reads more locks than it remembers.
    Full,
}

/// # Safety
///
/// `area` is that of [`rseq::area`], not 0; `open` is the name of this copy's table.
#[inline(always)]
unsafe fn claim(area: usize, bias: &AtomicU32, open: u32, lock: usize) -> Claimed {
    let reads = thread::reads();
    let Some(held) = reads.add(lock) else { return Claimed::Full };
    // SAFETY: the caller vouches for the area and the name.
    held.slot = unsafe { rseq::claim(area, bias, open, lines(open), lock) };
    if held.slot.is_null() {
        reads.removed_last();
        return Claimed::NotNow;
    }
    Claimed::Yes
}

fn lines(name: u32) -> usize {
    ((name as usize) << NAME_SHIFT) + core::mem::offset_of!(Table, lines)
}

/// After [`Claimed::NotNow`]: takes this CPU's line in use, if it is not yet, and tries once more.
#[cold]
#[inline(never)]
fn enter_again(bias: &AtomicU32, open: u32, lock: usize) -> bool {
    // SAFETY: `enter` has checked that it is the name of this copy's table.
    let table = unsafe { table(open) };
    let cpu = rseq::this_cpu();
    let Some(Line(slots)) = table.lines.get(cpu as usize) else { return false };
    if slots[0].load(Relaxed) == 0 {
        table.used.fetch_max(cpu + 1, AcqRel);
        for slot in slots {
            // Another thread of this CPU may have come first.
            let _ = slot.compare_exchange(0, FREE, AcqRel, Relaxed);
        }
    }
    let area = rseq::area();
    // SAFETY: as in `enter`.
    area != 0 && matches!(unsafe { claim(area, bias, open, lock) }, Claimed::Yes)
}

#[inline(always)]
pub(crate) fn leave(bias: &AtomicU32, lock: usize) -> SlotLeft {
    let reads = thread::reads();
    let Some(held) = reads.last_if_in_slot(lock) else { return SlotLeft::Counted };
    let slot = core::mem::replace(&mut held.slot, core::ptr::null()); // T4
    let area = rseq::area();
    // SAFETY: the area is this thread's; the slot is of a table, which is never unmapped, and this thread's
    // (T2).
    if area != 0 && unsafe { rseq::give_back(area, bias, NAME.load(Relaxed), slot, lock) } {
        reads.removed_last();
        SlotLeft::Left
    } else {
        held.slot = slot;
        SlotLeft::Revoked
    }
}

/// See [`ReaderSlots::slot_take_back`].
#[cold]
pub(crate) fn take_back(lock: usize, kept: bool) -> Reader {
    let reads = thread::reads();
    let Some(held) = reads.last_if_in_slot(lock) else { return Reader::Counted };
    // T4: no slot while it is given back.
    let address = core::mem::replace(&mut held.slot, core::ptr::null());
    // SAFETY: a slot of a table, which is never unmapped.
    let slot = unsafe { &*address };
    let frees = |value| slot.compare_exchange(value, FREE, AcqRel, Relaxed).is_ok();
    // In a child without fork handlers, a mark may have been set in the parent.
    let is_sure = HANDLED.load(Relaxed) == generation();
    let reader = if frees(lock) || is_sure && frees(lock | MARKED) {
        Reader::InSlot
    } else if frees(lock | COUNTED) {
        Reader::Counted
    } else if !matches!(slot.load(Relaxed) ^ lock, MARKED | UNSURE) {
        Reader::InSlot // given back already: by the handler of a fork that came in between
    } else if kept && (frees(lock | MARKED) || frees(lock | UNSURE)) {
        Reader::Unsure
    } else {
        held.slot = address;
        return Reader::Unsure;
    };
    reads.removed_last();
    reader
}

/// See [`ReaderSlots::has_slots`].
#[cold]
pub(crate) fn has(name: u32, lock: usize) -> bool {
    let mut found = false;
    each(name, |slot| found |= matches!(slot.load(Acquire) ^ lock, 0 | MARKED));
    found
}

/// See [`ReaderSlots::slots_mark`]. Under the queue lock of the lock, with its bias revoked and fenced (T2).
#[cold]
pub(crate) fn mark(name: u32, lock: usize) -> u32 {
    // A slot that was marked by a thread that does not exist in this forked child is marked again.
    replace(name, lock, &[0, MARKED, UNSURE], MARKED)
}

/// See [`ReaderSlots::slots_settle`].
#[cold]
pub(crate) fn settle(name: u32, lock: usize) -> u32 {
    replace(name, lock, &[MARKED, UNSURE], COUNTED)
}

/// Writes `mark` to the slots of `lock` that have one of the marks `from`; returns how many.
#[inline(never)]
fn replace(name: u32, lock: usize, from: &[usize], mark: usize) -> u32 {
    let mut count = 0;
    each(name, |slot| {
        let seen = slot.load(Acquire);
        // If it fails, the reader has left.
        let marks = from.contains(&(seen ^ lock))
            && slot.compare_exchange(seen, lock | mark, AcqRel, Acquire).is_ok();
        count += u32::from(marks);
    });
    count
}

/// Frees the slots of all readers but those of the surviving thread: they do not exist here, and would never
/// give back their slots. Its own that were being counted may be, or may not.
pub(crate) fn in_forked_child() {
    let own = thread::reads();
    each(NAME.load(Relaxed), |slot| match slot.load(Relaxed) {
        0 => {}
        _ if !own.is_in(slot) => slot.store(FREE, Relaxed),
        marked if marked & UNSURE == MARKED => slot.store(marked | UNSURE, Relaxed),
        _ => {}
    });
    HANDLED.store(generation(), Release); // last: a handler that comes before is not sure
}

fn each(name: u32, look: impl FnMut(&AtomicUsize)) {
    if name == 0 || name == NO_TABLE {
        return;
    }
    // SAFETY: the caller has the name from a bias.
    let table = unsafe { table(name) };
    let used = (table.used.load(Acquire) as usize).min(CPUS);
    table.lines[..used].iter().flat_map(|Line(slots)| slots).for_each(look);
}

impl<R: LockPadding> ReaderSlots for LinuxWith<R> {
    const MOST_SLOT_READERS: u32 = MOST_READERS;

    #[inline(always)]
    fn reads_before_slots() -> u32 {
        // The cost of revoking a bias grows with the CPUs: the writer interrupts each, and reads the line of
        // each.
        ClosingCost(CLOSING.load(Relaxed)).reads(READS_PER_CPU * cpu::count())
    }

    #[inline]
    fn is_sample(one_in: u32) -> bool {
        thread::reads().is_sample(one_in)
    }

    fn bias_revoked(took: u64) {
        let mut cost = ClosingCost(CLOSING.load(Relaxed));
        cost.took(took);
        CLOSING.store(cost.0, Relaxed); // of two threads at a time, one is forgotten
    }

    fn is_private(lock: usize) -> Option<bool> {
        mapping::is_private(lock)
    }

    fn slot_table() -> u32 {
        table_name()
    }

    #[inline(always)]
    fn slot_enter(bias: &AtomicU32, lock: usize) -> bool {
        enter(bias, lock)
    }

    #[inline(always)]
    fn slot_leave(bias: &AtomicU32, lock: usize) -> SlotLeft {
        leave(bias, lock)
    }

    fn slot_take_back(lock: usize, kept: bool) -> Reader {
        take_back(lock, kept)
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
}
