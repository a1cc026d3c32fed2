//! The machine's figures in picoseconds, and how far its CPUs are from each other.

use crate::machine::Machine;
use crate::time::{Ps, ps};
use crate::world::{Cache, Core, CpuId};

/// Declares each cost with what it is of a machine.
macro_rules! costs {
    (|$($part:ident),*| { $($(#[$doc:meta])* $cost:ident: $kind:ty = $value:expr;)* }) => {
        /// What things cost.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Costs {
            $($(#[$doc])* pub(crate) $cost: $kind,)*
        }

        impl Costs {
            pub(crate) fn new(machine: &Machine) -> Self {
                let Machine { $($part,)* .. } = machine;
                Self { $($cost: $value,)* }
            }
        }
    };
}

costs! {
    |memory, cpu, kernel, scheduler| {
        hit: Ps = ps(memory.hit_ns);
        rmw: Ps = ps(memory.rmw_ns);
        shared: Ps = ps(memory.shared_ns);
        shared_busy: Ps = ps(memory.shared_busy_ns);
        dram: Ps = ps(memory.dram_ns);
        invalidate: Ps = ps(memory.invalidate_ns);
        serial: f64 = memory.serial;
        /// By which part of itself a transfer, and what the kernel does, takes more or less at most.
        spread_of_transfers: f64 = memory.spread;
        spread_of_calls: f64 = kernel.spread;
        pause: Ps = ps(cpu.pause_ns).max(1);
        step: Ps = ps(cpu.step_ns);
        window: Ps = ps(cpu.window_ns);
        fence: Ps = ps(cpu.fence_ns);
        /// The most stores in a core's buffer.
        stores: usize = cpu.stores as usize;
        smt: f64 = cpu.smt;
        syscall: Ps = ps(kernel.syscall_ns);
        futex: Ps = ps(kernel.futex_ns);
        wake: Ps = ps(kernel.wake_ns);
        kick: Ps = ps(kernel.kick_ns);
        kick_socket: Ps = ps(kernel.kick_socket_ns);
        idle_exit: Ps = ps(kernel.idle_exit_ns);
        deep_after: Ps = kernel.deep_idle.map_or(Ps::MAX, |deep| ps(deep.after_ns));
        deep_exit: Ps = kernel.deep_idle.map_or(0, |deep| ps(deep.exit_ns));
        switch: Ps = ps(kernel.switch_ns);
        clock: Ps = ps(kernel.clock_ns);
        cpu_clock: Ps = ps(kernel.cpu_clock_ns);
        membarrier: Ps = ps(kernel.membarrier_ns);
        interrupt: Ps = ps(kernel.interrupt_ns);
        slack: Ps = ps(kernel.timer_slack_ns);
        migrate: [Ps; 2] = kernel.migrate_ns.map(ps);
        latency: Ps = ps(scheduler.latency_ns);
        min_slice: Ps = ps(scheduler.min_slice_ns);
        wakeup: Option<Ps> = scheduler.wakeup_ns.map(ps);
        credit: Ps = ps(scheduler.latency_ns * scheduler.sleeper_credit);
        tick: Ps = ps(scheduler.tick_ns);
        balance: Ps = ps(scheduler.balance_ns).max(1);
        preempts_kernel: bool = scheduler.preempts_kernel;
    }
}

/// The machine's map.
#[derive(Debug)]
pub(crate) struct Places {
    cores: u32,
    cores_per_cache: u32,
    caches_per_socket: u32,
    caches: u32,
    /// From last-level cache to last-level cache: what it takes to move a line.
    transfers: Vec<Ps>,
    /// How likely a request from there is served next.
    weights: Vec<f64>,
}

impl Places {
    pub(crate) fn new(machine: &Machine) -> Self {
        let shape = &machine.shape;
        let caches = shape.sockets * shape.caches;
        let socket = |cache: Cache| (cache / shape.caches) as usize;
        let pairs = || (0..caches).flat_map(|from| (0..caches).map(move |to| (from, to)));
        let hops = |(from, to): (Cache, Cache)| shape.hops[socket(from)][socket(to)];
        let memory = &machine.memory;
        let transfer = |pair: (Cache, Cache)| match (pair.0 == pair.1, hops(pair)) {
            (true, _) => memory.near_ns,
            (false, 0) => memory.socket_ns,
            (false, hops) => memory.hop_ns[(hops as usize).min(memory.hop_ns.len()) - 1],
        };
        let level = |pair: (Cache, Cache)| if pair.0 == pair.1 { 0 } else { 1 + hops(pair) };
        Self {
            cores: caches * shape.cores,
            cores_per_cache: shape.cores,
            caches_per_socket: shape.caches,
            caches,
            transfers: pairs().map(|pair| ps(transfer(pair))).collect(),
            weights: pairs().map(|pair| libm::pow(memory.nearness, -f64::from(level(pair)))).collect(),
        }
    }

    pub(crate) fn core_of(&self, cpu: CpuId) -> Core {
        cpu.0 % self.cores
    }

    #[inline]
    pub(crate) fn cache_of(&self, core: Core) -> Cache {
        core / self.cores_per_cache
    }

    pub(crate) fn socket_of(&self, core: Core) -> u32 {
        self.socket_of_cache(self.cache_of(core))
    }

    pub(crate) fn socket_of_cache(&self, cache: Cache) -> u32 {
        cache / self.caches_per_socket
    }

    /// The CPUs of the core of `cpu`, other than that.
    pub(crate) fn siblings(&self, cpu: CpuId, cpus: u32) -> impl Iterator<Item = CpuId> + use<> {
        let (core, cores) = (self.core_of(cpu), self.cores);
        (0..)
            .map(move |thread| CpuId(core + thread * cores))
            .take_while(move |other| other.0 < cpus)
            .filter(move |&other| other != cpu)
    }

    #[inline]
    pub(crate) fn transfer(&self, from: Cache, to: Cache) -> Ps {
        self.transfers[(from * self.caches + to) as usize]
    }

    #[inline]
    pub(crate) fn weight(&self, from: Cache, to: Cache) -> f64 {
        self.weights[(from * self.caches + to) as usize]
    }
}
