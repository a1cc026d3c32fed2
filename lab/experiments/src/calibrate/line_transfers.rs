//! What it takes to get at a cache line, by where it is: chains of loads, each of which waits for the one
//! before.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use spinpark_lockbench::locks::workloads::work::Random;

use super::cpus::{Cpus, Place, pin};
use super::{CalibrateError, cost, instructions, median, quick};

/// Lines are this far apart, since CPUs fetch two of 64 bytes at a time.
const STRIDE: usize = 128;
const HUGE_PAGE: usize = 2 << 20;
/// Lines that fit into every first-level cache, and are enough to make the clock's cost small.
const FEW: usize = 128;

/// A ring of lines: each names the next one, in an order that no prefetcher guesses.
struct Ring {
    words: *mut AtomicUsize,
    layout: Layout,
    order: Vec<usize>,
}

// SAFETY: the words are atomic, and the memory is theirs until the ring is dropped.
unsafe impl Sync for Ring {}

impl Ring {
    /// `lines` lines, this number of bytes apart, in huge pages, if there are any.
    fn new(lines: usize, apart: usize) -> Self {
        let bytes = (lines * apart).next_multiple_of(HUGE_PAGE);
        let layout = Layout::from_size_align(bytes, HUGE_PAGE).expect("a multiple of its alignment");
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: advice about our own memory, which the kernel may ignore.
        unsafe { libc::madvise(memory.cast(), bytes, libc::MADV_HUGEPAGE) };
        let mut order: Vec<usize> = (0..lines).map(|line| line * apart / size_of::<usize>()).collect();
        order.shuffle(&mut SmallRng::seed_from_u64(1));
        let ring = Self { words: memory.cast(), layout, order };
        ring.write();
        ring
    }

    fn word(&self, place: usize) -> &AtomicUsize {
        debug_assert!(place * size_of::<usize>() < self.layout.size());
        // SAFETY: all places come from `order`, which lies within the memory.
        let word = unsafe { self.words.add(place) };
        // SAFETY: aligned, zeroed at first and atomic ever since, and ours as long as `self` is borrowed.
        unsafe { &*word }
    }

    /// Writes every line: its names its successor.
    fn write(&self) {
        for (number, &place) in self.order.iter().enumerate() {
            self.word(place).store(self.order[(number + 1) % self.order.len()], Ordering::Relaxed);
        }
    }

    /// Goes once around; ns for each line.
    fn time(&self, mut step: impl FnMut(&AtomicUsize) -> usize) -> f64 {
        let start = Instant::now();
        let mut place = self.order[0];
        for _ in 0..self.order.len() {
            place = step(self.word(place));
        }
        black_box(place);
        start.elapsed().as_nanos() as f64 / self.order.len() as f64
    }

    /// Takes every line out of all caches; `false` if this CPU has no instruction for that.
    fn flush(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        for &place in &self.order {
            // SAFETY: the line is ours, and SSE2 is part of x86-64.
            unsafe { std::arch::x86_64::_mm_clflush(self.word(place).as_ptr().cast()) };
        }
        std::sync::atomic::fence(Ordering::SeqCst);
        cfg!(target_arch = "x86_64")
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.words.cast(), self.layout) };
    }
}

fn load(word: &AtomicUsize) -> usize {
    word.load(Ordering::Relaxed)
}

fn add_nothing(word: &AtomicUsize) -> usize {
    word.fetch_add(0, Ordering::SeqCst)
}

/// A load from the first-level cache, ns.
pub(super) fn hit() -> f64 {
    let ring = Ring::new(FEW, STRIDE);
    let mut place = ring.order[0];
    let loads = cost(200, 2000, || place = load(ring.word(place)));
    black_box(place);
    loads
}

/// A load from the last-level cache, ns: more lines than the core's own caches hold.
pub(super) fn shared(cpus: &Cpus) -> Option<f64> {
    let ring = Ring::new(4 * cpus.own_cache / STRIDE, STRIDE);
    ring.time(load);
    let rounds: Vec<f64> = (0..8).map(|_| ring.time(load)).collect();
    quick(&rounds)
}

/// A load of a line that no cache holds, ns.
pub(super) fn dram() -> Option<f64> {
    let ring = Ring::new(4096, 16 << 10);
    let rounds: Vec<f64> = (0..20)
        .filter_map(|_| {
            let is_flushed = ring.flush();
            let time = ring.time(load);
            is_flushed.then_some(time)
        })
        .collect();
    quick(&rounds)
}

/// How much work a core does ahead while an atomic operation waits for memory, ns: what 128 steps of work
/// after each such operation add is that much less than what they take alone. At most what the operation
/// takes.
pub(super) fn window() -> Option<f64> {
    const STEPS: u32 = 128;
    let ring = Ring::new(4096, 16 << 10);
    let work = f64::from(STEPS) * instructions::step();
    let mut random = Random::new(1);
    let mut ahead = Vec::new();
    for _ in 0..20 {
        let flushed = |step: &mut dyn FnMut(&AtomicUsize) -> usize| ring.flush().then(|| ring.time(step));
        let (Some(alone), Some(both)) = (
            flushed(&mut add_nothing),
            flushed(&mut |word| {
                let next = add_nothing(word);
                random.work(STEPS);
                next
            }),
        ) else {
            return None;
        };
        ahead.push((alone + work - both).clamp(0.0, alone));
    }
    median(&ahead)
}

/// A load of a line that `other` has changed, ns.
pub(super) fn changed(cpus: &Cpus, other: Option<Place>) -> Result<Option<f64>, CalibrateError> {
    transfer(cpus, other, load)
}

/// An atomic operation on a line that `other` has changed, ns.
pub(super) fn changed_rmw(cpus: &Cpus, other: Option<Place>) -> Result<Option<f64>, CalibrateError> {
    transfer(cpus, other, add_nothing)
}

/// `other` writes all lines, then we go around; many times.
fn transfer(
    cpus: &Cpus,
    other: Option<Place>,
    step: fn(&AtomicUsize) -> usize,
) -> Result<Option<f64>, CalibrateError> {
    const ROUNDS: usize = 400;
    let Some(other) = other else { return Ok(None) };
    let ring = Ring::new(FEW, STRIDE);
    // Even: theirs to write; odd: ours to read.
    let turn = AtomicUsize::new(0);
    let until = |number: usize| {
        while turn.load(Ordering::Acquire) != number {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let is_bound = pin(other.cpu);
            for round in 0..ROUNDS {
                until(2 * round);
                ring.write();
                turn.store(2 * round + 1, Ordering::Release);
            }
            is_bound
        });
        let is_bound = pin(cpus.main().cpu);
        let mut rounds = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            until(2 * round + 1);
            rounds.push(ring.time(step));
            turn.store(2 * round + 2, Ordering::Release);
        }
        writer.join().unwrap_or(Ok(())).and(is_bound)?;
        Ok(quick(&rounds))
    })
}

/// What a thread pays for its caches when it moves to `other`, ns: a pass over 32 KB that it wrote before it
/// moved, less the second pass.
pub(super) fn migrate(cpus: &Cpus, other: Option<Place>) -> Result<Option<f64>, CalibrateError> {
    const WORDS: usize = (32 << 10) / 8;
    let Some(other) = other else { return Ok(None) };
    let mut words = vec![0_u64; WORDS];
    let mut extra = Vec::new();
    for round in 0..100 {
        pin(cpus.main().cpu)?;
        words.iter_mut().for_each(|word| *word = round);
        pin(other.cpu)?;
        let pass = || {
            let start = Instant::now();
            black_box(black_box(&words).iter().copied().fold(0_u64, u64::wrapping_add));
            start.elapsed().as_nanos() as f64
        };
        let first = pass();
        extra.push(first - pass());
    }
    Ok(quick(&extra).map(|extra| extra.max(0.0)))
}
