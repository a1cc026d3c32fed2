//! Everything that is measured: its name, how, and in which unit.

use std::time::Duration;

use super::cpus::Cpus;
use super::{CalibrateError, instructions, line_transfers, system_calls, two_threads};

/// Something that is measured. All but three are times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Clock rate, GHz.
    Ghz,
    /// A load from the first-level cache.
    Hit,
    /// An atomic addition to an owned line.
    Rmw,
    /// A load from the last-level cache.
    Shared,
    /// A load of a line that a core behind the same last-level cache has changed.
    Near,
    /// An atomic operation on such a line.
    NearRmw,
    /// A load of a line changed behind another last-level cache of the socket.
    Socket,
    /// A load of a line changed in another socket.
    Hop,
    /// A load of a line that no cache holds.
    Dram,
    /// A spin hint.
    Pause,
    /// A step of the work that loads of `bench locks` do.
    Work,
    /// How much of that a core does ahead, while an atomic operation waits for memory.
    Window,
    /// A full fence.
    Fence,
    /// Speed beside a busy sibling, as a part of the full speed.
    Smt,
    /// A system call.
    SystemCall,
    /// A wake without sleepers.
    FutexWake,
    /// Waiting for a value that is another one already.
    FutexWait,
    /// The waker's part, sleeper on the same CPU.
    WakeSame,
    /// The waker's part, sleeper on another, idle CPU.
    WakeOther,
    /// Until a thread runs whose CPU is idle since 20 µs.
    Runs20us,
    /// Until a thread runs whose CPU is idle since 200 µs.
    Runs200us,
    /// Until a thread runs whose CPU is idle since 2 ms.
    Runs2ms,
    /// Until a thread runs whose CPU is idle since 20 ms.
    Runs20ms,
    /// A turn of two threads on one CPU: a wake-up, a wait, a switch.
    HandOver,
    /// Reading the clock.
    Clock,
    /// Reading another thread's CPU time.
    CpuClock,
    /// `membarrier`, the other thread asleep.
    MembarrierAsleep,
    /// `membarrier`, the other thread running.
    MembarrierRunning,
    /// What an interrupt takes a CPU.
    Interrupt,
    /// How late a thread runs again after a timeout of 50 µs.
    Lateness,
    /// What a move to another core of the same last-level cache costs, or the nearest there is.
    MigrateCore,
    /// What a move to another socket costs.
    MigrateSocket,
    /// How long one of two busy threads runs.
    Slice,
    /// The part of woken threads that preempt at once.
    Preempts,
}

/// How long a CPU was idle, for the measures that ask for that.
pub(super) const IDLE: [(Measure, Duration); 4] = [
    (Measure::Runs20us, Duration::from_micros(20)),
    (Measure::Runs200us, Duration::from_micros(200)),
    (Measure::Runs2ms, Duration::from_millis(2)),
    (Measure::Runs20ms, Duration::from_millis(20)),
];

impl Measure {
    /// All, in the order in which they are measured.
    pub const ALL: &[Self] = &[
        Self::Ghz,
        Self::Hit,
        Self::Rmw,
        Self::Shared,
        Self::Near,
        Self::NearRmw,
        Self::Socket,
        Self::Hop,
        Self::Dram,
        Self::Pause,
        Self::Work,
        Self::Window,
        Self::Fence,
        Self::Smt,
        Self::SystemCall,
        Self::FutexWake,
        Self::FutexWait,
        Self::WakeSame,
        Self::WakeOther,
        Self::Runs20us,
        Self::Runs200us,
        Self::Runs2ms,
        Self::Runs20ms,
        Self::HandOver,
        Self::Clock,
        Self::CpuClock,
        Self::MembarrierAsleep,
        Self::MembarrierRunning,
        Self::Interrupt,
        Self::Lateness,
        Self::MigrateCore,
        Self::MigrateSocket,
        Self::Slice,
        Self::Preempts,
    ];

    /// How it is measured.
    #[must_use]
    pub fn how(self) -> &'static str {
        match self {
            Self::Ghz => "multiplications that wait for each other, 3 cycles each",
            Self::Hit => "chain of loads over 128 lines",
            Self::Rmw => "atomic additions to one word",
            Self::Shared => "chain of loads over four times the core's own cache",
            Self::Near => "chain of loads over 128 lines that the other core has just written",
            Self::NearRmw => "chain of atomic operations on 128 lines that the other core has just written",
            Self::Socket => "chain of loads over 128 lines just written behind another last-level cache",
            Self::Hop => "chain of loads over 128 lines just written in another socket",
            Self::Dram => "chain of loads over 4,096 lines that were flushed",
            Self::Pause => "spin hints in a loop",
            Self::Work => "steps of a random number generator (xorshift)",
            Self::Window => {
                "chain of atomic operations on flushed lines with 128 steps of `work` after each, less what both take alone"
            }
            Self::Fence => "stores with a full fence, less stores",
            Self::Smt => "arithmetic beside a busy sibling, in relation to alone",
            Self::SystemCall => "getppid",
            Self::FutexWake => "FUTEX_WAKE without sleepers",
            Self::FutexWait => "FUTEX_WAIT for another value",
            Self::WakeSame => "FUTEX_WAKE of a SCHED_BATCH thread on the same CPU, in turns",
            Self::WakeOther => "FUTEX_WAKE of a thread on another CPU, idle for 20 µs",
            Self::Runs20us => "FUTEX_WAKE until the thread runs, its CPU idle for 20 µs",
            Self::Runs200us => "FUTEX_WAKE until the thread runs, its CPU idle for 200 µs",
            Self::Runs2ms => "FUTEX_WAKE until the thread runs, its CPU idle for 2 ms",
            Self::Runs20ms => "FUTEX_WAKE until the thread runs, its CPU idle for 20 ms",
            Self::HandOver => "FUTEX_WAKE and FUTEX_WAIT in turns, two SCHED_BATCH threads on one CPU",
            Self::Clock => "clock_gettime",
            Self::CpuClock => "clock_gettime of another thread's CPU clock, which runs elsewhere",
            Self::MembarrierAsleep => "private expedited membarrier, the other thread asleep",
            Self::MembarrierRunning => "private expedited membarrier, the other thread running",
            Self::Interrupt => "gaps in a busy thread's clock readings when it is interrupted by membarrier",
            Self::Lateness => "FUTEX_WAIT with a timeout of 50 µs, how late",
            Self::MigrateCore => "a pass over 32 KB after a move to another core, less a second pass",
            Self::MigrateSocket => "a pass over 32 KB after a move to another socket, less a second pass",
            Self::Slice => "runs of two busy threads on one CPU, by gaps in their clock readings",
            Self::Preempts => "wake-ups on one CPU after which the woken thread runs within 200 µs",
        }
    }

    /// Measures it once. `None` if this machine cannot tell.
    pub(super) fn take(self, cpus: &Cpus) -> Result<Option<f64>, CalibrateError> {
        match self {
            Self::Ghz => instructions::ghz(cpus),
            Self::Hit => line_transfers::hit(cpus),
            Self::Rmw => instructions::rmw(cpus),
            Self::Shared => line_transfers::shared(cpus),
            Self::Near => line_transfers::changed(cpus, cpus.near()),
            Self::NearRmw => line_transfers::changed_rmw(cpus, cpus.near()),
            Self::Socket => line_transfers::changed(cpus, cpus.same_socket()),
            Self::Hop => line_transfers::changed(cpus, cpus.other_socket()),
            Self::Dram => line_transfers::dram(cpus),
            Self::Pause => instructions::pause(cpus),
            Self::Work => instructions::work_step(cpus),
            Self::Window => line_transfers::window(cpus),
            Self::Fence => instructions::full_fence(cpus),
            Self::Smt => instructions::smt(cpus),
            Self::SystemCall => system_calls::system_call(cpus),
            Self::FutexWake => system_calls::futex_wake(cpus),
            Self::FutexWait => system_calls::futex_wait(cpus),
            Self::WakeSame => two_threads::wake(cpus),
            Self::WakeOther => two_threads::other_cpu(cpus),
            Self::Runs20us | Self::Runs200us | Self::Runs2ms | Self::Runs20ms => {
                let idle =
                    IDLE.iter().find(|(measure, _)| *measure == self).map_or(Duration::ZERO, |it| it.1);
                two_threads::until_it_runs(cpus, idle)
            }
            Self::HandOver => two_threads::hand_over(cpus),
            Self::Clock => system_calls::clock(cpus),
            Self::CpuClock => system_calls::cpu_clock(cpus),
            Self::MembarrierAsleep => system_calls::membarrier_asleep(cpus),
            Self::MembarrierRunning => system_calls::membarrier_running(cpus),
            Self::Interrupt => system_calls::interrupt(cpus),
            Self::Lateness => system_calls::lateness(cpus),
            Self::MigrateCore => line_transfers::migrate(cpus, cpus.other()),
            Self::MigrateSocket => line_transfers::migrate(cpus, cpus.other_socket()),
            Self::Slice => two_threads::slice(cpus),
            Self::Preempts => two_threads::preempts(cpus),
        }
    }
}
