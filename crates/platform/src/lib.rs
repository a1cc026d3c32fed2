//! The seam: what a lock needs from a machine, and nothing else.
//!
//! Lock algorithms are written once, generic over a zero-sized [`Platform`], and run on several machines: Linux, a
//! loom model (every interleaving under weak memory) and a simulated many-core machine. Each item below is a
//! *contract*; one conformance test runs against every implementation. Traits, and plain data that every platform keeps
//! alike ([`Habits`], [`Tuning`]): no dependency, no `unsafe`.
//!
//! Units: time is in nanoseconds, as `u64`; an absolute point in time is a [`Deadline`].
#![no_std]
#![forbid(unsafe_code)]

mod atomic;
mod closing;
mod event;
mod habits;
mod native;
mod pacing;
mod time;
mod tuning;
mod wake_op;

pub use atomic::{AtomicPtr, AtomicU32, Cell};
pub use closing::ClosingCost;
pub use core::sync::atomic::Ordering;
pub use event::Event;
pub use habits::Habits;
pub use time::{Clock, Deadline, NS_PER_MS, NS_PER_SEC, NS_PER_US};
pub use tuning::{SpinLocks, Tuning};
pub use wake_op::{Comparison, Operand, WakeOp, WordOp};

/// The highest [`Platform::priority`]: Linux' 99, and one above it.
pub const HIGHEST_PRIORITY: u8 = 100;

/// How a futex wait ended.
///
/// There is no `Interrupted`: a signal handler that ran is reported as [`Wait::Woken`], because every waiter must
/// check its word again after any return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Woken by a wake, by a signal handler, or for no reason. The caller checks its word.
    Woken,
    /// The word did not hold the expected value; the thread did not sleep.
    ValueChanged,
    /// The deadline passed. A wake may have happened as well; the caller checks its word.
    TimedOut,
}

/// What the machine knows about a lock owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCpu {
    /// The owner has run since the last question.
    Running,
    /// The owner has not run since the last question: waiting for it by spinning cannot pay.
    Off,
    /// Not known. Always a safe answer: the spinner falls back to its time budget.
    Unknown,
}

/// What a thread spins for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// A lock that is held.
    Lock,
    /// A lock that a release woke it for, and that another thread took meanwhile.
    Turn,
    /// A signal of a condition variable.
    Signal,
    /// A lock that the next release hands over.
    HandOver,
    /// A writer that waits awake for readers, and is let in first.
    Writer,
}

/// How a thread waits for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// It looks often, and takes the lock as soon as it is free: the threads take turns.
    #[default]
    Close,
    /// It stays away for many turns of the owner, which comes back for the lock faster than the lock can move.
    Apart,
}

/// How a reader found its slot, as it wanted to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotLeft {
    /// It has left: the lock is not touched any more.
    Left,
    /// It is in no slot: it is counted in the lock, if it holds it.
    Counted,
    /// Its slot cannot be given back in passing: the gate is closed, or is being closed.
    Closed,
}

/// A machine that locks run on. All methods are static: a lock carries no platform state.
pub trait Platform: Sized + Send + Sync + 'static {
    /// A 32-bit atomic that [`Platform::futex_wait`] can sleep on.
    type AtomicU32: AtomicU32;
    /// An atomic pointer, for queues that are linked without a lock.
    type AtomicPtr<T>: AtomicPtr<T>;
    /// Memory that some lock protects.
    type Cell<T>: Cell<T>;
    /// What stands in a lock between its word and the rest of its state: nothing, or fields of an interface that keeps
    /// them there. All zero by default. The algorithms do not touch it.
    type Room: Default + Send + Sync;
    /// The same, between the queue lock and the head of the queue.
    type Gap: Default + Send + Sync;

    /// The constants of this machine.
    const TUNING: Tuning;

    /// Sleeps while `word` holds `expected`, until a wake on `word` or until `deadline`.
    ///
    /// May return [`Wait::Woken`] at any time. The comparison and the start of the sleep are one step with respect
    /// to [`Platform::futex_wake`]. Implies no memory ordering: the caller loads its word with the order it needs.
    fn futex_wait(word: &Self::AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait;

    /// The same for at most `span` ns of the monotonic clock: how a waiter sleeps that is going to look by itself.
    fn futex_wait_for(word: &Self::AtomicU32, expected: u32, span: u64) -> Wait {
        let at = Self::now(Clock::Monotonic).saturating_add(span);
        Self::futex_wait(word, expected, Some(Deadline { clock: Clock::Monotonic, at }))
    }

    /// Runs `sleep`, one of the two above, for a thread that waits for a lock. If the thread leaves it by unwinding (it is
    /// cancelled, or ends in a signal handler), `leave` runs before its stack goes.
    #[inline(always)]
    fn sleep_or(sleep: &dyn Fn() -> Wait, leave: &dyn Fn()) -> Wait {
        let _ = leave;
        sleep()
    }

    /// Notes that the calling thread is about to queue for a lock. Until its call ends it can leave it by unwinding only in
    /// [`Platform::sleep_or`].
    #[inline(always)]
    fn queues() {}

    /// Wakes up to `count` sleepers on `key`, oldest first; returns how many.
    ///
    /// `key` is only a key: it is never dereferenced, so the object may be gone already. A stale key can wake a
    /// stranger that now uses the same address, which that stranger's contract allows.
    fn futex_wake(key: *const Self::AtomicU32, count: u32) -> u32;

    /// Wakes up to `wake` sleepers on `from`, oldest first, and moves up to `moved` of those behind them to `to`, where
    /// they go on sleeping as its youngest, in the same order, whatever `from` holds. Returns how many were woken and
    /// moved together.
    ///
    /// With `expected`, only if `from` holds that: the comparison is one step with the rest, as in
    /// [`Platform::futex_wait`]. `None`: nothing has happened, because `from` holds something else or this machine
    /// cannot do it; the caller makes do with [`Platform::futex_wake`]. Without `expected`, `from` is only a key, as
    /// `to` always is. Implies no memory ordering.
    fn futex_requeue(
        from: &Self::AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const Self::AtomicU32,
        moved: u32,
    ) -> Option<u32>;

    /// Does `op` to `second` (AcqRel ordering), wakes up to `wake` sleepers on `first`, and, if the condition of `op`
    /// holds of what `second` held before, up to `wake_second` sleepers on `second`. Returns how many were woken.
    ///
    /// For sleepers on both words, and for a thread that compares them in [`Platform::futex_wait`], all of that is one
    /// step; for other accesses to `second`, `op` is. `None`: nothing has happened, because this machine cannot do it; the
    /// caller does the operation itself and makes do with [`Platform::futex_wake`].
    ///
    /// Neither count is 0: Linux would wake one all the same. `first` is only a key. `op` is the last access to `second`,
    /// which is only a key afterwards.
    fn futex_wake_op(
        first: *const Self::AtomicU32,
        wake: u32,
        second: &Self::AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32>;

    /// Stores 0 to `word` (Release ordering) unless `guard` holds a bit of `MASK`; returns whether it did. `likely` is what
    /// `word` holds if no other thread uses it. `false` is always a safe answer.
    ///
    /// Looking and storing need not be one step: the store may wipe out what others wrote to `word` in between. It is
    /// *restartable*: a [`Platform::heavy_fence`] comes after the store, or makes the call look again. So who sets a bit
    /// of `MASK`, then writes to `word` something that must last, calls the fence and looks whether it is still there.
    /// The store is the last access to either.
    fn release_unless<const MASK: u32>(
        guard: &Self::AtomicU32,
        word: &Self::AtomicU32,
        likely: impl FnOnce() -> u32,
    ) -> bool;

    /// Orders memory among all threads of the process, and ends their restartable steps: each has happened, and is seen
    /// by the caller, or starts again and sees what the caller wrote before. Costs a system call and an interrupt of every
    /// CPU on which the process runs: for threads that are about to sleep.
    fn heavy_fence();

    /// Orders all memory accesses of the calling thread before it with all after it, as `fence(SeqCst)` does: of two threads
    /// that each write something, fence, and look at the other's, at least one sees it.
    #[inline(always)]
    fn full_fence() {
        core::sync::atomic::fence(Ordering::SeqCst);
    }

    /// The time of `clock`, ns. Never goes back for [`Clock::Monotonic`].
    fn now(clock: Clock) -> u64;

    /// Tells the CPU (or the model) that this thread polls memory that another thread has to change.
    ///
    /// Returns how many polls that was: 1, or more on a machine that leaves out those that would see nothing new. For
    /// callers that count them.
    fn spin_hint() -> u32;

    /// Waits awake for about `span` ns without touching shared memory. May return at any time.
    fn spin_for(span: u64);

    /// Whether the scheduler wants this CPU for another thread, so that spinning on is unkind. `false` is always a safe
    /// answer: where a thread cannot ask, one that spins is preempted.
    #[inline(always)]
    fn need_resched() -> bool {
        false
    }

    /// Whether the calling thread should spin now: another thread can run meanwhile (more than one CPU), and its spins
    /// of this kind have paid lately. `false` forbids spinning.
    fn can_spin(kind: Spin) -> bool;

    /// How many CPUs the threads of this process can use: some ways of waiting pay only with CPUs to spare. 1 is always a
    /// safe answer.
    #[inline(always)]
    fn cpus() -> u32 {
        1
    }

    /// The CPU that the calling thread is bound to, if it may use only one; its number is only compared. `None` is always a
    /// safe answer.
    fn only_cpu() -> Option<u32> {
        None
    }

    /// Tells whether a spin paid, for the next answer of [`Platform::can_spin`].
    #[inline(always)]
    fn spun(kind: Spin, paid: bool) {
        let _ = (kind, paid);
    }

    /// How the calling thread is to wait for the lock at `lock`.
    fn pace(lock: usize) -> Pace {
        let _ = lock;
        Pace::Close
    }

    /// Whether the turn of the calling thread, which has just acquired the lock at `lock` after a wait, is to be timed: by
    /// [`Platform::turn_begins`], then [`Platform::turn_ends`] and [`Platform::returns_to`].
    ///
    /// `queued`: the wait was one in the lock's queue. It cost more than the timing does, and a thread has few of them.
    fn wants_time(lock: usize, queued: bool) -> bool {
        let _ = (lock, queued);
        false
    }

    /// Notes that a turn begins whose release will be timed; `marked`: the lock was marked as contended for that.
    fn turn_begins(lock: usize, marked: bool) {
        let _ = (lock, marked);
    }

    /// Whether the calling thread, which releases the lock at `lock`, comes back for it so soon that a waiter which keeps
    /// its own time is better left asleep. `false` is always a safe answer.
    fn returns_soon(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Whether the calling thread, which holds the lock at `lock` and signals, mostly waits for something itself soon after
    /// that. Notes the signal. `false` is always a safe answer.
    fn waits_next(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Notes that the calling thread is about to release the lock at `lock` to wait on a condition variable.
    fn releases_to_wait(lock: usize) {
        let _ = lock;
    }

    /// Whether the calling thread's release of the lock at `lock` is to be timed: then it calls
    /// [`Platform::turn_ends`] after it, and [`Platform::returns_to`] as it tries to acquire the lock again.
    fn is_timed(lock: usize) -> bool {
        let _ = lock;
        false
    }

    /// Notes that the calling thread has just released the lock that was at `lock`.
    fn turn_ends(lock: usize) {
        let _ = lock;
    }

    /// Notes an attempt to acquire the lock at `lock`.
    fn returns_to(lock: usize) {
        let _ = lock;
    }

    /// Notes that the calling thread released a lock that it had taken while a waiter that was woken for it has not come
    /// yet. If that goes on, the waiter may be waiting for the caller's CPU: then it is let run.
    fn passed_woken() {}

    /// Whether the calling thread's release ends the mark of a lock that was contended, and has no waiters. A mark makes each
    /// release a little dearer; to set it again costs a [`Platform::heavy_fence`].
    fn ends_contended(lock: usize) -> bool {
        let _ = lock;
        true
    }

    /// The real-time priority of the calling thread, which is about to wait: waiters of a higher one go first. Up to
    /// [`HIGHEST_PRIORITY`]; 0: it has none. May ask the kernel. 0 is always a safe answer: it costs the order.
    #[inline(always)]
    fn priority() -> u8 {
        0
    }

    /// The lock at `lock` holds what none of its own steps writes: other code has written to it, or it was freed. Ends the process: to
    /// go on would be to let two threads in, or to follow pointers that are none.
    fn overwritten(lock: usize) -> ! {
        panic!("the lock at {lock:#x} was overwritten by other code")
    }

    /// A name for the calling thread: not 0, below 2^22, different from that of every living thread of the process.
    fn thread_token() -> u32;

    /// Changes in a child that was forked: wait queues of an older generation belong to threads that do not exist
    /// here. Below 2^22, 0 in the first process.
    fn generation() -> u32;

    /// Asks whether the thread named `owner` runs. `sample` carries what this platform remembers between two
    /// questions about the same owner; 0 means that this is the first one. An `owner` of 0 is one that the lock does not name.
    fn owner_on_cpu(owner: u32, sample: &mut u64) -> OnCpu;

    /// Notes that the calling thread holds one more read lock on the object at `lock`.
    fn read_acquired(lock: usize);

    /// Notes that the calling thread gave up one read lock on the object at `lock`.
    fn read_released(lock: usize);

    /// Whether the calling thread may hold a read lock on the object at `lock`. `true` is always a safe answer;
    /// `false` must be certain, unless a thread has given back another's read lock: for a thread that does hold one, it
    /// costs the time of a starved writer's demand.
    fn may_hold_read(lock: usize) -> bool;

    /// The most readers that can be in slots at a time.
    const MOST_SLOT_READERS: u32;

    /// So many reads without a write in between make a lock one whose readers use slots.
    fn reads_before_slots() -> u32;

    /// Notes that to close a lock's slots took so long, ns: what the reads before the next time have to be worth.
    fn slots_closed(took: u64) {
        let _ = took;
    }

    /// The name of the table in which the calling code has its slots, for the gate of a lock; 0 if there are no slots.
    fn slot_table() -> u32;

    /// Notes in a slot that the calling thread reads the lock at `lock` (Acquire ordering), if `gate` holds the name of the
    /// caller's table. `false` is always a safe answer. Looking at the gate and noting are a restartable step, as in
    /// [`Platform::release_unless`].
    fn slot_enter(gate: &Self::AtomicU32, lock: usize) -> bool;

    /// Gives back the latest slot in which the calling thread reads `lock` (Release ordering), if there is one, and `gate`
    /// still holds the name. A restartable step. Does not touch the lock after that.
    fn slot_leave(gate: &Self::AtomicU32, lock: usize) -> SlotLeft;

    /// After [`SlotLeft::Closed`], with the gate kept as it is by the caller: gives back the slot; returns whether that
    /// reader was moved.
    fn slot_take_back(lock: usize) -> bool;

    /// How many slots of `table` name `lock` and are not marked as moved. Acquire ordering. A hint, unless the gate was
    /// closed, and then a heavy fence made.
    fn slots_count(table: u32, lock: usize) -> u32;

    /// Marks those slots as moved.
    fn slots_move(table: u32, lock: usize);

    /// A slow path did something. Must not allocate, block or take a lock.
    #[inline(always)]
    fn event(event: Event) {
        let _ = event;
    }
}
