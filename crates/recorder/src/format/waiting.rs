//! A wait that has begun and not ended: what is known of it before the thread blocks.
//!
//! The thread writes it to its own table, and takes it back when the wait is over. So a program that is
//! killed while threads wait, perhaps for each other, leaves a record of the holders. A reader may see it
//! half written: it compares `check`.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Locks that are noted of a thread that waits, at most: those that it took last.
pub const HOLDS: usize = 16;

/// A lock that a thread has while it waits for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// The number of the lock.
    pub lock: u32,
    /// The stack that took it.
    pub stack: u32,
}

/// What a thread has while it waits, as much as was noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    holds: [Hold; HOLDS],
    count: usize,
}

impl Holds {
    /// The holds in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Hold] {
        &self.holds[..self.count]
    }

    /// Adds one, if there is space.
    pub fn push(&mut self, hold: Hold) {
        if let Some(free) = self.holds.get_mut(self.count) {
            *free = hold;
            self.count += 1;
        }
    }
}

/// A wait that has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// When, ticks; never 0.
    pub since: u64,
    /// The number of the lock.
    pub lock: u32,
    /// A [`Role`](super::Role): [`Role::Signal`](super::Role::Signal) until the mutex is reacquired.
    pub role: u32,
    /// Where it waits.
    pub stack: u32,
    /// The stack from which the lock had been taken then, or [`NONE`](super::NONE).
    pub holder: u32,
    /// The thread that held it then, or 0.
    pub owner: u32,
    /// It ends at a deadline.
    pub is_timed: bool,
    /// `owner` had noted that it holds it. Otherwise it had taken it before the first wait for it.
    pub is_noted: bool,
    /// What the thread holds meanwhile.
    pub holds: Holds,
}

impl Begun {
    fn flags(&self) -> u32 {
        u32::from(self.is_timed) | u32::from(self.is_noted) << 1 | (self.holds.count as u32) << 8
    }

    /// A number that a mixture of two waits does not have.
    #[inline(always)]
    fn check(&self) -> u64 {
        let sum = self.since ^ pair(self.lock, self.role).rotate_left(17);
        let sum = mix(sum) ^ pair(self.stack, self.holder) ^ pair(self.owner, self.flags()).rotate_left(31);
        let holds = self.holds.as_slice().iter().map(|hold| pair(hold.lock, hold.stack));
        holds.fold(mix(sum), |sum, word| mix(sum ^ word))
    }
}

fn mix(word: u64) -> u64 {
    word.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The wait of a thread, in its table. All zero: it does not wait.
#[derive(Debug)]
#[repr(C)]
pub struct Waiting {
    /// When it began, ticks; 0: the thread does not wait. Written last.
    since: AtomicU64,
    /// See [`Begun::check`].
    check: AtomicU64,
    lock: AtomicU32,
    role: AtomicU32,
    stack: AtomicU32,
    holder: AtomicU32,
    owner: AtomicU32,
    /// Bit 0: `is_timed`; bit 1: `is_noted`; from bit 8 on: how many of `holds` are in use.
    flags: AtomicU32,
    /// Lock, and stack × 2^32.
    holds: [AtomicU64; HOLDS],
}

impl Waiting {
    /// The thread that has this is about to block.
    #[inline(always)]
    pub fn begin(&self, begun: &Begun) {
        let fields = [
            (&self.lock, begun.lock),
            (&self.role, begun.role),
            (&self.stack, begun.stack),
            (&self.holder, begun.holder),
            (&self.owner, begun.owner),
            (&self.flags, begun.flags()),
        ];
        fields.into_iter().for_each(|(field, number)| field.store(number, Relaxed));
        for (to, hold) in self.holds.iter().zip(begun.holds.as_slice()) {
            to.store(pair(hold.lock, hold.stack), Relaxed);
        }
        self.check.store(begun.check(), Relaxed);
        self.since.store(begun.since, Release);
    }

    /// It does not block any more.
    pub fn end(&self) {
        self.since.store(0, Relaxed);
    }

    /// Since when the thread waits for this lock, ticks, if it does.
    #[must_use]
    pub fn since(&self, lock: u32) -> Option<u64> {
        let since = self.since.load(Acquire);
        // Acquire: `since` is read again after it.
        let is_it = since != 0 && self.lock.load(Acquire) == lock;
        (is_it && self.since.load(Relaxed) == since).then_some(since)
    }

    /// The wait, if there is one and it can be read whole.
    #[must_use]
    pub fn get(&self) -> Option<Begun> {
        let since = self.since.load(Acquire);
        let flags = self.flags.load(Relaxed);
        let mut begun = Begun {
            since,
            lock: self.lock.load(Relaxed),
            role: self.role.load(Relaxed),
            stack: self.stack.load(Relaxed),
            holder: self.holder.load(Relaxed),
            owner: self.owner.load(Relaxed),
            is_timed: flags & 1 != 0,
            is_noted: flags & 2 != 0,
            ..Begun::default()
        };
        for hold in self.holds.iter().take((flags >> 8) as usize) {
            let hold = hold.load(Relaxed);
            begun.holds.push(Hold { lock: hold as u32, stack: (hold >> 32) as u32 });
        }
        (since != 0 && begun.flags() == flags && self.check.load(Relaxed) == begun.check()).then_some(begun)
    }
}
