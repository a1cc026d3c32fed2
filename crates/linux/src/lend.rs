//! Priorities lent to threads that have a queue locked.
//!
//! A queue is locked for a few dozen instructions, or for a barrier. Its holder may be preempted there, and a
//! real-time thread that wants the queue would wait for every thread whose priority lies between theirs
//! (priority inversion). The kernel's cure is a futex with priority inheritance, whose word must be the id of
//! its owner, and nothing else. A queue lock is not such a word, but each of 64 *owner words*, chosen by the
//! queue's address, is. The holder of a queue writes its id to the owner word, if that is 0. A real-time
//! thread that would sleep for the queue sleeps on the owner word. If it acquires that, it releases it at
//! once, and tries to lock the queue as before.
//!
//! An owner word guards nothing, and a loan is not certain: two queues may share a word, another waiter may
//! just be releasing it, a signal handler may use it while its thread does. So a waiter sleeps alternately
//! on it and on the queue itself. Nothing is written before the first real-time thread of the process waits
//! for a lock. A thread's id is in an owner word only while it locks a queue and has it locked: of the
//! program's code, only a handler that interrupts that can wait for a mutex with priority inheritance.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spinpark_platform::{as_timespec, Clock, Wait};

use crate::raw::call6;
use crate::{clock, generation, policy, sandbox, thread};

/// `FUTEX_LOCK_PI2`, since Linux 5.14: as `FUTEX_LOCK_PI`, with a deadline on the monotonic clock.
const LOCK_PI2: i32 = 13 | libc::FUTEX_PRIVATE_FLAG;
const UNLOCK_PI: i32 = libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG;
const TIMED_OUT: isize = -(libc::ETIMEDOUT as isize);

/// Two queues that share a word cost their waiters needless sleeps. The words take 256 bytes, and far fewer
/// threads have a queue locked at one time.
const OWNER_WORDS: usize = 64;
/// 0, or the id of the thread that has a queue locked, with the kernel's bit if threads sleep on the word.
static OWNERS: [AtomicU32; OWNER_WORDS] = [const { AtomicU32::new(0) }; OWNER_WORDS];

/// The process whose threads' ids are there.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn owner_word(queue: *const AtomicU32) -> &'static AtomicU32 {
    // Fibonacci hashing: queues are 16 bytes or more apart.
    let hash = (queue as usize as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &OWNERS[(hash >> 58) as usize % OWNER_WORDS]
}

/// The calling thread is about to lock the queue, or has just done so: writes its id to the owner
/// word, if that is 0.
#[inline(always)]
pub(crate) fn locks(queue: *const AtomicU32) {
    if policy::is_any_realtime() {
        announce(queue);
    }
}

/// The calling thread has just unlocked the queue, or has not locked it.
#[inline(always)]
pub(crate) fn unlocked(queue: *const AtomicU32) {
    if policy::is_any_realtime() {
        withdraw(owner_word(queue));
    }
}

// Relaxed, here and below: the kernel orders its own steps, and the word guards no data.
#[cold]
#[inline(never)]
fn announce(queue: *const AtomicU32) {
    let _ = owner_word(queue).compare_exchange(0, thread::token(), Relaxed, Relaxed);
}

#[cold]
#[inline(never)]
fn withdraw(word: &AtomicU32) {
    let own = thread::token();
    match word.compare_exchange(own, 0, Relaxed, Relaxed) {
        Err(seen) if seen & libc::FUTEX_TID_MASK == own && !sandbox::is_confined() => {
            let word: *const AtomicU32 = word;
            // SAFETY: the word is a static of this library. If the call fails, the thread's id is not there.
            unsafe { call6(libc::SYS_futex, [word as usize, UNLOCK_PI as usize, 0, 0, 0, 0]) };
        }
        _ => {}
    }
}

/// Sleeps for at most `span` ns on the owner word of a queue that another thread has locked. `None`: it did
/// not sleep, because the word has no other thread's id, or this kernel cannot do it.
#[cold]
#[inline(never)]
pub(crate) fn wait(queue: &AtomicU32, span: u64) -> Option<Wait> {
    let word = owner_word(queue);
    let process = generation::generation();
    if process != PROCESS.swap(process, Relaxed) {
        OWNERS.iter().for_each(|word| word.store(0, Relaxed)); // the ids there are of threads of the parent
    }
    let holder = word.load(Relaxed) & libc::FUTEX_TID_MASK;
    if sandbox::is_confined() || holder == 0 || holder == thread::token() {
        return None;
    }
    let at = clock::now(Clock::Monotonic).saturating_add(span);
    let (tv_sec, tv_nsec) = as_timespec(at);
    let timeout = libc::timespec { tv_sec, tv_nsec };
    let address: *const AtomicU32 = word;
    let arguments = [address as usize, LOCK_PI2 as usize, 0, ptr::addr_of!(timeout) as usize, 0, 0];
    // SAFETY: the word is a static of this library, the timeout is alive.
    match unsafe { call6(libc::SYS_futex, arguments) } {
        0 => {
            withdraw(word);
            Some(Wait::Woken)
        }
        TIMED_OUT => Some(Wait::TimedOut),
        // A holder that has ended, or a kernel without it. The kernel may have set its bit before it found
        // that out.
        _ => {
            for stale in [holder, holder | libc::FUTEX_WAITERS] {
                let _ = word.compare_exchange(stale, 0, Relaxed, Relaxed);
            }
            None
        }
    }
}
