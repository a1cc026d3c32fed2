//! What a thread has seen lately: so that the same lock, taken at the same call site, costs a look.
//!
//! | cache    | from                                      | to                                   | trusted                               |
//! |----------|-------------------------------------------|--------------------------------------|---------------------------------------|
//! | `recent` | lock                                      | its entry                            | while the lock is not destroyed        |
//! | `cached_sites` | caller, stack pointer, lock               | stack, entries                       | so, and if the next addresses still lie there; all of them are looked at every 16th time |
//! | `known`  | caller, stack pointer                     | stack, where its addresses lie       | if they still lie there                |
//!
//! A program's own function that locks has one caller and one stack pointer for many callers of it. Those are told apart by
//! the look at the addresses; `known` has room for a few of them.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use super::site::Site;
use super::unwind::Trace;
use super::Recorder;
use crate::format::{Kind, Lock, LockStats, Role, SiteStats, FRAMES};

pub(crate) const RECENT: usize = 64;
pub(crate) const CACHED_SITES: usize = 256;
pub(crate) const KNOWN: usize = 128;
/// Addresses of a call site's stack that are looked at each time, besides the caller's.
const CHECKED: usize = 4;

/// What is taken, and where.
#[derive(Clone, Copy)]
pub struct Call {
    /// The lock's address.
    pub address: usize,
    /// What for.
    pub role: Role,
    /// What kind of lock it is, asked when it is met first.
    pub kind: fn(usize) -> Kind,
    /// Where.
    pub site: Site,
}

/// See above. All zero is an empty one.
#[repr(C)]
pub(crate) struct Recent {
    address: Cell<usize>,
    role: Cell<u32>,
    lock: Cell<u32>,
    record: Cell<*const Lock>,
    stats: Cell<*const LockStats>,
}

impl Recent {
    #[inline(always)]
    pub(crate) fn get(&self, address: usize, role: Role) -> Option<&LockStats> {
        let is_hit = self.address.get() == address && self.role.get() == role as u32;
        // SAFETY: entries stay where they are.
        (is_hit && is_alive(self.record.get())).then(|| unsafe { &*self.stats.get() })
    }

    pub(crate) fn set(&self, call: &Call, (lock, record): (u32, *const Lock), stats: &LockStats) {
        self.address.set(call.address);
        self.role.set(call.role as u32);
        self.lock.set(lock);
        self.record.set(record);
        self.stats.set(stats);
    }
}

/// See above. All zero is an empty one.
#[repr(C)]
pub(crate) struct CachedSite {
    caller: Cell<usize>,
    stack_pointer: Cell<usize>,
    address: Cell<usize>,
    role: Cell<u32>,
    /// How often it was found.
    pub(crate) hits: Cell<u32>,
    /// Addresses of the stack, and where they lie, words above the stack pointer; 0 for none.
    checked: Cell<[u64; CHECKED]>,
    checked_at: Cell<[u32; CHECKED]>,
    record: Cell<*const Lock>,
    pub(crate) lock: Cell<u32>,
    pub(crate) stack: Cell<u32>,
    pub(crate) stats: Cell<*const LockStats>,
    /// Null until it is first asked for.
    pub(crate) site: Cell<*const SiteStats>,
}

impl CachedSite {
    pub(crate) fn clear(&self) {
        self.address.set(0);
    }

    pub(crate) fn is_for(&self, call: &Call) -> bool {
        self.address.get() == call.address
            && self.stack_pointer.get() == call.site.stack as usize
            && self.caller.get() == call.site.caller()
            && self.role.get() == call.role as u32
            && is_alive(self.record.get())
            && self.is_on(call.site.stack)
    }

    /// Whether the stack above is the same, as far as that is looked at.
    #[inline(always)]
    fn is_on(&self, stack: *const usize) -> bool {
        let (addresses, places) = (self.checked.get(), self.checked_at.get());
        (0..CHECKED).all(|at| {
            // SAFETY: a place of a stack that was captured by this thread with this stack pointer.
            places[at] == 0
                || unsafe { stack.wrapping_add(places[at] as usize).read_volatile() } as u64 == addresses[at]
        })
    }

    /// Of a cleared one.
    pub(crate) fn set(
        &self,
        call: &Call,
        (lock, record): (u32, *const Lock),
        stack: u32,
        stats: &LockStats,
        known: Option<(&[u64], &[u32])>,
    ) {
        self.caller.set(call.site.caller());
        self.stack_pointer.set(call.site.stack as usize);
        self.role.set(call.role as u32);
        self.record.set(record);
        self.lock.set(lock);
        self.stack.set(stack);
        self.stats.set(stats);
        self.site.set(ptr::null());
        self.check(known);
        self.address.set(call.address);
    }

    /// Remembers what to look at.
    fn check(&self, known: Option<(&[u64], &[u32])>) {
        let (mut addresses, mut places) = ([0; CHECKED], [0; CHECKED]);
        if let Some((frames, at)) = known {
            let on_stack = frames.iter().zip(at).skip(1).filter(|(_, place)| **place != 0);
            for (number, (frame, place)) in on_stack.take(CHECKED).enumerate() {
                (addresses[number], places[number]) = (*frame, *place);
            }
        }
        self.checked.set(addresses);
        self.checked_at.set(places);
    }
}

/// See above. All zero is an empty one.
#[repr(C)]
pub(crate) struct Known {
    caller: Cell<usize>,
    stack_pointer: Cell<usize>,
    /// Its number.
    pub(crate) stack: Cell<u32>,
    depth: Cell<u32>,
    places: Cell<[u32; FRAMES]>,
}

impl Known {
    pub(crate) fn clear(&self) {
        self.caller.set(0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.caller.get() == 0
    }

    /// Remembers the stack of this number, as captured at `site`.
    pub(crate) fn set(&self, site: Site, stack: u32, trace: &Trace) {
        self.caller.set(site.caller());
        self.stack_pointer.set(site.stack as usize);
        self.stack.set(stack);
        self.depth.set(trace.depth as u32);
        self.places.set(trace.places);
    }

    pub(crate) fn addresses<'a>(&self, recorder: &'a Recorder) -> (&'a [u64], [u32; FRAMES]) {
        let frames = &recorder.stack_record(self.stack.get()).frames[..self.depth.get() as usize];
        (frames, self.places.get())
    }

    pub(crate) fn is_at(&self, site: Site) -> bool {
        self.caller.get() == site.caller() && self.stack_pointer.get() == site.stack as usize
    }
}

/// Whether the lock of a record is not destroyed.
#[inline(always)]
fn is_alive(record: *const Lock) -> bool {
    // SAFETY: a record that was found in the registry; the file stays mapped.
    unsafe { &(*record).destroyed }.load(Relaxed) == 0
}
