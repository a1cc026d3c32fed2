//! The platform seam on Linux: futexes, clocks, thread identity, fork. The only crate with system calls.
//!
//! `no_std`, no allocation, no thread-local destructors, and `errno` is never touched (system calls are made directly),
//! so that all of it may run inside intercepted pthread calls, before `main` and in destructors.
#![no_std]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("spinpark runs on 64-bit Linux; elsewhere use `parking_lot`, whose method names are the same");

mod barriers;
mod block;
mod clock;
mod cpu;
mod environment;
mod futex;
mod generation;
mod memory;
mod observer;
mod pacing;
mod permanent;
mod policy;
mod quota;
pub mod raw;
mod reads;
mod rseq;
mod sandbox;
mod single;
mod sleep;
mod slots;
mod symbol;
mod syscall;
mod thread;
mod tools;
mod vdso;

use core::marker::PhantomData;
use core::sync::atomic::{self, AtomicBool, AtomicU32, Ordering::Relaxed};

use spinpark_platform::{
    Clock, ClosingCost, Deadline, Event, OnCpu, Pace, Platform, SlotLeft, Spin, Tuning, Wait, WakeOp,
};

pub use clock::start as start_clock;
pub use environment::{is_off, is_on, variable};
pub use memory::Cell;
pub use observer::{observe, Observer};
pub use permanent::initialise;
use reads::Reads;
pub use rseq::stop as stop_sequences;
pub use sandbox::before_filter;
pub use sleep::{sleep_by, Sleep};
pub use symbol::{lookup, lookup_version, Library, Scope};
pub use thread::{call, known_token, set_call, take_over_fork_handler, thread_id, CANCELLABLE, QUEUED};
pub use tools::race_detector;

/// This machine: Linux, with everything private to the process.
pub type Linux = LinuxWith<()>;

/// [`Linux`], with locks that leave room for fields of an interface.
pub struct LinuxWith<R>(PhantomData<R>);

/// What an interface keeps in the locks: see [`Platform::Room`] and [`Platform::Gap`].
pub trait Rooms: Send + Sync + 'static {
    /// Behind the lock word.
    type Room: Default + Send + Sync;
    /// Before the head of the queue.
    type Gap: Default + Send + Sync;
}

impl Rooms for () {
    type Room = ();
    type Gap = ();
}

/// See [`Platform::reads_before_slots`].
const READS_PER_CPU: u32 = 128;
/// The process' [`ClosingCost`].
static CLOSING: AtomicU32 = AtomicU32::new(0);

/// What the last line of a process says whose lock holds no value of ours.
const OVERWRITTEN: &[u8] = b"spinpark: A lock was overwritten: freed, or locked by glibc's own functions \
(RTLD_DEEPBIND, dlsym). Set SPINPARK_DISABLE=1.\n";

impl<R: Rooms> Platform for LinuxWith<R> {
    type AtomicU32 = atomic::AtomicU32;
    type AtomicPtr<T> = atomic::AtomicPtr<T>;
    type Cell<T> = Cell<T>;
    type Room = R::Room;
    type Gap = R::Gap;

    const TUNING: Tuning = Tuning::LINUX;

    fn futex_wait(word: &atomic::AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
        futex::wait(word, expected, deadline)
    }

    fn futex_wait_for(word: &atomic::AtomicU32, expected: u32, span: u64) -> Wait {
        futex::wait_for(word, expected, span)
    }

    #[inline(never)]
    fn sleep_or(sleep: &dyn Fn() -> Wait, leave: &dyn Fn()) -> Wait {
        sleep::sleep(sleep, leave)
    }

    fn queues() {
        set_call(call() | QUEUED);
        let _ = barriers::are_few();
    }

    fn futex_wake(key: *const atomic::AtomicU32, count: u32) -> u32 {
        futex::wake(key, count)
    }

    fn futex_requeue(
        from: &atomic::AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const atomic::AtomicU32,
        moved: u32,
    ) -> Option<u32> {
        futex::requeue(from, expected, wake, to, moved)
    }

    fn futex_wake_op(
        first: *const atomic::AtomicU32,
        wake: u32,
        second: &atomic::AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32> {
        futex::wake_op(first, wake, second, op, wake_second)
    }

    #[inline(always)]
    fn release_unless<const MASK: u32>(
        guard: &atomic::AtomicU32,
        word: &atomic::AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool {
        rseq::release_unless::<MASK>(guard, word, likely)
    }

    fn heavy_fence() {
        rseq::heavy_fence();
    }

    fn now(clock: Clock) -> u64 {
        clock::now(clock)
    }

    #[inline(always)]
    fn spin_hint() -> u32 {
        core::hint::spin_loop();
        1
    }

    fn spin_for(span: u64) {
        pacing::spin_for(span);
    }

    fn cpus() -> u32 {
        cpu::count()
    }

    fn only_cpu() -> Option<u32> {
        Some(thread::place()).filter(|&place| place != cpu::ANY)
    }

    fn can_spin(kind: Spin) -> bool {
        pacing::can_spin(kind)
    }

    fn spun(kind: Spin, paid: bool) {
        pacing::spun(kind, paid);
    }

    fn pace(lock: usize) -> Pace {
        pacing::pace(lock)
    }

    fn wants_time(lock: usize, queued: bool) -> bool {
        pacing::wants_time(lock, queued)
    }

    fn turn_begins(lock: usize, marked: bool) {
        pacing::turn_begins(lock, marked);
    }

    fn returns_soon(lock: usize) -> bool {
        pacing::returns_soon(lock)
    }

    fn waits_next(lock: usize) -> bool {
        pacing::waits_next(lock)
    }

    fn releases_to_wait(lock: usize) {
        pacing::releases_to_wait(lock);
    }

    fn is_timed(lock: usize) -> bool {
        pacing::is_timed(lock)
    }

    fn turn_ends(lock: usize) {
        pacing::turn_ends(lock);
    }

    fn returns_to(lock: usize) {
        pacing::returns_to(lock);
    }

    fn ends_contended(lock: usize) -> bool {
        pacing::ends_contended(lock)
    }

    fn passed_woken() {
        pacing::passed_woken();
    }

    fn priority() -> u8 {
        policy::priority()
    }

    #[cold]
    #[inline(never)]
    fn overwritten(_lock: usize) -> ! {
        raw::write(libc::STDERR_FILENO, OVERWRITTEN);
        // SAFETY: ends the process.
        unsafe { libc::abort() }
    }

    #[inline(always)]
    fn thread_token() -> u32 {
        thread::token()
    }

    fn generation() -> u32 {
        generation::generation()
    }

    fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu {
        cpu::owner_on_cpu(owner, sample)
    }

    #[inline(always)]
    fn read_acquired(lock: usize) {
        Reads::of_this_thread().acquired(lock);
    }

    #[inline(always)]
    fn read_released(lock: usize) {
        Reads::of_this_thread().released(lock);
    }

    fn may_hold_read(lock: usize) -> bool {
        Reads::of_this_thread().may_hold(lock)
    }

    const MOST_SLOT_READERS: u32 = slots::MOST_READERS;

    #[inline(always)]
    fn reads_before_slots() -> u32 {
        // What a writer pays to shut a gate grows with the CPUs: it interrupts each, and looks at the line of each.
        ClosingCost(CLOSING.load(Relaxed)).reads(READS_PER_CPU * cpu::count())
    }

    fn slots_closed(took: u64) {
        let mut cost = ClosingCost(CLOSING.load(Relaxed));
        cost.took(took);
        CLOSING.store(cost.0, Relaxed); // of two threads at a time, one is forgotten
    }

    fn slot_table() -> u32 {
        slots::table_name()
    }

    #[inline(always)]
    fn slot_enter(gate: &atomic::AtomicU32, lock: usize) -> bool {
        slots::enter(gate, lock)
    }

    #[inline(always)]
    fn slot_leave(gate: &atomic::AtomicU32, lock: usize) -> SlotLeft {
        slots::leave(gate, lock)
    }

    fn slot_take_back(lock: usize) -> bool {
        slots::take_back(lock)
    }

    fn slots_count(table: u32, lock: usize) -> u32 {
        slots::count(table, lock)
    }

    fn slots_move(table: u32, lock: usize) {
        slots::move_readers(table, lock);
    }

    #[inline(always)]
    fn event(event: Event) {
        observer::tell(event);
    }
}

/// Whether [`start`] has run: locks are in use.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Asks the kernel all that locks want to know, once, before the first of them is used: a later call may be one that a sandbox
/// kills the process for. `permanent`: the caller knows that this code stays mapped until the process ends.
#[cold]
pub fn start(permanent: bool) {
    clock::start();
    if !STARTED.swap(true, Relaxed) && !sandbox::is_confined() {
        single::start();
        thread::start();
        generation::start();
        cpu::start();
        rseq::start(permanent);
        if rseq::area() != 0 {
            slots::start();
        }
    }
}

/// Sleeps for `span` nanoseconds, or less if a signal handler runs.
pub fn nap(span: u64) {
    let nobody_wakes = atomic::AtomicU32::new(0);
    futex::wait_for(&nobody_wakes, 0, span);
}
