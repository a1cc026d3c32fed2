//! Where a thread goes: the CPU on which it wakes, and the spreading of those that wait.

use crate::world::{CpuId, ThreadId, What, World};

impl World {
    fn may_use(&self, thread: ThreadId, cpu: CpuId) -> bool {
        let (from, to) = self.threads[thread].allowed;
        (from..to).contains(&cpu.0)
    }

    fn is_idle(&self, cpu: CpuId) -> bool {
        let cpu = &self.cpus[cpu.0 as usize];
        cpu.current.is_none() && cpu.queue.is_empty()
    }

    /// The CPU for a thread that wakes: where it ran last, if that is idle; else an idle one near there, or
    /// near its waker; else where it ran last. Whole cores first.
    pub(super) fn place(&self, thread: ThreadId, waker: Option<CpuId>) -> CpuId {
        let last = self.threads[thread].cpu;
        if self.may_use(thread, last) && self.is_idle(last) {
            return last;
        }
        let near = [Some(last), waker].into_iter().flatten();
        let idle = near.filter_map(|cpu| self.idle_near(thread, cpu)).next();
        idle.unwrap_or_else(|| {
            if self.may_use(thread, last) { last } else { CpuId(self.threads[thread].allowed.0) }
        })
    }

    /// An idle CPU behind the last-level cache of `cpu`.
    fn idle_near(&self, thread: ThreadId, cpu: CpuId) -> Option<CpuId> {
        let cache = self.places.cache_of(self.places.core_of(cpu));
        let fits = |&cpu: &CpuId| self.may_use(thread, cpu) && self.is_idle(cpu);
        let all = || self.cpus_of(cache).filter(fits);
        let whole =
            |&cpu: &CpuId| self.places.siblings(cpu, self.cpus.len() as u32).all(|other| self.is_idle(other));
        all().find(whole).or_else(|| all().next())
    }

    /// The CPUs behind a last-level cache.
    fn cpus_of(&self, cache: u32) -> impl Iterator<Item = CpuId> + use<'_> {
        (0..self.cpus.len() as u32)
            .map(CpuId)
            .filter(move |&cpu| self.places.cache_of(self.places.core_of(cpu)) == cache)
    }

    /// A CPU that has become idle takes a thread that waits elsewhere: from the longest queue behind its
    /// last-level cache.
    pub(super) fn pull(&mut self, cpu: CpuId) -> Option<ThreadId> {
        if self.queued == 0 {
            return None;
        }
        let cache = self.places.cache_of(self.places.core_of(cpu));
        let is_fit = |other: &CpuId| !self.cpus[other.0 as usize].is_throttled;
        let from =
            self.cpus_of(cache).filter(is_fit).max_by_key(|other| self.cpus[other.0 as usize].queue.len())?;
        self.take_from(from, cpu)
    }

    /// Takes a thread from the queue of `from` that may use `to`.
    fn take_from(&mut self, from: CpuId, to: CpuId) -> Option<ThreadId> {
        // Threads of a throttled CPU stay with it.
        if self.cpus[from.0 as usize].is_throttled {
            return None;
        }
        let place = self.cpus[from.0 as usize].queue.iter().rposition(|&thread| self.may_use(thread, to))?;
        Some(self.dequeue(from, place))
    }

    /// Threads wait for CPUs: after a while, idle CPUs anywhere take them.
    pub(super) fn plan_balance(&mut self) {
        if !self.balance_planned && self.cpus.len() > 1 {
            self.balance_planned = true;
            self.events.plan(self.now + self.costs.balance, What::Balance);
        }
    }

    /// Idle CPUs take threads from the longest queues; between busy ones, queues are evened out.
    pub(crate) fn balance(&mut self) {
        self.balance_planned = false;
        for number in 0..self.cpus.len() as u32 {
            if self.queued == 0 {
                return;
            }
            let cpu = CpuId(number);
            if self.cpu(cpu).is_throttled {
                continue;
            }
            let mine = self.load(cpu);
            let Some(busiest) = (0..self.cpus.len() as u32).map(CpuId).max_by_key(|&other| self.load(other))
            else {
                return;
            };
            if self.load(busiest) < mine + 2 {
                continue;
            }
            if let Some(thread) = self.take_from(busiest, cpu) {
                self.land(thread, cpu);
            }
        }
        if self.queued > 0 {
            self.plan_balance();
        }
    }

    /// Threads that have this CPU or wait for it; of a throttled one, none could be taken.
    fn load(&self, cpu: CpuId) -> usize {
        let cpu = &self.cpus[cpu.0 as usize];
        if cpu.is_throttled {
            return 0;
        }
        cpu.queue.len() + usize::from(cpu.current.is_some())
    }

    fn land(&mut self, thread: ThreadId, cpu: CpuId) {
        if self.cpu(cpu).current.is_none() && self.may_run(cpu) {
            self.dispatch(thread, cpu, self.costs.idle_exit, self.costs.switch);
        } else {
            self.enqueue(thread, cpu);
            self.plan_slice(cpu);
        }
    }
}
