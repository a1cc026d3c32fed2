//! A quota of CPU time, as `cpu.max` gives one to a control group: the kernel's CFS bandwidth control.
//!
//! In each period the threads may have so much CPU time, on all CPUs together. A CPU takes it from the pool
//! in slices. One that has used up its slice, and finds the pool empty, is throttled: its thread leaves it,
//! and those of its queue, just woken ones among them, wait for the next period. A CPU that is out of threads
//! gives back all but a little. (Turner, Rao, Rao, "CPU bandwidth control for CFS", Linux Symposium 2010;
//! figures of Linux 6.)

use crate::time::Ps;
use crate::world::{CpuId, What, World};

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

    /// A CPU has had this much of its share.
    pub(super) fn use_quota(&mut self, cpu: CpuId, ran: Ps) {
        if self.quota.is_some() {
            self.cpu(cpu).granted -= ran as i64;
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
        for number in 0..self.cpus.len() as u32 {
            let cpu = CpuId(number);
            if !std::mem::take(&mut self.cpu(cpu).is_throttled) {
                continue;
            }
            if self.may_run(cpu) && self.cpu(cpu).current.is_none() {
                self.pick_next(cpu);
            }
        }
    }
}
