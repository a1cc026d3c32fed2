//! The constants of a machine.

use crate::{NS_PER_MS, NS_PER_US};

/// What a spin lock relies on: those of the classics, which were a kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinLocks {
    /// A holder may lose its CPU. First come, first served would wait for it, and a waiter's polls have an
    /// end.
    Preempted,
    /// Neither a holder nor a waiter loses its CPU, as in a kernel: a waiter polls for as long as it takes,
    /// and the lock may be a ticket lock.
    Kept,
}

/// Constants that depend on the machine, each with its reason in `notes/tuning.md`.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Longest spin outside the queue of spinners, ns (with two CPUs: of every thread), and for a signal or a
    /// hand-off.
    pub spin_ns: u64,
    /// Longest spin of the announced spinner where CPUs are to spare, ns: it keeps a lock with sleepers in
    /// use. Also for the head of the queue of spinners while readers hold the lock. A thread that knows
    /// nothing of the lock waits in that queue for this, or for `FIRST_WAIT_NS` a CPU if that is longer
    /// (`locks`' policy for many CPUs).
    pub primary_spin_ns: u64,
    /// Longest spin of other threads while one is announced, on any number of CPUs from two, ns; where CPUs
    /// are to spare, also for a lock that is promised to another thread.
    pub secondary_spin_ns: u64,
    /// Longest time of a writer in the queue of spinners, and as long again at its head, where CPUs are to
    /// spare, ns.
    pub queue_spin_ns: u64,
    /// How long a spinner stays away from the lock word between two looks at
    /// `Spinning::Eager`, ns.
    pub eager_gap_ns: u64,
    /// How long it does so at most where CPUs are to spare, and other threads take turns with the lock
    /// meanwhile, ns.
    pub crowded_gap_ns: u64,
    /// How long it does so at `Spinning::BackOff`, ns.
    pub back_off_gap_ns: u64,
    /// Interval of a spinner's probes whether the owner runs, ns.
    pub owner_probe_ns: u64,
    /// A waiter that is woken this long after it queued, and finds the lock taken, requests a hand-off, ns.
    pub starvation_ns: u64,
    /// The last reader leaves the lock to a preferred writer that has waited for this long, though it sleeps, ns.
    pub preferred_ns: u64,
    /// How long a starved waiter first keeps new readers out, ns, before it looks whether those inside leave:
    /// one of them may be waiting for a new one.
    pub request_ns: u64,
    /// On two CPUs, how long a waiter that backs off first leaves the lock to its owner, ns; twice as long
    /// each further time.
    pub repark_ns: u64,
    /// Where CPUs are to spare, waits are not to get much longer than this, ns: from a half of it, a woken
    /// waiter wakes others early.
    pub longest_wait_ns: u64,
    /// A thread that was woken early this long ago, ns, or longer, may be on a CPU that sleeps deeply again.
    pub deep_sleep_ns: u64,
    /// How long a reader lets a writer go first that waits awake, ns.
    pub pass_ns: u64,
    /// A starved writer keeps readers out for this long at most, ns; a request that lasts longer is ended by a
    /// waiter that probes.
    pub reader_patience_ns: u64,
    /// How long a waiter that is woken without `WAKING`, on one CPU, waits until it is woken with it, ns.
    pub unmarked_ns: u64,
    /// The time until a waiter with a timer first probes the lock by itself, ns, and then after twice as long
    /// each time: a thread that was woken before it may be stopped. `u64::MAX`: no waiter does.
    pub probe_ns: u64,
    /// The first probe comes no earlier than this with one or two CPUs, ns: a timer that ends before the
    /// kernel's next tick costs a virtual machine as much as the switch to another thread.
    pub least_probe_ns: u64,
    /// The longest time between two such probes, ns.
    pub longest_probe_ns: u64,
    /// Polls of the queue lock before its waiter sleeps.
    pub queue_polls: u32,
    /// One in this number of releases of a lock with the contended bit, and without waiters, clears the bit.
    /// Not 0.
    pub quiet_releases: u32,
    /// What spin locks rely on.
    pub spin_locks: SpinLocks,
}

// A spin also ends after twice `spin_ns` readings of the clock, in case that it stands still: more than a
// head of the queue makes in its time, which are at most two for each gap.
const _: () = assert!(
    2 * Tuning::LINUX.queue_spin_ns / Tuning::LINUX.eager_gap_ns < 2 * Tuning::LINUX.spin_ns,
    "spin_ns: more than queue_spin_ns / eager_gap_ns"
);

impl Tuning {
    /// The values for Linux; `notes/tuning.md` has the reason of each, and its measurement where there is
    /// one.
    pub const LINUX: Self = Self {
        spin_ns: 20 * NS_PER_US,
        primary_spin_ns: 50 * NS_PER_US,
        secondary_spin_ns: 4 * NS_PER_US,
        queue_spin_ns: 500 * NS_PER_US,
        eager_gap_ns: 30,
        crowded_gap_ns: 4 * NS_PER_US,
        back_off_gap_ns: 6 * NS_PER_US,
        owner_probe_ns: NS_PER_US,
        starvation_ns: 500 * NS_PER_US,
        preferred_ns: 100 * NS_PER_US,
        request_ns: 500 * NS_PER_US,
        repark_ns: 100 * NS_PER_US,
        longest_wait_ns: 4 * NS_PER_MS,
        deep_sleep_ns: 500 * NS_PER_US,
        pass_ns: 4 * NS_PER_US,
        reader_patience_ns: 100 * NS_PER_MS,
        unmarked_ns: 50 * NS_PER_MS,
        probe_ns: 2 * NS_PER_MS,
        least_probe_ns: 4 * NS_PER_MS,
        longest_probe_ns: 128 * NS_PER_MS,
        queue_polls: 100,
        // So that the barrier of the next waiter, 5 to 60 us, costs each of them a few nanoseconds at the
        // most.
        quiet_releases: 16_384,
        spin_locks: SpinLocks::Preempted,
    };
}
