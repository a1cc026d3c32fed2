//! What a core does while it waits for memory: it runs ahead, as far as it can see (its reorder buffer, `cpu.window`).
//!
//! - *Work*: an atomic operation waits until everything before it is done, and loads after it wait for it; arithmetic does
//!   not. So the work that follows is done meanwhile. That is why an uncontended lock costs nothing beside some work.
//! - *Cache lines*: the core asks for a line when it first sees the access, also for an atomic operation, and not when its
//!   turn comes. So lines that it needs soon after each other come side by side, and a load and an atomic operation on one
//!   line are one transfer.
//!
//! What was done ahead is for nothing when a branch goes another way than the core thought (a poll that ends; an exchange
//! that succeeds where it mostly fails, or the other way round), in the kernel, when the thread loses its CPU, and when
//! another core takes away a line that this one has read ahead (a memory-ordering machine clear).

use super::time::Ps;
use super::world::World;
use crate::memory::{Core, LINE_BYTES, LineId};

/// So many atomic operations and misses a core has under way at most: it asks for no line before the one so many before that is
/// done, whether that had to wait or not. Atomic operations on lines that another core has
/// written take a quarter of the time if their addresses do not depend on each other (25 ns instead of 107, Emerald Rapids).
const MISSES: usize = 4;

/// Words whose exchanges a thread's core tells apart as it guesses how they end: as many as are in a cache line, so that those
/// of one lock never meet. Words of different lines do. That costs something only if one mostly succeeds and the other mostly
/// fails: then guesses are wrong, each for `cpu.window` of work at most. Words that meet mostly are the same word of locks of
/// one kind, which end alike. So the number hardly matters: with 4, 16, or one counter for each word, throughput is the same
/// within the spread of the seeds (3 %), also with 32 locks; without wrong guesses it is up to 70 % higher.
const GUESSES: usize = LINE_BYTES / size_of::<u32>();

/// How far ahead a core is.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// How much of what comes next is done already.
    work: Ps,
    /// How much work there was until now, done ahead or not: where the thread is in its program.
    place: Ps,
    /// The latest misses and atomic operations: where they were, and when the line was there. Older ones are overwritten.
    misses: [(Ps, Ps); MISSES],
    next: usize,
    /// Nothing was asked for before that: the program's way was not known, or an older miss was in the way.
    floor: Ps,
    /// The next access is a poll's look: what comes after it depends on what it sees.
    is_looking: bool,
    /// How an exchange will end, by the word's address: a counter from 0 (fails) to 3 (succeeds), as branch predictors have.
    guesses: [u8; GUESSES],
}

impl Ahead {
    /// An exchange of the word at `address`, in `line`, has ended; whether that was as the core had thought.
    fn guess(&mut self, line: LineId, address: usize, succeeded: bool) -> bool {
        // By the place in the line and the line's number, not by the address itself, which is another one in each process.
        let guess = &mut self.guesses[(line.0 as usize ^ address >> 2) % GUESSES];
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

impl World {
    /// The running thread has waited for memory for `waited`.
    #[inline]
    pub(crate) fn runs_ahead(&mut self, waited: Ps) {
        let (most, running) = (self.costs.window, self.running);
        let ahead = &mut self.threads[running].ahead;
        ahead.work = (ahead.work + waited).min(most);
    }

    /// What is left to do of `work`.
    #[inline]
    pub(crate) fn overlapped(&mut self, work: Ps) -> Ps {
        let running = self.running;
        let ahead = &mut self.threads[running].ahead;
        ahead.place += work;
        let done = work.min(ahead.work);
        ahead.work -= done;
        work - done
    }

    /// For how long the running thread's core has been asking for a line that is needed now.
    pub(crate) fn asking_since(&self) -> Ps {
        let ahead = &self.threads[self.running].ahead;
        let reach = ahead.place.saturating_sub(self.costs.window);
        let in_the_way = ahead.misses.iter().filter(|(place, _)| *place < reach).map(|(_, came)| *came);
        let since = in_the_way.max().unwrap_or_default().max(ahead.floor);
        if self.costs.window == 0 { 0 } else { self.now.saturating_sub(since) }
    }

    /// For how long the running thread's core has been asking for a line that it misses. If another core got it meanwhile, what
    /// was done ahead is for nothing: a core that loses a line that it has read ahead starts over from there.
    pub(crate) fn not_lost(&mut self, id: LineId, core: Core) -> Ps {
        let early = self.asking_since();
        if early <= self.since_lost(id, core) {
            return early;
        }
        self.starts_over();
        0
    }

    /// The running thread has made an atomic operation, or a line has come for which it waited.
    pub(crate) fn has_come(&mut self) {
        let (now, running) = (self.now, self.running);
        let ahead = &mut self.threads[running].ahead;
        let place = ahead.place;
        let (_, came) = std::mem::replace(&mut ahead.misses[ahead.next], (place, now));
        ahead.floor = ahead.floor.max(came);
        ahead.next = (ahead.next + 1) % MISSES;
    }

    /// The running thread polls: its next access is a look, before which nothing is known.
    pub(crate) fn looks_next(&mut self) {
        self.starts_over();
        let running = self.running;
        self.threads[running].ahead.is_looking = true;
    }

    /// The running thread has exchanged the word at `address`, and goes on as that has ended.
    pub(crate) fn branches(&mut self, address: usize, succeeded: bool) {
        let (running, line) = (self.running, self.memory.of(address));
        if !self.threads[running].ahead.guess(line, address, succeeded) {
            self.starts_over();
        }
    }

    /// The running thread has made an access.
    #[inline]
    pub(crate) fn has_looked(&mut self) {
        let running = self.running;
        if std::mem::take(&mut self.threads[running].ahead.is_looking) {
            self.starts_over();
        }
    }

    /// What the running thread's core has done ahead is for nothing.
    #[inline]
    pub(crate) fn starts_over(&mut self) {
        let (now, running) = (self.now, self.running);
        self.threads[running].ahead.start_over(now);
    }
}

#[cfg(test)]
mod tests {
    use crate::Simulation;
    use crate::engine::run::world;
    use crate::machine::Machine;

    const DONE_AHEAD: u64 = 20_000;

    /// How much of what was done ahead is left after an exchange that ended so.
    fn left(address: usize, succeeded: bool) -> u64 {
        world(|world| {
            world.starts_over();
            world.runs_ahead(DONE_AHEAD);
            world.branches(address, succeeded);
            let ahead = &world.threads[world.running].ahead;
            // Lines that were asked for before are for nothing too.
            let is_over = ahead.floor == world.now && world.asking_since() == 0;
            assert!(ahead.work > 0 || is_over, "{ahead:?}");
            ahead.work
        })
    }

    /// Runs `act` on a thread.
    fn simulated(act: impl FnOnce() + 'static) {
        let mut simulation = Simulation::new(&Machine::plain(1));
        simulation.thread(act);
        assert_eq!(simulation.run().unwrap().failure, None);
    }

    #[test]
    fn a_wrong_guess_starts_over_and_a_right_one_does_not() {
        simulated(|| {
            let exchanges = [
                (false, true), // at first, it is thought to fail
                (true, false),
                (true, false),
                (true, true), // two times are a habit
                (true, true),
                (false, false),
                (true, true), // and one exception ends none
                (false, false),
                (false, false),
                (false, true),
            ];
            for (number, (succeeded, is_right)) in exchanges.into_iter().enumerate() {
                let expected = if is_right { DONE_AHEAD } else { 0 };
                assert_eq!(left(0x1000, succeeded), expected, "exchange {number}");
            }
        });
    }

    #[test]
    fn the_words_of_a_line_are_guessed_each_by_itself() {
        simulated(|| {
            let words = || (0x1000..0x1040).step_by(4);
            // The even ones succeed, the others fail.
            let succeeds = |word: usize| word.is_multiple_of(8);
            for _ in 0..3 {
                words().for_each(|word| {
                    left(word, succeeds(word));
                });
            }
            assert!(words().all(|word| left(word, succeeds(word)) == DONE_AHEAD));
            assert!(words().all(|word| left(word, !succeeds(word)) == 0));
        });
    }
}
