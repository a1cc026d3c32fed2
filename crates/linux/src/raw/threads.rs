//! Threads and processes: their numbers, and whether they still exist.

use core::ffi::CStr;
use core::mem::{self, MaybeUninit};

use crate::raw::call6;

/// The calling thread's id.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { call6(libc::SYS_gettid, [0; 6]) as u32 }
}

/// The calling thread's pointer to its thread-local memory; the C library's descriptor of the thread is
/// there.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word there is its own address.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer,
                         options(pure, readonly, nostack, preserves_flags));
    }
    pointer
}

/// The calling thread's pointer to its thread-local memory; the C library's descriptor of the thread is below it.
#[cfg(target_arch = "aarch64")]
#[must_use]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register that every thread has.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

/// The parent's process id.
#[must_use]
pub fn parent_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { call6(libc::SYS_getppid, [0; 6]) as u32 }
}

/// Whether `thread`, one of this process, has ended. `false` if that is not known.
#[must_use]
pub fn has_ended(thread: u32) -> bool {
    let arguments = [super::process_id() as usize, thread as usize, 0, 0, 0, 0];
    // SAFETY: signal 0 sends nothing: the call only checks whether one could be sent.
    unsafe { call6(libc::SYS_tgkill, arguments) == -(libc::ESRCH as isize) }
}

/// Prepares [`order_all_threads`] in this process, and in those that it forks from now on; whether the kernel
/// does that: Linux 4.14, and no filter against it.
#[must_use]
pub fn prepare_order() -> bool {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

/// After [`prepare_order`]: orders memory in all threads of this process that run, as a fence at some point of
/// each; one that does not run has had its fence. Whether that worked.
#[must_use]
pub fn order_all_threads() -> bool {
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: no memory is touched.
    unsafe { call6(libc::SYS_membarrier, [command as usize, 0, 0, 0, 0, 0]) == 0 }
}

/// Whether this process has children, which it has not waited for.
#[must_use]
pub fn has_children() -> bool {
    let options = (libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL) as usize;
    // SAFETY: no memory is touched, and no child's end is taken away.
    unsafe { call6(libc::SYS_waitid, [libc::P_ALL as usize, 0, 0, options, 0, 0]) == 0 }
}

/// The calling thread's name, ended by a zero.
#[must_use]
pub fn thread_name() -> [u8; 16] {
    let mut name = [0; 16];
    let arguments = [libc::PR_GET_NAME as usize, name.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes 16 bytes.
    unsafe { call6(libc::SYS_prctl, arguments) };
    name
}

/// By how much the kernel may delay the calling thread's timers, ns; 0 if it cannot be asked.
#[must_use]
pub fn timer_slack() -> u64 {
    // SAFETY: no memory is touched.
    let slack = unsafe { call6(libc::SYS_prctl, [libc::PR_GET_TIMERSLACK as usize, 0, 0, 0, 0, 0]) };
    u64::try_from(slack).unwrap_or(0)
}

/// Lets all processes of the same user debug this one, where Yama asks for that; elsewhere it fails.
pub(crate) fn allow_tracers() {
    // SAFETY: no memory is touched.
    unsafe {
        call6(libc::SYS_prctl, [libc::PR_SET_PTRACER as usize, libc::PR_SET_PTRACER_ANY as usize, 0, 0, 0, 0])
    };
}

/// A number that changes when the calling thread enters a sandbox of system calls: the mode of seccomp, and
/// whether there may be new privileges.
#[must_use]
pub fn sandbox() -> u32 {
    let ask = |what: i32| {
        // SAFETY: both questions take nothing else.
        unsafe { call6(libc::SYS_prctl, [what as usize, 0, 0, 0, 0, 0]) as u32 }
    };
    ask(libc::PR_GET_SECCOMP) << 8 | ask(libc::PR_GET_NO_NEW_PRIVS) & 0xff
}

/// How many CPUs the calling thread may use; 0 if that is not known.
#[must_use]
pub fn cpus() -> u32 {
    let mut set = [0_u64; 128];
    let arguments = [0, size_of_val(&set), set.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes at most the size of the mask.
    let bytes = unsafe { call6(libc::SYS_sched_getaffinity, arguments) };
    let words = usize::try_from(bytes).unwrap_or(0) / 8;
    set.iter().take(words).map(|word| word.count_ones()).sum()
}

/// For how long `thread`, one of this process, was ready to run and had no CPU, ns; `None` if that is not
/// known. For a thread that has none now, the time until it lost its CPU.
#[must_use]
pub fn run_delay(thread: u32) -> Option<u64> {
    const BEFORE: &[u8] = b"/proc/self/task/";
    const AFTER: &[u8] = b"/schedstat\0";
    let mut path = [0; 48];
    path[..BEFORE.len()].copy_from_slice(BEFORE);
    let digits = thread.checked_ilog10()? as usize + 1;
    let mut rest = thread;
    for at in (BEFORE.len()..BEFORE.len() + digits).rev() {
        path[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let end = BEFORE.len() + digits;
    path[end..end + AFTER.len()].copy_from_slice(AFTER);
    let file = super::open_read(CStr::from_bytes_until_nul(&path).ok()?);
    if file < 0 {
        return None;
    }
    let mut text = [0; 64];
    let length = super::read(file, &mut text);
    super::close(file);
    let text = text.get(..usize::try_from(length).ok()?)?;
    // Time on a CPU, time without one, number of time slices.
    let delay = core::str::from_utf8(text).ok()?.split(' ').nth(1)?;
    delay.parse().ok()
}

/// For how long the calling thread has had a CPU, ns; 0 if that is not known.
#[must_use]
pub fn cpu_time() -> u64 {
    cpu_time_by(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The same of all threads of the process, together with those that have ended.
#[must_use]
pub fn process_cpu_time() -> u64 {
    cpu_time_by(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu_time_by(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [clock as usize, (&raw mut time) as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one such structure.
    unsafe { call6(libc::SYS_clock_gettime, arguments) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often the calling thread has gone to sleep by itself.
#[must_use]
pub fn sleeps() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let arguments = [libc::RUSAGE_THREAD as usize, usage.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one such structure.
    unsafe { call6(libc::SYS_getrusage, arguments) };
    // SAFETY: all zero is one, too.
    let usage = unsafe { usage.assume_init() };
    usage.ru_nvcsw as u64
}

/// Changes the calling thread's mask of blocked signals by `how` (`SIG_BLOCK`, `SIG_SETMASK`); returns what
/// it was.
pub(crate) fn change_mask(how: i32, signals: u64) -> u64 {
    let mut before = 0_u64;
    let words = [&raw const signals as usize, &raw mut before as usize];
    // SAFETY: reads and writes a word each.
    unsafe {
        call6(libc::SYS_rt_sigprocmask, [how as usize, words[0], words[1], mem::size_of::<u64>(), 0, 0]);
    }
    before
}

/// Runs `body` with all signals blocked but those of errors in it, such as SIGSEGV.
pub fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    const ERRORS: [i32; 5] = [libc::SIGILL, libc::SIGTRAP, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];
    let errors = ERRORS.iter().fold(0_u64, |mask, signal| mask | 1 << (signal - 1));
    let before = change_mask(libc::SIG_SETMASK, !errors);
    let result = body();
    change_mask(libc::SIG_SETMASK, before);
    result
}
