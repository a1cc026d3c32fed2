//! A thread over all snapshots: what it was found in, and for how long.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Point;
use super::woken::Base;
use crate::attach::gil::ForGil;
use crate::attach::stack::Stack;
use crate::attach::target::Followed;
use crate::attach::task::Call;
use crate::attach::thread_now::{State, ThreadNow};
use crate::model::{CallSiteId, Kind, Role, ThreadTime};
use crate::watch::Sched;

/// A thread that has not run for so many snapshots, and neither waits for a lock nor has one that others wait
/// for, is idle.
const IDLE: u32 = 4;

/// A thread, over all snapshots.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) time: ThreadTime,
    pub(super) waited: u64,
    pub(super) signals: u64,
    pub(super) others: u64,
    pub(super) slices: u64,
    pub(super) snapshots: u64,
    pub(super) followed: Followed,
    /// As it was found last, and since when it has been so, ns after the start.
    pub(super) last: Option<ThreadNow>,
    pub(super) stack: Arc<Stack>,
    /// What it was found in before: the latest last.
    pub(super) earlier: Vec<(Point, Arc<Stack>, ThreadNow)>,
    /// What it was in, and its times: that changes if it runs.
    pub(super) was: Option<(Call, Option<Sched>)>,
    pub(super) since: u64,
    /// So many snapshots have found it as it is.
    pub(super) same: u32,
    pub(super) for_gil: Option<ForGil>,
    /// Others wait for a lock that it has.
    pub(super) is_holder: bool,
    /// ns since it was read: it was idle then.
    pub(super) unread: u64,
    /// Where its stack begins, as it was found blocked; the latest first.
    pub(super) bases: Vec<Base>,
    /// It was woken from the wait in which it is, and waits for a CPU; and for how long it was found so, in all.
    pub(super) is_woken: bool,
    pub(super) woken: u64,
    /// What it waits for, and where, as indices.
    pub(super) which: Option<usize>,
    pub(super) site: CallSiteId,
    /// Where its time is added, if it waits for no lock.
    pub(super) sum: Option<usize>,
    /// For what may be a lock.
    pub(super) unclear: BTreeMap<usize, u64>,
}

impl Seen {
    /// It has ended.
    pub(super) fn end(&mut self) {
        (self.last, self.was, self.which, self.sum, self.same) = (None, None, None, None, 0);
        self.followed = Followed::default();
        (self.for_gil, self.is_woken) = (None, false);
        self.earlier.clear();
        self.bases.clear();
    }

    /// Notes where its stack begins.
    pub(super) fn note_base(&mut self, base: Base) {
        /// So many are remembered.
        const MOST: usize = 4;
        if self.bases.first() != Some(&base) {
            self.bases.retain(|known| known.0 != base.0);
            self.bases.insert(0, base);
            self.bases.truncate(MOST);
        }
    }

    /// Whether it need not be read in each snapshot.
    pub(super) fn is_idle_now(&self) -> bool {
        let is_lock = || self.last.as_ref().is_none_or(|last| last.lock().is_some());
        self.same >= IDLE && !self.is_holder && !is_lock()
    }

    /// Adds time to what it was found in. `unread`: how long it had not been read; 0 if it was not read now. Returns
    /// how much counts as blocked.
    pub(super) fn add(&mut self, passed: i64, unread: u64) -> i64 {
        let Some(now) = &self.last else { return 0 };
        let sched = self.followed.task.as_ref().and_then(|task| task.sched);
        let before = self.was.and_then(|(_, sched)| sched);
        if unread > 0
            && let (Some(before), Some(sched)) = (before, sched)
        {
            self.slices += sched.slices.saturating_sub(before.slices);
            let (ran, ready) =
                (sched.ran.saturating_sub(before.ran), sched.waited.saturating_sub(before.waited));
            self.time.running += ran.min(unread);
            self.time.runnable += ready.min(unread - ran.min(unread));
        }
        // The whole interval: those that find it on a CPU count for none of what blocks it.
        let part = match &now.state {
            State::Running => {
                // Of a new thread, as of what blocks it: what it does once it is seen for the last time is not
                // known, and as much on average as what it did before it was seen first.
                add(&mut self.time.running, if self.was.is_none() { passed } else { 0 });
                return 0;
            }
            State::Unknown => &mut self.time.unknown,
            State::Stopped(_) => &mut self.time.stopped,
            State::Fault => &mut self.time.io,
            State::Call(name) => match *name {
                "nanosleep" | "clock_nanosleep" | "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => {
                    &mut self.time.sleep
                }
                "wait4" | "waitid" | "vfork" => &mut self.time.ends,
                "semop" | "semtimedop" | "flock" => &mut self.time.semaphores,
                _ => &mut self.time.io,
            },
            State::Waits(wait) if wait.is_lock() => {
                add(&mut self.waited, passed);
                if self.is_woken {
                    add(&mut self.woken, passed);
                }
                &mut self.time.locks
            }
            State::Waits(wait) if wait.kind == Kind::Join => {
                add(&mut self.waited, passed);
                add(&mut self.others, passed);
                &mut self.time.ends
            }
            State::Waits(wait) if wait.role == Role::Signal => {
                add(&mut self.waited, passed);
                add(&mut self.signals, passed);
                &mut self.time.signals
            }
            State::Waits(_) => {
                add(&mut self.waited, passed);
                add(&mut self.others, passed);
                self.which.into_iter().for_each(|which| add(self.unclear.entry(which).or_default(), passed));
                &mut self.time.unclear
            }
        };
        add(part, passed);
        passed
    }

    /// Its time, each moment once: the kernel counts as ready for a CPU what here counts as waiting for a lock.
    pub(super) fn whole_time(&self) -> ThreadTime {
        ThreadTime { runnable: self.time.runnable.saturating_sub(self.woken), ..self.time }
    }

    /// Whether it has no work: hardly any CPU time, and rarely woken; and does not wait for locks.
    pub(super) fn is_idle(&self) -> bool {
        /// Wake-ups a second.
        const RARE: f64 = 2.0;
        let all = self.whole_time().total();
        let is_rare = self.slices as f64 <= RARE * all as f64 / 1e9;
        self.time.running <= all / 100 && is_rare && self.time.locks <= all / 20 && self.time.stopped == 0
    }
}

/// Adds time, or takes it away, if more was added than there was.
pub(super) fn add(sum: &mut u64, time: i64) {
    *sum = sum.saturating_add_signed(time);
}
