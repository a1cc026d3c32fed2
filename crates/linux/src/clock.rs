//! The two clocks: the kernel's time, and their POSIX ids.
//!
//! Not libc's `clock_gettime`: a library in front of it may show another time (libfaketime), and the kernel
//! would get a deadline of that time. The vDSO's own function, which libc's calls, costs as much. Before it
//! has been looked up, and where there is none (valgrind), the clock is a system call.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use core::{mem, ptr};

use spinpark_platform::{Clock, Clocks, Deadline, NS_PER_SEC};

use crate::memory::{LinuxWith, LockPadding};
use crate::raw::call6;
use crate::vdso;

type Read = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

/// The vDSO's function, or null. It guards no other data, and is the same in a forked child: so Relaxed.
static READ: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks for the vDSO's function; until then, each reading of a clock is a system call.
#[cold]
pub fn start() {
    READ.store(vdso::clock_gettime() as *mut c_void, Relaxed);
}

pub(crate) fn now(clock: Clock) -> u64 {
    read(clock_id(clock))
}

/// The id of `clock`.
pub fn clock_id(clock: Clock) -> libc::clockid_t {
    match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Realtime => libc::CLOCK_REALTIME,
    }
}

/// The clock `id`, if one can wait by it.
pub fn clock_of(id: libc::clockid_t) -> Option<Clock> {
    match id {
        libc::CLOCK_REALTIME => Some(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Some(Clock::Monotonic),
        _ => None,
    }
}

/// The deadline at `time` on `clock`; `None` if its nanoseconds are out of range (EINVAL).
///
/// # Safety
///
/// `time` points to a timespec.
pub unsafe fn deadline(clock: Clock, time: *const libc::timespec) -> Option<Deadline> {
    // SAFETY: the caller's pointer.
    let libc::timespec { tv_sec, tv_nsec } = unsafe { *time };
    let nanoseconds = u32::try_from(tv_nsec).ok().filter(|&it| u64::from(it) < NS_PER_SEC)?;
    Some(Deadline::from_timespec(clock, tv_sec, nanoseconds))
}

/// Changes with each tick of the kernel's clock, each 1 to 10 ms; costs a third of reading the time. Not 0.
pub(crate) fn tick() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// Not inlined: it is called from many slow paths, and the drop-in is to stay small.
#[inline(never)]
fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: null, or the vDSO's function of this type; `Option<fn>` has null for `None`.
    let read = unsafe { mem::transmute::<*mut c_void, Option<Read>>(READ.load(Relaxed)) };
    // SAFETY: `time` is a live timespec.
    if read.is_none_or(|read| unsafe { read(id, &mut time) } != 0) {
        let arguments = [id as usize, ptr::addr_of_mut!(time) as usize, 0, 0, 0, 0];
        // SAFETY: `time` is a live timespec. The call cannot fail for these clocks, unless a sandbox forbids
        // it: then they stand still.
        unsafe { call6(libc::SYS_clock_gettime, arguments) };
    }
    Deadline::from_timespec(Clock::Monotonic, time.tv_sec, time.tv_nsec as u32).at
}

impl<R: LockPadding> Clocks for LinuxWith<R> {
    fn now(clock: Clock) -> u64 {
        now(clock)
    }
}
