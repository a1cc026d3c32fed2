//! A wait that is kept whole: the longest of each thread, and those longer than the user has asked for.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The number of longest waits that are kept of each thread.
pub const LONGEST: u32 = 8;

/// The content of such a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowWait {
    /// The thread.
    pub thread: u32,
    /// Its name then, as the kernel has it, ended by a zero.
    pub name: [u8; 16],
    /// The number of the lock.
    pub lock: u32,
    /// A [`Role`](super::Role).
    pub role: u32,
    /// Where it waited.
    pub stack: u32,
    /// The holder that released the lock last before its end, or held it at the beginning: a
    /// [`HolderId`](super::HolderId).
    pub holder: u32,
    /// When it began, ticks.
    pub start: u64,
    /// When it ended, ticks.
    pub end: u64,
    /// Of that, the lock was free, ticks; if that is known.
    pub free: u64,
    /// Whether that is known.
    pub is_split: bool,
    /// How many threads waited when it began, this one included; 0: not known.
    pub queue: u32,
    /// A bit per [`WaitOutcome`](super::WaitOutcome).
    pub outcomes: u32,
    /// The longest call that its holder made meanwhile, as [`Lock::address`](super::Lock) has it of such a
    /// call; 0: none was seen.
    pub call: u32,
    /// How long that took, µs.
    pub call_us: u32,
}

impl SlowWait {
    /// A number that a mixture of two waits does not have; never 0.
    fn check(&self) -> u64 {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [first, rest] = self.name_words();
        let words = [
            pair(self.thread, self.lock),
            pair(self.role, self.stack),
            pair(self.holder, self.queue),
            pair(self.outcomes, self.call),
            pair(self.call_us, u32::from(self.is_split)),
            self.start,
            self.end,
            self.free,
            first,
            rest,
        ];
        let mixed = words
            .into_iter()
            .fold(0_u64, |sum, word| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
        mixed | 1
    }

    fn name_words(&self) -> [u64; 2] {
        let (first, rest) = self.name.split_at(8);
        [first, rest].map(|part| u64::from_le_bytes(part.try_into().unwrap_or_default()))
    }
}

/// A record of a wait; all zero is an empty one. A reader may see it half written, or in a copy that was made
/// meanwhile: it compares `check`.
#[derive(Debug)]
#[repr(C)]
pub struct Slow {
    /// See [`SlowWait::check`]; 0: there is none.
    check: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    free: AtomicU64,
    name: [AtomicU64; 2],
    thread: AtomicU32,
    lock: AtomicU32,
    role: AtomicU32,
    stack: AtomicU32,
    holder: AtomicU32,
    queue: AtomicU32,
    outcomes: AtomicU32,
    call: AtomicU32,
    call_us: AtomicU32,
    is_split: AtomicU32,
}

impl Slow {
    /// Writes it, by one thread at a time.
    pub fn set(&self, wait: &SlowWait) {
        self.check.store(0, Relaxed);
        let words = [
            (&self.thread, wait.thread),
            (&self.lock, wait.lock),
            (&self.role, wait.role),
            (&self.stack, wait.stack),
            (&self.holder, wait.holder),
            (&self.queue, wait.queue),
            (&self.outcomes, wait.outcomes),
            (&self.call, wait.call),
            (&self.call_us, wait.call_us),
            (&self.is_split, u32::from(wait.is_split)),
        ];
        words.into_iter().for_each(|(field, word)| field.store(word, Relaxed));
        let longs = [(&self.start, wait.start), (&self.end, wait.end), (&self.free, wait.free)];
        let names = self.name.iter().zip(wait.name_words());
        longs.into_iter().chain(names).for_each(|(field, word)| field.store(word, Relaxed));
        self.check.store(wait.check(), Relaxed);
    }

    /// The wait, if there is one and it can be read whole.
    #[must_use]
    pub fn get(&self) -> Option<SlowWait> {
        let word = |field: &AtomicU32| field.load(Relaxed);
        let mut name = [0; 16];
        for (part, field) in name.chunks_exact_mut(8).zip(&self.name) {
            part.copy_from_slice(&field.load(Relaxed).to_le_bytes());
        }
        let wait = SlowWait {
            thread: word(&self.thread),
            name,
            lock: word(&self.lock),
            role: word(&self.role),
            stack: word(&self.stack),
            holder: word(&self.holder),
            start: self.start.load(Relaxed),
            end: self.end.load(Relaxed),
            free: self.free.load(Relaxed),
            is_split: word(&self.is_split) != 0,
            queue: word(&self.queue),
            outcomes: word(&self.outcomes),
            call: word(&self.call),
            call_us: word(&self.call_us),
        };
        (self.check.load(Relaxed) == wait.check()).then_some(wait)
    }
}

const _: () = assert!(size_of::<Slow>() == 88);
