//! What the profiler costs: each detail against no profiler, in interleaved rounds.
//!
//! ```console
//! $ cargo run -p spinpark-testkit --example profiler_cost -- [ROUNDS] [MILLISECONDS]
//! ```
//!
//! A round runs every arm once, in an order that changes; a ratio is the median over rounds of cost with ÷ cost without in
//! the same round, with a 95 % interval by bootstrap over rounds. `again` is no profiler once more: how far two equal arms
//! differ is the least effect that can be seen.

use std::path::Path;

use spinpark_testkit::{Arm, Run, compile_c};

const ARMS: [&str; 6] = ["none", "again", "off", "contended", "sampled", "full"];
const RESAMPLES: usize = 5_000;

/// xorshift64*: the same order in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }
}

fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 { numbers[middle] } else { f64::midpoint(numbers[middle - 1], numbers[middle]) }
}

/// The median and its 95 % interval.
fn estimate(ratios: &[f64], random: &mut Random) -> [f64; 3] {
    let resample = |random: &mut Random| {
        let mut sample: Vec<f64> = ratios.iter().map(|_| ratios[random.below(ratios.len())]).collect();
        median(&mut sample)
    };
    let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| resample(random)).collect();
    medians.sort_by(f64::total_cmp);
    [median(&mut ratios.to_vec()), medians[RESAMPLES / 40], medians[RESAMPLES - RESAMPLES / 40]]
}

fn measure(program: &Path, what: &str, milliseconds: &str, locks: Arm, arm: &str) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let run = Run::new(program).args([what, milliseconds]).arm(locks);
    let is_profiled = !matches!(arm, "none" | "again");
    let run = if is_profiled { run.profiled(directory.path(), arm) } else { run };
    run.succeed().stdout_text().trim().parse().expect("a number")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.first().map_or(20, |rounds| rounds.parse().expect("ROUNDS is a number"));
    let milliseconds = arguments.get(1).map_or("200", String::as_str);
    let program = compile_c("profile/cost.c", &[]);
    let mut random = Random(1);
    for locks in Arm::BOTH {
        for what in ["pair", "contended"] {
            let mut costs = [const { Vec::new() }; ARMS.len()];
            for _ in 0..rounds {
                let mut order: Vec<usize> = (0..ARMS.len()).collect();
                for at in (1..order.len()).rev() {
                    order.swap(at, random.below(at + 1));
                }
                for arm in order {
                    let number = measure(&program, what, milliseconds, locks, ARMS[arm]);
                    // Throughput as a cost: time per pair.
                    costs[arm].push(if what == "pair" { number } else { 1e9 / number });
                }
            }
            println!("{locks}, {what}: {:.1} ns", median(&mut costs[0].clone()));
            for (arm, name) in ARMS.iter().enumerate().skip(1) {
                let ratios: Vec<f64> =
                    costs[arm].iter().zip(&costs[0]).map(|(with, without)| with / without).collect();
                let [ratio, low, high] = estimate(&ratios, &mut random);
                println!("  {name:<10} {ratio:6.3}  [{low:.3}, {high:.3}]");
            }
        }
    }
}
