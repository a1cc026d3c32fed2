//! The stack and the entries of a call: those that its thread has seen lately ([`site_cache`](super::site_cache)), or new ones.

use super::hash::hash;
use super::site::Site;
use super::site_cache::{CachedSite, Call, Known, Recent, CACHED_SITES, KNOWN};
use super::thread_state::ThreadState;
use super::unwind::Trace;
use super::Recorder;
use crate::format::{LockStats, NONE};

/// Stacks with one caller and stack pointer that are known at a time.
const WAYS: usize = 4;
/// A cached site is trusted so often before it is checked again.
const TRUSTED: u32 = 16;

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
        let known = ways.iter().find(|known| known.is_empty()).unwrap_or(&ways[oldest]);
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
        known.set(site, stack, &trace);
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
        let known = known.map(|known| known.addresses(self));
        let known = known.as_ref().map(|(frames, at)| (*frames, &at[..]));
        cached.set(call, (lock, record), stack, stats, known);
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
        recent.set(call, (lock, record), stats);
        Some(stats)
    }
}
