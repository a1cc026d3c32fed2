//! What a thread has seen lately: so that the same lock, taken at the same call site, costs one lookup.
//!
//! | cache          | from                  | to                                 | trusted                         |
//! |----------------|-----------------------|------------------------------------|---------------------------------|
//! | `recent`       | lock                  | its entry                          | while the lock is not destroyed |
//! | `cached_sites` | lock, stack           | entries                            | so                              |
//! | `known`        | caller, stack pointer | stack, where its addresses lie     | if all of them still lie there  |
//!
//! A program's own function that locks has one caller and one stack pointer for many callers of it. `known`
//! has space for a few of them; the others are found by their addresses ([`super::steps`]), at a few times
//! the cost of one that is known.

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

/// What is taken, and where.
#[derive(Clone, Copy)]
pub struct LockCall {
    /// The lock's address.
    pub address: usize,
    /// What for.
    pub role: Role,
    /// What kind of lock it is, asked at its first use.
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

    pub(crate) fn set(&self, call: &LockCall, (lock, record): (u32, *const Lock), stats: &LockStats) {
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
    address: Cell<usize>,
    role: Cell<u32>,
    pub(crate) stack: Cell<u32>,
    pub(crate) lock: Cell<u32>,
    record: Cell<*const Lock>,
    pub(crate) stats: Cell<*const LockStats>,
    /// Null until it is first asked for.
    pub(crate) site: Cell<*const SiteStats>,
}

impl CachedSite {
    pub(crate) fn clear(&self) {
        self.address.set(0);
    }

    #[inline(always)]
    pub(crate) fn is_for(&self, call: &LockCall, stack: u32) -> bool {
        self.address.get() == call.address
            && self.stack.get() == stack
            && self.role.get() == call.role as u32
            && is_alive(self.record.get())
    }

    /// Of a cleared one.
    pub(crate) fn set(
        &self,
        call: &LockCall,
        (lock, record): (u32, *const Lock),
        stack: u32,
        stats: &LockStats,
    ) {
        self.role.set(call.role as u32);
        self.record.set(record);
        self.lock.set(lock);
        self.stack.set(stack);
        self.stats.set(stats);
        self.site.set(ptr::null());
        self.address.set(call.address);
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

    #[inline(always)]
    pub(crate) fn addresses<'a>(&'a self, recorder: &'a Recorder) -> (&'a [u64], &'a [u32]) {
        let depth = (self.depth.get() as usize).min(FRAMES);
        let frames = &recorder.stack_record(self.stack.get()).frames[..depth];
        // SAFETY: this thread's, which does not set it meanwhile.
        let places = unsafe { &*self.places.as_ptr() };
        (frames, &places[..depth])
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
