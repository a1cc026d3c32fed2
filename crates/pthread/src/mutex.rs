//! `pthread_mutex_*`.
//!
//! The object (40 bytes in glibc): our lock, whose word is where glibc has its own. Within it are, at glibc's
//! places (see [`fields`](crate::fields)), the depth of recursion, the owner, the waiters that will come back
//! from a condition variable, and `kind`, which is written by glibc's own initialiser or by a static one.
//!
//! Each function returns 0 or an errno, and each is as safe to call as its POSIX namesake: the pointer is to
//! a mutex that is initialised (statically, or all zero) and not yet destroyed.

use core::ffi::c_int;
use core::mem::{align_of, size_of};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT};
use libc::{clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use spinpark_linux::{clock_id, clock_of, deadline, thread_id};
use spinpark_locks::{Locked, RawMutex, WaitNode};
use spinpark_platform::{Clock, Deadline, Threads};

use crate::fields::{Linux, Policy};
use crate::mode::Fast;
use crate::{arch, leave, mode, policy, real};

// The values of a mutex' `kind`, the field that glibc's own initialiser or a static one writes.

/// The bits that tell how the mutex behaves.
const TYPE: u32 = 0x3;
const RECURSIVE: u32 = libc::PTHREAD_MUTEX_RECURSIVE as u32;
const ERRORCHECK: u32 = libc::PTHREAD_MUTEX_ERRORCHECK as u32;
/// Ours: the mutex was found to be used through glibc's functions, which serve it from then on. They ignore
/// this bit.
pub(crate) const GLIBC_OWNED: u32 = 1 << 10;
/// The bits that make it glibc's: robust, priority inheritance, priority protection, process-shared; or
/// [`GLIBC_OWNED`]. (Not the two above the first four, which only state whether to elide the lock.)
pub(crate) const GLIBC_KINDS: u32 = 0xf0 | GLIBC_OWNED;
/// What glibc's destroy leaves there: glibc's own functions answer EINVAL then.
const DESTROYED: u32 = u32::MAX;

const _: () = assert!(RECURSIVE == 1 && ERRORCHECK == 2 && TYPE == 3);

/// Neither recursive nor error checking.
#[inline(always)]
fn is_plain(kind: u32) -> bool {
    kind & TYPE == 0 || kind & TYPE == TYPE
}

/// Our view of a `pthread_mutex_t`.
#[repr(C)]
pub(crate) struct Mutex {
    pub(crate) raw: RawMutex<Linux, Policy>,
}

const _: () = assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());
const _: () = assert!(
    matches!(WaitNode::<Linux>::layout(), [8, 28, 32]),
    "libspinpark_preload.so-gdb.py follows waiters"
);

impl Mutex {
    /// # Safety
    ///
    /// `mutex` points to a mutex, which lives for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn at<'a>(mutex: *const pthread_mutex_t) -> &'a Self {
        // SAFETY: the caller's pointer; size and alignment fit; every field is atomic.
        unsafe { &*mutex.cast() }
    }

    /// glibc's `__count`: how often a recursive mutex is held; only its owner reads and writes it.
    #[inline(always)]
    pub(crate) fn count(&self) -> &AtomicU32 {
        &self.raw.queue().padding()[0]
    }

    /// glibc's `__owner`, of recursive and error-checking mutexes: the id of the thread that holds it, 0
    /// while it is free. Written by the owner only, so its own is certain. (The lock word has it too; but a
    /// load of what a read-modify-write has just written costs 5 ns.)
    #[inline(always)]
    pub(crate) fn owner(&self) -> &AtomicU32 {
        &self.raw.queue().padding()[1]
    }

    /// glibc's `__nusers`, which only its own functions count: 0 unless they have locked the mutex.
    #[inline(always)]
    pub(crate) fn users(&self) -> &AtomicU32 {
        &self.raw.queue().padding()[2]
    }

    /// Where glibc counts spins: the threads that wait on a condition variable and will take this mutex back.
    /// Read and written by the thread that holds the mutex, but for the look of a destroyer.
    #[inline(always)]
    pub(crate) fn condvar_waiters(&self) -> &AtomicU32 {
        &self.raw.queue().padding()[4]
    }

    /// glibc's `__kind`.
    #[inline(always)]
    pub(crate) fn kind_word(&self) -> &AtomicU32 {
        &self.raw.queue().padding()[3]
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> u32 {
        self.kind_word().load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        is_plain(self.kind())
    }

    /// Whether calls on this mutex go to glibc because it was found to be used through glibc's functions.
    pub(crate) fn is_glibc_owned(&self) -> bool {
        self.kind() & GLIBC_KINDS == GLIBC_OWNED
    }

    #[inline(always)]
    pub(crate) fn is_owned_by(&self, token: u32) -> bool {
        self.owner().load(Relaxed) == token
    }

    /// Notes the owner after an acquisition; returns 0.
    #[inline(always)]
    pub(crate) fn acquired_by(&self, token: u32) -> c_int {
        if self.is_plain() { 0 } else { self.acquired_once_by(token) }
    }

    /// The same of a recursive or error-checking mutex.
    #[inline(always)]
    fn acquired_once_by(&self, token: u32) -> c_int {
        self.count().store(1, Relaxed);
        // A handler that finds the owner finds the count.
        compiler_fence(SeqCst);
        self.owner().store(token, Relaxed);
        0
    }

    /// By the owner, with the mutex held once.
    pub(crate) fn held_more_often(&self, depth: u32) {
        if depth > 0 {
            self.count().store(depth + 1, Relaxed);
        }
    }

    /// Whether calls on this mutex are ours to serve. In a shared process, one that is not in use becomes
    /// glibc's here.
    #[inline(always)]
    pub(crate) fn is_ours(&self) -> bool {
        self.kind() & GLIBC_KINDS == 0 && mode::serves(|| self.keep_if_in_use())
    }
}

/// `pthread_mutex_lock`: EDEADLK (error checking), EAGAIN (recursive, too deep).
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)] // for the drop-in's size: C11's calls this one
pub(crate) unsafe extern "C" fn lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    let token = spinpark_linux::known_token();
    let kind = this.kind() & (GLIBC_KINDS | TYPE);
    if kind == 0 && token != 0 {
        match mode::fast() {
            Fast::Threaded if this.raw.try_lock_uncontended(token) => return 0,
            Fast::Alone if this.raw.try_lock_alone(token) => return 0,
            _ => {}
        }
    } else if matches!(kind, 1..=TYPE) {
        let fast = mode::fast();
        if kind == RECURSIVE && fast != Fast::Unsure {
            let id = thread_id();
            if this.is_owned_by(id) {
                return this.lock_once_more();
            }
            if fast == Fast::Alone && this.raw.try_lock_alone(id) {
                return this.acquired_once_by(id);
            }
        }
        // SAFETY: the caller's mutex.
        return unsafe { lock_typed(mutex) };
    }
    // SAFETY: the caller's mutex.
    unsafe { lock_general(mutex) }
}

/// [`lock`] of another kind than the default: without a wait, if the process has decided; else
/// [`lock_general`]. Apart, so that the default kind keeps nothing in registers.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)]
unsafe fn lock_typed(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    let acquire = |token| this.raw.try_lock_uncontended(token).then_some(true);
    // SAFETY: the caller's mutex.
    this.lock_at_once(EDEADLK, acquire).unwrap_or_else(|| unsafe { lock_general(mutex) })
}

/// The cases that the paths above do not serve: a mutex that is held or always glibc's, a process that has
/// not decided yet or is shared with glibc's functions or disabled, a thread's first call. Ours if `is_ours`,
/// else glibc's.
///
/// Adds the caller's address: it is called in the place of a return, so that the stack is as at the call of [`lock`].
/// Where it is not (in a build without optimisation, or through [`lock_typed`]), that is an address of this library,
/// which no table of policies has.
///
/// # Safety
///
/// As POSIX has it.
#[unsafe(naked)]
unsafe extern "C" fn lock_general(mutex: *mut pthread_mutex_t) -> c_int {
    core::arch::naked_asm!(
        ".cfi_startproc",
        arch::with_caller!(second),
        ".cfi_endproc",
        from = sym lock_from,
    )
}

/// [`lock_general`] for the caller at `site`.
///
/// # Safety
///
/// As POSIX has it.
unsafe extern "C" fn lock_from(mutex: *mut pthread_mutex_t, site: usize) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        policy::meets(mutex as usize, site);
        // Of a plain mutex by the token, which the fast path knows from then on.
        return this.lock(if this.is_plain() { Linux::thread_token() } else { thread_id() });
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_lock(mutex) }
}

impl Mutex {
    /// The result of a call that acquires, if it is known without a wait, in a process that has decided: of
    /// whatever kind of ours. `None` says nothing. `acquire`: an attempt by the thread of a token, unless
    /// that is alone and the mutex free; `Some(false)`: the mutex is held.
    #[inline(always)]
    fn lock_at_once(&self, busy: c_int, acquire: impl FnOnce(u32) -> Option<bool>) -> Option<c_int> {
        let (kind, fast) = (self.kind(), mode::fast());
        if kind & GLIBC_KINDS != 0 || fast == Fast::Unsure {
            return None;
        }
        let token = if is_plain(kind) { spinpark_linux::known_token() } else { thread_id() };
        if let Some(result) = self.lock_again(token, busy) {
            return Some(result);
        }
        if token == 0 {
            return None;
        }
        let acquired = match fast {
            Fast::Alone if self.raw.try_lock_alone(token) => true,
            _ => acquire(token)?,
        };
        Some(if acquired { self.acquired_by(token) } else { busy })
    }

    #[inline(always)]
    fn lock(&self, token: u32) -> c_int {
        if let Some(result) = self.lock_again(token, EDEADLK) {
            return result;
        }
        match self.raw.try_lock_as(token) {
            true => self.acquired_by(token),
            false => self.lock_slow(token),
        }
    }

    /// What an owner that locks again gets: `None` means that it waits for itself for ever, as POSIX has it.
    #[inline(always)]
    fn lock_again(&self, token: u32, busy: c_int) -> Option<c_int> {
        let kind = self.kind();
        if is_plain(kind) || !self.is_owned_by(token) {
            return None;
        }
        if kind & TYPE == ERRORCHECK {
            return Some(busy);
        }
        Some(self.lock_once_more())
    }

    /// By the owner of a recursive mutex.
    #[inline(always)]
    fn lock_once_more(&self) -> c_int {
        match self.count().load(Relaxed).checked_add(1) {
            Some(count) => {
                self.count().store(count, Relaxed);
                0
            }
            None => EAGAIN,
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self, token: u32) -> c_int {
        match self.lock_contended(None) {
            Locked::GlibcOwned => self.lock_in_glibc(0),
            _ => self.acquired_by(token),
        }
    }

    /// Waits. The thread may be cancelled in that wait, or end in a handler: `undoable` undoes it then.
    #[inline(never)] // for the drop-in's size
    fn lock_contended(&self, deadline: Option<Deadline>) -> Locked {
        leave::undoable(
            || self.raw.lock_or_glibc(deadline),
            |locked| {
                if let Locked::Acquired = locked {
                    self.raw.unlock();
                }
            },
        )
    }
}

/// `pthread_mutex_trylock`: EBUSY, EAGAIN.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)] // for the drop-in's size: C11's calls this one
pub(crate) unsafe extern "C" fn try_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    let token = spinpark_linux::known_token();
    if this.kind() & (GLIBC_KINDS | TYPE) == 0 && token != 0 {
        let acquired = match mode::fast() {
            Fast::Threaded => this.raw.try_lock_at_once(token),
            Fast::Alone if this.raw.try_lock_alone(token) => return 0,
            Fast::Alone => this.raw.try_lock_at_once(token),
            Fast::Unsure => None,
        };
        if let Some(acquired) = acquired {
            return if acquired { 0 } else { EBUSY };
        }
    }
    // SAFETY: the caller's mutex.
    unsafe { try_general(mutex) }
}

/// The cases that the inlined path does not serve.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)]
unsafe fn try_general(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if let Some(result) = this.lock_at_once(EBUSY, |token| this.raw.try_lock_at_once(token)) {
        return result;
    }
    if this.is_ours() {
        return this.try_lock();
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_trylock(mutex) }
}

/// `pthread_mutex_timedlock`: on the realtime clock; ETIMEDOUT, EINVAL, EDEADLK, EAGAIN.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)] // for the drop-in's size: C11's calls this one
pub(crate) unsafe extern "C" fn timed_lock(mutex: *mut pthread_mutex_t, time: *const timespec) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    // POSIX: the time is not checked if the mutex can be acquired at once.
    let acquire = |token| this.raw.try_lock_uncontended(token).then_some(true);
    if let Some(result) = this.lock_at_once(EDEADLK, acquire) {
        return result;
    }
    if this.is_ours() {
        // SAFETY: the caller's timespec.
        return unsafe { this.lock_until(Clock::Realtime, time) };
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_timedlock(mutex, time) }
}

/// `pthread_mutex_clocklock`: as `pthread_mutex_timedlock`, on either clock; EINVAL for any other.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn clock_lock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.is_ours() {
        let Some(clock) = clock_of(clock) else { return EINVAL };
        // SAFETY: the caller's timespec.
        return unsafe { this.lock_until(clock, time) };
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_clocklock(mutex, clock, time) }
}

impl Mutex {
    #[inline(always)]
    fn try_lock(&self) -> c_int {
        use spinpark_locks::TryMutex;
        let token = thread_id();
        match self.lock_again(token, EBUSY) {
            Some(result) => result,
            None if self.raw.try_lock_contended(token) => self.acquired_by(token),
            None => EBUSY,
        }
    }

    /// # Safety
    ///
    /// `time` points to a timespec.
    unsafe fn lock_until(&self, clock: Clock, time: *const timespec) -> c_int {
        let token = thread_id();
        if let Some(result) = self.lock_again(token, EDEADLK) {
            return result;
        }
        if self.raw.try_lock_as(token) {
            return self.acquired_by(token);
        }
        // SAFETY: the caller's pointer.
        let deadline = unsafe { deadline(clock, time) };
        if deadline.is_none() {
            return EINVAL;
        }
        match self.lock_contended(deadline) {
            Locked::Acquired => self.acquired_by(token),
            Locked::TimedOut => ETIMEDOUT,
            // SAFETY: the caller's pointer.
            Locked::GlibcOwned => unsafe { self.lock_in_glibc_until(clock_id(clock), time) },
        }
    }
}

/// `pthread_mutex_unlock`: EPERM (recursive, error checking).
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)] // for the drop-in's size: C11's calls this one
pub(crate) unsafe extern "C" fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    let kind = this.kind() & (GLIBC_KINDS | TYPE);
    if kind == 0 {
        match mode::fast() {
            Fast::Threaded => {
                this.raw.unlock();
                return 0;
            }
            Fast::Alone if this.raw.unlock_alone() => return 0,
            _ => {}
        }
    } else if matches!(kind, 1..=TYPE) {
        let fast = mode::fast();
        if kind == RECURSIVE && fast != Fast::Unsure && this.is_owned_by(thread_id()) {
            if this.unlock_once() {
                return 0;
            }
            if fast == Fast::Alone {
                this.owned_no_more();
                return if this.raw.unlock_alone() { 0 } else { this.release_slow() };
            }
        }
        // SAFETY: the caller's mutex.
        return unsafe { unlock_typed(mutex) };
    }
    // SAFETY: the caller's mutex.
    unsafe { unlock_general(mutex) }
}

/// [`unlock`] of another kind than the default.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)]
unsafe fn unlock_typed(mutex: *mut pthread_mutex_t) -> c_int {
    match mode::fast() {
        // SAFETY: the caller's mutex.
        Fast::Unsure => unsafe { unlock_general(mutex) },
        // SAFETY: the caller's mutex.
        fast => unsafe { Mutex::at(mutex) }.unlock(fast),
    }
}

/// The cases that the paths above do not serve: a mutex that is always glibc's, a process that has not
/// decided yet or is shared or disabled, or a default one of one thread and a word with flags, from a fork.
/// Ours if `keep_to_unlock`, else glibc's.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)]
pub(crate) unsafe fn unlock_general(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if this.keep_to_unlock() {
        return this.unlock(Fast::Threaded);
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_unlock(mutex) }
}

impl Mutex {
    #[inline(always)]
    fn unlock(&self, fast: Fast) -> c_int {
        if self.is_plain() { self.release(fast) } else { self.unlock_owned(thread_id(), fast) }
    }

    #[inline(always)]
    fn release(&self, fast: Fast) -> c_int {
        if fast != Fast::Alone || !self.raw.unlock_alone() {
            self.raw.unlock();
        }
        0
    }

    /// A recursive or error-checking mutex.
    #[inline(always)]
    fn unlock_owned(&self, token: u32, fast: Fast) -> c_int {
        if !self.is_owned_by(token) {
            return EPERM;
        }
        if self.unlock_once() {
            return 0;
        }
        self.owned_no_more();
        self.release(fast)
    }

    /// By the owner, which is about to release.
    #[inline(always)]
    fn owned_no_more(&self) {
        self.count().store(0, Relaxed);
        self.owner().store(0, Relaxed);
    }

    /// Of one thread alone, with flags in the word from a fork.
    #[cold]
    #[inline(never)]
    fn release_slow(&self) -> c_int {
        self.release(Fast::Threaded)
    }

    /// By the owner; `false`: it holds the mutex once only, and nothing is done.
    #[inline(always)]
    fn unlock_once(&self) -> bool {
        let count = self.count().load(Relaxed);
        if count > 1 {
            self.count().store(count - 1, Relaxed);
        }
        count > 1
    }
}

// A wait on a condition variable releases the mutex, and takes it back.

impl Mutex {
    /// Before a wait on a condition variable: prepares the release of a mutex that is ours, however often it
    /// is held, and returns how often beyond the first time, with which [`Mutex::hold_again`] restores it; or
    /// EPERM.
    pub(crate) fn check_wait(&self) -> Result<u32, c_int> {
        let mut depth = 0;
        if !self.is_plain() {
            if !self.is_owned_by(thread_id()) {
                return Err(EPERM);
            }
            self.owner().store(0, Relaxed);
            depth = self.count().load(Relaxed).wrapping_sub(1);
            self.count().store(0, Relaxed);
        }
        self.count_waiter(1);
        Ok(depth)
    }

    /// No read-modify-write: the calling thread holds the mutex. Not below 0: a program may initialise the
    /// mutex anew meanwhile.
    fn count_waiter(&self, change: i32) {
        self.condvar_waiters()
            .store(self.condvar_waiters().load(Relaxed).saturating_add_signed(change), Relaxed);
    }

    /// After the wait, with the mutex held again.
    pub(crate) fn hold_again(&self, depth: u32) {
        self.count_waiter(-1);
        self.acquired_by(thread_id());
        self.held_more_often(depth);
    }

    /// [`Mutex::hold_again`] of a mutex that is held by glibc's functions.
    pub(crate) fn hold_in_glibc_again(&self, depth: u32) -> c_int {
        let error = self.lock_in_glibc(depth);
        self.count_waiter(-1);
        error
    }
}

/// `pthread_mutex_init`: [`init_from`] with the caller's address.
///
/// # Safety
///
/// As POSIX has it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    core::arch::naked_asm!(
        ".cfi_startproc",
        arch::with_caller!(third),
        ".cfi_endproc",
        from = sym init_from,
    )
}

/// # Safety
///
/// As POSIX has it.
unsafe extern "C" fn init_from(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
    site: usize,
) -> c_int {
    let ours = mode::ours();
    if ours {
        // Also what glibc's initialiser leaves, but for its own fields: it is not relied on to clear the
        // rest. SAFETY: the caller's memory for an object; all zero is its static initialiser.
        unsafe { mutex.write_bytes(0, 1) };
    }
    let error = match ours && attributes.is_null() {
        true => 0,
        // SAFETY: the caller's pointers.
        false => unsafe { real::pthread_mutex_init(mutex, attributes) },
    };
    // SAFETY: initialised just now.
    if ours && error == 0 && unsafe { Mutex::at(mutex) }.kind() & GLIBC_KINDS == 0 {
        policy::meets(mutex as usize, site);
    }
    error
}

/// A mutex that is normal or recursive, for the caller at `site`. What is written is as good for glibc's functions as for
/// ours.
///
/// # Safety
///
/// `mutex` is memory for a mutex.
pub(crate) unsafe fn init_kind(mutex: *mut pthread_mutex_t, recursive: bool, site: usize) {
    // SAFETY: the caller's memory; all zero is a normal mutex.
    unsafe { mutex.write_bytes(0, 1) };
    if recursive {
        // SAFETY: initialised just now.
        unsafe { Mutex::at(mutex) }.kind_word().store(RECURSIVE, Relaxed);
    }
    if mode::ours() {
        policy::meets(mutex as usize, site);
    }
}

/// `pthread_mutex_destroy`: EBUSY if it is held, or if a thread that waits on a condition variable will take
/// it back (glibc's `__nusers` counts both). It stays good then.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    let this = unsafe { Mutex::at(mutex) };
    if !this.is_ours() {
        // SAFETY: the caller's mutex.
        return unsafe { real::pthread_mutex_destroy(mutex) };
    }
    if this.raw.is_locked() || this.condvar_waiters().load(Relaxed) != 0 {
        return EBUSY;
    }
    this.kind_word().store(DESTROYED, Relaxed);
    0
}

/// `pthread_mutex_consistent`: EINVAL unless robust, which is glibc's.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn consistent(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's mutex.
    if unsafe { Mutex::at(mutex) }.is_ours() {
        return EINVAL;
    }
    // SAFETY: the caller's mutex.
    unsafe { real::pthread_mutex_consistent(mutex) }
}

/// `pthread_mutex_getprioceiling`: EINVAL unless priority-protected, which is glibc's.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn get_prioceiling(mutex: *const pthread_mutex_t, ceiling: *mut c_int) -> c_int {
    // SAFETY: the caller's mutex.
    if unsafe { Mutex::at(mutex) }.is_ours() {
        return EINVAL;
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_getprioceiling(mutex, ceiling) }
}

/// `pthread_mutex_setprioceiling`: EINVAL unless priority-protected, which is glibc's.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn set_prioceiling(
    mutex: *mut pthread_mutex_t,
    ceiling: c_int,
    old: *mut c_int,
) -> c_int {
    // SAFETY: the caller's mutex.
    if unsafe { Mutex::at(mutex) }.is_ours() {
        return EINVAL;
    }
    // SAFETY: the caller's pointers.
    unsafe { real::pthread_mutex_setprioceiling(mutex, ceiling, old) }
}
