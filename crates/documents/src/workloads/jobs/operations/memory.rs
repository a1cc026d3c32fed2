//! Memory allocated, filled, moved, copied, compared.

use std::hint::black_box;

use rand::RngExt;

use super::Context;
use crate::workloads::job::{JobError, expect};

/// 30,000 pieces of memory, of which up to 100 live at a time.
pub(super) fn allocations(context: &mut Context) -> Result<(), JobError> {
    const ALIVE: usize = 100;
    let mut alive: Vec<Vec<u8>> = Vec::with_capacity(ALIVE);
    for number in 0..30_000_usize {
        let size = context.rng.random_range(1..2048);
        let mut piece = Vec::with_capacity(size);
        piece.push(number as u8);
        if alive.len() < ALIVE {
            alive.push(black_box(piece));
            continue;
        }
        let old = std::mem::replace(&mut alive[number % ALIVE], black_box(piece));
        let expected = (number - ALIVE) as u8;
        expect(old == [expected], || format!("{old:?} in memory where {expected} was written"))?;
    }
    Ok(())
}

/// Blocks filled, moved and compared.
pub(super) fn blocks(_: &mut Context) -> Result<(), JobError> {
    let mut block = vec![0_u8; 64 << 10];
    let half = block.len() / 2;
    for round in 1..=50_u8 {
        block[..half].fill(round);
        black_box(&mut block).copy_within(..half, half);
        let (first, second) = block.split_at(half);
        expect(first == second && second[half - 1] == round, || format!("round {round}: blocks differ"))?;
    }
    Ok(())
}

/// A megabyte copied back and forth.
pub(super) fn copies(context: &mut Context) -> Result<(), JobError> {
    let mut from = vec![0_u8; 1 << 20];
    context.rng.fill(&mut from[..4096]);
    let mut to = vec![1_u8; from.len()];
    for _ in 0..10 {
        to.copy_from_slice(black_box(&from));
        from.copy_from_slice(black_box(&to));
    }
    expect(from == to, || String::from("a copy differs"))
}
