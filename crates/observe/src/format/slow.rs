//! A wait that is kept whole: the longest of each thread, and those longer than the user has asked for.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{fence, AtomicU32, AtomicU64};

/// So many of its longest waits are kept of each thread.
pub const LONGEST: u32 = 8;

/// What is known of such a wait.
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
    /// The holder that released the lock last before its end, or had it at the beginning: a [`HolderId`](super::HolderId).
    pub holder: u32,
    /// When it began, ticks.
    pub start: u64,
    /// When it ended, ticks.
    pub end: u64,
    /// Of that, the lock was free, ticks.
    pub free: u64,
    /// How many threads waited, this one included.
    pub queue: u32,
    /// A bit per [`Outcome`](super::Outcome).
    pub outcomes: u32,
    /// The longest call that its holder made meanwhile, as [`Lock::address`](super::Lock) has it of such a call; 0: none was seen.
    pub call: u32,
    /// How long that took, µs.
    pub call_us: u32,
}

/// A record of one. All zero is none.
#[derive(Debug)]
#[repr(C)]
pub struct Slow {
    /// Odd while it is being written; 0 before the first time.
    version: AtomicU32,
    thread: AtomicU32,
    lock: AtomicU32,
    role: AtomicU32,
    stack: AtomicU32,
    holder: AtomicU32,
    queue: AtomicU32,
    outcomes: AtomicU32,
    call: AtomicU32,
    call_us: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
    free: AtomicU64,
    name: [AtomicU64; 2],
}

impl Slow {
    /// Writes it, by one thread at a time.
    pub fn set(&self, wait: &SlowWait) {
        let version = self.version.load(Relaxed) | 1;
        self.version.store(version, Relaxed);
        // A reader that sees any of what follows sees that the version is odd, or a later one.
        fence(Release);
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
        ];
        words.into_iter().for_each(|(field, word)| field.store(word, Relaxed));
        let longs = [(&self.start, wait.start), (&self.end, wait.end), (&self.free, wait.free)];
        longs.into_iter().for_each(|(field, word)| field.store(word, Relaxed));
        let (first, rest) = wait.name.split_at(8);
        for (field, part) in self.name.iter().zip([first, rest]) {
            field.store(u64::from_le_bytes(part.try_into().unwrap_or_default()), Relaxed);
        }
        // A reader that sees this version sees all of it.
        self.version.store(version.wrapping_add(1).max(2), Release);
    }

    /// The wait, if there is one and it can be read whole.
    #[must_use]
    pub fn get(&self) -> Option<SlowWait> {
        // Acquire: what the version has.
        let version = self.version.load(Acquire);
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
            queue: word(&self.queue),
            outcomes: word(&self.outcomes),
            call: word(&self.call),
            call_us: word(&self.call_us),
        };
        // With the writer's: a word of a later version is not read beside this one.
        fence(Acquire);
        (version != 0 && version % 2 == 0 && self.version.load(Relaxed) == version).then_some(wait)
    }
}

const _: () = assert!(size_of::<Slow>() == 80);
