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
//! | a [`Name`]  | a thread reads the lock of that name                    | the thread, if the lock's bias is enabled      |
//! | + `Marked`  | that reader is being counted in the lock itself         | the thread that revokes the bias, under its queue lock |
//! | + `Counted` | that reader is counted in the lock itself by now        | the same                                       |
//! | + `Unsure`  | one of the last two: `Marked` at a fork                 | the forked child                               |
//! | + `Gone`    | the thread read another lock, at the same address       | the thread that enables the bias of this one   |
//!
//! # Lines
//!
//! A CPU has a line on each of up to [`LEVELS`] *levels*; a thread uses that of the level on which it found
//! room last. Holds that last, or whose threads have ended, fill the lower levels, and cost other readers one
//! search. A thread that finds no room on any level counts its reads in the locks for a while, for longer
//! each time, and frees slots of threads that have ended, if those no longer stand for a hold.
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
//! - **T5** A slot's owner is written before the slot is claimed, in the same step. So the slot of a thread
//!   that has ended is known; it is freed only if it is `Counted` or `Gone`, since the hold of such a thread
//!   stands. One thread at a time does that: a slot is not claimed and counted again in between.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use spinpark_platform::{Bias, ClosingCost, Reader, ReaderSlots, SlotLeft};

use crate::generation::generation;
use crate::memory::{LinuxWith, LockPadding};
use crate::raw::call6;
use crate::slot::{has_mark, Mark, Name, CPUS, FREE, LINE, OWNERS_APART, TO_OWNER};
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
    apart: [u8; OWNERS_APART],
    /// The numbers of the threads that have claimed the slots last, each `TO_OWNER` behind its slot.
    owners: [Line; CPUS],
}

const _: () = assert!(core::mem::offset_of!(Table, owners) - core::mem::offset_of!(Table, lines) == TO_OWNER);

/// How many lines a CPU has at most, as far as there are lines for all CPUs: room for 128 holds that last. A
/// thread that revokes a bias reads all that are in use.
const LEVELS: u32 = 16;

/// At least as many CPUs as the kernel counts; 0: there is no table. The next level's lines are this number
/// of lines behind.
pub(crate) static CPUS_COUNTED: AtomicU32 = AtomicU32::new(0);

/// Whether a thread frees slots of threads that have ended.
static RECLAIMS: AtomicBool = AtomicBool::new(false);

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
        CPUS_COUNTED.store(cpu::most().min(CPUS as u32), Relaxed);
        NAME.store(name, Release);
    }
}

#[inline(always)]
pub(crate) fn enter(bias: &AtomicU32, lock: usize) -> bool {
    let (open, area) = (bias.load(Relaxed), rseq::area());
    if open != NAME.load(Relaxed) || area == 0 || thread::reads().passes_slots() {
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

#[inline(never)]
pub(crate) fn enter_seldom(bias: &AtomicU32, lock: usize) -> bool {
    let open = bias.load(Relaxed);
    open == NAME.load(Relaxed) && !thread::reads().passes_slots() && enter_again(bias, open, lock)
}

#[inline(always)]
fn enter_once(bias: &AtomicU32, lock: usize) -> bool {
    let (open, area) = (bias.load(Relaxed), rseq::area());
    if open != NAME.load(Relaxed) || area == 0 || thread::reads().has_passes() {
        return false;
    }
    // SAFETY: as in `enter`.
    matches!(unsafe { claim(area, bias, open, lock) }, Claimed::Yes)
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
    let (reads, thread) = thread::reader();
    let lines = lines(open) + reads.first_line as usize * LINE;
    let Some(held) = reads.add(lock) else { return Claimed::Full };
    // SAFETY: the caller vouches for the area and the name; `enter_again` for the level of the lines.
    held.slot = unsafe { rseq::claim(area, bias, open, lines, Name::of(lock), thread) };
    if held.slot.is_null() {
        // Looked up again: to keep the first reference would take a register that the step needs.
        thread::reads().removed_last();
        return Claimed::NotNow;
    }
    Claimed::Yes
}

fn lines(name: u32) -> usize {
    ((name as usize) << NAME_SHIFT) + core::mem::offset_of!(Table, lines)
}

/// After [`Claimed::NotNow`]: takes this CPU's line in use, if it is not yet, and tries once more; then each
/// level, from the first on.
#[cold]
#[inline(never)]
fn enter_again(bias: &AtomicU32, open: u32, lock: usize) -> bool {
    thread::token(); // which the slot's owner is known by
                     // SAFETY: the callers have checked that it is the name of this copy's table.
    let table = unsafe { table(open) };
    let cpus = CPUS_COUNTED.load(Relaxed);
    let ends = cpus * LEVELS.min(CPUS as u32 / cpus.max(1));
    let mut next = 0;
    loop {
        let (cpu, area) = (rseq::this_cpu(), rseq::area());
        if cpu >= cpus || area == 0 || bias.load(Relaxed) != open {
            return false;
        }
        take_in_use(table, thread::reads().first_line + cpu);
        // SAFETY: as in `enter`; the lines of a level, for as many CPUs as are counted, are in the table.
        match unsafe { claim(area, bias, open, lock) } {
            Claimed::Yes => return true,
            Claimed::Full => return false,
            Claimed::NotNow if next < ends => thread::reads().first_line = next,
            Claimed::NotNow => {
                reclaim(table, cpu, cpus, ends);
                thread::reads().found_no_room();
                return false;
            }
        }
        next += cpus;
    }
}

/// Takes a line in use, if it is not yet.
fn take_in_use(table: &Table, line: u32) {
    let Some(Line(slots)) = table.lines.get(line as usize) else { return };
    if slots[0].load(Relaxed) == 0 {
        table.used.fetch_max(line + 1, AcqRel);
        for slot in slots {
            // Another thread of this CPU may have come first.
            let _ = slot.compare_exchange(0, FREE, AcqRel, Relaxed);
        }
    }
}

/// T5: frees slots of the CPU's lines, each `cpus` behind the one before, that threads have left behind as
/// they ended, unless the hold stands.
#[inline(never)]
fn reclaim(table: &Table, cpu: u32, cpus: u32, end: u32) {
    // In a child without fork handlers, the numbers are those of the parent's threads.
    if HANDLED.load(Relaxed) != generation() || RECLAIMS.swap(true, Acquire) {
        return;
    }
    let mut line = cpu;
    while let Some(Line(slots)) = table.lines.get(line as usize).filter(|_| line < end) {
        line += cpus;
        for slot in slots {
            let seen = slot.load(Acquire);
            let is_left = has_mark(seen, Mark::Counted) || has_mark(seen, Mark::Gone) && seen != FREE;
            if is_left && cpu::has_ended(owner(slot).load(Relaxed) as u32) {
                let _ = slot.compare_exchange(seen, FREE, AcqRel, Relaxed);
            }
        }
    }
    RECLAIMS.store(false, Release);
}

/// The number of the thread that has claimed `slot`, which is one of a table, last.
fn owner(slot: &AtomicUsize) -> &AtomicUsize {
    // SAFETY: the table's lines of owners are `TO_OWNER` behind those of slots, and are never unmapped.
    unsafe { &*((core::ptr::from_ref(slot) as usize + TO_OWNER) as *const AtomicUsize) }
}

#[inline(always)]
pub(crate) fn leave(bias: &AtomicU32, lock: usize) -> SlotLeft {
    let reads = thread::reads();
    let Some(held) = reads.last_if_in_slot(lock) else { return SlotLeft::Counted };
    let slot = core::mem::replace(&mut held.slot, core::ptr::null()); // T4
    let area = rseq::area();
    // SAFETY: the area is this thread's; the slot is of a table, which is never unmapped, and this thread's
    // (T2).
    if area != 0 && unsafe { rseq::give_back(area, bias, NAME.load(Relaxed), slot, Name::of(lock)) } {
        reads.removed_last();
        SlotLeft::Left
    } else {
        held.slot = slot;
        SlotLeft::Revoked
    }
}

#[inline(always)]
fn leave_once(bias: &AtomicU32, lock: usize) -> bool {
    let Some(held) = thread::reads().the_last_if_in_slot(lock) else { return false };
    let slot = core::mem::replace(&mut held.slot, core::ptr::null()); // T4
    let area = rseq::area();
    // SAFETY: as in `leave`.
    let has_left =
        area != 0 && unsafe { rseq::give_back(area, bias, NAME.load(Relaxed), slot, Name::of(lock)) };
    if has_left {
        thread::reads().removed_last();
    } else {
        held.slot = slot;
    }
    has_left
}

/// See [`ReaderSlots::slot_take_back`].
#[cold]
pub(crate) fn take_back(lock: usize, bias: Bias) -> Reader {
    let reads = thread::reads();
    let Some(held) = reads.last_if_in_slot(lock) else { return Reader::Counted };
    // T4: no slot while it is given back.
    let address = core::mem::replace(&mut held.slot, core::ptr::null());
    // SAFETY: a slot of a table, which is never unmapped.
    let slot = unsafe { &*address };
    let name = Name::of(lock);
    let frees = |mark| slot.compare_exchange(name.with(mark), FREE, AcqRel, Relaxed).is_ok();
    // In a child without fork handlers, a mark may have been set in the parent.
    let is_sure = HANDLED.load(Relaxed) == generation();
    let reader = if frees(Mark::Gone) || bias == Bias::Revoked && frees(Mark::None) {
        Reader::Gone
    } else if frees(Mark::None) || is_sure && frees(Mark::Marked) {
        Reader::InSlot
    } else if frees(Mark::Counted) {
        Reader::Counted
    } else if !name.is_in(slot.load(Relaxed), &[Mark::Marked, Mark::Unsure]) {
        Reader::InSlot // given back already: by the handler of a fork that came in between
    } else if bias == Bias::Kept && (frees(Mark::Marked) || frees(Mark::Unsure)) {
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
    each(name, |slot| found |= Name::of(lock).is_in(slot.load(Acquire), &[Mark::None, Mark::Marked]));
    found
}

/// See [`ReaderSlots::slots_mark`]. Under the queue lock of the lock, with its bias revoked and fenced (T2).
#[cold]
pub(crate) fn mark(name: u32, lock: usize) -> u32 {
    // A slot that was marked by a thread that does not exist in this forked child is marked again.
    replace(name, lock, &[Mark::None, Mark::Marked, Mark::Unsure], Mark::Marked)
}

/// See [`ReaderSlots::slots_settle`].
#[cold]
pub(crate) fn settle(name: u32, lock: usize) -> u32 {
    replace(name, lock, &[Mark::Marked, Mark::Unsure], Mark::Counted)
}

/// See [`ReaderSlots::slots_disown`].
#[cold]
pub(crate) fn disown(name: u32, lock: usize) {
    settle(name, lock);
    replace(name, lock, &[Mark::None], Mark::Gone);
}

/// Writes `mark` to the slots of `lock` that have one of the marks `from`; returns how many.
#[inline(never)]
fn replace(name: u32, lock: usize, from: &[Mark], mark: Mark) -> u32 {
    let mut count = 0;
    let lock = Name::of(lock);
    each(name, |slot| {
        let seen = slot.load(Acquire);
        // If it fails, the reader has left.
        let marks =
            lock.is_in(seen, from) && slot.compare_exchange(seen, lock.with(mark), AcqRel, Acquire).is_ok();
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
        held => {
            owner(slot).store(0, Relaxed); // T5: the thread has another number here
            if has_mark(held, Mark::Marked) {
                slot.store(held | Mark::Unsure as usize, Relaxed);
            }
        }
    });
    RECLAIMS.store(false, Relaxed);
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

    /// A lock that is to have no bias counts as one that is not private.
    fn is_private(lock: usize) -> Option<bool> {
        if R::may_have_bias(lock) {
            mapping::is_private(lock)
        } else {
            Some(false)
        }
    }

    fn slot_table() -> u32 {
        table_name()
    }

    #[inline(always)]
    fn slot_enter(bias: &AtomicU32, lock: usize) -> bool {
        enter(bias, lock)
    }

    fn slot_enter_seldom(bias: &AtomicU32, lock: usize) -> bool {
        enter_seldom(bias, lock)
    }

    #[inline(always)]
    fn slot_enter_once(bias: &AtomicU32, lock: usize) -> bool {
        enter_once(bias, lock)
    }

    #[inline(always)]
    fn slot_leave(bias: &AtomicU32, lock: usize) -> SlotLeft {
        leave(bias, lock)
    }

    #[inline(always)]
    fn slot_leave_once(bias: &AtomicU32, lock: usize) -> bool {
        leave_once(bias, lock)
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
