//! Priorities lent to threads that have a queue locked.
//!
//! A queue is locked for a few dozen instructions, or for a barrier. Its holder may be preempted there, and a
//! real-time thread that wants the queue would wait for every thread whose priority lies between theirs
//! (priority inversion). The kernel's cure is a futex with priority inheritance, whose word must be the id of
//! its owner, and nothing else. A queue lock is not such a word, but each of 64 *desks*, chosen by the
//! queue's address, is. The holder of a queue writes its id to the desk, if that is free. A real-time thread
//! that would sleep for the queue sleeps at the desk. If it gets the desk, it releases it at once, and tries
//! to lock the queue as before.
//!
//! A desk guards nothing, and a loan is not certain: two queues may share a desk, another waiter may just be
//! leaving it, a handler may use it above its own thread. So a waiter sleeps alternately there and for the
//! queue itself. Nothing is written before the first real-time thread of the process waits for a lock. A
//! thread stands at a desk only while it locks a queue and has it locked: of the program's code, only a
//! handler above that can wait for a mutex with priority inheritance meanwhile.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spinpark_platform::{as_timespec, Clock, Wait};

use crate::raw::call6;
use crate::{clock, generation, policy, sandbox, thread};

/// `FUTEX_LOCK_PI2`, since Linux 5.14: as `FUTEX_LOCK_PI`, with a deadline on the monotonic clock.
const LOCK_PI2: i32 = 13 | libc::FUTEX_PRIVATE_FLAG;
const UNLOCK_PI: i32 = libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG;
const TIMED_OUT: isize = -(libc::ETIMEDOUT as isize);

/// Two queues that share a desk cost their waiters needless sleeps. The desks take 256 bytes, and far fewer
/// threads have a queue locked at one time.
const DESKS: usize = 64;
/// 0, or the id of the thread that has a queue locked, with the kernel's bit if threads wait here.
static AT: [AtomicU32; DESKS] = [const { AtomicU32::new(0) }; DESKS];

/// The process whose threads stand there.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn desk(queue: *const AtomicU32) -> &'static AtomicU32 {
    // Fibonacci hashing: queues are 16 bytes or more apart.
    let hash = (queue as usize as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &AT[(hash >> 58) as usize % DESKS]
}

/// The calling thread is about to lock the queue, or has just done so: writes its id to the desk, if that is
/// free.
#[inline(always)]
pub(crate) fn locks(queue: *const AtomicU32) {
    if policy::is_any_realtime() {
        stand_at_desk(queue);
    }
}

/// The calling thread has just unlocked the queue, or has not locked it.
#[inline(always)]
pub(crate) fn unlocked(queue: *const AtomicU32) {
    if policy::is_any_realtime() {
        leave(desk(queue));
    }
}

// Relaxed, here and below: the kernel orders its own steps, and the word guards no data.
#[cold]
#[inline(never)]
fn stand_at_desk(queue: *const AtomicU32) {
    let _ = desk(queue).compare_exchange(0, thread::token(), Relaxed, Relaxed);
}

#[cold]
#[inline(never)]
fn leave(desk: &AtomicU32) {
    let own = thread::token();
    match desk.compare_exchange(own, 0, Relaxed, Relaxed) {
        Err(seen) if seen & libc::FUTEX_TID_MASK == own && !sandbox::is_confined() => {
            let desk: *const AtomicU32 = desk;
            // SAFETY: the word is a static of this library. If the call fails, the thread's id is not there.
            unsafe { call6(libc::SYS_futex, [desk as usize, UNLOCK_PI as usize, 0, 0, 0, 0]) };
        }
        _ => {}
    }
}

/// Sleeps for at most `span` ns at the desk of a queue that another thread has locked. `None`: it did not
/// sleep, because no thread stands there, or this kernel cannot do it.
#[cold]
#[inline(never)]
pub(crate) fn wait(queue: &AtomicU32, span: u64) -> Option<Wait> {
    let desk = desk(queue);
    let process = generation::generation();
    if process != PROCESS.swap(process, Relaxed) {
        AT.iter().for_each(|desk| desk.store(0, Relaxed)); // the ids there are of threads of the parent
    }
    let holder = desk.load(Relaxed) & libc::FUTEX_TID_MASK;
    if sandbox::is_confined() || holder == 0 || holder == thread::token() {
        return None;
    }
    let at = clock::now(Clock::Monotonic).saturating_add(span);
    let (tv_sec, tv_nsec) = as_timespec(at);
    let timeout = libc::timespec { tv_sec, tv_nsec };
    let place: *const AtomicU32 = desk;
    let arguments = [place as usize, LOCK_PI2 as usize, 0, ptr::addr_of!(timeout) as usize, 0, 0];
    // SAFETY: the word is a static of this library, the timeout is alive.
    match unsafe { call6(libc::SYS_futex, arguments) } {
        0 => {
            leave(desk);
            Some(Wait::Woken)
        }
        TIMED_OUT => Some(Wait::TimedOut),
        // A holder that has ended, or a kernel without it. The kernel may have set its bit before it found
        // out.
        _ => {
            for left in [holder, holder | libc::FUTEX_WAITERS] {
                let _ = desk.compare_exchange(left, 0, Relaxed, Relaxed);
            }
            None
        }
    }
}
