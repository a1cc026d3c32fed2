//! The scheduler: a queue per CPU, ordered by virtual run time, as in CFS and EEVDF.
//!
//! A CPU runs its thread for a slice: the period divided by the number of its threads, and not less than the
//! minimum. A woken thread goes to an idle CPU near where it ran last, or near its waker; else it queues
//! where it ran last, and preempts the thread there if it is far enough behind it.
//!
//! A quota of CPU time is as `cpu.max` gives one to a control group: the kernel's CFS bandwidth control. In
//! each period the threads may have so much CPU time, on all CPUs together. A CPU takes it from the pool in
//! slices. One that has used up its slice, and finds the pool empty, is throttled: its thread leaves it, and
//! those of its queue, just woken ones among them, wait for the next period. A CPU that is out of threads
//! gives back all but a little. (Turner, Rao, Rao, "CPU bandwidth control for CFS", Linux Symposium 2010;
//! figures of Linux 6.)

use crate::time::Ps;
use crate::world::{CpuId, Delay, State, ThreadId, What, World};

impl World {
    /// Brings the running time of the thread that has `cpu` up to date.
    pub(super) fn account(&mut self, cpu: CpuId) {
        let now = self.now;
        let Some(current) = self.cpu(cpu).current else { return };
        let in_time = self.in_time(self.threads[current].since, now);
        let thread = &mut self.threads[current];
        let ran = now.saturating_sub(thread.since);
        thread.since = thread.since.max(now);
        thread.times.on_cpu += in_time;
        thread.used += ran;
        thread.vruntime += ran;
        let vruntime = thread.vruntime;
        let cpu = &mut self.cpus[cpu.0 as usize];
        cpu.busy += in_time;
        cpu.min_vruntime = cpu.min_vruntime.max(vruntime.min(cpu.min_vruntime + ran));
        if self.quota.is_some() {
            cpu.granted -= ran as i64;
        }
    }

    /// How much CPU time a thread has used, ps.
    pub(crate) fn used(&self, thread: ThreadId) -> Ps {
        let thread = &self.threads[thread];
        let now = if thread.is_on_cpu() { self.now.saturating_sub(thread.since) } else { 0 };
        thread.used + now
    }

    /// The running thread gives up its CPU and sleeps; the caller suspends it.
    pub(crate) fn sleep(&mut self) {
        let thread = self.running;
        self.take_off(thread, State::Asleep);
    }

    /// The running thread lets others of its CPU run first; the caller suspends it.
    pub(crate) fn step_aside(&mut self) {
        self.yield_to_all();
        self.put_back(self.running, 0);
    }

    /// The running thread has had as much as any that waits for its CPU.
    pub(crate) fn yield_to_all(&mut self) {
        let (thread, cpu) = (self.running, self.threads[self.running].cpu);
        let last = self.cpu(cpu).queue.last().copied();
        if let Some(last) = last {
            self.account(cpu);
            self.threads[thread].vruntime =
                self.threads[thread].vruntime.max(self.threads[last].vruntime + 1);
        }
    }

    /// The thread, which has a CPU, is to leave it, and to go on later with `left` to compute.
    pub(crate) fn put_back(&mut self, thread: ThreadId, left: Ps) {
        let cpu = self.threads[thread].cpu;
        self.account(cpu);
        self.threads[thread].left = left;
        self.enqueue(thread, cpu);
        self.take_off(thread, State::Runnable);
    }

    /// What the thread has had is measured against what the threads of its CPU have had.
    fn rebase(&mut self, thread: ThreadId, to: CpuId) {
        let from = self.threads[thread].cpu;
        if from != to {
            let (old, new) = (self.cpu(from).min_vruntime, self.cpu(to).min_vruntime);
            let moved = &mut self.threads[thread];
            moved.vruntime = (moved.vruntime + new).saturating_sub(old);
        }
    }

    /// The thread, which waits for a CPU, waits for `cpu`.
    pub(super) fn enqueue(&mut self, thread: ThreadId, cpu: CpuId) {
        if self.threads[thread].cpu != cpu {
            self.rebase(thread, cpu);
            self.threads[thread].left += self.migration_cost(self.threads[thread].cpu, cpu);
            self.threads[thread].cpu = cpu;
        }
        let vruntime = self.threads[thread].vruntime;
        let place = self.cpus[cpu.0 as usize]
            .queue
            .partition_point(|&other| self.threads[other].vruntime <= vruntime);
        self.cpu(cpu).queue.insert(place, thread);
        self.queued += 1;
    }

    /// Takes the thread off its CPU, which goes on with the next one.
    pub(crate) fn take_off(&mut self, thread: ThreadId, state: State) {
        let cpu = self.threads[thread].cpu;
        self.account(cpu);
        self.leaves_cpu(thread);
        self.pause_watch(thread);
        self.trace_slice(thread);
        let now = self.now;
        let ahead = self.in_time(now, self.threads[thread].since);
        let left = &mut self.threads[thread];
        match state {
            State::Asleep => left.recent.begin(Delay::Asleep, now),
            State::Runnable => left.recent.begin(Delay::Queued, now),
            _ => {}
        }
        left.state = state;
        left.times.runnable -= ahead; // the CPU was not out of idle yet
        left.since = now;
        left.epoch += 1; // nothing that was planned for it holds any more
        left.to_leave = false;
        if let Some(aborted) = &mut left.step {
            *aborted = true;
        }
        let askers = std::mem::take(&mut left.asked_by);
        self.cpu(cpu).current = None;
        self.counts.switches += 1;
        for asker in askers {
            self.rouse(asker);
        }
        self.pick_next(cpu);
    }

    /// The CPU has no thread: it takes the next one of its queue, or one from another CPU, or is idle.
    pub(super) fn pick_next(&mut self, cpu: CpuId) {
        let next = match self.cpu(cpu).queue.is_empty() {
            _ if self.queued == 0 || !self.may_run(cpu) => None,
            true => self.pull(cpu),
            false => Some(self.dequeue(cpu, 0)),
        };
        match next {
            Some(thread) => self.dispatch(thread, cpu, 0, self.costs.switch),
            None => {
                self.cpu(cpu).idle_since = self.now;
                self.give_back(cpu);
            }
        }
    }

    pub(super) fn dequeue(&mut self, cpu: CpuId, place: usize) -> ThreadId {
        self.queued -= 1;
        self.cpu(cpu).queue.remove(place)
    }

    /// Gives the CPU to the thread, which starts in `delay`; the CPU, which was idle, first needs `exit` to
    /// be out of that, and no thread has it for so long.
    pub(super) fn dispatch(&mut self, thread: ThreadId, cpu: CpuId, exit: Ps, delay: Ps) {
        let now = self.now;
        let both = self.spread_call(exit + delay);
        let delay = (u128::from(both) * u128::from(delay) / u128::from(exit + delay).max(1)) as Ps;
        let exit = both - delay;
        let on_since = now + exit;
        let moved = self.migration_cost(self.threads[thread].cpu, cpu);
        self.rebase(thread, cpu);
        let waited = self.in_time(self.threads[thread].since, on_since);
        let woken = &mut self.threads[thread];
        woken.times.runnable += waited;
        woken.since = on_since;
        woken.on_since = on_since;
        woken.cpu = cpu;
        let left = std::mem::take(&mut woken.left);
        woken.ahead.start_over(on_since + delay + moved);
        woken.recent.end(on_since + delay + moved);
        self.resume_at(thread, on_since + delay + moved + left, State::Executing);
        self.counts.migrations += u64::from(moved > 0);
        self.plan_tick(cpu);
        let cpu_state = self.cpu(cpu);
        cpu_state.current = Some(thread);
        cpu_state.slice_since = on_since;
        cpu_state.slice_planned = false;
        cpu_state.slice_epoch += 1;
        if !cpu_state.queue.is_empty() {
            self.plan_slice(cpu);
        }
        self.plan_end_of_share(cpu, on_since);
    }

    fn migration_cost(&self, from: CpuId, to: CpuId) -> Ps {
        let (from, to) = (self.places.core_of(from), self.places.core_of(to));
        if from == to {
            0
        } else {
            self.costs.migrate[usize::from(self.places.socket_of(from) != self.places.socket_of(to))]
        }
    }

    /// Plans the end of the current slice of a CPU for which others wait.
    pub(super) fn plan_slice(&mut self, cpu: CpuId) {
        let (now, costs) = (self.now, self.costs);
        let this = self.cpu(cpu);
        if this.slice_planned {
            return;
        }
        let threads = this.queue.len() as Ps + 1;
        let slice = (costs.latency / threads).max(costs.min_slice);
        let end = (this.slice_since + slice).max(now);
        // A slice ends at a tick. CPUs do not tick at the same time.
        let skew = if costs.tick == 0 { 0 } else { Ps::from(cpu.0) * 7_919_000 % costs.tick };
        let end = if costs.tick == 0 { end } else { (end + skew).div_ceil(costs.tick) * costs.tick - skew };
        this.slice_planned = true;
        let epoch = this.slice_epoch;
        self.events.plan(end.max(now), What::Slice { cpu, epoch });
    }

    /// A slice may be over.
    pub(crate) fn end_slice(&mut self, cpu: CpuId, epoch: u32) {
        let this = self.cpu(cpu);
        if this.slice_epoch != epoch {
            return;
        }
        this.slice_planned = false;
        let (Some(current), false) = (this.current, this.queue.is_empty()) else { return };
        let (now, costs) = (self.now, self.costs);
        let this = self.cpu(cpu);
        let slice = (costs.latency / (this.queue.len() as Ps + 1)).max(costs.min_slice);
        if now < this.slice_since + slice {
            self.plan_slice(cpu);
            return;
        }
        self.account(cpu);
        self.counts.preemptions += 1;
        self.preempt(current);
    }

    /// The thread is to leave its CPU: at once, if it may.
    pub(crate) fn preempt(&mut self, thread: ThreadId) {
        let now = self.now;
        let current = &mut self.threads[thread];
        let may = current.unpreemptible == 0 || self.costs.preempts_kernel && current.in_kernel;
        match current.state {
            State::Executing if may && current.until > now => {
                let left = current.until - now;
                self.put_back(thread, left);
            }
            State::Watching if may => self.put_back(thread, 0),
            State::Watching => {
                current.to_leave = true; // which it may ask for
                self.rouse(thread);
            }
            _ => current.to_leave = true,
        }
    }

    /// Makes a sleeping thread runnable; returns what that costs the waker.
    pub(crate) fn wake(&mut self, thread: ThreadId) -> Ps {
        let (now, costs) = (self.now, self.costs);
        let waker = self.is_running.then(|| self.threads[self.running].cpu);
        let target = self.place(thread, waker);
        let slept = self.in_time(self.threads[thread].since, now);
        let woken = &mut self.threads[thread];
        woken.times.asleep += slept;
        woken.since = now;
        woken.state = State::Runnable;
        self.counts.wakes += 1;
        let late = self.lateness();
        let floor = self.cpu(target).min_vruntime.saturating_sub(costs.credit);
        let woken = &mut self.threads[thread];
        woken.vruntime = woken.vruntime.max(floor);
        if self.cpu(target).current.is_none() && self.may_run(target) {
            let idle = now.saturating_sub(self.cpu(target).idle_since);
            let exit = if idle >= costs.deep_after { costs.deep_exit } else { costs.idle_exit };
            let is_here = waker == Some(target);
            self.threads[thread].recent.begin(Delay::Waking, now);
            self.dispatch(thread, target, if is_here { 0 } else { exit }, costs.switch + late);
            return self.spread_call(costs.wake + self.kick(waker, target));
        }
        self.threads[thread].left = late;
        self.threads[thread].recent.begin(Delay::Queued, now);
        self.enqueue(thread, target);
        self.plan_slice(target);
        self.plan_balance();
        self.preempt_for(thread, target);
        self.spread_call(costs.wake)
    }

    /// What it costs the waker, on CPU `from`, to kick the idle CPU `to`. A waker that is no thread is on no
    /// socket.
    fn kick(&self, from: Option<CpuId>, to: CpuId) -> Ps {
        let socket = |cpu| self.places.socket_of(self.places.core_of(cpu));
        match from {
            Some(from) if from == to => 0,
            Some(from) if socket(from) != socket(to) => self.costs.kick + self.costs.kick_socket,
            _ => self.costs.kick,
        }
    }

    /// A woken thread that is far behind the current one takes its place.
    fn preempt_for(&mut self, woken: ThreadId, cpu: CpuId) {
        let Some(granularity) = self.costs.wakeup else { return };
        self.account(cpu);
        let Some(current) = self.cpu(cpu).current else { return };
        if self.threads[current].vruntime > self.threads[woken].vruntime + granularity {
            self.counts.preemptions += 1;
            self.preempt(current);
        }
    }
}

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
        self.all_cpus().filter(move |&cpu| self.places.cache_of(self.places.core_of(cpu)) == cache)
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
        for cpu in self.all_cpus() {
            if self.queued == 0 {
                return;
            }
            if self.cpu(cpu).is_throttled {
                continue;
            }
            let mine = self.load(cpu);
            let Some(busiest) = self.all_cpus().max_by_key(|&other| self.load(other)) else { return };
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

const MS: Ps = 1_000_000_000;
/// In each period there is a new quota: what container runtimes ask for.
const PERIOD: Ps = 100 * MS;
/// What a CPU takes at a time, and after which what was given back is given out
/// (`sched_cfs_bandwidth_slice_us`).
const SLICE: i64 = 5 * MS as i64;
/// What an idle CPU keeps.
const KEPT: i64 = MS as i64;

impl World {
    /// What a period has, for `cpus` CPUs.
    pub(crate) fn quota_of(cpus: f64) -> i64 {
        (cpus * PERIOD as f64) as i64
    }

    /// Whether there is CPU time left for this CPU, which may take some for that. If there is none, it is
    /// throttled.
    pub(super) fn may_run(&mut self, cpu: CpuId) -> bool {
        if self.quota.is_none() {
            return true;
        }
        if self.cpu(cpu).is_throttled {
            return false;
        }
        if self.cpu(cpu).granted <= 0 {
            self.take_share(cpu);
        }
        let this = self.cpu(cpu);
        this.is_throttled = this.granted <= 0;
        !this.is_throttled
    }

    /// Takes from the pool, what the CPU has had too much first.
    fn take_share(&mut self, cpu: CpuId) {
        let Some(quota) = &mut self.quota else { return };
        let this = &mut self.cpus[cpu.0 as usize];
        let drawn = (SLICE - this.granted).clamp(0, quota.left);
        quota.left -= drawn;
        this.granted += drawn;
        if !quota.is_refill_planned {
            quota.is_refill_planned = true;
            let next = (self.now / PERIOD + 1) * PERIOD;
            self.events.plan(next, What::Quota { is_new: true });
        }
    }

    /// Plans the end of the share of a CPU whose thread runs since `from`.
    pub(super) fn plan_end_of_share(&mut self, cpu: CpuId, from: Ps) {
        if self.quota.is_some() {
            let this = self.cpu(cpu);
            let (granted, epoch) = (this.granted.max(0) as Ps, this.slice_epoch);
            self.events.plan(from + granted, What::Share { cpu, epoch });
        }
    }

    /// A CPU may have used up its share.
    pub(crate) fn end_share(&mut self, cpu: CpuId, epoch: u32) {
        let this = self.cpu(cpu);
        let (Some(current), true) = (this.current, this.slice_epoch == epoch) else { return };
        self.account(cpu);
        if self.may_run(cpu) {
            self.plan_end_of_share(cpu, self.now);
        } else {
            self.preempt(current);
        }
    }

    /// A CPU has no thread.
    pub(super) fn give_back(&mut self, cpu: CpuId) {
        let Some(quota) = &mut self.quota else { return };
        let this = &mut self.cpus[cpu.0 as usize];
        let back = this.granted - KEPT;
        if back > 0 {
            this.granted = KEPT;
            quota.left += back;
            if !quota.is_slack_planned {
                quota.is_slack_planned = true;
                self.events.plan(self.now + SLICE as Ps, What::Quota { is_new: false });
            }
        }
    }

    /// There is a new quota, or something was given back: throttled CPUs go on, as far as that reaches.
    pub(crate) fn give_out(&mut self, is_new: bool) {
        let Some(quota) = &mut self.quota else { return };
        if is_new {
            quota.left = quota.each;
            quota.is_refill_planned = false;
        } else {
            quota.is_slack_planned = false;
        }
        for cpu in self.all_cpus() {
            if !std::mem::take(&mut self.cpu(cpu).is_throttled) {
                continue;
            }
            if self.may_run(cpu) && self.cpu(cpu).current.is_none() {
                self.pick_next(cpu);
            }
        }
    }
}
