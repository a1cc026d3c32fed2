//! Cache lines: which cores have a copy of each, wait for one, and poll it.

use super::bits::Bits;
use crate::time::Ps;
use crate::world::ids::{Cache, Core, ThreadId};

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
    /// Until then, who has copies uses them.
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
    pub(crate) busy: Vec<(Cache, Ps)>,
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
        let free = match self.busy.iter_mut().find(|(known, _)| *known == cache) {
            Some((_, free)) => free,
            None => {
                self.busy.push((cache, now));
                &mut self.busy.last_mut().expect("just pushed").1
            }
        };
        let start = now.max(*free);
        *free = start + busy;
        start
    }
}
