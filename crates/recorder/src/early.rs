//! Locks that are created before there is a recording: the stacks that create them are kept in memory, until
//! one begins.
//!
//! A process that begins when it first waits would otherwise not know what created its locks; most of them
//! are named by that. A slot is found by the address's hash; a later lock replaces an earlier one.
//!
//! | op                           | order            | pairs with | because                                     |
//! |------------------------------|------------------|------------|---------------------------------------------|
//! | `addresses`: store, load     | Release, Acquire | each other | the stack with it is that of this address |
//! | `addresses`: second load     | Relaxed          | a fence    | the stack was not written meanwhile          |

use core::cell::UnsafeCell;
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{compiler_fence, fence, AtomicPtr, AtomicU32, AtomicUsize, Ordering::SeqCst};

use spinpark_linux::raw;

use super::hash::hash;
use super::site::Site;
use super::stack_bounds;
use super::thread_state::here;
use super::unwind::Trace;
use super::Recorder;
use crate::format::NONE;

const SLOTS: usize = 2048;
/// Stacks that a process captures at most before its recording: unwinding takes a microsecond each time.
const MOST: u32 = 4096;

/// Stacks that created locks, by hash of the locks' addresses.
#[repr(C)]
struct Table {
    /// 0: empty, or being written. They are apart from the stacks, because a thread that begins a recording,
    /// as in each forked child, reads all addresses and few stacks.
    addresses: [AtomicUsize; SLOTS],
    stacks: [Early; SLOTS],
}

/// The stack that created a lock.
#[repr(C)]
struct Early {
    /// The thread that writes, or 0.
    writer: AtomicU32,
    trace: UnsafeCell<Trace>,
}

/// Such stacks; the default has none, and no memory.
pub(crate) struct EarlyStacks {
    table: AtomicPtr<Table>,
    captured: AtomicU32,
}

impl EarlyStacks {
    pub(crate) const fn new() -> Self {
        Self { table: AtomicPtr::new(ptr::null_mut()), captured: AtomicU32::new(0) }
    }

    fn get(&self) -> Option<&Table> {
        // SAFETY: null, or memory that stays; all zero is an empty table.
        unsafe { self.table.load(Acquire).as_ref() }
    }

    fn get_or_map(&self) -> Option<&Table> {
        if self.get().is_none() {
            let memory = raw::map_zero(size_of::<Table>())?;
            let new = memory.cast().as_ptr();
            if self.table.compare_exchange(ptr::null_mut(), new, Release, Relaxed).is_err() {
                // SAFETY: no other code has its address.
                unsafe { raw::unmap(memory, size_of::<Table>()) };
            }
        }
        self.get()
    }
}

impl Recorder {
    /// The object at `address` is created now, and nothing is recorded yet.
    #[cold]
    #[inline(never)]
    pub fn created_early(&self, address: usize, site: Site) {
        let local = here();
        if !self.is_idle() || local.is_busy.get() != 0 {
            return;
        }
        self.destroyed_early(address);
        if self.early.captured.fetch_add(1, Relaxed) >= MOST {
            self.early.captured.store(MOST, Relaxed);
            return;
        }
        local.is_busy.set(1);
        compiler_fence(SeqCst); // as in `enter`
        if let Some(table) = self.early.get_or_map() {
            let number = hash(address) % SLOTS;
            let (slot, noted) = (&table.stacks[number], &table.addresses[number]);
            let id = raw::thread_id();
            if slot.writer.compare_exchange(0, id, Acquire, Relaxed).is_ok() {
                let bounds = stack_bounds::of_this_thread(&self.main_stack);
                let trace = self.unwinder.capture(site, bounds, id, self);
                noted.store(0, Relaxed);
                fence(Release); // a reader that sees the new stack sees that the address is another
                                // SAFETY: this thread is the only writer; a reader looks at the address
                                // again.
                unsafe { slot.trace.get().write_volatile(trace) };
                noted.store(address, Release);
                slot.writer.store(0, Release);
            }
        }
        self.leave();
    }

    /// The object at `address` is destroyed, and nothing is recorded yet.
    pub fn destroyed_early(&self, address: usize) {
        if let Some(table) = self.early.get().filter(|_| self.is_idle()) {
            // If it is another's, that stays.
            let _ = table.addresses[hash(address) % SLOTS].compare_exchange(address, 0, Relaxed, Relaxed);
        }
    }

    /// Writes them to the file: a recording begins.
    pub(crate) fn write_early(&self) {
        let (Some(table), Some(shared)) = (self.early.get(), self.shared.get()) else { return };
        for (noted, slot) in table.addresses.iter().zip(&table.stacks) {
            let address = noted.load(Acquire);
            if address == 0 {
                continue;
            }
            // SAFETY: written whole before its address was; if it is being written again, the copy is not
            // used. All bits that a writer leaves are those of a trace.
            let trace = unsafe { slot.trace.get().read_volatile() };
            fence(Acquire);
            if noted.load(Relaxed) != address {
                continue;
            }
            let stack = self.add_stack(&trace);
            if stack != NONE {
                shared.note_created(address, stack);
            }
        }
    }
}
