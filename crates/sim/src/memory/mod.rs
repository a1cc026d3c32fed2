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
//! thread goes on ([`stores`]): the memory is x86's (total store order). Beside these values none are kept
//! here: the simulated program's words are real memory, and an access happens to them at the moment at which
//! its line is there. Memory that is weaker is what the loom models are for.

mod alive;
mod running_ahead;
mod stores;
mod watch;
mod write;

use crate::time::Ps;
use crate::world::memory::{Access, Move, Request, Value};
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
