//! Adding up: one thread writes, plain stores; others may read meanwhile.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::parts::Parts;
use super::thread_state::{Facts, ThreadState, WaitRecord};
use super::Recorder;
use crate::format::{Held, LockStats, Role, SiteStats, Strip, WaitOutcome, BINS, NONE, STRIP};

/// The bit of an outcome in a set of them.
pub(crate) const fn bit(outcome: WaitOutcome) -> u32 {
    1 << outcome as u32
}

#[inline(always)]
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

#[inline(always)]
fn raise(counter: &AtomicU64, to: u64) {
    if counter.load(Relaxed) < to {
        counter.store(to, Relaxed);
    }
}

/// Counts `times` in their bin.
#[inline(always)]
fn bin(bins: &[AtomicU32; BINS], ns: u64, times: u32) {
    let bin = &bins[((ns | 1).ilog2() as usize).min(BINS - 1)];
    bin.store(bin.load(Relaxed).saturating_add(times), Relaxed);
}

/// Adds to a sum of [`Spread`](crate::format::Spread): one of `weight` has counted `amount`.
#[inline(always)]
fn spread(sum: &AtomicU64, weight: u32, amount: f64) {
    let weight = f64::from(weight);
    let more = weight * (weight - 1.0) * amount * amount;
    sum.store((f64::from_bits(sum.load(Relaxed)) + more).to_bits(), Relaxed);
}

/// Counts an event that ended `at` µs after the start, with a wait's µs or 1.
fn strip(strip: &Strip, at: u64, us: u64) {
    let mut shift = strip.shift.load(Relaxed);
    while at >> shift >= STRIP as u64 {
        halve(strip);
        shift += 1;
        strip.shift.store(shift, Relaxed);
    }
    let part = &strip.waited[(at >> shift) as usize];
    part.store(part.load(Relaxed).saturating_add(us.min(u64::from(u32::MAX)) as u32), Relaxed);
}

/// Makes each part twice as long.
fn halve(strip: &Strip) {
    let parts = &strip.waited;
    for to in 0..STRIP {
        let both = |at: usize| parts.get(at).map_or(0, |part| part.load(Relaxed));
        parts[to].store(both(2 * to).saturating_add(both(2 * to + 1)), Relaxed);
    }
}

#[inline(always)]
fn hold(held: &Held, ticks: u64, times: u32, with_squares: bool) {
    add(&held.count, times.into());
    add(&held.total, ticks * u64::from(times));
    raise(&held.longest, ticks);
    if with_squares {
        let squares = f64::from_bits(held.squares.load(Relaxed)) + (ticks as f64) * (ticks as f64);
        held.squares.store(squares.to_bits(), Relaxed);
    }
}

impl Recorder {
    /// Writes down an acquisition: its wait, if it had one, and its hold until `end`, if that was measured.
    #[inline(always)]
    pub(crate) fn write(&self, own: &ThreadState, facts: &Facts, end: u64) {
        // SAFETY: null, or an entry, which stays where it is.
        let Some(stats) = (unsafe { facts.stats.as_ref() }) else { return };
        let weight = u64::from(facts.weight);
        add(&stats.acquisitions, weight);
        if facts.weight > 1 {
            spread(&stats.spread.acquisitions, facts.weight, 1.0);
        }
        if let Some(waited) = &facts.wait {
            self.write_wait(own, facts, waited);
        }
        if facts.wait.is_none() && facts.since == 0 {
            return;
        }
        let site = self.site(own, facts);
        if let Some(site) = site {
            add(&site.acquisitions, weight);
        }
        if facts.since != 0 && end != 0 {
            self.write_hold(facts, stats, site, end.saturating_sub(facts.since));
            let table = own.table();
            table.latest.store(end, Relaxed);
            // `contended` does not see all of them.
            if !self.is_contended() {
                strip(&table.activity, self.ticks.ns(end.saturating_sub(self.started())) / 1_000, 1);
            }
            if facts.non_critical != 0 {
                add(&stats.non_critical, facts.non_critical);
                bin(&stats.non_critical_lengths, self.ticks.ns(facts.non_critical), 1);
            }
        }
    }

    /// Writes down an acquisition with another lock held.
    #[inline(always)]
    pub(super) fn write_nested(&self, own: &ThreadState, facts: &Facts, outer: (u32, Role), ticks: u64) {
        if let Some(nest) = self.nest_stats(own, facts.role, facts.lock, outer) {
            add(&nest.count, u64::from(facts.weight));
            add(&nest.held, ticks);
            add(&nest.waited, facts.wait.as_ref().map_or(0, |wait| wait.ticks));
        }
    }

    #[inline(always)]
    fn write_hold(&self, facts: &Facts, stats: &LockStats, site: Option<&SiteStats>, ticks: u64) {
        // Each hold of these spans is in one sum: those that are left out are in `held_waited`, so that none
        // stands for them here.
        let times = facts.times;
        bin(&stats.holds, self.ticks.ns(ticks), times);
        // Only estimates have a use for them.
        let with_squares = self.is_sampling();
        if facts.wait.is_some() {
            hold(&stats.held_after_wait, ticks, times, with_squares);
            site.into_iter().for_each(|site| hold(&site.held_after_wait, ticks, times, with_squares));
        } else {
            hold(&stats.held, ticks, times, with_squares);
            site.into_iter().for_each(|site| hold(&site.held, ticks, times, with_squares));
        }
    }

    #[inline(always)]
    fn site(&self, own: &ThreadState, facts: &Facts) -> Option<&SiteStats> {
        // SAFETY: null, or an entry, which stays where it is.
        match unsafe { facts.site.as_ref() } {
            None => self.site_stats(own, facts.role, facts.lock, facts.stack),
            site => site,
        }
    }

    /// Writes down a wait.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_wait(&self, own: &ThreadState, facts: &Facts, waited: &WaitRecord) {
        let table = own.table();
        let weight = u64::from(facts.weight);
        let (ticks, once) = (waited.ticks * weight, waited.ticks);
        add(&table.waits, weight);
        add(&table.waited, ticks);
        table.latest.store(waited.end, Relaxed);
        if (table.waits.load(Relaxed) - weight).leading_zeros() != table.waits.load(Relaxed).leading_zeros() {
            self.note_name(own);
        }
        // SAFETY: null, or an entry, which stays where it is.
        if let Some(stats) = unsafe { facts.stats.as_ref() } {
            self.write_lock_wait(stats, facts.role, waited, facts.weight);
        }
        if let Some(site) = self.site(own, facts) {
            add(&site.contended, weight);
            add(&site.waited, ticks);
            raise(&site.longest_wait, once);
        }
        let mut parts = Parts::new();
        // Of a signal that is not known to have come from anywhere there is nothing to say.
        if facts.role.is_mutual() || facts.role == Role::Signal && waited.last != NONE {
            self.parts(facts, waited, &mut parts);
        }
        self.keep_slow(own, facts, waited, &parts);
        if waited.outer.lock != NONE {
            self.write_held_wait(own, facts, waited);
        }
        for part in parts.all() {
            if let Some(pair) = self.pair_stats(own, facts.role, facts.lock, facts.stack, part.holder) {
                add(&pair.count, weight);
                add(&pair.waited, part.ticks * weight);
                add(&pair.free, part.free * weight);
                raise(&pair.longest_wait, part.ticks);
            }
        }
    }

    pub(super) fn write_held_wait(&self, own: &ThreadState, facts: &Facts, waited: &WaitRecord) {
        if let Some(waits) = self.held_wait_stats(own, facts.role, facts.lock, waited.outer) {
            let ticks = waited.ticks * u64::from(facts.weight);
            add(&waits.count, u64::from(facts.weight));
            add(&waits.waited, ticks);
            raise(&waits.longest_wait, waited.ticks);
            add(&waits.blocked, waited.outer.blocked.saturating_mul(u64::from(facts.weight)));
        }
    }

    fn write_lock_wait(&self, stats: &LockStats, role: Role, waited: &WaitRecord, weight: u32) {
        if weight > 1 {
            spread(&stats.spread.contended, weight, 1.0);
            spread(&stats.spread.waited, weight, waited.ticks as f64);
        }
        let times = u64::from(weight);
        add(&stats.contended, times);
        add(&stats.waited, waited.ticks * times);
        raise(&stats.longest_wait, waited.ticks);
        raise(&stats.longest_queue, u64::from(waited.queue));
        if role.is_mutual() {
            add(&stats.free, if waited.is_split { waited.free * times } else { 0 });
            add(&stats.unsplit, if waited.is_split { 0 } else { waited.ticks * times });
        }
        for (number, outcome) in stats.outcomes.iter().enumerate() {
            add(outcome, times * u64::from(waited.outcomes >> number & 1));
        }
        let ns = self.ticks.ns(waited.ticks);
        bin(&stats.waits, ns, weight);
        let at = self.ticks.ns(waited.end.saturating_sub(self.started()));
        strip(&stats.strip, at / 1_000, (ns * times) / 1_000);
    }
}
