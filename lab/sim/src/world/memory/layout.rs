//! Where the words of a program lie in the simulated memory.
//!
//! That is up to the simulated program alone: which words share a cache line decides what they cost, and
//! native addresses are the compiler's and the allocator's. No native address is compared, divided into lines
//! or hashed for what happens in a run.
//!
//! | a word lies            | its place in the simulated memory                                                              |
//! |------------------------|------------------------------------------------------------------------------------------------|
//! | in a [`regions`](super::regions) | as there: a region begins a line. Its lines are numbered as they are first used      |
//! | on a thread's stack    | the first free place on the thread's own lines, from its first access until it is dropped      |
//! | anywhere else          | none: an access fails the run                                                                  |
//!
//! | label | invariant                                                        | kept by                                       |
//! |-------|------------------------------------------------------------------|-----------------------------------------------|
//! | J1    | a word keeps its place from its first access to its end          | `of`; `ends`, at each drop of a word          |
//! | J2    | an address that has a place is that of a word that lives         | `ends`; a thread ends with no word on its     |
//! |       |                                                                  | stack (`is_clear`), or the run fails          |
//! | J3    | a futex is a place, not an address: a wake-up may come when the  | `Changed`: the places of what a thread has    |
//! |       | word has ended, and another one is at its address                | changed lately                                |
//!
//! A word on a stack counts as [`WORD_BYTES`] bytes, whatever its size. So the words of a waiter's node share
//! lines in the order of their first use, eight to a line; those of two nodes of one thread may share one, as
//! neighbouring frames do.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::world::memory::object::find_region;
use crate::world::memory::{LINE_BYTES, Line};
use crate::world::{LineId, ThreadId};

/// Room of a word on a stack.
const WORD_BYTES: usize = 8;

/// How many changes are remembered: more than any lock makes between its last change of a word and the
/// wake-up there.
const CHANGES: usize = 256;
/// The same of words on other threads' stacks. A wake pass of a queue changes about four of each of the
/// waiters that it lets go, of up to 256 readers, and a thread may wake the first of them after several wake
/// passes.
const CHANGES_OF_OTHERS: usize = 4096;

/// A byte of the simulated memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The line.
    pub(crate) line: LineId,
    /// Which byte of it.
    pub(crate) offset: u32,
}

/// The stack of a thread.
#[derive(Debug, Default)]
struct Stack {
    /// Where it lies natively.
    native: Range<usize>,
    /// Its lines in use, and the places that are taken on each, a bit for each word.
    lines: Vec<(LineId, u8)>,
}

/// All lines that were ever used, and which words lie where on them.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<Line>,
    /// By native address.
    places: FxHashMap<usize, Place>,
    /// The lines of regions: by the region's number, and the line's number in it.
    regions: FxHashMap<(u64, usize), LineId>,
    /// By thread.
    stacks: Vec<Stack>,
    /// Whose stack begins at a native address; if several have had it, the latest.
    by_start: BTreeMap<usize, ThreadId>,
    /// What was asked for last.
    last: Option<(usize, Place)>,
}

impl Lines {
    /// The stack of the next thread is at `native`.
    pub(crate) fn add_stack(&mut self, native: Range<usize>) {
        self.by_start.insert(native.start, ThreadId(self.stacks.len() as u32));
        self.stacks.push(Stack { native, lines: Vec::new() });
    }

    /// The thread on whose stack `address` lies; if several have had that memory, the latest.
    pub(crate) fn stack_of(&self, address: usize) -> Option<ThreadId> {
        let (_, thread) = self.by_start.range(..=address).next_back()?;
        self.stacks[thread.0 as usize].native.contains(&address).then_some(*thread)
    }

    /// Whether the line is on the stack of another thread than `running`.
    #[inline]
    pub(crate) fn is_of_other(&self, line: LineId, running: ThreadId) -> bool {
        self.lines[line.0 as usize].on_stack.is_some_and(|(thread, _)| thread != running)
    }

    /// The place of the word at `address`, which `running` uses; none: there is no memory.
    #[inline]
    pub(crate) fn of(&mut self, address: usize, running: ThreadId) -> Option<Place> {
        if let Some((last, place)) = self.last
            && last == address
        {
            return Some(place);
        }
        let place = match self.places.get(&address) {
            Some(place) => *place,
            None => self.begin(address, running)?,
        };
        self.last = Some((address, place));
        Some(place)
    }

    /// The same of a word that is in use already.
    pub(crate) fn known(&self, address: usize) -> Option<Place> {
        self.places.get(&address).copied()
    }

    /// The first access to a word.
    fn begin(&mut self, address: usize, running: ThreadId) -> Option<Place> {
        let own = self.stacks.get(running.0 as usize).is_some_and(|stack| stack.native.contains(&address));
        let place = match if own { Some(running) } else { self.stack_of(address) } {
            Some(thread) => self.push(thread),
            None => self.in_region(address)?,
        };
        self.places.insert(address, place);
        Some(place)
    }

    fn in_region(&mut self, address: usize) -> Option<Place> {
        let (region, offset) = find_region(address)?;
        let new = LineId(self.lines.len() as u32);
        let line = *self.regions.entry((region, offset / LINE_BYTES)).or_insert(new);
        if line == new {
            self.lines.push(Line::default());
        }
        Some(Place { line, offset: (offset % LINE_BYTES) as u32 })
    }

    /// The first free place on the stack of `thread`.
    fn push(&mut self, thread: ThreadId) -> Place {
        let stack = &mut self.stacks[thread.0 as usize].lines;
        let index = stack.iter().position(|&(_, taken)| taken != u8::MAX).unwrap_or_else(|| {
            let on_stack = Some((thread, stack.len() as u32));
            stack.push((LineId(self.lines.len() as u32), 0));
            self.lines.push(Line { on_stack, ..Line::default() });
            stack.len() - 1
        });
        let (line, taken) = &mut stack[index];
        let word = taken.trailing_ones();
        *taken |= 1 << word;
        Place { line: *line, offset: word * WORD_BYTES as u32 }
    }

    /// J1: the word at `address` ends. Returns its line, if it has ever been used.
    pub(crate) fn ends(&mut self, address: usize) -> Option<LineId> {
        let Place { line, offset } = self.places.remove(&address)?;
        self.last = None;
        if let Some((thread, index)) = self.lines[line.0 as usize].on_stack {
            let (_, taken) = &mut self.stacks[thread.0 as usize].lines[index as usize];
            *taken &= !(1 << (offset / WORD_BYTES as u32));
        }
        Some(line)
    }

    /// J2: whether no word is on the stack of `thread`.
    pub(crate) fn is_clear(&self, thread: ThreadId) -> bool {
        self.stacks[thread.0 as usize].lines.iter().all(|(_, taken)| *taken == 0)
    }

    #[inline]
    pub(crate) fn get(&mut self, id: LineId) -> &mut Line {
        &mut self.lines[id.0 as usize]
    }
}

/// J3: the words that a thread has changed lately, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    words: VecDeque<(usize, Place)>,
    /// Those on other threads' stacks.
    of_others: VecDeque<(usize, Place)>,
}

impl Changed {
    #[inline]
    pub(crate) fn add(&mut self, address: usize, place: Place, is_of_other: bool) {
        let (words, most) =
            if is_of_other { (&mut self.of_others, CHANGES_OF_OTHERS) } else { (&mut self.words, CHANGES) };
        if words.len() == most {
            words.pop_front();
        }
        words.push_back((address, place));
    }

    /// Where the word was that the thread changed at `address` last. (What is a stack during a run is not a
    /// region in it, nor the other way round.)
    pub(crate) fn find(&self, address: usize) -> Option<Place> {
        let latest = |words: &VecDeque<(usize, Place)>| {
            words.iter().rev().find(|(changed, _)| *changed == address).map(|(_, place)| *place)
        };
        latest(&self.words).or_else(|| latest(&self.of_others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::memory::object::Region;

    const ONE: ThreadId = ThreadId(0);
    const OTHER: ThreadId = ThreadId(1);

    /// Two stacks; words of the first from 0x1000 on.
    fn lines() -> Lines {
        let mut lines = Lines::default();
        lines.add_stack(0x1000..0x2000);
        lines.add_stack(0x3000..0x4000);
        lines
    }

    fn place(line: u32, offset: u32) -> Option<Place> {
        Some(Place { line: LineId(line), offset })
    }

    #[test]
    fn words_of_a_stack_lie_in_the_order_of_their_first_use() {
        let mut lines = lines();
        assert_eq!(lines.of(0x1ff4, ONE), place(0, 0));
        assert_eq!(lines.of(0x3210, OTHER), place(1, 0));
        assert_eq!(
            lines.of(0x1004, OTHER),
            place(0, 8),
            "it lies on the first one's stack, whichever thread uses it first"
        );
        assert_eq!(lines.of(0x1ff4, OTHER), place(0, 0));
        for word in 2..8 {
            lines.of(0x1100 + word, ONE);
        }
        assert_eq!(lines.of(0x1200, ONE), place(2, 0), "a line has eight words");
    }

    #[test]
    fn the_place_of_a_word_that_has_ended_is_free() {
        let mut lines = lines();
        for word in 0..9 {
            lines.of(0x1000 + word, ONE);
        }
        assert_eq!(lines.ends(0x1003), Some(LineId(0)));
        assert_eq!(lines.ends(0x1003), None);
        assert_eq!(lines.of(0x1800, ONE), place(0, 24));
        assert!(!lines.is_clear(ONE) && lines.is_clear(OTHER));
        for word in [0, 1, 2, 4, 5, 6, 7, 8, 0x800] {
            lines.ends(0x1000 + word);
        }
        assert!(lines.is_clear(ONE));
    }

    #[test]
    fn a_region_lies_as_it_does_natively() {
        let mut lines = lines();
        assert_eq!(lines.of(0x10_0044, ONE), None, "nothing is there");
        let region = Region::new(0x10_0000..0x10_0080);
        assert_eq!(lines.of(0x10_0044, ONE), place(0, 4));
        assert_eq!(lines.of(0x10_0004, ONE), place(1, 4));
        assert_eq!(lines.of(0x10_0048, ONE), place(0, 8));
        assert_eq!(lines.of(0x10_0080, ONE), None);
        for word in [0x10_0044, 0x10_0004, 0x10_0048] {
            lines.ends(word);
        }
        drop(region);
        let _another = Region::new(0x10_0000..0x10_0080);
        assert_eq!(lines.of(0x10_0044, ONE), place(2, 4), "other memory, wherever the allocator puts it");
    }

    #[test]
    fn a_change_is_remembered_as_the_latest_at_its_address() {
        let at = |line| place(line, 0).unwrap();
        let mut changed = Changed::default();
        (0..40).for_each(|word| changed.add(8 * (word as usize % 20), at(word), false));
        assert_eq!(changed.find(8 * 19), Some(at(39)));
        assert_eq!(changed.find(0), Some(at(20)));
        (0..CHANGES).for_each(|_| changed.add(1, at(0), true));
        assert_eq!(changed.find(0), Some(at(20)), "what it does to others' words pushes none of its own out");
        (0..CHANGES_OF_OTHERS).for_each(|word| changed.add(1000 + word, at(0), true));
        assert_eq!(
            (changed.find(1), changed.find(1000)),
            (None, Some(at(0))),
            "a wake pass wakes its first waiter last"
        );
        (0..CHANGES).for_each(|_| changed.add(1, at(0), false));
        assert_eq!(changed.find(0), None);
    }
}
