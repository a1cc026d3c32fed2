//! The running thread's core while it waits for memory: see [`ahead`](crate::world::ahead).

use crate::time::Ps;
use crate::world::{Core, LineId, World};

impl World {
    /// The running thread has waited for memory for `waited`.
    #[inline]
    pub(crate) fn runs_ahead(&mut self, waited: Ps) {
        self.threads[self.running].ahead.run(waited, self.costs.window);
    }

    /// What is left to do of `work`.
    #[inline]
    pub(crate) fn overlapped(&mut self, work: Ps) -> Ps {
        self.threads[self.running].ahead.overlapped(work)
    }

    /// For how long the running thread's core has been asking for a line that is needed now.
    pub(crate) fn asking_for(&self) -> Ps {
        let window = self.costs.window;
        let since = self.threads[self.running].ahead.asking_since(window);
        if window == 0 { 0 } else { self.now.saturating_sub(since) }
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
        self.threads[self.running].ahead.has_come(self.now);
    }

    /// The running thread polls: its next access is a look, before which nothing is known.
    pub(crate) fn looks_next(&mut self) {
        self.starts_over();
        self.threads[self.running].ahead.looks_next();
    }

    /// The running thread has exchanged the word at `address`, and goes on as that has ended.
    pub(crate) fn branches(&mut self, address: usize, succeeded: bool) {
        let Some(word) = self.memory.known(address) else { return };
        if !self.threads[self.running].ahead.guess(word, succeeded) {
            self.starts_over();
        }
    }

    /// The running thread has made an access.
    #[inline]
    pub(crate) fn has_looked(&mut self) {
        if self.threads[self.running].ahead.has_looked() {
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
    use crate::engine::run::world;
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
