//! Memory that all tasks share: the phase, and a slot of counters for each.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::MapFlags;
use rustix::thread::futex;

use crate::workloads::job::JobError;
use crate::workloads::mapping::Mapping;

/// No task has started.
const READY: u32 = 0;
/// Operations do not count yet.
pub(super) const WARM_UP: u32 = 1;
/// Operations count.
pub(super) const COUNTED: u32 = 2;
/// All tasks stop.
pub(super) const OVER: u32 = 3;

/// The phase: read by all after each operation, written three times.
#[derive(Debug)]
#[repr(align(256))]
struct Head {
    phase: AtomicU32,
    /// Tasks that wait for the start.
    ready: AtomicU32,
}

/// What one task counts, 256 bytes from the next one's: no line is shared, and none is fetched with a
/// neighbour's.
#[derive(Debug)]
#[repr(align(256))]
pub(super) struct Slot {
    /// Operations from the beginning.
    operations: AtomicU64,
    /// The kernel's account when the counted phase began, and at its end: user and system time in
    /// microseconds, voluntary and involuntary switches.
    before: [AtomicU64; 4],
    after: [AtomicU64; 4],
}

/// The shared memory. It is a mapping of its own, so that processes that are forked later share it, too.
#[derive(Debug)]
pub(super) struct Board {
    _memory: Mapping,
    head: NonNull<Head>,
    slots: NonNull<Slot>,
    words: NonNull<AtomicU64>,
    tasks: usize,
    words_per_task: usize,
}

// SAFETY: what is in the mapping is atomic, and the mapping lives as long as the board.
unsafe impl Sync for Board {}

impl Board {
    /// A board for `tasks` tasks, with `words` numbers for each besides.
    pub(super) fn new(tasks: usize, words: usize) -> Result<Self, JobError> {
        let length = size_of::<Head>() + tasks * (size_of::<Slot>() + words * size_of::<AtomicU64>());
        let memory = Mapping::anonymous(length, MapFlags::SHARED);
        let memory = memory.map_err(JobError::failed("cannot map memory for counters"))?;
        // Mappings begin with a page, so all types are aligned; all zero is a value of each.
        let head = memory.start.cast::<Head>();
        // SAFETY: inside of the mapping, whose length has the head in it.
        let slots = unsafe { head.add(1) }.cast::<Slot>();
        // SAFETY: still inside, or at its end if there are no words.
        let first_word = unsafe { slots.add(tasks) }.cast::<AtomicU64>();
        Ok(Self { _memory: memory, head, slots, words: first_word, tasks, words_per_task: words })
    }

    fn head(&self) -> &Head {
        // SAFETY: mapped, zeroed at first, and changed through atomics only.
        unsafe { self.head.as_ref() }
    }

    pub(super) fn slots(&self) -> &[Slot] {
        // SAFETY: as in `head`; there are that many.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), self.tasks) }
    }

    pub(super) fn slot(&self, number: usize) -> &Slot {
        &self.slots()[number]
    }

    /// What task `number` writes down.
    pub(super) fn words(&self, number: usize) -> &[AtomicU64] {
        assert!(number < self.tasks, "there are {} tasks", self.tasks);
        // SAFETY: behind the slots there are that many words for each task.
        let first = unsafe { self.words.add(number * self.words_per_task) };
        // SAFETY: as before, and they are changed through atomics only.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), self.words_per_task) }
    }

    /// Each task's operations so far.
    pub(super) fn operations(&self) -> Vec<u64> {
        self.slots().iter().map(|slot| slot.operations.load(Ordering::Relaxed)).collect()
    }

    #[inline]
    pub(super) fn phase(&self) -> u32 {
        self.head().phase.load(Ordering::Relaxed)
    }

    /// Waits for the start. Tasks may be processes, so the futex is not private.
    pub(super) fn wait_for_start(&self) {
        let head = self.head();
        head.ready.fetch_add(1, Ordering::Release);
        // Acquire: what was there before the start is seen.
        while head.phase.load(Ordering::Acquire) == READY {
            // Any error means: look again.
            let _ = futex::wait(&head.phase, futex::Flags::empty(), READY, None);
        }
    }

    /// Whether all tasks wait for the start.
    pub(super) fn are_all_ready(&self) -> bool {
        self.head().ready.load(Ordering::Acquire) as usize == self.tasks
    }

    pub(super) fn start(&self) {
        self.head().phase.store(WARM_UP, Ordering::Release);
        self.wake();
    }

    pub(super) fn set(&self, phase: u32) {
        self.head().phase.store(phase, Ordering::Relaxed);
    }

    /// Stops all tasks, whether they wait or work: something has failed.
    pub(super) fn stop(&self) {
        self.set(OVER);
        self.wake();
    }

    fn wake(&self) {
        let _ = futex::wake(&self.head().phase, futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Slot {
    /// Says how many operations its task has done. No other task writes it.
    #[inline]
    pub(super) fn publish(&self, operations: u64) {
        self.operations.store(operations, Ordering::Relaxed);
    }

    /// Notes the kernel's account of the calling task when it sees that the counted phase has begun.
    pub(super) fn note_start(&self) {
        store(&self.before);
        store(&self.after);
    }

    /// Notes it again when the task sees that all is over.
    pub(super) fn note_end(&self) {
        store(&self.after);
    }

    /// What its task used in the counted phase, by the index in [`account`].
    pub(super) fn used(&self, index: usize) -> u64 {
        let value = |of: &[AtomicU64; 4]| of[index].load(Ordering::Relaxed);
        value(&self.after).saturating_sub(value(&self.before))
    }
}

fn store(to: &[AtomicU64; 4]) {
    let account = account(libc::RUSAGE_THREAD);
    to.iter().zip(account).for_each(|(to, value)| to.store(value, Ordering::Relaxed));
}

/// User and system time in microseconds, voluntary and involuntary switches: of the calling thread, or of the
/// children that were waited for, and theirs.
pub(super) fn account(who: libc::c_int) -> [u64; 4] {
    // SAFETY: `rusage` is plain integers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a live local of the right type; the call cannot fail for ourselves.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let us = |t: libc::timeval| t.tv_sec.unsigned_abs() * 1_000_000 + t.tv_usec.unsigned_abs();
    [us(usage.ru_utime), us(usage.ru_stime), usage.ru_nvcsw.unsigned_abs(), usage.ru_nivcsw.unsigned_abs()]
}
