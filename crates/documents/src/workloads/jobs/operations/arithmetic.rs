//! Sums, products and quotients of five types, in chains: each step needs the one before.

use std::hint::black_box;

use super::Context;
use crate::workloads::job::{JobError, expect};

/// Steps of a chain.
const STEPS: u32 = 200_000;

/// An operation on a type: `STEPS` steps from a start, and what must come out.
macro_rules! chain {
    ($name:ident, $type:ty, $start:expr, |$x:ident| $step:expr, $end:expr) => {
        pub(super) fn $name(_: &mut Context) -> Result<(), JobError> {
            let mut $x: $type = black_box($start);
            for _ in 0..STEPS {
                $x = black_box($step);
            }
            let end: $type = $end;
            expect($x == end, || format!("{} steps end with {}, not {end}", STEPS, $x))
        }
    };
}

// Every number is exact in its type, so the end is known.
chain!(add_double, f64, 0.0, |x| x + 1.5 - 0.5, f64::from(STEPS));
chain!(add_float, f32, 0.0, |x| x + 1.5 - 0.5, STEPS as f32);
chain!(add_long, i64, 0, |x| x + 7 - 3, i64::from(STEPS) * 4);
chain!(add_int, i32, 0, |x| x + 7 - 3, STEPS as i32 * 4);
chain!(add_short, i16, 0, |x| x.wrapping_add(7).wrapping_sub(3), (STEPS * 4) as i16);

chain!(mul_double, f64, 3.0, |x| x * 8.0 * 0.125, 3.0);
chain!(mul_float, f32, 3.0, |x| x * 8.0 * 0.125, 3.0);
chain!(mul_long, i64, 1, |x| x.wrapping_mul(3), 3i64.wrapping_pow(STEPS));
chain!(mul_int, i32, 1, |x| x.wrapping_mul(3), 3i32.wrapping_pow(STEPS));
chain!(mul_short, i16, 1, |x| x.wrapping_mul(3), 3i16.wrapping_pow(STEPS));

chain!(div_double, f64, 3.0, |x| x / 8.0 / 0.125, 3.0);
chain!(div_float, f32, 3.0, |x| x / 8.0 / 0.125, 3.0);
chain!(div_long, i64, 1_000, |x| x * 12 / black_box(12), 1_000);
chain!(div_int, i32, 1_000, |x| x * 12 / black_box(12), 1_000);
chain!(div_short, i16, 1_000, |x| x * 12 / black_box(12), 1_000);
