//! Small programs that compute: chains of sums, products and quotients; primes, arrays, matrices, roots,
//! series, sorting; strings and memory.

use std::hint::black_box;

use rand::RngExt;

use super::Context;
use crate::workloads::job::{JobError, expect};

/// Steps of a chain.
pub(super) const STEPS: u32 = 200_000;

/// Steps from a start, each of which needs the one before, and what must come out.
macro_rules! chain {
    ($type:ty, $start:expr, |$x:ident| $step:expr, $end:expr) => {
        |_| {
            let mut $x: $type = black_box($start);
            for _ in 0..STEPS {
                $x = black_box($step);
            }
            let end: $type = $end;
            expect($x == end, || format!("{} steps end with {}, not {end}", STEPS, $x))
        }
    };
}
pub(super) use chain;

/// The primes below 100,000.
pub(super) fn sieve(_: &mut Context) -> Result<(), JobError> {
    const BELOW: usize = 100_000;
    let mut is_composite = vec![false; BELOW];
    let mut primes = 0;
    for number in 2..BELOW {
        if !is_composite[number] {
            primes += 1;
            (number * number..BELOW).step_by(number).for_each(|multiple| is_composite[multiple] = true);
        }
    }
    expect(primes == 9592, || format!("{primes} primes below {BELOW}"))
}

/// Arrays of three dimensions: filled, transposed, summed.
pub(super) fn arrays(_: &mut Context) -> Result<(), JobError> {
    const SIDE: usize = 32;
    let mut cube = vec![[[0_u32; SIDE]; SIDE]; SIDE];
    for (x, plane) in cube.iter_mut().enumerate() {
        for (y, row) in plane.iter_mut().enumerate() {
            row.iter_mut().enumerate().for_each(|(z, cell)| *cell = (x * SIDE * SIDE + y * SIDE + z) as u32);
        }
    }
    for plane in &mut cube {
        for y in 1..SIDE {
            let (above, below) = plane.split_at_mut(y);
            above.iter_mut().zip(&mut below[0]).for_each(|(row, cell)| std::mem::swap(&mut row[y], cell));
        }
    }
    let sum: u64 = black_box(&cube).iter().flatten().flatten().map(|&cell| u64::from(cell)).sum();
    let all = (SIDE * SIDE * SIDE) as u64;
    let is_transposed = cube[1][2][3] == (SIDE * SIDE + 3 * SIDE + 2) as u32;
    expect(sum == all * (all - 1) / 2 && is_transposed, || format!("a transposed cube sums up to {sum}"))
}

/// A matrix times a matrix that turns its rows by one.
pub(super) fn matrices(context: &mut Context) -> Result<(), JobError> {
    const SIDE: usize = 64;
    let values: Vec<[f64; SIDE]> =
        (0..SIDE).map(|_| [(); SIDE].map(|()| f64::from(context.rng.random::<i16>()))).collect();
    let turn: Vec<[f64; SIDE]> = (0..SIDE)
        .map(|row| std::array::from_fn(|column| f64::from(u8::from((row + 1) % SIDE == column))))
        .collect();
    let mut product = vec![[0.0; SIDE]; SIDE];
    for (row, target) in product.iter_mut().enumerate() {
        for (column, cell) in target.iter_mut().enumerate() {
            *cell = black_box(&turn)[row]
                .iter()
                .zip(&values)
                .map(|(factor, values)| factor * values[column])
                .sum();
        }
    }
    let is_turned = (0..SIDE).all(|row| product[row] == values[(row + 1) % SIDE]);
    expect(is_turned, || String::from("a matrix times a permutation is another one"))
}

/// Square roots by Newton's method.
pub(super) fn newton(_: &mut Context) -> Result<(), JobError> {
    let mut worst = 0.0_f64;
    for number in 1..10_000 {
        let square = f64::from(number);
        let mut root = black_box(square);
        while (root * root - square).abs() > square * 1e-12 {
            root = f64::midpoint(root, square / root);
        }
        worst = worst.max((root / square.sqrt() - 1.0).abs());
    }
    expect(worst < 1e-11, || format!("a root is wrong by {worst:e}"))
}

/// Numbers as text and back, and greatest common divisors.
pub(super) fn numbers(_: &mut Context) -> Result<(), JobError> {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    for number in 1..5_000_u64 {
        let text = format!("{number}");
        let read: u64 = text.parse().unwrap_or_default();
        let common = gcd(black_box(read) * 35, 21 * read);
        expect(common == 7 * number, || format!("the common divisor of {read} × 35 and × 21 is {common}"))?;
    }
    Ok(())
}

/// The sum of 1/n².
pub(super) fn series(_: &mut Context) -> Result<(), JobError> {
    const TERMS: u32 = 200_000;
    let sum: f64 = (1..=TERMS).rev().map(|n| 1.0 / f64::from(black_box(n)).powi(2)).sum();
    // What is left out is 1/n − 1/2n² + …
    let rest = 1.0 / f64::from(TERMS);
    let limit = std::f64::consts::PI.powi(2) / 6.0;
    expect((sum + rest - limit).abs() < 1e-9, || format!("the sum of 1/n² is {sum}"))
}

/// Angles there and back.
pub(super) fn trigonometry(_: &mut Context) -> Result<(), JobError> {
    let mut worst = 0.0_f64;
    for step in 0..10_000 {
        let angle = f64::from(black_box(step)) * 1e-4;
        let (sine, cosine) = angle.sin_cos();
        worst = worst.max((sine.atan2(cosine) - angle).abs());
        worst = worst.max((sine * sine + cosine * cosine - 1.0).abs());
    }
    expect(worst < 1e-12, || format!("an angle is wrong by {worst:e}"))
}

/// Ten arrays sorted.
pub(super) fn sorts(context: &mut Context) -> Result<(), JobError> {
    for _ in 0..10 {
        let mut numbers: Vec<u32> = (0..2_000).map(|_| context.rng.random()).collect();
        let sum = |numbers: &[u32]| numbers.iter().map(|&number| u64::from(number)).sum::<u64>();
        let before = sum(&numbers);
        numbers.sort_unstable();
        let is_right = black_box(&numbers).is_sorted() && sum(&numbers) == before;
        expect(is_right, || String::from("an array is not sorted"))?;
    }
    Ok(())
}

/// A thousand times out of 50 calls at once. (Rust has no `longjmp`: an error goes up through all of them.)
pub(super) fn jumps(_: &mut Context) -> Result<(), JobError> {
    #[inline(never)]
    fn down(depth: u32) -> Result<(), u32> {
        match black_box(depth) {
            0 => Err(depth),
            _ => down(depth - 1).map_err(|depth| depth + 1),
        }
    }
    for _ in 0..1000 {
        let depth = down(50);
        expect(depth == Err(50), || format!("{depth:?} after 50 calls"))?;
    }
    Ok(())
}

/// Strings built, searched, reversed, compared.
pub(super) fn strings(_: &mut Context) -> Result<(), JobError> {
    for round in 0..200_usize {
        let mut text = String::new();
        for word in ["spin", "queue", "sleep", "contend"].into_iter().cycle().take(40) {
            text.push_str(word);
            text.push(' ');
        }
        text.push_str("over");
        let found = black_box(&text).find("over");
        let words = text.split(' ').count();
        let reversed: String = text.chars().rev().collect();
        let back: String = black_box(reversed).chars().rev().collect();
        let is_right = found == Some(text.len() - 4) && words == 41 && back == text;
        expect(is_right, || format!("round {round}: {words} words, the end at {found:?}"))?;
    }
    Ok(())
}

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
pub(super) fn memory_copies(context: &mut Context) -> Result<(), JobError> {
    let mut from = vec![0_u8; 1 << 20];
    context.rng.fill(&mut from[..4096]);
    let mut to = vec![1_u8; from.len()];
    for _ in 0..10 {
        to.copy_from_slice(black_box(&from));
        from.copy_from_slice(black_box(&to));
    }
    expect(from == to, || String::from("a copy differs"))
}
