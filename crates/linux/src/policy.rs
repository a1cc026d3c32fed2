//! Whether the calling thread is a real-time thread: such threads go first among waiters, and do not spin on
//! the CPU that a lock's owner may need.
//!
//! The thread itself, another one, or another process (`chrt`, RealtimeKit) may change it at any time. So the
//! kernel is asked as a thread is about to wait: at its first wait, then at most once a tick of the clock (1
//! to 10 ms). Once the process has had a real-time thread, it is asked at each wait. A tick is a load from
//! the vDSO's page, a question 0.1 µs.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use spinpark_platform::HIGHEST_PRIORITY;

use crate::clock;
use crate::raw::call6;
use crate::sandbox::is_confined;
use crate::single::is_alone;

/// All zero in a new thread.
#[repr(C)]
struct Local {
    /// The tick at which the kernel was last asked.
    asked: u64,
    priority: u8,
}

crate::thread_block!(fn local() -> *mut Local = "spinpark_0_1_policy");

/// Whether a thread of this process was a real-time one.
static SEEN: AtomicBool = AtomicBool::new(false);

/// Whether some thread of this process was a real-time one when asked.
#[inline(always)]
pub(crate) fn is_any_realtime() -> bool {
    SEEN.load(Relaxed)
}

/// Whether the calling thread was a real-time one when last asked.
pub(crate) fn is_realtime() -> bool {
    // SAFETY: the block belongs to this thread.
    unsafe { (*local()).priority != 0 }
}

/// The priority of the calling thread, which is about to wait.
#[inline(never)] // for the drop-in's size
pub(crate) fn priority() -> u8 {
    let tick = clock::tick();
    // SAFETY: the block belongs to this thread.
    let asked = unsafe { mem::replace(&mut (*local()).asked, tick) };
    if asked != tick || SEEN.load(Relaxed) {
        ask();
    }
    // SAFETY: the block belongs to this thread.
    unsafe { (*local()).priority }
}

/// Asks the kernel, if that is allowed; returns whether the calling thread is a real-time one.
#[cold]
#[inline(never)]
pub(crate) fn ask() -> bool {
    if !is_confined() && !is_alone() {
        // `struct sched_attr` of Linux 3.14: size, policy, flags (64 bits), nice, priority, and three numbers
        // of 64 bits.
        let mut attributes = [0_u32; 12];
        let size = mem::size_of_val(&attributes);
        // SAFETY: the kernel writes at most `size` bytes. If it fails, all stays 0, which is the usual
        // policy.
        unsafe { call6(libc::SYS_sched_getattr, [0, ptr::addr_of_mut!(attributes) as usize, size, 0, 0, 0]) };
        let priority = match attributes[1] as i32 {
            libc::SCHED_FIFO | libc::SCHED_RR => attributes[5] as u8,
            libc::SCHED_DEADLINE => HIGHEST_PRIORITY,
            _ => 0,
        };
        // SAFETY: the block belongs to this thread.
        unsafe { (*local()).priority = priority };
        if priority != 0 {
            SEEN.store(true, Relaxed);
        }
    }
    is_realtime()
}
