//! Everything that is measured: its name, how, and in which unit.

use std::time::Duration;

use super::cpus::{Cpus, pin};
use super::{CalibrateError, instructions, line_transfers, system_calls, two_threads};

macro_rules! measures {
    ($cpus:ident: $($(#[doc = $doc:literal])+ $name:ident: $how:literal, $take:expr;)*) => {
        /// Something that is measured. All but three are times in ns.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Measure {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Measure {
            /// All, in the order in which they are measured.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// How it is measured.
            #[must_use]
            pub fn how(self) -> &'static str {
                match self {
                    $(Self::$name => $how,)*
                }
            }

            /// Measures it once, on the main CPU unless it says otherwise. `None` if this machine cannot
            /// tell.
            pub(super) fn take(self, $cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
                pin($cpus.main().cpu)?;
                match self {
                    $(Self::$name => $take,)*
                }
            }
        }
    };
}

measures! { cpus:
    /// Clock rate, GHz.
    Ghz: "multiplications that wait for each other, 3 cycles each", Ok(instructions::ghz());
    /// A load from the first-level cache.
    Hit: "chain of loads over 128 lines", Ok(Some(line_transfers::hit()));
    /// An atomic addition to an owned line.
    Rmw: "atomic additions to one word", Ok(Some(instructions::rmw()));
    /// A load from the last-level cache.
    Shared: "chain of loads over four times the core's own cache", Ok(line_transfers::shared(cpus));
    /// A load of a line that a core behind the same last-level cache has changed.
    Near: "chain of loads over 128 lines that the other core has just written", line_transfers::changed(cpus, cpus.near());
    /// An atomic operation on such a line.
    NearRmw: "chain of atomic operations on 128 lines that the other core has just written", line_transfers::changed_rmw(cpus, cpus.near());
    /// A load of a line changed behind another last-level cache of the socket.
    Socket: "chain of loads over 128 lines just written behind another last-level cache", line_transfers::changed(cpus, cpus.same_socket());
    /// A load of a line changed in another socket.
    Hop: "chain of loads over 128 lines just written in another socket", line_transfers::changed(cpus, cpus.other_socket());
    /// A load of a line that no cache holds.
    Dram: "chain of loads over 4,096 lines that were flushed", Ok(line_transfers::dram());
    /// A spin hint.
    Pause: "spin hints in a loop", Ok(Some(instructions::pause()));
    /// A step of the work that loads of `bench locks` do.
    Work: "steps of a random number generator (xorshift)", Ok(Some(instructions::step()));
    /// How much of that a core does ahead, while an atomic operation waits for memory.
    Window: "chain of atomic operations on flushed lines with 128 steps of `work` after each, less what both take alone", Ok(line_transfers::window());
    /// A full fence.
    Fence: "stores with a full fence, less stores", Ok(Some(instructions::full_fence()));
    /// Speed beside a busy sibling, as a part of the full speed.
    Smt: "arithmetic beside a busy sibling, in relation to alone", Ok(instructions::smt(cpus));
    /// A system call.
    SystemCall: "getppid", Ok(Some(system_calls::system_call()));
    /// A wake without sleepers.
    FutexWake: "FUTEX_WAKE without sleepers", Ok(Some(system_calls::futex_wake()));
    /// Waiting for a value that is another one already.
    FutexWait: "FUTEX_WAIT for another value", Ok(Some(system_calls::futex_wait()));
    /// The waker's part, sleeper on the same CPU.
    WakeSame: "FUTEX_WAKE of a SCHED_BATCH thread on the same CPU, in turns", two_threads::wake(cpus);
    /// The waker's part, sleeper on another, idle CPU.
    WakeOther: "FUTEX_WAKE of a thread on another CPU, idle for 20 µs", two_threads::other_cpu(cpus);
    /// Until a thread runs whose CPU is idle since 20 µs.
    Runs20us: "FUTEX_WAKE until the thread runs, its CPU idle for 20 µs", two_threads::until_it_runs(cpus, Duration::from_micros(20));
    /// Until a thread runs whose CPU is idle since 200 µs.
    Runs200us: "FUTEX_WAKE until the thread runs, its CPU idle for 200 µs", two_threads::until_it_runs(cpus, Duration::from_micros(200));
    /// Until a thread runs whose CPU is idle since 2 ms.
    Runs2ms: "FUTEX_WAKE until the thread runs, its CPU idle for 2 ms", two_threads::until_it_runs(cpus, Duration::from_millis(2));
    /// Until a thread runs whose CPU is idle since 20 ms.
    Runs20ms: "FUTEX_WAKE until the thread runs, its CPU idle for 20 ms", two_threads::until_it_runs(cpus, Duration::from_millis(20));
    /// A turn of two threads on one CPU: a wake-up, a wait, a switch.
    HandOver: "FUTEX_WAKE and FUTEX_WAIT in turns, two SCHED_BATCH threads on one CPU", two_threads::hand_over(cpus);
    /// Reading the clock.
    Clock: "clock_gettime", Ok(Some(system_calls::clock()));
    /// Reading another thread's CPU time.
    CpuClock: "clock_gettime of another thread's CPU clock, which runs elsewhere", Ok(system_calls::cpu_clock(cpus));
    /// `membarrier`, the other thread asleep.
    MembarrierAsleep: "private expedited membarrier, the other thread asleep", Ok(system_calls::membarrier(cpus).asleep);
    /// `membarrier`, the other thread running.
    MembarrierRunning: "private expedited membarrier, the other thread running", Ok(system_calls::membarrier(cpus).running);
    /// What an interrupt takes a CPU.
    Interrupt: "gaps in a busy thread's clock readings when it is interrupted by membarrier", Ok(system_calls::membarrier(cpus).interrupt);
    /// How late a thread runs again after a timeout of 50 µs.
    Lateness: "FUTEX_WAIT with a timeout of 50 µs, how late", Ok(system_calls::lateness());
    /// What a move to another core of the same last-level cache costs, or the nearest there is.
    MigrateCore: "a pass over 32 KB after a move to another core, less a second pass", line_transfers::migrate(cpus, cpus.other());
    /// What a move to another socket costs.
    MigrateSocket: "a pass over 32 KB after a move to another socket, less a second pass", line_transfers::migrate(cpus, cpus.other_socket());
    /// How long one of two busy threads runs.
    Slice: "runs of two busy threads on one CPU, by gaps in their clock readings", two_threads::slice(cpus);
    /// The part of woken threads that preempt at once.
    Preempts: "wake-ups on one CPU after which the woken thread runs within 200 µs", two_threads::preempts(cpus);
}

/// How long a CPU was idle, for the measures that ask for that.
pub(super) const IDLE: [(Measure, Duration); 4] = [
    (Measure::Runs20us, Duration::from_micros(20)),
    (Measure::Runs200us, Duration::from_micros(200)),
    (Measure::Runs2ms, Duration::from_millis(2)),
    (Measure::Runs20ms, Duration::from_millis(20)),
];
