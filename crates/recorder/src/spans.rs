//! Spans of time in which little is recorded. They bound what recording costs, and they measure it.
//!
//! With the detail `Contended`, where contended locks are used more often than can be recorded within a
//! share of the CPU time ([`SHARE`]), time has cycles. In one span of each, at a random place, the process
//! records; in the rest, the *light* spans, calls are forwarded:
//!
//! ```text
//!  plain │ light    │ recorded │ light          │ recorded │ light       │ …
//!        │← a cycle: `times` recorded spans long →│
//! ```
//!
//! An event that begins in a recorded span stands for `times` of them. That is unbiased: the chance is the
//! same for all moments of a cycle, and no program knows it. Two kinds of events are never left out. A wait
//! that lasts is noted for readers, in a light span, too, so that a deadlock is seen. A wait of [`LONG`] or
//! more is recorded wherever it begins, and stands for itself: few of them would fit into the recorded spans.
//! If such waits are most of the waiting, there are no light spans.
//!
//! The two kinds of spans are an experiment: how often locks are used in each, per time and per CPU time,
//! says what recording costs. Sums over the cycles are in the file ([`Experiment`]); readers compute the cost
//! with its interval.
//!
//! | operation              | order            | pairs with | because                                            |
//! |------------------------|------------------|------------|----------------------------------------------------|
//! | `until`: CAS to `u64::MAX` | Acquire      | its store  | one thread changes the plan, and sees the last change |
//! | `until`: store          | Release          | that CAS   | the same                                           |
//! | all others              | Relaxed          | –          | a thread that is late by some calls does no harm    |

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicU8};

use spinpark_linux::raw;

use super::thread_state::here;
use super::Recorder;
use crate::format::{Experiment, EXPERIMENT};

/// Waits of this many ns are recorded in light spans, too.
pub(crate) const LONG: u64 = 1_000_000;
/// Recording may take one part in 64 of the CPU time.
const SHARE: f64 = 64.0;
/// What recording costs a use of a contended lock, and a wait, ns, with what it changes for other threads:
/// more than was measured on any program, so that spans begin early enough.
const USE_COSTS: f64 = 30.0;
const WAIT_COSTS: f64 = 2_000.0;
/// A cycle has at most this many times the length of its recorded span.
const MOST: u32 = 16;
/// The length of a recorded span, ns, at most and at least: many waits.
const SPAN: u64 = 2_000_000;
const SHORTEST: u64 = 200_000;
/// A cycle is at most one part in 16 of the time so far: what its rest stands for is missing at the end.
const PART: u64 = 16;
/// How long rates are measured while there are no light spans, ns.
const PLAIN: u64 = 4 * SPAN;
/// Uses after which a thread reads the clock, and those that it counts by itself.
const TURNS: u32 = 64;
/// Waits that a thread counts by itself.
const WAITS: u32 = 8;

/// What a span is.
const IN_PLAIN: u32 = 0;
const BEFORE: u32 = 1;
const RECORDED: u32 = 2;
const AFTER: u32 = 3;

/// See above. All zero is a plain span that is over.
#[repr(C, align(64))]
pub(crate) struct Spans {
    /// 1 in a light span.
    pub(crate) is_light: AtomicU8,
    /// Set from outside, for tests: the number of times, from the start on; 0: it is chosen.
    forced: AtomicU32,
    /// What an event of the recorded span stands for; 0 as 1.
    times: AtomicU32,
    /// When the span is over, ticks; `u64::MAX` while a thread changes the plan.
    until: AtomicU64,
    counts: Counts,
    plan: Plan,
}

/// What all threads count.
#[repr(C, align(64))]
struct Counts {
    /// Uses of contended locks, up to [`TURNS`] for each thread less.
    uses: AtomicU64,
    /// Waits, up to [`WAITS`] for each thread less.
    waits: AtomicU64,
    /// The same of those that are recorded in light spans, too.
    others: AtomicU64,
    /// Time waited, ticks, of waits that are recorded; and of these, that of [`LONG`] ones.
    waited: AtomicU64,
    waited_long: AtomicU64,
}

/// Of the thread that changes the plan.
#[repr(C, align(64))]
struct Plan {
    phase: AtomicU32,
    lot: AtomicU64,
    /// When the present cycle is over, ticks.
    ends: AtomicU64,
    /// How long its recorded span is to be, ticks.
    length: AtomicU64,
    /// At the beginning of the present span: the clock, and what was counted.
    since: [AtomicU64; 3],
    waits_since: AtomicU64,
    /// Of the present cycle: what its recorded span had, and its light ones.
    recorded: [AtomicU64; 3],
    light: [AtomicU64; 3],
}

impl Spans {
    pub(crate) const fn new() -> Self {
        #[allow(clippy::declare_interior_mutable_const, reason = "to fill arrays")]
        const NONE: AtomicU64 = AtomicU64::new(0);
        Self {
            is_light: AtomicU8::new(0),
            forced: AtomicU32::new(0),
            times: AtomicU32::new(0),
            until: AtomicU64::new(0),
            counts: Counts { uses: NONE, waits: NONE, others: NONE, waited: NONE, waited_long: NONE },
            plan: Plan {
                phase: AtomicU32::new(IN_PLAIN),
                lot: NONE,
                ends: NONE,
                length: NONE,
                since: [NONE; 3],
                waits_since: NONE,
                recorded: [NONE; 3],
                light: [NONE; 3],
            },
        }
    }

    /// Another recording begins: nothing was counted.
    pub(crate) fn clear(&self) {
        self.forget();
        let Counts { uses, waits, others, waited, waited_long } = &self.counts;
        [uses, waits, others, waited, waited_long].into_iter().for_each(|count| count.store(0, Relaxed));
        self.plan.waits_since.store(0, Relaxed);
        self.plan.since.iter().for_each(|since| since.store(0, Relaxed));
    }

    /// In a forked child: it begins as every process does. Writes nothing where nothing has changed.
    pub(crate) fn forget(&self) {
        if self.until.load(Relaxed) == 0 {
            return;
        }
        self.is_light.store(0, Relaxed);
        self.times.store(0, Relaxed);
        self.plan.phase.store(IN_PLAIN, Relaxed);
        self.until.store(0, Release);
    }
}

impl Recorder {
    /// For tests: there are light spans from the start on, of `times` times the length.
    pub fn force_spans(&self, times: u32) {
        self.spans.forced.store(times.min(MOST), Relaxed);
    }

    /// Whether calls are forwarded now.
    #[inline(always)]
    pub fn is_light(&self) -> bool {
        self.spans.is_light.load(Relaxed) != 0
    }

    /// What an event stands for that begins now.
    #[inline(always)]
    pub(crate) fn times(&self) -> u32 {
        self.spans.times.load(Relaxed).max(1)
    }

    /// Counts a use of a contended lock. Whether calls are forwarded now.
    #[inline(always)]
    pub fn turn(&self) -> bool {
        let turns = &here().turns;
        turns.set(turns.get() - 1);
        self.turned()
    }

    /// The same of a use that is counted already ([`Recorder::TURNS_AT`](Self::TURNS_AT)).
    #[inline(always)]
    pub fn turned(&self) -> bool {
        if here().turns.get() <= 0 {
            self.all_turns();
        }
        self.is_light()
    }

    #[cold]
    #[inline(never)]
    fn all_turns(&self) {
        // In a new thread it is 0: it has counted none.
        let counted = if here().turns.replace(TURNS as i32) < 0 { 1 } else { TURNS };
        self.spans.counts.uses.fetch_add(counted.into(), Relaxed);
        self.advance(self.now());
    }

    /// Counts a wait that begins at `now`. Whether calls are forwarded then.
    #[inline(always)]
    pub fn turn_to_wait(&self, now: u64) -> bool {
        let waits = &here().waits;
        waits.set(waits.get().wrapping_add(1));
        if waits.get() % WAITS == 0 {
            self.spans.counts.waits.fetch_add(WAITS.into(), Relaxed);
        }
        if now >= self.spans.until.load(Relaxed) {
            self.advance(now);
        }
        self.is_light()
    }

    /// Counts a wait that is recorded in light spans, too: for a semaphore, say, or a futex.
    #[inline(always)]
    pub fn count_other(&self) {
        let others = &here().others;
        others.set(others.get().wrapping_add(1));
        if others.get() % WAITS == 0 {
            self.spans.counts.others.fetch_add(WAITS.into(), Relaxed);
        }
    }

    /// A wait of `ticks` has ended that began in no light span.
    #[inline(always)]
    pub(crate) fn count_waited(&self, ticks: u64) {
        // One in [`WAITS`] of the thread's stands for the others.
        if here().waits.get() % WAITS == 0 {
            let counts = &self.spans.counts;
            counts.waited.fetch_add(ticks, Relaxed);
            if self.ticks.ns(ticks) >= LONG {
                counts.waited_long.fetch_add(ticks, Relaxed);
            }
        }
    }

    /// Whether a release of the lock at `address` is forwarded, in a light span: the thread has noted no
    /// lock, and no waiter counts on it.
    #[inline(always)]
    pub fn passes_release(&self, address: usize) -> bool {
        !self.holds_anything() && !self.has_waiters(address)
    }

    /// Goes on to the next span, if this one is over.
    #[cold]
    #[inline(never)]
    fn advance(&self, now: u64) {
        let until = &self.spans.until;
        let before = until.load(Relaxed);
        // A signal handler that interrupts this thread here finds no time to come.
        if before == u64::MAX
            || now < before
            || !self.alive.get()
            || until.compare_exchange(before, u64::MAX, Acquire, Relaxed).is_err()
        {
            return;
        }
        let next = self.next_span(before, now);
        until.store(next, Release);
    }

    /// The span until `due` is over, at `now`; when the next one is.
    fn next_span(&self, due: u64, now: u64) -> u64 {
        let (spans, plan) = (&self.spans, &self.spans.plan);
        let counts = [now, self.ticks.ticks(raw::process_cpu_time()), spans.counts.uses.load(Relaxed)];
        let mut span = [0; 3];
        for ((part, since), count) in span.iter_mut().zip(&plan.since).zip(counts) {
            *part = count.saturating_sub(since.swap(count, Relaxed));
        }
        let phase = plan.phase.load(Relaxed);
        if due != 0 {
            self.note_span(phase, span[0]);
        }
        if !self.is_contended() {
            return self.plain(now);
        }
        let length = plan.length.load(Relaxed);
        // The process did something else meanwhile, or was stopped.
        let is_late = now.saturating_sub(due) > length;
        let add = |sums: &[AtomicU64; 3]| {
            sums.iter().zip(span).for_each(|(sum, more)| sum.store(sum.load(Relaxed) + more, Relaxed));
        };
        match phase {
            BEFORE | AFTER => add(&plan.light),
            RECORDED => add(&plan.recorded),
            _ => {}
        }
        match phase {
            _ if is_late && phase != IN_PLAIN => self.plain(now),
            BEFORE => self.enter_span(RECORDED, now + length),
            RECORDED if plan.ends.load(Relaxed) > now => self.enter_span(AFTER, plan.ends.load(Relaxed)),
            IN_PLAIN => self.begin_cycle(now, span),
            _ => {
                let of = |sums: &[AtomicU64; 3]| sums.each_ref().map(|sum| sum.load(Relaxed));
                let (recorded, light) = (of(&plan.recorded), of(&plan.light));
                self.note_cycle(recorded, light);
                let mut all = recorded;
                all.iter_mut().zip(light).for_each(|(sum, more)| *sum += more);
                self.begin_cycle(now, all)
            }
        }
    }

    fn enter_span(&self, phase: u32, until: u64) -> u64 {
        self.spans.plan.phase.store(phase, Relaxed);
        self.spans.is_light.store(u8::from(phase == BEFORE || phase == AFTER), Relaxed);
        until
    }

    /// Everything is recorded for a while.
    fn plain(&self, now: u64) -> u64 {
        self.spans.times.store(1, Relaxed);
        self.enter_span(IN_PLAIN, now + self.ticks.ticks(PLAIN))
    }

    /// A span of `ticks` is over.
    fn note_span(&self, phase: u32, ticks: u64) {
        let Some(header) = self.file.header() else { return };
        let Experiment { covered, stands_for, light, .. } = &header.experiment;
        let add = |sum: &AtomicU64, more: u64| sum.store(sum.load(Relaxed) + more, Relaxed);
        add(covered, ticks);
        match phase {
            BEFORE | AFTER => add(light, ticks),
            RECORDED => {
                // If it ended late, no thread did anything meanwhile.
                let nominal = ticks.min(self.spans.plan.length.load(Relaxed));
                add(stands_for, nominal * u64::from(self.times()) + (ticks - nominal));
            }
            _ => add(stands_for, ticks),
        }
    }

    /// A cycle begins, after the time, CPU time and uses of the last one.
    fn begin_cycle(&self, now: u64, last: [u64; 3]) -> u64 {
        let (spans, plan) = (&self.spans, &self.spans.plan);
        let times = self.choose(last);
        if times == 1 {
            return self.plain(now);
        }
        plan.recorded.iter().chain(&plan.light).for_each(|sum| sum.store(0, Relaxed));
        let lived = self.ticks.ns(now.saturating_sub(self.started()));
        let length = self.ticks.ticks((lived / PART / u64::from(times)).clamp(SHORTEST, SPAN));
        plan.length.store(length, Relaxed);
        let light = length * u64::from(times - 1);
        let lot = plan.lot.load(Relaxed) ^ now | 1;
        let lot = lot.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(29);
        plan.lot.store(lot, Relaxed);
        let before = ((u128::from(lot) * u128::from(light)) >> 64) as u64;
        spans.times.store(times, Relaxed);
        plan.ends.store(now + light + length, Relaxed);
        self.enter_span(BEFORE, now + before)
    }

    /// How many times the length of its recorded span the next cycle has.
    fn choose(&self, [_, cpu, uses]: [u64; 3]) -> u32 {
        let (counts, plan) = (&self.spans.counts, &self.spans.plan);
        let all = counts.waits.load(Relaxed);
        let waits = all.saturating_sub(plan.waits_since.swap(all, Relaxed));
        if let Some(header) = self.file.header() {
            header.experiment.uses.store(counts.uses.load(Relaxed), Relaxed);
            header.experiment.waits.store(all, Relaxed);
        }
        let forced = self.spans.forced.load(Relaxed);
        if forced != 0 {
            return forced;
        }
        let (waited, long) = (counts.waited.load(Relaxed), counts.waited_long.load(Relaxed));
        // Halved, so that what was long ago does not count.
        counts.waited.fetch_sub(waited / 2, Relaxed);
        counts.waited_long.fetch_sub(long / 2, Relaxed);
        if long > waited / 2 {
            return 1;
        }
        let cost = uses as f64 * USE_COSTS + waits as f64 * WAIT_COSTS;
        let cost = cost / self.ticks.ns(cpu).max(1) as f64;
        ((cost * SHARE) as u32).next_power_of_two().clamp(1, MOST)
    }

    /// A cycle is over: its sums and their products are added to those in the file.
    fn note_cycle(&self, recorded: [u64; 3], light: [u64; 3]) {
        let Some(header) = self.file.header() else { return };
        let Experiment { cycles, sums, products, .. } = &header.experiment;
        let mut all = [0.0; EXPERIMENT];
        for (at, number) in recorded.into_iter().chain(light).enumerate() {
            all[at] = number as f64;
        }
        let add = |sum: &AtomicU64, more: f64| {
            sum.store((f64::from_bits(sum.load(Relaxed)) + more).to_bits(), Relaxed);
        };
        let mut at = 0;
        for (row, one) in all.iter().enumerate() {
            add(&sums[row], *one);
            for other in &all[..=row] {
                add(&products[at], one * other);
                at += 1;
            }
        }
        cycles.store(cycles.load(Relaxed) + 1, Relaxed);
    }

    /// The thread has begun to record, or has prepared that, since its CPU time was `started`, ns.
    pub fn note_start(&self, started: u64) {
        let took = self.alive.add_start(raw::cpu_time().saturating_sub(started));
        if let Some(header) = self.file.header() {
            header.experiment.start.store(took, Relaxed);
        }
    }

    /// The rates that the plan goes by, and how long the process has run, are noted for readers.
    pub(crate) fn note_rates(&self) {
        if let Some(header) = self.file.header() {
            let Spans { counts, plan, until, .. } = &self.spans;
            let before = until.load(Relaxed);
            // No other thread changes the plan from now on.
            if before != 0 && until.compare_exchange(before, u64::MAX, Acquire, Relaxed).is_ok() {
                let since = plan.since[0].load(Relaxed);
                self.note_span(plan.phase.load(Relaxed), self.now().saturating_sub(since));
            }
            header.experiment.uses.store(counts.uses.load(Relaxed), Relaxed);
            header.experiment.waits.store(counts.waits.load(Relaxed), Relaxed);
            header.experiment.others.store(counts.others.load(Relaxed), Relaxed);
            let cpu = raw::process_cpu_time().saturating_sub(self.cpu_before.load(Relaxed));
            header.experiment.cpu.store(cpu, Relaxed);
        }
    }
}
