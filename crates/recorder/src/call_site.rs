//! The stack and the entries of a call: those that its thread has seen lately
//! ([`site_cache`](super::site_cache)), or new ones.
//!
//! A stack is recognised by all return addresses on it, or followed from each to the next
//! ([`steps`](super::steps)). A stack with a new address is unwound, and so is one with frames of changing
//! size, within a budget: a small share of the thread's time ([`MAY_UNWIND`]). Beyond it only the caller is
//! noted.

use super::hash::hash;
use super::registry::key;
use super::site::Site;
use super::site_cache::{CachedSite, Known, LockCall, Recent, CACHED_SITES, KNOWN};
use super::tally::add;
use super::thread_state::ThreadState;
use super::unwind::{Method, Trace};
use super::Recorder;
use crate::format::{LockStats, NONE};

/// Stacks with one caller and stack pointer that are known at a time.
const WAYS: usize = 4;
/// Unwinding may take one part in 64 of a thread's time.
const MAY_UNWIND: u64 = 64;
/// The time that unwinding may take besides at the start of a thread, ns.
const AT_FIRST: u64 = 1_000_000;
/// No unwinding takes longer, ns: its thread had no CPU meanwhile.
const LONGEST: u64 = 50_000;
/// One followed stack in 4,096 is unwound as well, to check that the result is the same.
const CHECKED: u32 = 4096;

#[inline(always)]
fn mix(number: usize) -> usize {
    (number >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48
}

/// Where the entries of a call are looked for.
#[inline(always)]
fn cached_at(call: &LockCall, stack: u32) -> usize {
    mix(call.address ^ (stack as usize) << 8) % CACHED_SITES
}

/// Where the stack above `site` is looked for.
#[inline(always)]
fn ways(own: &ThreadState, site: Site) -> &[Known] {
    let set = mix(site.caller() ^ (site.stack as usize).rotate_left(20)) % (KNOWN / WAYS) * WAYS;
    &own.known[set..set + WAYS]
}

impl Recorder {
    /// The number of the stack above `site`.
    #[inline(always)]
    pub fn stack(&self, own: &ThreadState, site: Site) -> u32 {
        match self.known_stack(own, site) {
            Some(stack) => stack,
            None => self.follow(own, site),
        }
    }

    /// The same, if the cache has it.
    #[inline(always)]
    pub(super) fn known_stack(&self, own: &ThreadState, site: Site) -> Option<u32> {
        let holds = |known: &&Known| {
            known.is_at(site)
                && {
                    let (frames, places) = known.addresses(self);
                    // SAFETY: captured by this thread, for this stack pointer.
                    unsafe { Trace::still_holds(site.stack, frames, places) }
                }
                && !self.stack_record(known.stack.get()).is_retired()
        };
        ways(own, site).iter().find(holds).map(|known| known.stack.get())
    }

    #[inline(never)]
    fn follow(&self, own: &ThreadState, site: Site) -> u32 {
        let Some(shared) = self.shared.get() else { return NONE };
        // SAFETY: this thread's, and the recorder is at work in it once.
        let trace = unsafe { &mut *own.trace().get() };
        let is_followed = shared.steps.walk(site, own.bounds(), trace);
        if is_followed {
            trace.method = self.unwinder.method();
        }
        if !is_followed || own.next_walk() % CHECKED == 0 {
            self.unwind(own, site, trace, is_followed);
        }
        // A new address may lie in new code, for which the maps are read.
        let stack = match is_followed {
            true => self.add_stack(trace),
            false => self.rarely(own, || self.add_stack(trace)),
        };
        if stack != NONE && !trace.is_for_now {
            let ways = ways(own, site);
            let known = ways.iter().find(|known| known.is_empty()).unwrap_or(&ways[own.next_way() % WAYS]);
            known.set(site, stack, trace);
        }
        stack
    }

    /// Whether the address was one to return to before.
    pub(super) fn is_return_address(&self, address: usize) -> bool {
        self.shared.get().is_some_and(|shared| shared.steps.knows(address))
    }

    /// Replaces a trace by what unwinding tells, if there is time for it.
    #[cold]
    #[inline(never)]
    fn unwind(&self, own: &ThreadState, site: Site, trace: &mut Trace, is_followed: bool) {
        let start = self.now();
        let lived = self.ticks.ns(start.saturating_sub(own.table().since));
        let spent = self.ticks.ns(own.unwinding().get());
        if spent.saturating_mul(MAY_UNWIND) > lived.saturating_add(AT_FIRST * MAY_UNWIND) {
            // The part that could be followed.
            if !is_followed {
                match trace.depth {
                    0 | 1 => *trace = Trace::of_caller(site),
                    _ => (trace.is_cut, trace.is_for_now) = (true, true),
                }
                trace.method = self.unwinder.method();
            }
            return;
        }
        *trace = self.unwinder.capture(site, own.bounds(), own.id(), self);
        if let Some(shared) =
            self.shared.get().filter(|_| trace.method != Method::Caller && !trace.is_for_now)
        {
            shared.steps.learn(trace);
        }
        let took = self.now().saturating_sub(start);
        own.unwinding().set(own.unwinding().get() + took.min(self.ticks.ticks(LONGEST)));
        add(&own.table().cost.unwound, 1);
        self.note_rare(own, took, took);
    }

    /// What is known of a call's site: its stack and its entries. `None` if the file or the memory is full.
    #[inline(always)]
    pub(crate) fn cached_site<'a>(&self, own: &'a ThreadState, call: &LockCall) -> Option<&'a CachedSite> {
        let stack = self.stack(own, call.site);
        let cached = &own.cached_sites[cached_at(call, stack)];
        if cached.is_for(call, stack) {
            return Some(cached);
        }
        self.fill_cached(own, cached, call, stack)
    }

    /// The numbers of lock and stack of a call, if the cache has them.
    #[inline(always)]
    pub(super) fn cached_numbers(&self, own: &ThreadState, call: &LockCall) -> Option<(u32, u32)> {
        let stack = self.known_stack(own, call.site)?;
        let cached = &own.cached_sites[cached_at(call, stack)];
        cached.is_for(call, stack).then(|| (cached.lock.get(), stack))
    }

    #[inline(never)]
    fn fill_cached<'a>(
        &self,
        own: &'a ThreadState,
        cached: &'a CachedSite,
        call: &LockCall,
        stack: u32,
    ) -> Option<&'a CachedSite> {
        cached.clear();
        let kind = (call.kind)(call.address);
        let (lock, record) = self.find_or_register(own, key(call.address, kind, stack), kind, || stack)?;
        let stats = self.lock_stats(own, call.role, lock)?;
        cached.set(call, (lock, record), stack, stats);
        Some(cached)
    }

    /// The entry of the lock that is called for, without a stack unless the lock is new.
    #[inline(always)]
    pub(crate) fn recent<'a>(&'a self, own: &'a ThreadState, call: &LockCall) -> Option<&'a LockStats> {
        let recent = own.recent_at(hash(call.address));
        if let Some(stats) = recent.get(call.address, call.role) {
            return Some(stats);
        }
        self.look_up(own, recent, call)
    }

    #[cold]
    #[inline(never)]
    fn look_up<'a>(
        &'a self,
        own: &'a ThreadState,
        recent: &Recent,
        call: &LockCall,
    ) -> Option<&'a LockStats> {
        let stack = || self.stack(own, call.site);
        let (lock, record) = self.find_or_register(own, call.address, (call.kind)(call.address), stack)?;
        let stats = self.lock_stats(own, call.role, lock)?;
        recent.set(call, (lock, record), stats);
        Some(stats)
    }
}
