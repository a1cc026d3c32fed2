//! How a thread waits: the trait [`Adaptive`], answered from its [`SpinStats`](spinpark_locks::SpinStats).
//!
//! They are functions of this crate, not methods of the generic platform, so that they are compiled once.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use spinpark_locks::{Adaptive, Awake, Note, Spin, Spinning, Timing, TransferCost, Tries};
use spinpark_platform::{Clock, SpinLine, SpinPolicy, SpinnerSlots, Tuning};

use crate::memory::{LinuxWith, LockPadding};
use crate::thread::spin_stats;
use crate::{clock, cpu, futex, policy, raw, rseq, sandbox, slack, thread, unwoken};

fn now() -> u64 {
    clock::now(Clock::Monotonic)
}

#[inline(never)] // for the drop-in's size
pub(crate) fn spin_for(span: u64) {
    let end = now().saturating_add(span);
    // Reading the clock takes more than 1 ns: the bound is for a clock that was stopped.
    for _ in 0..span {
        if now() >= end {
            break;
        }
        core::hint::spin_loop();
    }
}

#[inline(never)] // for the drop-in's size
fn can_spin(kind: Spin) -> bool {
    // A real-time thread may have the very CPU that the other one needs: it spins only while it can probe
    // whether that one runs.
    cpu::count() > 1 && (kind == Spin::Lock || !policy::is_realtime()) && spin_stats().spins_pay(kind)
}

/// What it costs to move a lock between the CPUs of this process: [`TransferCost`]'s bits.
static TRANSFER: AtomicU64 = AtomicU64::new(0);

/// An update may be lost, or undo another thread's: the least of many samples is not affected.
fn transfer<R>(act: impl FnOnce(&mut TransferCost) -> R) -> R {
    let bits = TRANSFER.load(Relaxed);
    let mut cost = TransferCost::from_bits(bits);
    let answer = act(&mut cost);
    // All threads share the line, so only a new value is written.
    if cost.to_bits() != bits {
        TRANSFER.store(cost.to_bits(), Relaxed);
    }
    answer
}

#[inline(never)] // for the drop-in's size
fn transfer_ns() -> u64 {
    transfer(TransferCost::ask)
}

#[inline(never)] // for the drop-in's size
fn spinning(lock: usize) -> Spinning {
    spin_stats().spinning(lock, transfer_ns())
}

#[inline(never)]
fn moved(clock: u64) {
    if spin_stats().wants_sample(TransferCost::from_bits(TRANSFER.load(Relaxed))) {
        let at = now();
        let took = now().saturating_sub(at);
        transfer(|cost| cost.took(at.saturating_sub(clock), took));
    }
}

fn acquired(lock: usize, set_contended: bool) {
    spin_stats().acquired(lock, set_contended, now());
}

#[inline(never)] // for the drop-in's size
fn returns_soon(lock: usize) -> bool {
    spin_stats().returns_soon(lock, transfer_ns())
}

fn sleeps(lock: usize) {
    if let Some(word) = spin_stats().unwoken_elsewhere(lock).and_then(unwoken::take) {
        futex::wake(word, 1);
    }
}

fn released(lock: usize) {
    spin_stats().released(lock, now);
}

fn returns(lock: usize) {
    spin_stats().returns_to(lock, now);
}

/// On one CPU the barrier interrupts no other CPU, so fewer releases without a waiter clear the contended
/// bit.
const QUIET_ALONE: u32 = 32;

fn ends_contended(lock: usize) -> bool {
    if cpu::is_only_one() {
        return spin_stats().ends_contended(lock, QUIET_ALONE, || true);
    }
    spin_stats().ends_contended(lock, Tuning::LINUX.quiet_releases, rseq::count_wait)
}

/// All zero in a new thread.
#[repr(C)]
struct Timers {
    /// The tick at which the kernel was last asked.
    asked: u64,
    are_coarse: bool,
}

crate::thread_block!(fn timers() -> *mut Timers = "spinpark_0_1_timers");

/// The kernel is asked at most once a tick of its clock (1 to 10 ms): otherwise each wait would cost a system
/// call, which a short spin does not need. In a sandbox that was announced, it was asked before that, and the
/// drop-in has seen what the program has set.
#[inline(never)] // for the drop-in's size
fn has_fine_timers() -> bool {
    if sandbox::is_confined() {
        return !slack::are_coarse();
    }
    let tick = clock::tick();
    // SAFETY: the block belongs to this thread. A handler in between asks as well, and gets the same answer.
    let timers = unsafe { &mut *timers() };
    if core::mem::replace(&mut timers.asked, tick) != tick {
        timers.are_coarse = slack::note(raw::timer_slack());
    }
    !timers.are_coarse
}

#[inline(never)] // for the drop-in's size
fn has_passed_woken() -> bool {
    // A real-time thread keeps no lock for a thread of a lower priority.
    spin_stats().has_passed_for_long(now) && !policy::is_realtime()
}

// ---- what spinners queue in
//
// 80 KiB of zeros, of which the kernel provides the pages that are touched. Each copy of this crate in a
// process has its own: a library's locks are spun for by the library's own code.

type Line = SpinLine<AtomicU32>;

/// Of 20 locks that are contended at the same time, two share a queue with a probability of a half.
const QUEUES: usize = 256;
/// A thread has one, and each queue keeps one that its last spinner has left.
const SLOTS: usize = SpinnerSlots::<AtomicU32>::MOST_SLOTS;

static QUEUE: [Line; QUEUES] = [const { line() }; QUEUES];
static SLOT: [Line; SLOTS] = [const { line() }; SLOTS];

const fn line() -> Line {
    SpinLine { word: AtomicU32::new(0), about: AtomicU32::new(0), before: AtomicU32::new(0) }
}

/// What the spinners queue in of the lock at `lock`.
fn spinner_slots(lock: usize) -> SpinnerSlots<'static, AtomicU32> {
    // Locks lie 16 bytes apart at least. A Fibonacci hash: its upper bits depend on all of the address'.
    let hash = ((lock >> 4) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (upper, name) = ((hash >> 56) as usize, (hash >> 24) as u32);
    SpinnerSlots { queue: &QUEUE[upper % QUEUES], slots: &SLOT, name: name | 1 }
}

// ---- the traits

impl<R: LockPadding> SpinPolicy for LinuxWith<R> {
    #[inline(always)]
    fn spin_hint() -> u32 {
        core::hint::spin_loop();
        1
    }

    fn spin_for(span: u64) {
        spin_for(span);
    }

    fn with_spinner_slots<A>(lock: usize, act: impl FnOnce(SpinnerSlots<'_, AtomicU32>) -> A) -> Option<A> {
        Some(act(spinner_slots(lock)))
    }

    fn cpus() -> u32 {
        cpu::count()
    }

    fn wakes_unmarked() -> bool {
        cpu::is_only_one() && thread::wakes_one_more()
    }

    fn only_cpu() -> Option<u32> {
        Some(cpu::only_cpu()).filter(|&place| place != cpu::ANY)
    }
    fn has_fine_timers() -> bool {
        has_fine_timers()
    }
}

impl<R: LockPadding> Adaptive for LinuxWith<R> {
    fn can_spin(kind: Spin) -> bool {
        can_spin(kind)
    }

    // Inlined: each caller's note is a constant.
    #[inline(always)]
    fn notes(lock: usize, note: Note) {
        match note {
            Note::Waits => thread::waits_for(lock),
            Note::Returns => returns(lock),
            Note::PassesWaiters => thread::reads_on(),
            Note::Tried(found) => spin_stats().tried(found),
            Note::Moved { clock } => moved(clock),
            Note::Spun(kind, paid) => spin_stats().spun(kind, paid),
            Note::Acquired { set_contended } => acquired(lock, set_contended),
            Note::Released => released(lock),
            Note::ReleasesToWait => spin_stats().releases_to_wait(lock),
            Note::Sleeps => sleeps(lock),
        }
    }

    fn spinning(lock: usize) -> Spinning {
        spinning(lock)
    }

    fn awake(lock: usize) -> Awake {
        spin_stats().awake(lock)
    }

    #[inline(always)]
    fn reads_first() -> bool {
        thread::reads_first()
    }

    #[inline(always)]
    fn tries() -> Tries {
        spin_stats().tries()
    }

    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        spin_stats().wants_time(lock, queued)
    }

    fn returns_soon(lock: usize) -> bool {
        returns_soon(lock)
    }

    fn waits_next(lock: usize) -> bool {
        spin_stats().waits_next(lock)
    }

    fn has_passed_woken() -> bool {
        has_passed_woken()
    }

    fn ends_contended(lock: usize) -> bool {
        ends_contended(lock)
    }
}
