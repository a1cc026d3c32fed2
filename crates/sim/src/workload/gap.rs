//! Times in which a lock is free although a thread wants it, by what its next owner was kept by meanwhile.

use serde::{Deserialize, Serialize};

use crate::here;
use crate::world::{Delay, ThreadId};

/// How long a lock was free although it was wanted, ns. The parts add up to that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Its next owner slept, and had not been woken yet.
    pub asleep_ns: f64,
    /// It had been woken, and its CPU came out of idle and switched to it.
    pub waking_ns: f64,
    /// It could run, and others had its CPU.
    pub queued_ns: f64,
    /// It waited for a cache line.
    pub lines_ns: f64,
    /// It polled, and could not see yet that the lock was free: that was on its way.
    pub unseen_ns: f64,
    /// It was between two looks: PAUSE, back-off.
    pub pause_ns: f64,
    /// Its own steps and system calls.
    pub steps_ns: f64,
    /// None of that is known: its next owner had not asked for it yet. What kept another one who waited is in
    /// the parts above.
    pub others_ns: f64,
}

impl Gap {
    /// The lock was free and wanted from `from` on; the running thread asked for it at `asked`, and has it at
    /// `to`. Before it asked, `other` is asked what kept it.
    fn new(from: f64, asked: f64, to: f64, other: Option<ThreadId>) -> Self {
        let own = asked.clamp(from, to);
        let mut gap = Self::default();
        if own > from {
            if let Some(other) = other {
                gap.kept(other, from, own);
            }
            gap.others_ns = (own - from - gap.total_ns()).max(0.0);
        }
        gap.kept(here::thread(), own, to);
        gap.steps_ns = (to - from - gap.total_ns()).max(0.0);
        gap
    }

    /// What kept `thread` from `from` to `to`.
    fn kept(&mut self, thread: ThreadId, from: f64, to: f64) {
        here::kept_by(thread, from, to, |delay, ns| {
            *match delay {
                Delay::Asleep => &mut self.asleep_ns,
                Delay::Waking => &mut self.waking_ns,
                Delay::Queued => &mut self.queued_ns,
                Delay::Line => &mut self.lines_ns,
                Delay::Unchanged => &mut self.unseen_ns,
                Delay::Pause => &mut self.pause_ns,
            } += ns;
        });
    }

    /// Adds other such times.
    pub fn add(&mut self, other: &Self) {
        self.asleep_ns += other.asleep_ns;
        self.waking_ns += other.waking_ns;
        self.queued_ns += other.queued_ns;
        self.lines_ns += other.lines_ns;
        self.unseen_ns += other.unseen_ns;
        self.pause_ns += other.pause_ns;
        self.steps_ns += other.steps_ns;
        self.others_ns += other.others_ns;
    }

    /// All of it, ns.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        let Self { asleep_ns, waking_ns, queued_ns, lines_ns, .. } = self;
        let Self { unseen_ns, pause_ns, steps_ns, others_ns, .. } = self;
        asleep_ns + waking_ns + queued_ns + lines_ns + unseen_ns + pause_ns + steps_ns + others_ns
    }
}

/// Since when a lock is held, free, and wanted.
#[derive(Debug, Default)]
pub(super) struct Since {
    /// When it was last let go by the last one who had it.
    free: f64,
    /// Since when a thread wants it, if any does.
    wanted: f64,
    /// When it was last taken while it was free.
    held: f64,
    /// For how long its owner had waited for CPUs then.
    queued: f64,
    /// The threads that want it.
    waiting: Waiting,
}

/// The waiters, in any order.
#[derive(Debug, Default)]
struct Waiting {
    threads: Vec<ThreadId>,
    /// Where each is among them, by its number.
    places: Vec<usize>,
}

impl Waiting {
    fn insert(&mut self, thread: ThreadId) {
        let number = thread.number() as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, 0);
        }
        self.places[number] = self.threads.len();
        self.threads.push(thread);
    }

    fn remove(&mut self, thread: ThreadId) {
        let place = self.places[thread.number() as usize];
        self.threads.swap_remove(place);
        if let Some(moved) = self.threads.get(place) {
            self.places[moved.number() as usize] = place;
        }
    }
}

impl Since {
    /// The running thread wants it.
    pub(super) fn wanted(&mut self, now: f64) {
        if self.waiting.threads.is_empty() {
            self.wanted = now;
        }
        self.waiting.insert(here::thread());
    }

    /// The running thread has it. `was_free`: no other has it. It asked for it at `asked`: what kept it free
    /// until now, in the run's time.
    pub(super) fn taken(&mut self, asked: f64, now: f64, was_free: bool) -> Gap {
        self.waiting.remove(here::thread());
        if !was_free {
            return Gap::default();
        }
        self.taken_back(now);
        let end = now.min(here::end_ns());
        Gap::new(self.free.max(self.wanted).min(end), asked, end, self.waiting.threads.first().copied())
    }

    /// It is free again: how long it was held, and for how much of that the running thread, which had it,
    /// waited for a CPU; in the run's time.
    pub(super) fn freed(&mut self, now: f64) -> (f64, f64) {
        self.free = now;
        ((now.min(here::end_ns()) - self.held).max(0.0), here::queued_ns() - self.queued)
    }

    /// It is taken by a thread that gave it up only to wait for something else, and did not ask for it
    /// before.
    pub(super) fn taken_back(&mut self, now: f64) {
        (self.held, self.queued) = (now, here::queued_ns());
    }
}
