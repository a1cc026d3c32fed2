//! The entry to slow paths, for a watcher ([`profile`](crate::profile)).
//!
//! Fast paths are inlined into the program, and know nothing of profiles. Their calls to slow paths go
//! through a trampoline, which gives a watcher the place in the program. It costs one load to ask whether
//! there is a watcher. The watcher's code is reached through a pointer only, so a program that starts no
//! profile has none of it.

use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

use spinpark_platform::Deadline;
use spinpark_recorder::{LockCall, Site};

/// Watches slow paths.
pub(crate) struct Watcher {
    /// An acquisition that did not succeed at once; whether it did in the end.
    pub(crate) acquire: fn(call: &LockCall, lock: &dyn Acquisition) -> bool,
    /// A release, or a part of one, that may concern others.
    pub(crate) release: fn(call: &LockCall, release: &dyn Fn()),
    /// A wait for a signal, which begins and ends with the mutex at this address held; whether it ended at
    /// the deadline.
    pub(crate) wait:
        fn(call: &LockCall, mutex: usize, deadline: Option<Deadline>, wait: &dyn Fn() -> bool) -> bool,
    /// A signal to a waiter.
    pub(crate) signal: fn(call: &LockCall),
}

/// An acquisition, in its ways to get the lock.
pub(crate) trait Acquisition {
    /// At once, or not.
    fn at_once(&self) -> bool;
    /// Blocks until the lock is acquired, or until the deadline.
    fn block(&self) -> bool;
    /// The owner's token, if that is known.
    fn owner(&self) -> u32;
    /// Whether [`Self::block`] ends at a deadline.
    fn is_timed(&self) -> bool;
    /// The lock was acquired: sees to it that its release is slow; `false` if that cannot be.
    fn force_slow_release(&self) -> bool;
}

static WATCHER: AtomicPtr<Watcher> = AtomicPtr::new(std::ptr::null_mut());

/// Installs a watcher, or none.
pub(crate) fn watch(watcher: Option<&'static Watcher>) {
    WATCHER.store(watcher.map_or(std::ptr::null_mut(), |it| std::ptr::from_ref(it).cast_mut()), Release);
}

/// The watcher.
#[inline]
pub(crate) fn watcher() -> Option<&'static Watcher> {
    // SAFETY: null, or from a static reference, through which nothing is written.
    unsafe { WATCHER.load(Acquire).as_ref() }
}

/// The deadline of a slow path.
///
/// # Safety
///
/// What the slow path was called with.
pub(crate) unsafe fn deadline(deadline: *const ()) -> Option<Deadline> {
    // SAFETY: the caller's promise: null, or a deadline that lives as long as the call.
    unsafe { deadline.cast::<Deadline>().as_ref() }.copied()
}

/// A slow path: the lock, its [`deadline`] or null, and the place in the program.
pub(crate) type Slow = unsafe extern "C" fn(lock: *const (), deadline: *const (), site: Site) -> bool;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.spinpark_0_1_slow, \"ax\", @progbits",
    ".p2align 4",
    ".hidden spinpark_0_1_slow",
    ".globl spinpark_0_1_slow",
    ".type spinpark_0_1_slow, @function",
    "spinpark_0_1_slow:",
    ".cfi_startproc",
    "mov rax, rdx",
    "mov rdx, rsp",
    "mov rcx, rbp",
    "jmp rax",
    ".cfi_endproc",
    ".size spinpark_0_1_slow, . - spinpark_0_1_slow",
    ".popsection",
);

#[cfg(target_arch = "x86_64")]
extern "C" {
    /// Jumps to `slow` with the place in the program at which this was called.
    fn spinpark_0_1_slow(lock: *const (), deadline: *const (), slow: Slow) -> bool;
}

/// Profiles are recorded on x86-64 only: the place is not asked for.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn spinpark_0_1_slow(lock: *const (), deadline: *const (), slow: Slow) -> bool {
    let nowhere = Site { stack: std::ptr::null(), frame: std::ptr::null() };
    // SAFETY: the caller's promise.
    unsafe { slow(lock, deadline, nowhere) }
}

/// Takes a slow path of `lock`; returns its result.
///
/// # Safety
///
/// `slow` is for a lock of type `T`.
#[inline(always)]
pub(crate) unsafe fn slow<T>(lock: &T, deadline: Option<&Deadline>, slow: Slow) -> bool {
    let lock: *const T = lock;
    let deadline = deadline.map_or(std::ptr::null(), std::ptr::from_ref::<Deadline>);
    // SAFETY: the caller's promise; both live as long as the call.
    let answer = unsafe { spinpark_0_1_slow(lock.cast(), deadline.cast(), slow) };
    // Not a tail call: the function that this is inlined into is the place.
    // SAFETY: no instruction.
    unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) };
    answer
}
