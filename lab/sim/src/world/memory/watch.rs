//! Polling: a thread that sees nothing new costs nothing.
//!
//! `spin_hint` says that the thread would look again at what it has looked at. If none of that has changed,
//! it is not resumed until something does, and then after a random part of a poll's time. It also looks again
//! after a while: it may count its polls, or look at the clock. These looks become rarer as it waits, an
//! eighth of the time that it has waited; so a wait of any length costs few events.

use crate::time::Ps;
use crate::world::memory::Access;
use crate::world::{Core, Delay, LineId, State, ThreadId, World};

impl World {
    /// The running thread has accessed the line.
    #[inline]
    pub(super) fn note_polled(&mut self, id: LineId, access: Access) {
        let version = self.memory.lines[id.0 as usize].version;
        let polled = &mut self.threads[self.running].watch.polled;
        let known = |entry: &&mut Option<(LineId, u32)>| entry.is_none_or(|(known, _)| known == id);
        if let Some(entry) = polled.iter_mut().find(known) {
            // What it saw first counts: a change since then is news.
            if entry.is_none() || access != Access::Load {
                *entry = Some((id, version));
            }
        }
    }

    /// `core` has written the line.
    #[inline]
    pub(super) fn changed(&mut self, id: LineId, core: Core) {
        let now = self.now;
        let line = self.memory.get(id);
        line.version = line.version.wrapping_add(1);
        line.last = Some((core, now));
        if line.watchers.is_empty() {
            return;
        }
        for thread in std::mem::take(&mut line.watchers) {
            let watch = &mut self.threads[thread].watch;
            watch.registered.retain(|known| *known != id);
            self.rouse(thread);
        }
    }

    /// A thread that polls looks again, soon.
    pub(crate) fn rouse(&mut self, thread: ThreadId) {
        if self.threads[thread].state == State::Watching {
            let phase = self.rng.u64(0..=self.costs.pause);
            let (now, roused) = (self.now, &mut self.threads[thread]);
            roused.watch.quiet = 0;
            roused.recent.begin(Delay::Pause, now);
            self.resume_at(thread, self.now + phase, State::Watching);
        }
    }

    /// The running thread is about to poll again. Returns whether it is put to wait; if so,
    /// [`World::watched`] comes after.
    pub(crate) fn watch(&mut self) -> bool {
        self.looks_next();
        let (thread, now) = (self.running, self.now);
        let watch = &mut self.threads[thread].watch;
        let polled = std::mem::take(&mut watch.polled);
        let is_new = |(id, version): &(LineId, u32)| self.memory.lines[id.0 as usize].version != *version;
        if polled.iter().flatten().any(is_new) {
            let (pause, poller) = (self.costs.pause, &mut self.threads[thread]);
            poller.watch.quiet = 0;
            poller.debt += pause;
            poller.recent.add(Delay::Pause, now, now + pause);
            return false;
        }
        let looks = polled.iter().any(Option::is_some);
        for (id, _) in polled.into_iter().flatten() {
            let watch = &mut self.threads[thread].watch;
            if !watch.registered.contains(&id) {
                watch.registered.push(id);
                self.memory.get(id).watchers.push(thread);
            }
        }
        let poller = &mut self.threads[thread];
        poller.watch.since = Some(now);
        poller.recent.begin(if looks { Delay::Unchanged } else { Delay::Pause }, now);
        let wait = (poller.watch.quiet / 8).max(self.costs.pause);
        self.fall_behind();
        self.resume_at(thread, now + wait, State::Watching);
        true
    }

    /// The thread loses its CPU. If it polls, it does not do so until it has one again: neither its spin
    /// budget nor its spinning time goes on.
    pub(crate) fn pause_watch(&mut self, thread: ThreadId) {
        let (now, in_time) =
            (self.now, self.in_time(self.threads[thread].watch.since.unwrap_or(self.now), self.now));
        let thread = &mut self.threads[thread];
        if let (State::Watching, Some(since)) = (thread.state, thread.watch.since.take()) {
            thread.watch.before += now.saturating_sub(since);
            thread.watch.before_in_time += in_time;
        }
    }

    /// It looks again: how many polls that was.
    pub(crate) fn watched(&mut self) -> u32 {
        self.looks_next();
        let poll = (self.costs.pause + self.costs.hit + self.costs.step).max(1);
        let (now, is_by_rank, pause) = (self.now, self.chaos.is_by_rank(), self.costs.pause);
        let thread = &mut self.threads[self.running];
        thread.state = State::Executing;
        let cpu = thread.cpu;
        self.plan_tick(cpu);
        let since = self.threads[self.running].watch.since;
        let last_in_time = since.map_or(0, |since| self.in_time(since, self.now));
        self.threads[self.running].recent.end(now);
        let watch = &mut self.threads[self.running].watch;
        let in_time = std::mem::take(&mut watch.before_in_time) + last_in_time;
        let waited = if is_by_rank {
            // Nothing else has let that time pass. It must, or the slice of a thread that polls in vain would
            // not end.
            (watch.since, watch.before) = (None, 0);
            (watch.quiet / 8).max(pause)
        } else {
            let last = since.map_or(0, |since| now.saturating_sub(since));
            watch.since = None;
            std::mem::take(&mut watch.before) + last
        };
        watch.quiet += waited;
        let thread = &mut self.threads[self.running];
        thread.debt += if is_by_rank { waited } else { 0 };
        thread.times.spinning += if is_by_rank { waited } else { in_time };
        u32::try_from(waited / poll).unwrap_or(u32::MAX).max(1)
    }
}

/// How many lines are remembered as polled.
const POLLED: usize = 4;

/// What a thread looks at while it spins.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// What it has accessed since its last `spin_hint`, and what version it saw.
    pub(crate) polled: [Option<(LineId, u32)>; POLLED],
    /// Lines that have it among their watchers.
    pub(crate) registered: Vec<LineId>,
    /// How long it has seen nothing new.
    pub(crate) quiet: Ps,
    /// When it was put to wait; none: it has lost its CPU since.
    pub(crate) since: Option<Ps>,
    /// For how long it has polled in this wait before it lost its CPU.
    pub(crate) before: Ps,
    /// As much of that as was the run's time.
    pub(crate) before_in_time: Ps,
}
