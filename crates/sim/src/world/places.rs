//! Where each CPU is, and how far it is from the others: worked out once, from the machine.

use super::ids::{Cache, Core, CpuId};
use crate::machine::Machine;
use crate::time::{Ps, ps};

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
