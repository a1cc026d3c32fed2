//! CPUs: how many this process may use, and whether a lock's owner is on one.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spinpark_platform::{Deadline, OnCpu};

use crate::sandbox::is_confined;
use crate::syscall::call6;

/// How many CPUs the process could use when it was first asked; 0: not asked yet.
static COUNT: AtomicU32 = AtomicU32::new(0);

pub(crate) fn count() -> u32 {
    match COUNT.load(Relaxed) {
        0 => ask_count(),
        count => count,
    }
}

/// Asks how many CPUs there are. Once, from [`start`](crate::start).
pub(crate) fn start() {
    ask_count();
}

const WORDS: usize = 128; // 8,192 CPUs, the most that Linux can be built for

/// The CPUs that `thread` may use (0: the calling one); none if a sandbox forbids the question.
fn affinity(thread: u32) -> [u64; WORDS] {
    let mut mask = [0_u64; WORDS];
    if is_confined() {
        return mask;
    }
    let arguments = [thread as usize, mem::size_of_val(&mask), ptr::addr_of_mut!(mask) as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most the given number of bytes to `mask`.
    unsafe { call6(libc::SYS_sched_getaffinity, arguments) };
    mask
}

/// The CPUs of the first thread and of the calling one: a program that binds each thread to a CPU of its own has many, one
/// that was started on a single CPU has one.
#[cold]
#[inline(never)]
fn ask_count() -> u32 {
    let both = affinity(0).into_iter().zip(affinity(crate::raw::process_id()));
    // A sandbox may forbid the question: then spin, as on almost every machine.
    let count = match both.map(|(mine, first)| (mine | first).count_ones()).sum() {
        0 => 2,
        count => count,
    };
    COUNT.store(count, Relaxed);
    count
}

/// The only CPU that the calling thread may use, from 1 on; [`ANY`] if it may use several, or that is not known.
#[cold]
#[inline(never)]
pub(crate) fn ask_place() -> u32 {
    let mask = affinity(0);
    if mask.iter().map(|word| word.count_ones()).sum::<u32>() != 1 {
        return ANY;
    }
    let found = mask.iter().enumerate().find(|(_, word)| **word != 0);
    found.map_or(ANY, |(index, word)| index as u32 * u64::BITS + word.trailing_zeros() + 1)
}

/// No single CPU.
pub(crate) const ANY: u32 = u32::MAX;

/// Whether the thread `owner` has used any CPU time since the last question.
///
/// The clock of another thread of the process stands still while that thread is off the CPU. It costs 0.1 to 0.2 µs,
/// which a spinner that waits anyway can spare. A sandbox may forbid it, and `owner` may be a thread of another
/// process (a parent's, from before a fork): then nothing is known.
pub(crate) fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
    if is_confined() {
        return OnCpu::Unknown;
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
