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

use super::shared_tables::hash;
use super::site::Site;
use super::thread_state::ThreadState;
use super::unwind::Trace;
use super::Recorder;
use crate::format::{Kind, Lock, LockStats, Role, SiteStats, FRAMES, NONE};

pub(crate) const RECENT: usize = 64;
pub(crate) const CACHED_SITES: usize = 256;
pub(crate) const KNOWN: usize = 128;
/// Stacks with one caller and stack pointer that are known at a time.
const WAYS: usize = 4;
/// Addresses of a call site's stack that are looked at each time, besides the caller's.
const CHECKED: usize = 4;
/// A cached site is trusted so often before it is checked again.
const TRUSTED: u32 = 16;

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
}

/// See above. All zero is an empty one.
#[repr(C)]
pub(crate) struct CachedSite {
    caller: Cell<usize>,
    stack_pointer: Cell<usize>,
    address: Cell<usize>,
    role: Cell<u32>,
    hits: Cell<u32>,
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

    fn is_for(&self, call: &Call) -> bool {
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
    stack: Cell<u32>,
    depth: Cell<u32>,
    places: Cell<[u32; FRAMES]>,
}

impl Known {
    pub(crate) fn clear(&self) {
        self.caller.set(0);
    }

    fn addresses<'a>(&self, recorder: &'a Recorder) -> (&'a [u64], [u32; FRAMES]) {
        let frames = &recorder.stack_record(self.stack.get()).frames[..self.depth.get() as usize];
        (frames, self.places.get())
    }

    fn is_at(&self, site: Site) -> bool {
        self.caller.get() == site.caller() && self.stack_pointer.get() == site.stack as usize
    }
}

/// Whether the lock of a record is not destroyed.
#[inline(always)]
fn is_alive(record: *const Lock) -> bool {
    // SAFETY: a record that was found in the registry; the file stays mapped.
    unsafe { &(*record).destroyed }.load(Relaxed) == 0
}

#[inline(always)]
fn mix(number: usize) -> usize {
    (number >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48
}

impl Recorder {
    /// The number of the stack above `site`.
    pub fn stack(&self, own: &ThreadState, site: Site) -> u32 {
        self.known_stack(own, site).0
    }

    /// The number of the stack above `site`, and where it is remembered, if it is.
    fn known_stack<'a>(&self, own: &'a ThreadState, site: Site) -> (u32, Option<&'a Known>) {
        let set = mix(site.caller() ^ (site.stack as usize).rotate_left(20)) % (KNOWN / WAYS) * WAYS;
        let ways = &own.known[set..set + WAYS];
        let holds = |known: &&Known| {
            let (frames, places) = known.addresses(self);
            // SAFETY: captured by this thread, for this stack pointer.
            unsafe { Trace::still_holds(site.stack, frames, &places[..frames.len()]) }
        };
        if let Some(known) = ways.iter().filter(|known| known.is_at(site)).find(holds) {
            return (known.stack.get(), Some(known));
        }
        let oldest = own.next_way() % WAYS;
        let known = ways.iter().find(|known| known.caller.get() == 0).unwrap_or(&ways[oldest]);
        let stack = self.new_stack(own, known, site);
        (stack, Some(known).filter(|known| known.is_at(site)))
    }

    #[cold]
    #[inline(never)]
    fn new_stack(&self, own: &ThreadState, known: &Known, site: Site) -> u32 {
        let start = self.now();
        let trace = self.unwinder.capture(site, own.bounds(), own.id());
        let stack = self.add_stack(&trace);
        own.aside().set(own.aside().get() + self.now().saturating_sub(start));
        if stack == NONE || trace.is_for_now {
            known.clear();
            return stack;
        }
        known.caller.set(site.caller());
        known.stack_pointer.set(site.stack as usize);
        known.stack.set(stack);
        known.depth.set(trace.depth as u32);
        known.places.set(trace.places);
        stack
    }

    /// What is known of a call's site: its stack and its entries. `is_sure`: the stack is looked at. `None` if there is no room.
    #[inline(always)]
    pub(crate) fn cached_site<'a>(
        &self,
        own: &'a ThreadState,
        call: &Call,
        is_sure: bool,
    ) -> Option<&'a CachedSite> {
        let key =
            call.site.caller() ^ (call.site.stack as usize).rotate_left(20) ^ call.address.rotate_left(40);
        let cached = &own.cached_sites[mix(key) % CACHED_SITES];
        if cached.is_for(call) {
            let hits = cached.hits.get().wrapping_add(1);
            cached.hits.set(hits);
            if !is_sure && hits % TRUSTED != 0 {
                return Some(cached);
            }
        }
        self.check_cached(own, cached, call)
    }

    #[inline(never)]
    fn check_cached<'a>(
        &self,
        own: &'a ThreadState,
        cached: &'a CachedSite,
        call: &Call,
    ) -> Option<&'a CachedSite> {
        let (stack, known) = self.known_stack(own, call.site);
        if cached.is_for(call) && cached.stack.get() == stack {
            return Some(cached);
        }
        cached.clear();
        let (lock, record) = self.meet(own, call.address, (call.kind)(call.address), || stack)?;
        let stats = self.lock_stats(own, call.role, lock)?;
        cached.caller.set(call.site.caller());
        cached.stack_pointer.set(call.site.stack as usize);
        cached.role.set(call.role as u32);
        cached.record.set(record);
        cached.lock.set(lock);
        cached.stack.set(stack);
        cached.stats.set(stats);
        cached.site.set(ptr::null());
        cached
            .check(known.map(|known| known.addresses(self)).as_ref().map(|(frames, at)| (*frames, &at[..])));
        cached.address.set(call.address);
        Some(cached)
    }

    /// The entry of the lock that is called for, without a stack unless the lock is new.
    #[inline(always)]
    pub(crate) fn recent<'a>(&'a self, own: &'a ThreadState, call: &Call) -> Option<&'a LockStats> {
        let recent = own.recent_at(hash(call.address));
        if let Some(stats) = recent.get(call.address, call.role) {
            return Some(stats);
        }
        self.look_up(own, recent, call)
    }

    #[cold]
    #[inline(never)]
    fn look_up<'a>(&'a self, own: &'a ThreadState, recent: &Recent, call: &Call) -> Option<&'a LockStats> {
        let stack = || self.stack(own, call.site);
        let (lock, record) = self.meet(own, call.address, (call.kind)(call.address), stack)?;
        let stats = self.lock_stats(own, call.role, lock)?;
        recent.address.set(call.address);
        recent.role.set(call.role as u32);
        recent.lock.set(lock);
        recent.record.set(record);
        recent.stats.set(stats);
        Some(stats)
    }
}
