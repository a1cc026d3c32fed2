//! Memory for the queues of spinners, which all locks of a process share: a lock has no space for one of its
//! own.

/// A cache line of that memory: three words, all zero at first.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct SpinLine<W> {
    /// Of a queue: its youngest spinner. Of a slot: its state.
    pub word: W,
    /// Of a queue: the name of the lock. Of a slot: its spinner's thread.
    pub about: W,
    /// Of a slot: the one before it. 0: none, or not known yet.
    pub before: W,
}

/// The queue of one lock's spinners. The platform chooses which locks share a queue; normally one of them
/// uses it at a time.
#[derive(Debug)]
pub struct SpinRoom<'a, W> {
    /// The queue.
    pub queue: &'a SpinLine<W>,
    /// The slots of all queues: at least 1, at most [`SpinRoom::MOST_SLOTS`].
    pub slots: &'a [SpinLine<W>],
    /// The lock's name, most probably not that of another one of its queue. Not 0.
    pub name: u32,
}

impl<W> SpinRoom<'_, W> {
    /// The most slots: a number has ten bits, and 0 is none.
    pub const MOST_SLOTS: usize = 1023;
}
