//! `pthread_rwlock_*`.
//!
//! The object (56 bytes in glibc): our lock where glibc has its counters, with `__shared` at glibc's place
//! within it (see [`fields`](crate::fields)); then `__flags`. Both are written by glibc's own initialiser or
//! by a static one.
//!
//! Each function returns 0 or an errno, and each is as safe to call as its POSIX namesake.

use core::ffi::c_int;
use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT};
use libc::{clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use spinpark_linux::clock_of;
use spinpark_locks::{Preference, RawRwLock};
use spinpark_platform::{Clock, Deadline, Platform, SlotLeft, Threads};

use crate::fields::{Linux, Policy};
use crate::mode::Fast;
use crate::{arch, leave, mode, policy, real};

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`; the two other kinds both prefer readers in glibc.
const PREFER_WRITERS: u32 = 2;

/// Our view of a `pthread_rwlock_t`.
#[repr(C)]
struct RwLock {
    /// In its gap, not 0: process-shared, so glibc's.
    raw: RawRwLock<Linux, Policy>,
    flags: AtomicU32,
}

const _: () = assert!(size_of::<RwLock>() <= size_of::<pthread_rwlock_t>());
const _: () = assert!(align_of::<RwLock>() <= align_of::<pthread_rwlock_t>());
const _: () = assert!(offset_of!(RwLock, flags) == 48, "glibc's __data.__flags");

impl RwLock {
    /// # Safety
    ///
    /// `rwlock` points to a read-write lock, which lives for `'a`.
    #[inline(always)]
    unsafe fn at<'a>(rwlock: *const pthread_rwlock_t) -> &'a Self {
        // SAFETY: the caller's pointer; size and alignment fit; every field in use is atomic.
        unsafe { &*rwlock.cast() }
    }

    #[inline(always)]
    fn is_private(&self) -> bool {
        self.raw.queue().gap().load(Relaxed) == 0
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        self.is_private() && mode::ours()
    }

    #[inline(always)]
    fn is_known_ours(&self) -> bool {
        self.is_private() && mode::fast() != Fast::Unsure
    }

    #[inline(always)]
    fn preference(&self) -> Preference {
        if self.flags.load(Relaxed) == PREFER_WRITERS { Preference::Writers } else { Preference::Readers }
    }

    /// Ends the process if glibc's functions have locked the object, as far as that shows: more threads than
    /// may be inside.
    #[inline(never)] // for the drop-in's size
    fn is_mine(&self) -> bool {
        if self.raw.is_overwritten() {
            Linux::overwritten(0);
        }
        self.raw.is_write_locked_by_me()
    }

    /// A thread called from `site` waits for the lock, or initialises it: what the user has chosen for it holds from now
    /// on. To prefer writers is as if the program had asked for it; but a thread that may hold the lock already reads past
    /// writers (`read_contended`), which glibc's kind of that name does not promise.
    #[inline(always)]
    fn meets(&self, site: usize) {
        let chosen = policy::meets(core::ptr::from_ref(self) as usize, site);
        if chosen.prefers_writers {
            self.flags.store(PREFER_WRITERS, Relaxed);
        }
        if chosen.has_no_bias {
            self.forbid_bias();
        }
    }

    /// To revoke a bias is to lock the queue: within a call, as in [`RwLock::try_write`].
    #[cold]
    #[inline(never)]
    fn forbid_bias(&self) {
        if !leave::undoable(|| self.raw.forbid_bias(), drop) {
            policy::ask_again(core::ptr::from_ref(self) as usize);
        }
    }

    /// `acquire`, which reports whether the lock was acquired.
    #[inline(always)]
    fn wait(&self, acquire: impl FnOnce() -> bool) -> bool {
        leave::undoable(acquire, |acquired| {
            if acquired {
                // SAFETY: this lock, which is held.
                unsafe { unlock(core::ptr::from_ref(self).cast_mut().cast()) };
            }
        })
    }

    #[inline(always)]
    fn unlock(&self) -> c_int {
        if self.raw.is_writing() {
            self.raw.unlock_write();
            return 0;
        }
        match self.raw.unlock_in_slot() {
            SlotLeft::Left => 0,
            left => self.unlock_counted(left),
        }
    }

    /// What remains of [`RwLock::unlock`]: of a reader that is counted, as a rule.
    #[inline(never)]
    fn unlock_counted(&self, left: SlotLeft) -> c_int {
        if self.raw.unlock_counted(left) { 0 } else { EPERM }
    }

    /// What no reader can wait for: itself as the writer, or room for one reader more.
    #[cold]
    #[inline(never)]
    fn read_slow(&self, deadline: Option<Deadline>) -> c_int {
        if self.is_mine() {
            EDEADLK
        } else if self.raw.is_full() {
            EAGAIN
        } else if self.wait(|| self.raw.read_contended(self.preference(), deadline)) {
            0
        } else {
            ETIMEDOUT
        }
    }

    #[inline(never)] // for the drop-in's size
    fn try_read(&self) -> c_int {
        use spinpark_locks::TryRwLock;
        if self.raw.try_read(self.preference()) {
            0
        } else if self.raw.is_full() {
            EAGAIN
        } else {
            EBUSY
        }
    }

    #[inline(never)] // for the drop-in's size
    fn try_write(&self) -> c_int {
        use spinpark_locks::TryRwLock;
        // To revoke a bias is to lock the queue: within a call, which an exit in a handler does not leave
        // there.
        let try_write = || self.raw.try_write();
        let acquired = if self.raw.is_biased() { self.wait(try_write) } else { try_write() };
        if acquired { 0 } else { EBUSY }
    }

    /// # Safety
    ///
    /// `time` points to a timespec.
    #[inline(never)] // for the drop-in's size, as in the next one
    unsafe fn read_until(&self, clock: Option<Clock>, time: *const timespec) -> c_int {
        // SAFETY: the caller's timespec.
        match unsafe { deadline(clock, time) } {
            Ok(_) if self.raw.read_at_once(self.preference()) => 0,
            Ok(deadline) => self.read_slow(deadline),
            Err(error) => error,
        }
    }

    /// # Safety
    ///
    /// `time` points to a timespec.
    #[inline(never)]
    unsafe fn write_until(&self, clock: Option<Clock>, time: *const timespec) -> c_int {
        // SAFETY: the caller's timespec.
        match unsafe { deadline(clock, time) } {
            Ok(_) if self.raw.write_if_admitted(Linux::thread_token()) => 0,
            Ok(deadline) => self.write_slow(deadline),
            Err(error) => error,
        }
    }

    #[cold]
    #[inline(never)]
    fn write_slow(&self, deadline: Option<Deadline>) -> c_int {
        let acquire = || {
            self.raw.revoke_bias();
            self.raw.write_until_as(self.preference(), deadline)
        };
        if self.is_mine() {
            EDEADLK
        } else if self.wait(acquire) {
            0
        } else {
            ETIMEDOUT
        }
    }
}

/// A deadline that was checked before anything else: glibc does that for read-write locks.
///
/// # Safety
///
/// `time` points to a timespec.
unsafe fn deadline(clock: Option<Clock>, time: *const timespec) -> Result<Option<Deadline>, c_int> {
    let clock = clock.ok_or(EINVAL)?;
    // SAFETY: the caller's pointer.
    unsafe { spinpark_linux::deadline(clock, time) }.ok_or(EINVAL).map(Some)
}

/// `pthread_rwlock_init`: [`init_from`] with the caller's address.
///
/// # Safety
///
/// As POSIX has it.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn init(
    rwlock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
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
    rwlock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
    site: usize,
) -> c_int {
    let ours = mode::ours();
    if ours {
        // Also what glibc's initialiser leaves, but for its own fields: it is not relied on to clear the
        // rest. SAFETY: the caller's memory for an object; all zero is its static initialiser.
        unsafe { rwlock.write_bytes(0, 1) };
    }
    let error = match ours && attributes.is_null() {
        true => 0,
        // SAFETY: the caller's pointers.
        false => unsafe { real::pthread_rwlock_init(rwlock, attributes) },
    };
    // SAFETY: initialised just now.
    let this = unsafe { RwLock::at(rwlock) };
    if ours && error == 0 && this.is_private() {
        this.meets(site);
    }
    error
}

/// `pthread_rwlock_destroy`: always 0, as in glibc.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn destroy(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    if unsafe { RwLock::at(rwlock) }.is_ours() {
        policy::forget(rwlock as usize);
        return 0;
    }
    // SAFETY: the caller's lock.
    unsafe { real::pthread_rwlock_destroy(rwlock) }
}

/// Declares the functions that acquire or release: ours by the method, or glibc's by its name.
macro_rules! calls {
    ($($(#[$doc:meta])* $vis:vis $name:ident($this:ident $(; $site:ident)? $(, $argument:ident: $type:ty)*) => $ours:expr, $real:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// As POSIX has it.
        #[cold]
        #[inline(never)]
        $vis unsafe extern "C" fn $name(rwlock: *mut pthread_rwlock_t $(, $site: usize)? $(, $argument: $type)*) -> c_int {
            // SAFETY: the caller's lock.
            let $this = unsafe { RwLock::at(rwlock) };
            if $this.is_ours() {
                return $ours;
            }
            // SAFETY: the caller's pointers.
            unsafe { real::$real(rwlock $(, $argument)*) }
        }
    )*};
}

/// Defines a function that adds the caller's address to `$from`'s arguments: as `lock_general` of
/// [`mutex`](crate::mutex).
macro_rules! with_site {
    ($($name:ident => $from:ident;)*) => {$(
        #[doc = concat!("[`", stringify!($from), "`] with the caller's address.")]
        ///
        /// # Safety
        ///
        /// As POSIX has it.
        #[unsafe(naked)]
        unsafe extern "C" fn $name(rwlock: *mut pthread_rwlock_t) -> c_int {
            core::arch::naked_asm!(
                ".cfi_startproc",
                arch::with_caller!(second),
                ".cfi_endproc",
                from = sym $from,
            )
        }
    )*};
}

with_site! {
    read_elsewhere => read_from;
    write_elsewhere => write_from;
}

/// `pthread_rwlock_rdlock`: EDEADLK if this thread holds it for writing, EAGAIN if there are too many
/// readers.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn read(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    let this = unsafe { RwLock::at(rwlock) };
    if this.is_known_ours() && this.raw.read_in_slot() {
        return 0;
    }
    // SAFETY: the caller's lock.
    unsafe { read_counted(rwlock) }
}

/// [`read`] of a lock whose readers are counted. Apart, for what it keeps in registers: a reader in a slot
/// keeps nothing.
///
/// # Safety
///
/// As POSIX has it.
#[inline(never)]
unsafe fn read_counted(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    let this = unsafe { RwLock::at(rwlock) };
    if this.is_known_ours() && this.raw.read_counted(this.preference()) {
        return 0;
    }
    // SAFETY: the caller's lock.
    unsafe { read_elsewhere(rwlock) }
}

/// `pthread_rwlock_wrlock`: EDEADLK if this thread holds it for writing.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn write(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    let this = unsafe { RwLock::at(rwlock) };
    let token = spinpark_linux::known_token();
    if this.is_known_ours() && token != 0 && this.raw.write_at_once(token) {
        return 0;
    }
    // SAFETY: the caller's lock.
    unsafe { write_elsewhere(rwlock) }
}

/// `pthread_rwlock_tryrdlock`: EBUSY, EAGAIN.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn try_read(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    let this = unsafe { RwLock::at(rwlock) };
    if this.is_known_ours() {
        if this.raw.keeps_out_readers() {
            return EBUSY;
        }
        if this.raw.try_read_simply(this.preference()) {
            return 0;
        }
    }
    // SAFETY: the caller's lock.
    unsafe { try_read_elsewhere(rwlock) }
}

/// `pthread_rwlock_trywrlock`: EBUSY.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn try_write(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    let this = unsafe { RwLock::at(rwlock) };
    let token = spinpark_linux::known_token();
    if this.is_known_ours() && token != 0 {
        if this.raw.keeps_out_writers() {
            return EBUSY;
        }
        if this.raw.try_write_at_once(token) {
            return 0;
        }
    }
    // SAFETY: the caller's lock.
    unsafe { try_write_elsewhere(rwlock) }
}

/// `pthread_rwlock_unlock`: EPERM if it is free.
///
/// # Safety
///
/// As POSIX has it.
pub(crate) unsafe extern "C" fn unlock(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's lock.
    let this = unsafe { RwLock::at(rwlock) };
    if this.is_known_ours() {
        return this.unlock();
    }
    // SAFETY: the caller's lock.
    unsafe { unlock_elsewhere(rwlock) }
}

calls! {
    /// [`unlock`], when what is known without a call did not do.
    unlock_elsewhere(this) => this.unlock(), pthread_rwlock_unlock;
    /// [`read`] by the caller at `site`, when its short way did not do.
    read_from(this; site) => { this.meets(site); this.read_slow(None) }, pthread_rwlock_rdlock;
    /// [`try_read`], when its short way did not do.
    try_read_elsewhere(this) => this.try_read(), pthread_rwlock_tryrdlock;
    /// `pthread_rwlock_timedrdlock`: on the realtime clock; ETIMEDOUT, EINVAL, EDEADLK, EAGAIN.
    pub(crate) timed_read(this, time: *const timespec) =>
        // SAFETY: the caller's timespec.
        unsafe { this.read_until(Some(Clock::Realtime), time) }, pthread_rwlock_timedrdlock;
    /// `pthread_rwlock_clockrdlock`: as `pthread_rwlock_timedrdlock`, on either clock.
    pub(crate) clock_read(this, clock: clockid_t, time: *const timespec) =>
        // SAFETY: the caller's timespec.
        unsafe { this.read_until(clock_of(clock), time) }, pthread_rwlock_clockrdlock;
    /// [`write()`] by the caller at `site`, when its short way did not do.
    write_from(this; site) => { this.meets(site); this.write_slow(None) }, pthread_rwlock_wrlock;
    /// [`try_write`], when its short way did not do.
    try_write_elsewhere(this) => this.try_write(), pthread_rwlock_trywrlock;
    /// `pthread_rwlock_timedwrlock`: on the realtime clock; ETIMEDOUT, EINVAL, EDEADLK.
    pub(crate) timed_write(this, time: *const timespec) =>
        // SAFETY: the caller's timespec.
        unsafe { this.write_until(Some(Clock::Realtime), time) }, pthread_rwlock_timedwrlock;
    /// `pthread_rwlock_clockwrlock`: as `pthread_rwlock_timedwrlock`, on either clock.
    pub(crate) clock_write(this, clock: clockid_t, time: *const timespec) =>
        // SAFETY: the caller's timespec.
        unsafe { this.write_until(clock_of(clock), time) }, pthread_rwlock_clockwrlock;
}
