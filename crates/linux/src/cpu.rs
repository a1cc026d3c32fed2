//! CPUs: how many this process may use, and whether a lock's owner is on one.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use spinpark_platform::{Clock, Deadline, OnCpu, Owners, NS_PER_SEC};

use crate::clock::now;
use crate::memory::{LinuxWith, LockPadding};
use crate::quota;
use crate::raw::call6;
use crate::sandbox::is_confined;
use crate::single::is_alone;

/// How many CPUs the process can use: those that it may run on, at most its quota; 0: not asked yet.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// How many it may run on, as found at the start.
static ALLOWED: AtomicU32 = AtomicU32::new(0);
/// Its quota, in CPUs.
static QUOTA: AtomicU32 = AtomicU32::new(u32::MAX);
/// How many the last check found.
static SEEN: AtomicU32 = AtomicU32::new(0);
/// The process' first thread, whose CPUs count as those of the process.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// When to check again, on the monotonic clock.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// How many bits the kernel's masks of CPUs have.
static KERNELS: AtomicU32 = AtomicU32::new(WORDS as u32 * u64::BITS);
/// Counts the checks.
static AFFINITY_VERSION: AtomicU32 = AtomicU32::new(1);

/// The CPUs of threads whose CPUs are not those of the first one.
static BOUND: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

const INTERVAL_NS: u64 = NS_PER_SEC;

pub(crate) fn count() -> u32 {
    match COUNT.load(Relaxed) {
        0 => ask_count(),
        count => count,
    }
}

/// Whether the process has been started on one CPU, and has not got more since. Not with a quota of one: its
/// threads may run side by side.
pub(crate) fn is_only_one() -> bool {
    count() == 1 && ALLOWED.load(Relaxed) == 1
}

/// Asks how many CPUs there are, and what the quota is. Once, from [`start`](crate::start).
pub(crate) fn start() {
    if ask_count() > 1 {
        QUOTA.store(quota::cpus(), Relaxed);
        publish(ALLOWED.load(Relaxed));
        NEXT.store(now(Clock::Monotonic).saturating_add(INTERVAL_NS), Relaxed);
    }
}

/// For tests: as on a machine with `count` CPUs from now on.
#[doc(hidden)]
pub fn pretend(count: u32) {
    NEXT.store(u64::MAX, Relaxed);
    ALLOWED.store(count, Relaxed);
    COUNT.store(count, Relaxed);
}

fn publish(allowed: u32) {
    COUNT.store(allowed.min(QUOTA.load(Relaxed)), Relaxed);
}

/// In a forked child: its first thread is the one that survived.
pub(crate) fn in_forked_child(thread: u32) {
    FIRST.store(thread, Relaxed);
}

/// A number that changes when a thread should ask again which CPUs it may use.
pub(crate) fn affinity_version() -> u32 {
    AFFINITY_VERSION.load(Relaxed)
}

/// Checks again how many CPUs there are, at most once in [`INTERVAL_NS`]. Called by a thread that is about to
/// sleep, and holds no queue lock.
#[cold]
#[inline(never)]
pub(crate) fn recheck() {
    let (now, first) = (now(Clock::Monotonic), FIRST.load(Relaxed));
    // The first thread has nothing to compare itself with. Two threads may run this at a time.
    if now < NEXT.load(Relaxed) || is_confined() || crate::thread::token() == first {
        return;
    }
    NEXT.store(now.saturating_add(INTERVAL_NS), Relaxed);
    AFFINITY_VERSION.fetch_add(1, Relaxed);
    let (mine, first) = (affinity(0), affinity(first));
    let found = if mine == first {
        ones(&mine, &first)
    } else {
        bound_to_any(&mine, &first).max(ALLOWED.load(Relaxed))
    };
    if mine == first {
        BOUND.iter().for_each(|word| word.store(0, Relaxed));
    }
    // Two threads with the same binding would mislead: a smaller number counts if it is found twice in a row.
    if found != 0 && (SEEN.swap(found, Relaxed) == found || found > COUNT.load(Relaxed)) {
        publish(found);
    }
}

/// Counts the CPUs of threads that are bound one by one: those of these two and of all that were found so
/// before. Other threads may have more.
#[inline(never)]
fn bound_to_any(one: &Mask, other: &Mask) -> u32 {
    let both = one.iter().zip(other).map(|(one, other)| one | other);
    BOUND.iter().zip(both).map(|(word, both)| (word.fetch_or(both, Relaxed) | both).count_ones()).sum()
}

/// How many bits are set in either.
#[inline(never)] // for the drop-in's size
fn ones(one: &Mask, other: &Mask) -> u32 {
    one.iter().zip(other).map(|(one, other)| (one | other).count_ones()).sum()
}

type Mask = [u64; WORDS];
const WORDS: usize = 128; // 8,192 CPUs, the most that Linux can be built for

/// The CPUs that `thread` may use (0: the calling one); none if a sandbox forbids the question.
#[inline(never)]
fn affinity(thread: u32) -> Mask {
    let mut mask = [0_u64; WORDS];
    if is_confined() {
        return mask;
    }
    let arguments = [thread as usize, mem::size_of_val(&mask), ptr::addr_of_mut!(mask) as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most the given number of bytes to `mask`.
    let bytes = unsafe { call6(libc::SYS_sched_getaffinity, arguments) };
    if bytes > 0 {
        KERNELS.store(bytes as u32 * 8, Relaxed);
    }
    mask
}

/// At least as many CPUs as the kernel counts, used or not: the number of bits of its masks.
pub(crate) fn most() -> u32 {
    KERNELS.load(Relaxed)
}

/// The CPUs of the first thread and of the calling one: a program that binds each thread to a CPU of its own
/// has many, one that was started on a single CPU has one.
#[cold]
#[inline(never)]
fn ask_count() -> u32 {
    let first = crate::raw::process_id();
    FIRST.store(first, Relaxed);
    // A sandbox may forbid the question: then assume several CPUs, which almost every machine has.
    let count = match ones(&affinity(0), &affinity(first)) {
        0 => 2,
        count => count,
    };
    ALLOWED.store(count, Relaxed);
    publish(count);
    COUNT.load(Relaxed)
}

// ---- which CPU the calling thread is bound to: it asks as it goes to sleep, and not with a lock held

/// The only CPU that the calling thread could use when it last slept, from 1 on; [`ANY`] if several, or
/// if it has not slept since it first wanted to know.
pub(crate) fn only_cpu() -> u32 {
    let place = crate::thread::place();
    if place.affinity_version == 0 {
        place.affinity_version = WANTED;
        place.cpu = ANY;
    }
    place.cpu
}

/// In `affinity_version`: the next sleep asks.
const WANTED: u32 = u32::MAX;

/// Asks, before the calling thread sleeps, the questions that must not be asked with a lock held.
#[inline(never)] // for the drop-in's size
pub(crate) fn before_sleep() {
    /// One sleep in 16 reads the clock.
    const FEW: u32 = 16;
    let place = crate::thread::place();
    place.sleeps = place.sleeps.wrapping_add(1);
    if place.sleeps % FEW == 0 {
        recheck();
    }
    let version = affinity_version();
    if place.affinity_version != 0 && place.affinity_version != version && !is_alone() {
        place.affinity_version = version;
        place.cpu = ask_place();
    }
}

/// The only CPU that the calling thread may use, from 1 on; [`ANY`] if it may use several, or that is not
/// known.
#[cold]
#[inline(never)]
fn ask_place() -> u32 {
    let mask = affinity(0);
    if ones(&mask, &mask) != 1 {
        return ANY;
    }
    let found = mask.iter().enumerate().find(|(_, word)| **word != 0);
    found.map_or(ANY, |(index, word)| index as u32 * u64::BITS + word.trailing_zeros() + 1)
}

/// Several CPUs, or not known.
pub(crate) const ANY: u32 = u32::MAX;

/// Whether the thread `owner` has used any CPU time since the last probe.
///
/// The clock of another thread of the process stands still while that thread is off the CPU. It costs 0.1 to
/// 0.2 µs, which a spinner that waits anyway can spare. A sandbox may forbid it, and `owner` may be a thread
/// of another process (a parent's, from before a fork): then nothing is known. `owner` is 0 if readers hold
/// the lock.
#[inline(never)] // for the drop-in's size
pub(crate) fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
    if owner == 0 || is_confined() || is_alone() {
        // A real-time thread would keep its CPU from lower-priority owners for as long as it spins.
        return if crate::policy::is_realtime() { OnCpu::Off } else { OnCpu::Unknown };
    }
    // MAKE_THREAD_CPUCLOCK(owner, CPUCLOCK_SCHED) of the kernel's posix-timers.h.
    let clock = (!owner << 3 | 6) as i32;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [clock as usize, ptr::addr_of_mut!(time) as usize, 0, 0, 0, 0];
    // SAFETY: `time` is a live timespec that the kernel writes; a clock that does not exist is an error.
    if unsafe { call6(libc::SYS_clock_gettime, arguments) } != 0 {
        return OnCpu::Unknown;
    }
    // 0 stands for "not asked yet", so a thread that has not run at all counts as having run for 1 ns.
    let used = Deadline::from_timespec(spinpark_platform::Clock::Monotonic, time.tv_sec, time.tv_nsec as u32)
        .at
        .max(1);
    match mem::replace(sample, used) {
        0 => OnCpu::Unknown,
        before if before == used => OnCpu::Off,
        _ => OnCpu::Running,
    }
}

/// Whether `thread`, of this process, is known to have ended.
#[inline(never)] // for the drop-in's size
pub(crate) fn has_ended(thread: u32) -> bool {
    thread != 0 && !is_confined() && crate::raw::has_ended(thread)
}

impl<R: LockPadding> Owners for LinuxWith<R> {
    fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
        owner_on_cpu(owner, sample)
    }

    fn has_ended(thread: u32) -> bool {
        has_ended(thread)
    }
}
