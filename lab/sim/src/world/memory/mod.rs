//! Memory: what an access costs, by the state of its cache line and the distance to it.
//!
//! The protocol is a directory with invalidation. A load of a line that the core's own cache or the
//! last-level cache of its socket has, clean, is served there; everything else is a *move* of the line. Moves
//! of one line come one after another, and the next core is drawn by lot, near ones more likely: requests for
//! a contended line are not served first come, first served. The core that has just got the line can use it
//! until the next move is half done: a store right after a successful compare-exchange does not wait behind
//! every core that polls.
//!
//! A store to a line that is elsewhere waits for it in its thread's store buffer, with its value, and the
//! thread goes on (`stores`): the memory is x86's (total store order). Beside these values none are kept
//! here: the simulated program's words are real memory, and an access happens to them at the moment at which
//! its line is there. Memory that is weaker is what the loom models are for.

mod layout;
pub(crate) mod object;
mod stores;
mod watch;

use rustc_hash::FxHashMap;

pub(crate) use self::layout::{Changed, Lines, Place};
pub(crate) use self::stores::{Access, Buffers, StoreBuffer, Value, Write};
pub(crate) use self::watch::Watch;
use crate::failure::Failure;
use crate::time::Ps;
use crate::world::{Cache, Core, LineId, State, ThreadId, What, World};

/// How an access goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    /// The line is there: the access happens now.
    There,
    /// The same, of a load: it has what its thread has stored.
    Forwarded(Value),
    /// The thread is resumed when it is worth asking again.
    Later,
}

impl World {
    /// The running thread wants to load from `address`, or to update it, now. (It stores by
    /// [`World::make_store`].)
    pub(crate) fn reach(&mut self, address: usize, access: Access) -> Reach {
        let Some(place) = self.alive(address) else {
            return Reach::Later; // never: the run has failed
        };
        let id = place.line;
        let core = self.core_of_running();
        let exclusive = access != Access::Load;
        if !self.threads[self.running].stores.is_empty() {
            let own = if exclusive {
                (!self.has_drained()).then_some(Reach::Later) // B4
            } else {
                self.reach_own_store(address, id) // B3
            };
            if let Some(reach) = own {
                return reach;
            }
        }
        let (now, costs) = (self.now, self.costs);
        let line = self.memory.get(id);
        let arrived = std::mem::take(&mut self.threads[self.running].loading) == Some((id, line.version));
        let mut has_line = self.chaos.is_by_rank() || line.is_usable(core, exclusive, now);
        if arrived && line.holder.is_none() {
            line.sharers.insert(core);
            has_line |= !exclusive;
        }
        if !has_line {
            return self.miss(id, core, exclusive);
        }
        let cost = if exclusive {
            self.runs_ahead(costs.rmw);
            costs.rmw
        } else {
            self.overlapped(costs.hit)
        };
        let running = self.running;
        self.threads[running].debt += cost;
        if exclusive {
            let is_of_other = self.memory.is_of_other(id, running);
            self.threads[running].changed.add(address, place, is_of_other);
            self.changed(id, core);
        }
        self.note_polled(id, access);
        Reach::There
    }

    /// For how long another core than `core` has had the line.
    pub(crate) fn since_lost(&self, id: LineId, core: Core) -> Ps {
        match self.memory.lines[id.0 as usize].last {
            Some((last, at)) if last != core => self.now.saturating_sub(at),
            _ => Ps::MAX,
        }
    }

    fn miss(&mut self, id: LineId, core: Core, exclusive: bool) -> Reach {
        let (now, costs, thread) = (self.now, self.costs, self.running);
        let (cache, early) = (self.places.cache_of(core), self.not_lost(id, core));
        let shared = self.spread_transfer(costs.shared);
        let line = self.memory.get(id);
        let is_near = line.holder.is_none() && line.caches.has(cache) && !line.is_leaving(exclusive, now);
        if !exclusive && is_near {
            let at = line.serve(cache, now, costs.shared_busy);
            let early = line.early(core, early, now);
            let at = at + shared.saturating_sub(early);
            self.threads[thread].loading = Some((id, line.version));
            self.resume_at(thread, at, State::Fetching);
            return Reach::Later;
        }
        self.threads[thread].state = State::Fetching;
        self.request(id, Request { thread, core, exclusive, is_store: false, early, asked: now });
        Reach::Later
    }

    /// A core asks for the line.
    fn request(&mut self, id: LineId, request: Request) {
        let line = self.memory.get(id);
        line.waiting.push(request);
        if line.moving.is_none() {
            self.start_move(id);
        }
    }

    /// Sends the line to one of the cores that wait for it.
    fn start_move(&mut self, id: LineId) {
        let next = self.draw(id);
        let line = self.memory.get(id);
        let to = line.waiting.swap_remove(next);
        let (now, early) = (self.now, self.memory.get(id).early(to.core, to.early, self.now));
        let cost = self.move_cost(id, to);
        let cost = self.spread_transfer(cost);
        let serial = ((cost as f64 * self.costs.serial) as Ps).max(1);
        // First the request is on its way, and the line stays in use; a core that has waited has that behind
        // it.
        let way = cost.saturating_sub(serial);
        let begin = now + way.saturating_sub(now - to.asked + early);
        let serial = (way + serial).saturating_sub(early).clamp(1, serial);
        let leaves = begin + serial / 2;
        self.count_move(id, to);
        self.memory.get(id).moving = Some(Move { to, leaves });
        self.events.plan(begin + serial, What::Arrival(id));
    }

    fn count_move(&mut self, id: LineId, to: Request) {
        let cache = self.places.cache_of(to.core);
        let socket = |cache: Cache| self.places.socket_of_cache(cache);
        let line = &self.memory.lines[id.0 as usize];
        if line.holder == Some(to.core) || line.sharers.has(to.core) {
            return; // it is there: only the other copies end
        }
        let from = match line.holder {
            Some(holder) => Some(self.places.cache_of(holder)),
            None => line.caches.iter().find(|&other| other == cache).or_else(|| line.caches.iter().next()),
        };
        match from {
            Some(from) if from == cache => self.counts.moves_near += 1,
            Some(from) if socket(from) == socket(cache) => self.counts.moves_socket += 1,
            Some(_) => self.counts.moves_far += 1,
            None => {}
        }
    }

    /// Whose turn it is: a lot, with weights by nearness to where the line is.
    fn draw(&mut self, id: LineId) -> usize {
        let line = &self.memory.lines[id.0 as usize];
        if line.waiting.len() == 1 {
            return 0;
        }
        let from = line.holder.map(|core| self.places.cache_of(core));
        let weight = |request: &Request| {
            let to = self.places.cache_of(request.core);
            from.map_or(1.0, |from| self.places.weight(from, to))
        };
        let total: f64 = line.waiting.iter().map(weight).sum();
        let mut left = self.rng.f64() * total;
        for (index, request) in line.waiting.iter().enumerate() {
            left -= weight(request);
            if left <= 0.0 {
                return index;
            }
        }
        line.waiting.len() - 1
    }

    /// What it takes to get the line to `to`.
    fn move_cost(&self, id: LineId, to: Request) -> Ps {
        let line = &self.memory.lines[id.0 as usize];
        let cache = self.places.cache_of(to.core);
        let between = |other: Cache| self.places.transfer(other, cache);
        if let Some(holder) = line.holder {
            return if holder == to.core { self.costs.hit } else { between(self.places.cache_of(holder)) };
        }
        if line.caches.is_empty() {
            return self.costs.dram;
        }
        let copies = line.caches.iter().map(between);
        if to.exclusive {
            // Every copy has to end; the farthest one takes the longest.
            let others = line.caches.iter().filter(|&other| other != cache).count() as Ps;
            copies.max().unwrap_or_default() + others.saturating_sub(1) * self.costs.invalidate
        } else {
            copies.min().unwrap_or_default()
        }
    }

    /// The line has arrived; the thread whose core asked for it goes on at once, and a store drains.
    pub(crate) fn arrive(&mut self, id: LineId) -> Option<ThreadId> {
        let line = &mut self.memory.lines[id.0 as usize];
        let Move { to, .. } = line.moving.take()?;
        let cache = self.places.cache_of(to.core);
        line.last = Some((to.core, self.now));
        if to.exclusive {
            line.sharers.clear();
            line.caches.clear();
            line.holder = Some(to.core);
        } else {
            if let Some(holder) = line.holder.take() {
                line.sharers.insert(holder);
            }
            line.sharers.insert(to.core);
        }
        line.caches.insert(cache);
        self.serve_siblings(id, to);
        if !to.exclusive {
            self.serve_the_rest(id, cache);
        }
        if to.is_store {
            self.line_came(to.thread, id);
        }
        if !self.memory.get(id).waiting.is_empty() {
            self.start_move(id);
        }
        if to.is_store {
            return None;
        }
        self.threads[to.thread].state = State::Executing;
        Some(to.thread)
    }

    /// The core's other hardware threads that wait for the line have it too: a core asks for a line once. So
    /// does the thread for which it was asked ahead.
    fn serve_siblings(&mut self, id: LineId, served: Request) {
        let mut index = 0;
        while let Some(&request) = self.memory.get(id).waiting.get(index) {
            if request.core != served.core || request.exclusive && !served.exclusive {
                index += 1;
                continue;
            }
            self.memory.get(id).waiting.swap_remove(index);
            if request.is_store {
                self.line_came(request.thread, id);
            } else {
                self.resume_at(request.thread, self.now, State::Fetching);
            }
        }
    }

    /// Loads that wait behind the same last-level cache are served there now.
    fn serve_the_rest(&mut self, id: LineId, cache: Cache) {
        let mut index = 0;
        while let Some(&request) = self.memory.get(id).waiting.get(index) {
            if request.exclusive || self.places.cache_of(request.core) != cache {
                index += 1;
                continue;
            }
            let (now, busy) = (self.now, self.costs.shared_busy);
            let line = self.memory.get(id);
            line.waiting.swap_remove(index);
            let at = line.serve(cache, now, busy) + self.costs.shared;
            self.threads[request.thread].loading = Some((id, line.version));
            self.resume_at(request.thread, at, State::Fetching);
        }
    }
}

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// A core that waits for the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The thread that goes on when it is there; of a store, the thread whose it is.
    pub(crate) thread: ThreadId,
    pub(crate) core: Core,
    /// To write, so that every other copy ends.
    pub(crate) exclusive: bool,
    /// For a store in a buffer: no thread waits for it.
    pub(crate) is_store: bool,
    /// Its core has asked for the line so much earlier than the thread got to it.
    pub(crate) early: Ps,
    /// When that was.
    pub(crate) asked: Ps,
}

/// The line is on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) to: Request,
    /// Until then, CPUs with copies of the line use them.
    pub(crate) leaves: Ps,
}

/// A cache line.
///
/// | `holder` | `sharers`, `caches` | meaning                                             |
/// |----------|---------------------|-----------------------------------------------------|
/// | none     | empty               | in memory only                                      |
/// | none     | some                | clean copies in those cores and last-level caches   |
/// | a core   | that core's cache   | that core alone may write it, and has, perhaps      |
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) holder: Option<Core>,
    pub(crate) sharers: Bits,
    pub(crate) caches: Bits,
    pub(crate) moving: Option<Move>,
    pub(crate) waiting: Vec<Request>,
    /// Threads that poll it, and are to be told of a change.
    pub(crate) watchers: Vec<ThreadId>,
    /// Which core got it last, or wrote it last, and when.
    pub(crate) last: Option<(Core, Ps)>,
    /// Counts changes.
    pub(crate) version: u32,
    /// How many stores to it are in buffers.
    pub(crate) buffered: u32,
    /// Until when each last-level cache is busy with loads of it.
    pub(crate) busy: FxHashMap<Cache, Ps>,
    /// Of a stack: whose, and which of its lines.
    pub(crate) on_stack: Option<(ThreadId, u32)>,
}

impl Line {
    /// Whether `core` has a copy that it can use at `now`.
    #[inline]
    pub(crate) fn is_usable(&self, core: Core, exclusive: bool, now: Ps) -> bool {
        let has = self.holder == Some(core) || (!exclusive && self.sharers.has(core));
        has && !self.is_leaving(exclusive, now)
    }

    /// Whether the copies are not to be used any more for such an access, because the line is on its way
    /// elsewhere.
    #[inline]
    pub(crate) fn is_leaving(&self, exclusive: bool, now: Ps) -> bool {
        self.moving.is_some_and(|moving| now >= moving.leaves && (exclusive || moving.to.exclusive))
    }

    /// How much earlier than `now` the line could leave for `core`, which has asked for it `early`: not
    /// before it came to where it is, and was written there.
    pub(crate) fn early(&self, core: Core, early: Ps, now: Ps) -> Ps {
        match self.last {
            Some((last, at)) if last != core => early.min(now.saturating_sub(at)),
            _ => early,
        }
    }

    /// When last-level cache `cache` can serve a load that comes `now`; it is busy for `busy` with it.
    pub(crate) fn serve(&mut self, cache: Cache, now: Ps, busy: Ps) -> Ps {
        let free = self.busy.entry(cache).or_insert(now);
        let start = now.max(*free);
        *free = start + busy;
        start
    }
}

impl World {
    /// The place of the word at `address`, which the running thread accesses; none: there is no memory, or it
    /// has been given back, and the run fails.
    #[inline]
    pub(crate) fn alive(&mut self, address: usize) -> Option<Place> {
        if self.checks.is_some() && self.is_gone_for(self.running, address) {
            return None;
        }
        let place = self.memory.of(address, self.running);
        if place.is_none() {
            self.fail(Failure::Wild { thread: self.running.number() });
        }
        place
    }

    /// The number by which the platform knows the lock at `address`: not 0.
    pub(crate) fn name_of_lock(&mut self, address: usize) -> usize {
        self.shared.name_of(self.memory.of(address, self.running).ok_or(address))
    }

    /// Whether the run has failed, or fails because the memory at `address`, which `thread` accesses, has
    /// been given back.
    pub(crate) fn is_gone_for(&mut self, thread: ThreadId, address: usize) -> bool {
        if self.failure.is_none() && self.checks.as_ref().is_some_and(|checks| checks.is_gone(address)) {
            let word = self.name_of(address);
            self.fail(Failure::UseAfterFree { thread: thread.number(), word });
        }
        self.failure.is_some()
    }
}

/// A set of cores, or of caches. Takes room for the largest member only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    pub(crate) fn insert(&mut self, number: u32) {
        let word = number as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(index as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let mut bits = Bits::default();
        assert!(bits.is_empty() && !bits.has(700));
        [3, 64, 700, 63].into_iter().for_each(|number| bits.insert(number));
        assert_eq!(bits.iter().collect::<Vec<_>>(), [3, 63, 64, 700]);
        assert!(bits.has(63) && !bits.has(65));
        bits.clear();
        assert!(bits.is_empty());
    }
}
