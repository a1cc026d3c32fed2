//! What a core does while it waits for memory: it runs ahead, as far as it can see (its reorder buffer,
//! `cpu.window`).
//!
//! - *Work*: an atomic operation waits until everything before it is done, and loads after it wait for it;
//!   arithmetic does not. So the work that follows is done meanwhile. That is why an uncontended lock costs
//!   nothing beside some work.
//! - *Cache lines*: the core asks for a line when it first sees the access, also for an atomic operation, and
//!   not when its turn comes. So lines that it needs soon after each other come side by side, and a load and
//!   an atomic operation on one line are one transfer.
//!
//! What was done ahead is for nothing when a branch goes another way than the core thought (a poll that ends;
//! an exchange that succeeds where it mostly fails, or the other way round), in the kernel, when the thread
//! loses its CPU, and when another core takes away a line that this one has read ahead (a memory-ordering
//! machine clear).

use super::memory::{LINE_BYTES, Place};
use crate::time::Ps;

/// So many atomic operations and misses a core has under way at most: it asks for no line before the one so
/// many before that is done, whether that had to wait or not. Atomic operations on lines that another core
/// has written take a quarter of the time if their addresses do not depend on each other (25 ns instead of
/// 107, Emerald Rapids).
const MISSES: usize = 4;

/// Words whose exchanges a thread's core tells apart as it guesses how they end: as many as are in a cache
/// line, so that those of one lock never meet. Words of different lines do. That costs something only if one
/// mostly succeeds and the other mostly fails: then guesses are wrong, each for `cpu.window` of work at most.
/// Words that meet mostly are the same word of locks of one kind, which end alike. So the number hardly
/// matters: with 4, 16, or one counter for each word, throughput is the same within the spread of the seeds
/// (3 %), also with 32 locks; without wrong guesses it is up to 70 % higher.
const GUESSES: usize = LINE_BYTES / size_of::<u32>();

/// How far ahead a core is.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// How much of what comes next is done already.
    work: Ps,
    /// How much work there was until now, done ahead or not: where the thread is in its program.
    place: Ps,
    /// The latest misses and atomic operations: where they were, and when the line was there. Older ones are
    /// overwritten.
    misses: [(Ps, Ps); MISSES],
    next: usize,
    /// Nothing was asked for before that: the program's way was not known, or an older miss was in the way.
    floor: Ps,
    /// The next access is a poll's look: what comes after it depends on what it sees.
    is_looking: bool,
    /// How an exchange will end, by the word's place: a counter from 0 (fails) to 3 (succeeds), as branch
    /// predictors have.
    guesses: [u8; GUESSES],
}

impl Ahead {
    /// The thread has waited for memory for `waited`. The core sees as far as `window`.
    #[inline]
    pub(crate) fn run(&mut self, waited: Ps, window: Ps) {
        self.work = (self.work + waited).min(window);
    }

    /// What is left to do of `work`.
    #[inline]
    pub(crate) fn overlapped(&mut self, work: Ps) -> Ps {
        self.place += work;
        let done = work.min(self.work);
        self.work -= done;
        work - done
    }

    /// Since when the core has been asking for a line that is needed now.
    pub(crate) fn asking_since(&self, window: Ps) -> Ps {
        let reach = self.place.saturating_sub(window);
        let in_the_way = self.misses.iter().filter(|(place, _)| *place < reach).map(|(_, came)| *came);
        in_the_way.max().unwrap_or_default().max(self.floor)
    }

    /// The thread has made an atomic operation, or a line has come for which it waited.
    pub(crate) fn has_come(&mut self, now: Ps) {
        let (_, came) = std::mem::replace(&mut self.misses[self.next], (self.place, now));
        self.floor = self.floor.max(came);
        self.next = (self.next + 1) % MISSES;
    }

    /// The next access is a poll's look.
    pub(crate) fn looks_next(&mut self) {
        self.is_looking = true;
    }

    /// An access was made. Returns whether that was a poll's look.
    #[inline]
    pub(crate) fn has_looked(&mut self) -> bool {
        std::mem::take(&mut self.is_looking)
    }

    /// An exchange of `word` has ended; whether that was as the core had thought.
    pub(crate) fn guess(&mut self, word: Place, succeeded: bool) -> bool {
        let guess = &mut self.guesses[(word.line.0 ^ word.offset >> 2) as usize % GUESSES];
        let is_right = (*guess >= 2) == succeeded;
        *guess = if succeeded { (*guess + 1).min(3) } else { guess.saturating_sub(1) };
        is_right
    }

    /// What was done ahead is for nothing; it goes on at `now`.
    pub(crate) fn start_over(&mut self, now: Ps) {
        self.work = 0;
        self.floor = self.floor.max(now);
    }
}
