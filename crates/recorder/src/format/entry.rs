//! The entries in which a thread counts.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;

/// No lock, stack or name: the number of a record that does not exist.
pub const NONE: u32 = u32::MAX;

/// Bins of a histogram: bin *n* counts times from 2^n up to 2^(n+1) ns; the first one has 0 too, the last one
/// all above.
pub const BINS: usize = 40;
/// Parts of a strip.
pub const STRIP: usize = 64;

/// What a thread wants of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Role {
    /// A mutex, or a read-write lock for writing.
    Write = 0,
    /// A read-write lock for reading.
    Read = 1,
    /// A signal of a condition variable.
    Signal = 2,
    /// To re-acquire the mutex after a signal. Counted with the condition variable; from the signal on, so
    /// that the time to wake up is in it.
    Back = 3,
    /// To re-acquire the mutex after a timeout: from the deadline on. Usually all of it is the time to wake
    /// up.
    Late = 4,
    /// To be woken: for a lock, a signal or something else, as only the stack tells.
    Wake = 5,
}

impl Role {
    /// Whether a thread that wants it waits for another one, which is noted: the holder, or the thread that
    /// wakes it.
    #[must_use]
    pub fn is_mutual(self) -> bool {
        matches!(self, Self::Write | Self::Read | Self::Wake)
    }

    /// The role with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Write, Self::Read, Self::Signal, Self::Back, Self::Late, Self::Wake]
            .into_iter()
            .find(|role| *role as u32 == number)
    }
}

/// How calls ended that could not have the lock at once. The first five exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum WaitOutcome {
    /// It got the lock without sleeping.
    Spun,
    /// It slept, and got the lock.
    Parked,
    /// It slept, and the lock was handed to it.
    HandedOver,
    /// Its time was over.
    TimedOut,
    /// It got the lock, and whether it slept is not known.
    Unknown,
    /// Besides: it stopped spinning because the lock went to another owner.
    OwnerChanged,
    /// Besides: it stopped spinning because the owner was not running.
    OffCpu,
    /// Besides: it stopped spinning because it had done so for long enough.
    Budget,
}

/// The start of an entry.
#[derive(Debug)]
#[repr(C)]
pub struct Head {
    /// Which [`Entry`] it is; 0 is the end of the segment. Written last.
    pub kind: AtomicU32,
    /// Bytes of the entry.
    pub bytes: u32,
    /// The number of the lock.
    pub lock: u32,
    /// A [`Role`].
    pub role: u32,
}

/// How long locks were held.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Held {
    /// How many times were measured.
    pub count: AtomicU64,
    /// Their sum, ticks.
    pub total: AtomicU64,
    /// The longest, ticks.
    pub longest: AtomicU64,
    /// The sum of their squares, ticks²: the bits of an `f64`. For the interval of an estimate.
    pub squares: AtomicU64,
}

/// Time waited, over time: part *n* is from `n << shift` to `(n + 1) << shift` µs after the start.
///
/// The shift is the smallest by which the present fits; older numbers are added up when it grows.
#[derive(Debug)]
#[repr(C)]
pub struct Strip {
    /// See above.
    pub shift: AtomicU32,
    /// Spare.
    pub reserved: u32,
    /// µs waited, counted where the wait ended.
    pub waited: [AtomicU32; STRIP],
}

/// A thread's use of a lock in one role. Kind 1.
#[derive(Debug)]
#[repr(C)]
pub struct LockStats {
    /// See [`Head`].
    pub head: Head,
    /// How often it was taken. With the detail `Contended`: since the lock was first waited for, anywhere.
    pub acquisitions: AtomicU64,
    /// How often it could not be taken at once.
    pub contended: AtomicU64,
    /// How often a try failed.
    pub failed_tries: AtomicU64,
    /// Time waited, ticks.
    pub waited: AtomicU64,
    /// The longest wait, ticks.
    pub longest_wait: AtomicU64,
    /// Releases that woke a thread. Known for spinpark's locks, and for condition variables: signals sent.
    pub wake_ups: AtomicU64,
    /// The most threads that waited at a time, this one included.
    pub longest_queue: AtomicU64,
    /// See [`WaitOutcome`].
    pub outcomes: [AtomicU64; 8],
    /// Acquisitions that had waited: all of them are measured.
    pub held_after_wait: Held,
    /// Acquisitions that had not waited: all of them with the detail `Full`; with `Sampled` samples, each as
    /// likely as the others; with `Contended` those that were acquired while other threads waited.
    pub held: Held,
    /// With the detail `Contended`: how long the lock was held while others waited, of holds that are in
    /// neither of these, ticks.
    pub held_waited: AtomicU64,
    /// Of `waited`: the lock was free, ticks. It had been released, and its next owner had not woken up.
    pub free: AtomicU64,
    /// Of `waited`: whether the lock was held or free is not known, ticks.
    pub unsplit: AtomicU64,
    /// Of `waited`: the holder was watched, ticks ([`LockStats::no_cpu`]).
    pub watched: AtomicU64,
    /// Of `watched`: the holder was ready to run and had no CPU, ticks.
    pub no_cpu: AtomicU64,
    /// Waits by length.
    pub waits: [AtomicU32; BINS],
    /// Measured times for which it was held, by length.
    pub holds: [AtomicU32; BINS],
    /// Waits over time.
    pub strip: Strip,
    /// With the detail `Full`: the non-critical sections before acquisitions of this lock by a thread that
    /// had no other, since it last released a lock or ended a wait, ticks.
    pub non_critical: AtomicU64,
    /// The same by length.
    pub non_critical_lengths: [AtomicU32; BINS],
    /// How far counts from a sample may be from the truth.
    pub spread: Spread,
    /// Of `wake_ups`, for condition variables: those that were for all waiters.
    pub broadcasts: AtomicU64,
}

/// Sums over recorded events, each of which stands for *w* of its kind: *w* (*w* − 1) × what is counted,
/// squared. That is an unbiased estimate of the variance of the sums of *w* × what is counted (Horvitz and
/// Thompson), and 0 without sampling. Bits of an `f64`.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Spread {
    /// Of [`LockStats::acquisitions`].
    pub acquisitions: AtomicU64,
    /// Of [`LockStats::contended`].
    pub contended: AtomicU64,
    /// Of [`LockStats::waited`], ticks².
    pub waited: AtomicU64,
}

/// A thread's use of a lock in one role at one call site. Kind 2.
#[derive(Debug)]
#[repr(C)]
pub struct SiteStats {
    /// See [`Head`].
    pub head: Head,
    /// The stack from which the lock was taken.
    pub stack: u32,
    /// Spare.
    pub reserved: u32,
    /// How often it was taken here. With the details `Contended` and `Sampled`: only if it was waited for, or
    /// in a sample.
    pub acquisitions: AtomicU64,
    /// How often it could not be taken at once.
    pub contended: AtomicU64,
    /// Time waited, ticks.
    pub waited: AtomicU64,
    /// The longest wait, ticks.
    pub longest_wait: AtomicU64,
    /// Acquisitions that had waited.
    pub held_after_wait: Held,
    /// Acquisitions that had not.
    pub held: Held,
    /// How often the lock was released here to waiters by a thread that had not noted where it took it.
    pub released: AtomicU64,
}

/// Waits of a thread at one call site for one holder, or the parts of waits for which it was the holder; for
/// a signal, up to the one that came from there. Kind 3.
#[derive(Debug)]
#[repr(C)]
pub struct PairStats {
    /// See [`Head`].
    pub head: Head,
    /// The waiter's stack.
    pub waiter: u32,
    /// A [`HolderId`].
    pub holder: u32,
    /// How many waits had such a part.
    pub count: AtomicU64,
    /// Time waited, ticks: until the holder released the lock, and until the next owner acquired it.
    pub waited: AtomicU64,
    /// The longest part, ticks.
    pub longest_wait: AtomicU64,
    /// Of `waited`: the lock was free, ticks.
    pub free: AtomicU64,
}

/// A holder, as recordings note it in 20 bits; all bits set is [`NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderId {
    /// It took the lock on this stack.
    TookAt(u32),
    /// It released the lock on this stack; where it took it is not noted.
    ReleasedAt(u32),
    /// The thread with this table; the stacks on which it released the lock have [`SiteStats::released`].
    Table(u32),
    /// A thread that the recorder has nothing of.
    OutOfSight(OutOfSight),
    /// Not known.
    Unknown,
}

/// The owner of a lock, by the lock's own memory, if no thread has noted that it has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OutOfSight {
    /// A thread of this process: it took the lock by calls that are not recorded.
    Unseen,
    /// Another process' thread: the lock is shared by processes.
    Process,
    /// A thread of the process that forked this one, in which there is no such thread.
    Parent,
    /// A thread that has ended.
    Ended,
}

impl OutOfSight {
    const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Unseen,
            1 => Self::Process,
            2 => Self::Parent,
            3 => Self::Ended,
            _ => return None,
        })
    }
}

impl HolderId {
    const TABLE: u32 = 1 << 19;
    const RELEASED: u32 = 1 << 18;

    /// As it is noted.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::TookAt(NONE) | Self::ReleasedAt(NONE) | Self::Unknown => NONE,
            Self::TookAt(stack) => stack,
            Self::ReleasedAt(stack) => stack | Self::RELEASED,
            Self::Table(table) => table | Self::TABLE,
            Self::OutOfSight(what) => what as u32 | Self::TABLE | Self::RELEASED,
        }
    }

    /// That which is noted so.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            NONE => Self::Unknown,
            number if number & Self::TABLE != 0 && number & Self::RELEASED != 0 => {
                match OutOfSight::from_number(number & !(Self::TABLE | Self::RELEASED)) {
                    Some(what) => Self::OutOfSight(what),
                    None => Self::Unknown,
                }
            }
            number if number & Self::TABLE != 0 => Self::Table(number & !Self::TABLE),
            number if number & Self::RELEASED != 0 => Self::ReleasedAt(number & !Self::RELEASED),
            stack => Self::TookAt(stack),
        }
    }
}

/// Waits of a thread for a lock while it held another one, for which others may have waited meanwhile. Kind
/// 4.
#[derive(Debug)]
#[repr(C)]
pub struct HeldWaitStats {
    /// See [`Head`]: what it waited for.
    pub head: Head,
    /// The number of the lock that it held: of several the one that most others waited for at the end, then
    /// the one that it took last.
    pub outer: u32,
    /// A [`Role`], the one in which it held that; and [`HeldWaitStats::TIMED`] if the wait had a deadline.
    pub how: u32,
    /// The number of waits.
    pub count: AtomicU64,
    /// Time waited, ticks.
    pub waited: AtomicU64,
    /// The longest wait, ticks.
    pub longest_wait: AtomicU64,
    /// How long others waited for that lock meanwhile, ticks: each wait × half the sum of how many they were
    /// at its beginning and at its end.
    pub blocked: AtomicU64,
}

impl HeldWaitStats {
    /// A bit of `how`, above all numbers of a [`Role`].
    pub const TIMED: u32 = 8;
}

/// With the detail `Full`: a thread's use of a lock while it held another one, which it released later. Kind
/// 5.
#[derive(Debug)]
#[repr(C)]
pub struct NestStats {
    /// See [`Head`]: what it took, and released first.
    pub head: Head,
    /// The number of the lock that it held: of several the one that it took last.
    pub outer: u32,
    /// A [`Role`], the one in which it held that.
    pub outer_role: u32,
    /// The number of acquisitions.
    pub count: AtomicU64,
    /// Time waited for them, ticks.
    pub waited: AtomicU64,
    /// Time held, ticks.
    pub held: AtomicU64,
}

/// An entry of a table.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// Kind 1.
    Lock(&'a LockStats),
    /// Kind 2.
    Site(&'a SiteStats),
    /// Kind 3.
    Pair(&'a PairStats),
    /// Kind 4.
    HeldWait(&'a HeldWaitStats),
    /// Kind 5.
    Nest(&'a NestStats),
}

impl Entry<'_> {
    /// The number of [`LockStats`].
    pub const LOCK: u32 = 1;
    /// The number of [`SiteStats`].
    pub const SITE: u32 = 2;
    /// The number of [`PairStats`].
    pub const PAIR: u32 = 3;
    /// The number of [`HeldWaitStats`].
    pub const HELD_WAIT: u32 = 4;
    /// The number of [`NestStats`].
    pub const NEST: u32 = 5;
    /// Bytes of the largest one.
    pub const LARGEST: usize = size_of::<LockStats>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_have_numbers() {
        let out_of_sight = [OutOfSight::Unseen, OutOfSight::Process, OutOfSight::Parent, OutOfSight::Ended];
        let others = [HolderId::TookAt(7), HolderId::ReleasedAt(7), HolderId::Table(7), HolderId::Unknown];
        for holder in out_of_sight.map(HolderId::OutOfSight).into_iter().chain(others) {
            assert_eq!(HolderId::from_number(holder.number()), holder);
        }
    }
}
