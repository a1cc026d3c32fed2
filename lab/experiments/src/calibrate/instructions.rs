//! What single instructions take.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use spinpark_lockbench::locks::workloads::work::Random;

use super::cpus::{Cpus, pin};
use super::{Spread, cost};

const BATCHES: usize = 200;

/// Clock rate in GHz: a multiplication that waits for the one before takes 3 cycles on x86-64 CPUs since
/// 2008, the `or` before it one. (The factor is another one each time: by a constant one compilers multiply
/// once, by its power.)
pub(super) fn ghz() -> Option<f64> {
    const CYCLES: f64 = 3.0 + 1.0;
    const IN_A_ROW: usize = 16;
    let mut value = black_box(0x9E37_79B9_7F4A_7C15_u64);
    let row = cost(BATCHES, 500, || {
        for _ in 0..IN_A_ROW {
            value = value.wrapping_mul(value | 1);
        }
    });
    black_box(value);
    cfg!(target_arch = "x86_64").then(|| CYCLES * IN_A_ROW as f64 / row)
}

/// An atomic addition to a line that the core owns, ns.
pub(super) fn rmw() -> f64 {
    let word = AtomicU64::new(0);
    cost(BATCHES, 1000, || {
        black_box(&word).fetch_add(1, Ordering::SeqCst);
    })
}

/// A spin hint, ns.
pub(super) fn pause() -> f64 {
    cost(BATCHES, 1000, spin_loop)
}

/// A step of the work that loads of `bench locks` do, ns.
pub(super) fn step() -> f64 {
    const STEPS: u32 = 1000;
    let mut random = Random::new(1);
    cost(BATCHES, 1, || random.work(STEPS)) / f64::from(STEPS)
}

/// A full fence after a store, less the store, ns.
pub(super) fn full_fence() -> f64 {
    let word = AtomicU64::new(0);
    let store = || black_box(&word).store(1, Ordering::Relaxed);
    let stores = cost(BATCHES, 1000, store);
    let both = cost(BATCHES, 1000, || {
        store();
        fence(Ordering::SeqCst);
    });
    both - stores
}

/// How much a hardware thread computes while its sibling computes too, as a part of what it computes alone.
pub(super) fn smt(cpus: &Cpus) -> Option<f64> {
    let sibling = cpus.sibling()?;
    let alone = speed();
    let is_over = AtomicBool::new(false);
    let both = thread::scope(|scope| {
        scope.spawn(|| {
            let is_bound = pin(sibling.cpu).is_ok();
            while is_bound && !is_over.load(Ordering::Relaxed) {
                black_box(work());
            }
        });
        // Until the sibling is at work.
        thread::sleep(Duration::from_millis(5));
        let both = speed();
        is_over.store(true, Ordering::Relaxed);
        both
    });
    Some((both / alone).min(1.0))
}

/// Pieces of work per ns, at the best quarter of several tries.
fn speed() -> f64 {
    let tries = (0..50).map(|_| {
        let start = Instant::now();
        black_box(work());
        1.0 / start.elapsed().as_nanos().max(1) as f64
    });
    Spread::of(&tries.collect::<Vec<_>>()).map_or(1.0, |spread| spread.upper)
}

/// Several independent chains of arithmetic, as ordinary code has.
fn work() -> [u64; 4] {
    let mut chains = black_box([1_u64, 2, 3, 4]);
    for round in 0..20_000_u64 {
        for chain in &mut chains {
            *chain = (*chain ^ round).wrapping_add(*chain >> 7);
        }
    }
    chains
}
