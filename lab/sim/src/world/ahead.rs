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

use crate::time::Ps;
use crate::world::memory::LINE_BYTES;
use crate::world::{Core, LineId, World};

/// The most atomic operations and misses that a core has under way: it asks for no line before the one so
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
    /// What was done ahead is for nothing; it goes on at `now`.
    pub(crate) fn start_over(&mut self, now: Ps) {
        self.work = 0;
        self.floor = self.floor.max(now);
    }
}

impl World {
    /// The running thread has waited for memory for `waited`: its core sees as far as `window`.
    #[inline]
    pub(crate) fn runs_ahead(&mut self, waited: Ps) {
        let ahead = &mut self.threads[self.running].ahead;
        ahead.work = (ahead.work + waited).min(self.costs.window);
    }

    /// What is left to do of `work`.
    #[inline]
    pub(crate) fn overlapped(&mut self, work: Ps) -> Ps {
        let ahead = &mut self.threads[self.running].ahead;
        ahead.place += work;
        let done = work.min(ahead.work);
        ahead.work -= done;
        work - done
    }

    /// For how long the running thread's core has been asking for a line that is needed now.
    pub(crate) fn asking_for(&self) -> Ps {
        let window = self.costs.window;
        if window == 0 {
            return 0;
        }
        let ahead = &self.threads[self.running].ahead;
        let reach = ahead.place.saturating_sub(window);
        let in_the_way = ahead.misses.iter().filter(|(place, _)| *place < reach).map(|(_, came)| *came);
        let since = in_the_way.max().unwrap_or_default().max(ahead.floor);
        self.now.saturating_sub(since)
    }

    /// For how long the running thread's core has been asking for a line that it misses. If another core got
    /// it meanwhile, what was done ahead is for nothing: a core that loses a line that it has read ahead
    /// starts over from there.
    pub(crate) fn not_lost(&mut self, id: LineId, core: Core) -> Ps {
        let early = self.asking_for();
        if early <= self.since_lost(id, core) {
            return early;
        }
        self.starts_over();
        0
    }

    /// The running thread has made an atomic operation, or a line has come for which it waited.
    pub(crate) fn has_come(&mut self) {
        let ahead = &mut self.threads[self.running].ahead;
        let (_, came) = std::mem::replace(&mut ahead.misses[ahead.next], (ahead.place, self.now));
        ahead.floor = ahead.floor.max(came);
        ahead.next = (ahead.next + 1) % MISSES;
    }

    /// The running thread polls: its next access is a look, before which nothing is known.
    pub(crate) fn looks_next(&mut self) {
        self.starts_over();
        self.threads[self.running].ahead.is_looking = true;
    }

    /// The running thread has exchanged the word at `address`, and goes on as that has ended.
    pub(crate) fn branches(&mut self, address: usize, succeeded: bool) {
        let Some(word) = self.memory.known(address) else { return };
        let guesses = &mut self.threads[self.running].ahead.guesses;
        let guess = &mut guesses[(word.line.0 ^ word.offset >> 2) as usize % GUESSES];
        let is_right = (*guess >= 2) == succeeded;
        *guess = if succeeded { (*guess + 1).min(3) } else { guess.saturating_sub(1) };
        if !is_right {
            self.starts_over();
        }
    }

    /// The running thread has made an access.
    #[inline]
    pub(crate) fn has_looked(&mut self) {
        if std::mem::take(&mut self.threads[self.running].ahead.is_looking) {
            self.starts_over();
        }
    }

    /// What the running thread's core has done ahead is for nothing.
    #[inline]
    pub(crate) fn starts_over(&mut self) {
        self.threads[self.running].ahead.start_over(self.now);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::world;
    use crate::machine::Machine;
    use crate::world::memory::Access;
    use crate::{Object, Simulation};

    const DONE_AHEAD: u64 = 20_000;

    /// How much of what was done ahead is left after an exchange that ended so.
    fn left(word: &u32, succeeded: bool) -> u64 {
        let address = std::ptr::from_ref(word).addr();
        crate::here::access(address, Access::Update);
        world(|world| {
            world.starts_over();
            world.runs_ahead(DONE_AHEAD);
            world.branches(address, succeeded);
            // Lines that were asked for before are for nothing too.
            let asked_for = world.asking_for();
            let left = DONE_AHEAD - world.overlapped(DONE_AHEAD);
            assert!(left > 0 || asked_for == 0, "{:?}", world.threads[world.running].ahead);
            left
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
        let word = Object::new(0);
        simulated(move || {
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
                assert_eq!(left(&word, succeeded), expected, "exchange {number}");
            }
        });
    }

    #[test]
    fn the_words_of_a_line_are_guessed_each_by_itself() {
        let line = Object::new([0; 16]);
        simulated(move || {
            // The even ones succeed, the others fail.
            let words = || line.iter().enumerate().map(|(number, word)| (word, number % 2 == 0));
            for _ in 0..3 {
                words().for_each(|(word, succeeds)| {
                    left(word, succeeds);
                });
            }
            assert!(words().all(|(word, succeeds)| left(word, succeeds) == DONE_AHEAD));
            assert!(words().all(|(word, succeeds)| left(word, !succeeds) == 0));
        });
    }
}
