//! The store buffer: a plain store to a line that the core does not have asks for the line, and its thread goes on.
//! **Its size is 0 for now, so it waits instead**: see below. What follows is what it does with a size.
//!
//! | what | when |
//! |---|---|
//! | the value changes | at once: memory stays sequentially consistent, as everywhere here |
//! | who polls the line is told | when the line has arrived |
//! | the thread's next atomic operation or fence, and the kernel's locks | wait until all of its stores are done |
//!
//! The last is what x86 does (TSO): what drains the buffer waits for the slowest line. Stores to a line that is asked for
//! already wait together. Stores to lines that the core has are done at once, and take no entry.
//!
//! Why size 0: the first row shows others a store before its line has come, which no real machine does, and makes a release of a
//! lock that many poll too cheap. Holding others back until then was tried. It is causal, but a compare-exchange that
//! would have failed waits as well, and probably succeeds then, so a storm of them does not get in the way of the release as
//! it should. What is missing is a buffer that has the values, so that others see the old one meanwhile.

use super::line::Request;
use super::{Access, Core, LineId};
use crate::engine::thread::{State, ThreadId};
use crate::engine::world::World;

/// So many stores of a thread wait for lines at most; then the next one waits too. Real ones have 42 (Sandy Bridge) to 112
/// (Golden Cove). Here there is none for now, so a store that misses holds its thread up: see above.
const ENTRIES: u32 = 0;

/// The stores of a thread that wait for their lines.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    waiting: u32,
    /// The thread goes on when at most so many are left.
    until: Option<u32>,
}

impl World {
    /// Whether the running thread has to wait for its own stores first; it is resumed when they are done.
    #[inline]
    pub(super) fn is_held_up(&mut self, access: Access, has_line: bool) -> bool {
        let running = self.running;
        if self.threads[running].stores.waiting == 0 {
            return false;
        }
        match access {
            Access::Update => self.drains(0),
            Access::Store if !has_line => self.drains(ENTRIES.saturating_sub(1)),
            Access::Store | Access::Load => false,
        }
    }

    /// Whether a store that misses lets its thread go on.
    pub(super) const fn are_stores_buffered() -> bool {
        ENTRIES != 0
    }

    /// Whether any store of the running thread waits for its line.
    pub(crate) fn has_stores(&self) -> bool {
        self.threads[self.running].stores.waiting > 0
    }

    /// Whether the running thread has more stores under way than `most`. If so, it is resumed when it does not.
    pub(crate) fn drains(&mut self, most: u32) -> bool {
        let running = self.running;
        let thread = &mut self.threads[running];
        if thread.stores.waiting <= most {
            return false;
        }
        thread.stores.until = Some(most);
        thread.state = State::Fetching;
        true
    }

    /// The running thread's store waits for the line.
    pub(super) fn buffer(&mut self, id: LineId, core: Core) {
        let (thread, now, early) = (self.running, self.now, self.not_lost(id, core));
        let line = self.memory.get(id);
        let moving = line.moving.as_mut().map(|moving| &mut moving.to);
        let mut asked = moving.into_iter().chain(line.waiting.iter_mut());
        let mine = |to: &&mut Request| {
            to.core == core && to.exclusive && to.stored.is_none_or(|stored| stored == thread)
        };
        if let Some(to) = asked.find(mine) {
            if to.stored.replace(thread).is_none() {
                self.threads[thread].stores.waiting += 1;
            }
            return;
        }
        let to = Request { thread: None, stored: Some(thread), core, exclusive: true, early, asked: now };
        line.waiting.push(to);
        let is_moving = line.moving.is_some();
        self.threads[thread].stores.waiting += 1;
        if !is_moving {
            self.start_move(id);
        }
    }

    /// The line has arrived for a store of `thread`.
    pub(super) fn store_is_done(&mut self, thread: ThreadId, id: LineId, core: Core) {
        self.changed(id, core);
        let stores = &mut self.threads[thread].stores;
        stores.waiting -= 1;
        if stores.until.is_some_and(|most| stores.waiting <= most) {
            stores.until = None;
            self.resume_at(thread, self.now, State::Fetching);
        }
    }
}
