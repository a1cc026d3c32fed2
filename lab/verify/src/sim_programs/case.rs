//! A run that is to be checked: everything in it comes from one number.

use std::fmt;

use spinpark_platform::Tuning;
use spinpark_sim::machine::{DeepIdle, Machine};
use spinpark_sim::{Chaos, Order, Tuned};

/// With which constants the locks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constants {
    Linux,
    Hasty,
    Spinning,
    Short,
}

/// Those of Linux, but no waiter looks at the lock by itself: that would make good for a wake-up that was
/// lost, and may pass a thread that was promised the lock. (`tests/it/stopped.rs` and the C programs
/// `not_running` are about looks.)
#[derive(Debug)]
pub(crate) enum Usual {}

impl Tuned for Usual {
    const TUNING: Tuning = Tuning { probe_ns: u64::MAX, ..Tuning::LINUX };
}

/// Threads do not spin, nor leave the lock to its owner; a waiter that has lost once requests the lock; a
/// reader joins others soon; slots are used at once; signals do what they like with their waiters.
#[derive(Debug)]
pub(crate) enum Hasty {}

impl Tuned for Hasty {
    const TUNING: Tuning = Tuning {
        spin_ns: 0,
        primary_spin_ns: 0,
        secondary_spin_ns: 0,
        queue_spin_ns: 0,
        eager_gap_ns: 1,
        crowded_gap_ns: 8,
        back_off_gap_ns: 1,
        starvation_ns: 0,
        preferred_ns: 0,
        request_ns: 10_000,
        repark_ns: 0,
        longest_wait_ns: 4_000,
        deep_sleep_ns: 1_000,
        pass_ns: 0,
        reader_patience_ns: 20_000,
        probe_ns: u64::MAX,
        queue_polls: 0,
        quiet_releases: 2,
        ..Tuning::LINUX
    };
    const READS_PER_CPU: u32 = 0;
    const GUESSES: bool = true;
}

/// Spins go on for long, and look all the time.
#[derive(Debug)]
pub(crate) enum Spinning {}

impl Tuned for Spinning {
    const TUNING: Tuning = Tuning {
        spin_ns: 100_000,
        primary_spin_ns: 200_000,
        secondary_spin_ns: 50_000,
        queue_spin_ns: 200_000,
        eager_gap_ns: 20,
        back_off_gap_ns: 20,
        starvation_ns: 100_000,
        request_ns: 400_000,
        reader_patience_ns: 1_000_000,
        probe_ns: u64::MAX,
        ..Tuning::LINUX
    };
    const READS_PER_CPU: u32 = 4;
}

/// All times are short; signals do what they like with their waiters.
#[derive(Debug)]
pub(crate) enum Short {}

impl Tuned for Short {
    const TUNING: Tuning = Tuning {
        spin_ns: 1_000,
        primary_spin_ns: 2_000,
        secondary_spin_ns: 500,
        queue_spin_ns: 2_000,
        owner_probe_ns: 100,
        starvation_ns: 10_000,
        preferred_ns: 2_000,
        request_ns: 20_000,
        repark_ns: 1_000,
        longest_wait_ns: 40_000,
        deep_sleep_ns: 5_000,
        reader_patience_ns: 50_000,
        probe_ns: u64::MAX,
        queue_polls: 2,
        quiet_releases: 3,
        ..Tuning::LINUX
    };
    const READS_PER_CPU: u32 = 1;
    const GUESSES: bool = true;
}

impl Constants {
    const ALL: [Self; 4] = [Self::Linux, Self::Hasty, Self::Spinning, Self::Short];
}

/// Does something with the constants as a type.
macro_rules! tuned {
    ($constants:expr, $tuned:ident => $body:expr) => {
        match $constants {
            $crate::sim_programs::case::Constants::Linux => {
                type $tuned = $crate::sim_programs::case::Usual;
                $body
            }
            $crate::sim_programs::case::Constants::Hasty => {
                type $tuned = $crate::sim_programs::case::Hasty;
                $body
            }
            $crate::sim_programs::case::Constants::Spinning => {
                type $tuned = $crate::sim_programs::case::Spinning;
                $body
            }
            $crate::sim_programs::case::Constants::Short => {
                type $tuned = $crate::sim_programs::case::Short;
                $body
            }
        }
    };
}
pub(crate) use tuned;

/// Does something with one of the policies as a type, drawn for the program.
macro_rules! with_a_policy {
    ($program:expr, $policy:ident => $body:expr) => {{
        let names = ["at random", "Park", "Few", "Many", "chosen: "];
        let drawn = $program.random(names.len() + $crate::policies::Drawn::KINDS - 1);
        let choice = drawn.checked_sub(names.len() - 1).map(|kind| $crate::policies::Drawn::draw(kind));
        $program.about(format!(
            "policy: {}{}",
            names[drawn.min(names.len() - 1)],
            choice.unwrap_or_default()
        ));
        match drawn {
            0 => {
                type $policy = $crate::policies::By<$crate::policies::Simulated>;
                $body
            }
            1 => {
                type $policy = spinpark_locks::Park;
                $body
            }
            2 => {
                type $policy = spinpark_locks::Few;
                $body
            }
            3 => {
                type $policy = spinpark_locks::Many;
                $body
            }
            _ => {
                type $policy = spinpark_locks::Chosen<$crate::policies::Drawn>;
                $body
            }
        }
    }};
}
pub(crate) use with_a_policy;

const _: () = assert!(Usual::TUNING.spin_ns > Short::TUNING.spin_ns, "short is short");

/// How large a run may be: a smaller one is easier to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most threads.
    pub threads: u32,
    /// The most rounds of each.
    pub rounds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threads: 64, rounds: 12 }
    }
}

/// What a seed stands for, besides the program itself.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) threads: u32,
    pub(crate) rounds: u32,
    pub(crate) machine: Machine,
    pub(crate) constants: Constants,
    pub(crate) chaos: Chaos,
    pub(crate) without_steps: bool,
    /// Threads have real-time priorities, at random at each wait where constants guess: then nothing bounds a
    /// wait.
    pub(crate) realtime: bool,
    /// For the program.
    pub(crate) rng: fastrand::Rng,
}

impl Case {
    pub(crate) fn draw(seed: u64, limits: Limits) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let many = rng.u32(0..24) == 0;
        let (threads, rounds) =
            if many { (rng.u32(8..=64), rng.u32(1..=2)) } else { (rng.u32(2..=6), rng.u32(1..=12)) };
        let threads = threads.min(limits.threads).max(2);
        let rounds = rounds.min(limits.rounds).max(1);
        let machine = machine(&mut rng, threads);
        let constants = Constants::ALL[rng.usize(0..Constants::ALL.len())];
        let mut chaos = chaos(&mut rng, threads * rounds);
        if chaos != Chaos::default() {
            chaos.buffered = [0.0, 0.1, 0.5, 0.9][fastrand::Rng::with_seed(seed ^ 0xb0ff).usize(0..4)];
        }
        let without_steps = rng.u32(0..5) == 0;
        let realtime = seed.is_multiple_of(3);
        Self { seed, threads, rounds, machine, constants, chaos, without_steps, realtime, rng }
    }
}

fn machine(rng: &mut fastrand::Rng, threads: u32) -> Machine {
    let cpus = match rng.u32(0..8) {
        0 => 1,
        1 => 2,
        2 => rng.u32(2..=8),
        _ => threads,
    };
    let mut machine = Machine::plain(cpus);
    if rng.bool() && cpus > 1 {
        machine.shape.sockets = 2;
        machine.shape.cores = cpus.div_ceil(2);
        machine.shape.hops = vec![vec![0, 1], vec![1, 0]];
    }
    if rng.u32(0..4) == 0 {
        machine.shape.threads = 2;
        machine.shape.cores = machine.shape.cores.div_ceil(2);
    }
    if rng.bool() {
        // Switches and wakes in no time, and short slices: more of them happen in a short run.
        machine.kernel.wake_ns = 10.0;
        machine.kernel.switch_ns = 10.0;
        machine.kernel.idle_exit_ns = 10.0;
        machine.kernel.timer_slack_ns = 10.0;
        machine.scheduler.latency_ns = 20_000.0;
        machine.scheduler.min_slice_ns = 5_000.0;
        machine.scheduler.tick_ns = 0.0;
        machine.scheduler.balance_ns = 20_000.0;
    }
    if rng.u32(0..4) == 0 {
        machine.kernel.deep_idle = Some(DeepIdle { after_ns: 5_000.0, exit_ns: 50_000.0 });
    }
    machine.scheduler.preempts_kernel = rng.bool();
    machine
}

fn chaos(rng: &mut fastrand::Rng, size: u32) -> Chaos {
    let kind = rng.u32(0..8);
    if kind == 0 {
        return Chaos::default();
    }
    let often = |rng: &mut fastrand::Rng, most: f64| if rng.bool() { rng.f64() * most } else { 0.0 };
    let order = if kind < 4 { Order::Rank } else { Order::Time };
    // A critical section with its waits takes about this many steps.
    let steps = 40 * size;
    Chaos {
        order,
        steps_between_changes: [steps, steps / 8, 10][rng.usize(0..3)].max(2),
        delay: often(rng, 0.1),
        delay_ns: [200.0, 3_000.0, 100_000.0][rng.usize(0..3)],
        preempt: often(rng, 0.02),
        spurious: often(rng, 0.2),
        interrupt: often(rng, 0.2),
        late: often(rng, 0.5),
        wrong_oracle: often(rng, 0.5),
        abort: often(rng, 0.3),
        weak: often(rng, 0.2),
        buffered: 0.0, // drawn by itself, so that a seed's program is the one that it was without store buffers
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = &self.machine.shape;
        let cpus = shape.sockets * shape.caches * shape.cores * shape.threads;
        let steps = if self.without_steps { ", no restartable steps" } else { "" };
        writeln!(
            f,
            "{} threads, {} rounds, {cpus} CPUs, {:?} constants{steps}",
            self.threads, self.rounds, self.constants
        )?;
        write!(f, "{:?}", self.chaos)
    }
}
