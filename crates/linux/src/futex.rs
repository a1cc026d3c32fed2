//! Sleeping on a word, with private futexes: locks that processes share are glibc-owned.
//!
//! Our own locks need four operations only, all as old as any kernel that glibc still supports:
//! `FUTEX_WAIT_BITSET` (an absolute deadline on either clock: a caller's goes to the kernel unchanged),
//! `FUTEX_WAIT` (a span, for the locks' own timers), `FUTEX_WAKE`, and `FUTEX_REQUEUE` for a crowd that is
//! woken at once. Older designs also compare before they move sleepers ([`requeue`]), and wake on two words
//! at once ([`wake_op`]).

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spinpark_platform::{as_timespec, Clock, Comparison, Deadline, Futex, Operand, Wait, WakeOp, WordOp};

use crate::memory::{LinuxWith, LockPadding};
use crate::raw::call6;
use crate::sandbox::is_confined;
use crate::{cpu, leave, lend, policy, rseq, unwoken};

const WAIT: i32 = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
const WAIT_FOR: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
const REQUEUE: i32 = libc::FUTEX_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
const CMP_REQUEUE: i32 = libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
const WAKE_OP: i32 = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
const ANY_BIT: usize = u32::MAX as usize;

const AGAIN: isize = -(libc::EAGAIN as isize);
const TIMED_OUT: isize = -(libc::ETIMEDOUT as isize);

#[inline(never)]
pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
    match deadline {
        None => wait_op(word, WAIT, expected, None),
        Some(deadline) => {
            let clock = match deadline.clock {
                Clock::Monotonic => 0,
                Clock::Realtime => libc::FUTEX_CLOCK_REALTIME,
            };
            wait_op(word, WAIT | clock, expected, Some(deadline.at))
        }
    }
}

/// For at most `span` ns, on the kernel's monotonic clock.
pub(crate) fn wait_for(word: &AtomicU32, expected: u32, span: u64) -> Wait {
    wait_op(word, WAIT_FOR, expected, Some(span))
}

/// The time after which a real-time thread checks again whether the queue is locked, and by which thread, ns.
/// A running thread has a queue locked for far less, and deadlines of real-time threads are far longer.
const RECHECK_NS: u64 = 1_000_000;

/// [`Futex::wait_for_queue`] of a real-time thread.
#[cold]
#[inline(never)]
fn wait_and_lend(word: &AtomicU32, expected: u32, span: u64) -> Wait {
    let part = span.min(RECHECK_NS);
    if word.load(Relaxed) != expected {
        return Wait::ValueChanged;
    }
    // The owner word may have another queue's holder: so the next sleep is for the queue itself.
    let lent = lend::wait(word, part / 2).filter(|ended| *ended != Wait::TimedOut);
    match lent.unwrap_or_else(|| wait_for(word, expected, part / 2)) {
        Wait::TimedOut if part < span => Wait::Woken,
        ended => ended,
    }
}

/// `time`: a point in time or a span, ns, as `operation` has it.
#[inline(never)]
fn wait_op(word: &AtomicU32, operation: i32, expected: u32, time: Option<u64>) -> Wait {
    cpu::before_sleep();
    let (seconds, nanoseconds) = as_timespec(time.unwrap_or(0));
    let timeout = libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let timeout = if time.is_some() { ptr::addr_of!(timeout) } else { ptr::null() };
    let word: *const AtomicU32 = word;
    let arguments = [word as usize, operation as usize, expected as usize, timeout as usize, 0, ANY_BIT];
    // SAFETY: `word` is a live, aligned 32-bit word; `timeout` is null or a live timespec; the kernel writes
    // neither.
    match unsafe { call6(libc::SYS_futex, arguments) } {
        TIMED_OUT => Wait::TimedOut,
        AGAIN => Wait::ValueChanged,
        _ => Wait::Woken, // woken, or EINTR: a handler ran, and the caller checks its word
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wake(key: *const AtomicU32, most: u32) -> u32 {
    // SAFETY: the kernel hashes the address of a private futex and does not access it.
    let woken = unsafe { call6(libc::SYS_futex, [key as usize, WAKE as usize, count(most), 0, 0, 0]) };
    u32::try_from(woken).unwrap_or(0)
}

/// The kernel's counts are signed.
fn count(number: u32) -> usize {
    number.min(i32::MAX as u32) as usize
}

#[cold]
#[inline(never)]
pub(crate) fn requeue(
    from: &AtomicU32,
    expected: Option<u32>,
    wake: u32,
    to: *const AtomicU32,
    moved: u32,
) -> Option<u32> {
    let operation = if expected.is_some() { CMP_REQUEUE } else { REQUEUE };
    move_sleepers(from, operation, [count(wake), count(moved)], to, expected.unwrap_or_default())
}

/// `from` is a key, and what is there, if anything is, is compared if `operation` does so.
#[cold]
#[inline(never)]
fn move_sleepers(
    from: *const AtomicU32,
    operation: i32,
    [wake, moved]: [usize; 2],
    to: *const AtomicU32,
    expected: u32,
) -> Option<u32> {
    let arguments = [from as usize, operation as usize, wake, moved, to as usize, expected as usize];
    // SAFETY: the kernel reads `from`, if at all, and fails where nothing is mapped; the address of `to` is
    // only hashed.
    let result = unsafe { call6(libc::SYS_futex, arguments) };
    u32::try_from(result).ok()
}

#[cold]
#[inline(never)]
pub(crate) fn wake_op(
    first: *const AtomicU32,
    wake: u32,
    second: &AtomicU32,
    op: WakeOp,
    wake_second: u32,
) -> Option<u32> {
    debug_assert!(wake > 0 && wake_second > 0, "the kernel wakes one before it counts");
    let second: *const AtomicU32 = second;
    let arguments = [
        first as usize,
        WAKE_OP as usize,
        count(wake),
        count(wake_second),
        second as usize,
        encode(op) as usize,
    ];
    // SAFETY: the kernel changes `second`, a live, aligned word, in one atomic operation; the address of
    // `first` is only hashed.
    let result = unsafe { call6(libc::SYS_futex, arguments) };
    // On an error the kernel has not done the operation: it does not know the call, or cannot write to the
    // word.
    u32::try_from(result).ok()
}

/// The last argument of `FUTEX_WAKE_OP`: operation, comparison and their two numbers in 4, 4, 12 and 12 bits.
const fn encode(op: WakeOp) -> u32 {
    const NUMBER: i32 = 0xfff;
    let (flag, operand) = match op.operand() {
        Operand::Value(value) => (0, value),
        Operand::Bit(bit) => (libc::FUTEX_OP_OPARG_SHIFT, bit as i32),
    };
    let operation = match op.op() {
        WordOp::Set => libc::FUTEX_OP_SET,
        WordOp::Add => libc::FUTEX_OP_ADD,
        WordOp::Or => libc::FUTEX_OP_OR,
        WordOp::AndNot => libc::FUTEX_OP_ANDN,
        WordOp::Xor => libc::FUTEX_OP_XOR,
    };
    let comparison = match op.comparison() {
        Comparison::Equal => libc::FUTEX_OP_CMP_EQ,
        Comparison::NotEqual => libc::FUTEX_OP_CMP_NE,
        Comparison::Less => libc::FUTEX_OP_CMP_LT,
        Comparison::LessOrEqual => libc::FUTEX_OP_CMP_LE,
        Comparison::Greater => libc::FUTEX_OP_CMP_GT,
        Comparison::GreaterOrEqual => libc::FUTEX_OP_CMP_GE,
    };
    ((operation | flag) << 28 | comparison << 24 | (operand & NUMBER) << 12 | (op.constant() & NUMBER)) as u32
}

impl<R: LockPadding> Futex for LinuxWith<R> {
    fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Wait {
        wait(word, expected, deadline)
    }

    fn futex_wait_for(word: &AtomicU32, expected: u32, span: u64) -> Wait {
        wait_for(word, expected, span)
    }

    #[inline(never)]
    fn sleep_cancellably(sleep: &dyn Fn() -> Wait) -> Wait {
        crate::leave::sleep_cancellably(sleep)
    }

    #[inline(always)]
    fn or_leave<T>(leave: &dyn Fn(), body: impl FnOnce() -> T) -> T {
        crate::leave::or_leave(leave, body)
    }

    fn queues() {
        leave::set_queued(true);
        rseq::count_wait();
    }

    fn notes_sleep(lock: usize, word: &AtomicU32) {
        unwoken::note(lock, word);
    }

    fn sleep_note_was_taken(lock: usize, word: &AtomicU32) -> bool {
        unwoken::withdraw(lock, word)
    }

    fn has_left_queues() {
        leave::set_queued(false);
    }

    fn wait_for_queue(word: &AtomicU32, expected: u32, span: u64) -> Wait {
        if policy::is_realtime() {
            return wait_and_lend(word, expected, span);
        }
        match span {
            u64::MAX => wait(word, expected, None),
            span => wait_for(word, expected, span),
        }
    }

    #[inline(always)]
    fn locks_queue(word: &AtomicU32) {
        lend::locks(word);
    }

    #[inline(always)]
    fn unlocked_queue(key: *const AtomicU32) {
        lend::unlocked(key);
    }

    fn futex_wake(key: *const AtomicU32, count: u32) -> u32 {
        wake(key, count)
    }

    fn futex_requeue(
        from: &AtomicU32,
        expected: Option<u32>,
        wake: u32,
        to: *const AtomicU32,
        moved: u32,
    ) -> Option<u32> {
        requeue(from, expected, wake, to, moved)
    }

    fn futex_gather(key: *const AtomicU32, notified: u32, crowd: *const AtomicU32) -> Option<()> {
        if is_confined() {
            return None; // a filter may know the calls of glibc only
        }
        // Compared in one step: the waiter may have come back, and its thread wait again, on a word that is
        // at the same address and holds something else.
        move_sleepers(key, CMP_REQUEUE, [0, 1], crowd, notified).map(|_| ())
    }

    fn futex_wake_op(
        first: *const AtomicU32,
        wake: u32,
        second: &AtomicU32,
        op: WakeOp,
        wake_second: u32,
    ) -> Option<u32> {
        wake_op(first, wake, second, op, wake_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Linux;

    #[test]
    fn a_word_that_holds_something_else_has_no_sleeper_of_the_crowd() {
        let (word, crowd) = (AtomicU32::new(5), AtomicU32::new(0));
        let gather = |key, notified| Linux::futex_gather(key, notified, &raw const crowd);
        assert!(gather(&raw const word, 5).is_some());
        assert!(gather(&raw const word, 4).is_none());
        assert!(gather(core::ptr::without_provenance(4096), 5).is_none(), "nothing is there");
    }

    #[test]
    fn encodings() {
        let encoded =
            |op, operand, comparison, constant| WakeOp::new(op, operand, comparison, constant).map(encode);
        // glibc's FUTEX_OP_CLEAR_WAKE_IF_GT_ONE.
        let unlock = encoded(WordOp::Set, Operand::Value(0), Comparison::Greater, 1);
        assert_eq!(unlock, Some(4 << 24 | 1));
        let all_bits = encoded(WordOp::Xor, Operand::Value(-1), Comparison::GreaterOrEqual, -1);
        assert_eq!(all_bits, Some(0x45ff_ffff));
        let shifted = encoded(WordOp::AndNot, Operand::Bit(31), Comparison::Equal, -2048);
        assert_eq!(shifted, Some(0xb001_f800));
    }
}
