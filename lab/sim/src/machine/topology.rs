//! Where a CPU is, and how far it is from another one.

use super::{Machine, Shape};

/// Where a CPU is. Each number counts from 0 within what is around it, except that caches and cores count
/// through the whole machine: two CPUs with the same `cache` share a last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The socket.
    pub socket: u32,
    /// The last-level cache, of all in the machine.
    pub cache: u32,
    /// The core, of all in the machine.
    pub core: u32,
    /// The hardware thread of the core.
    pub thread: u32,
}

/// How far two CPUs are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// The same core: the same CPU, or its hardware thread.
    Core,
    /// Another core behind the same last-level cache.
    Near,
    /// Another last-level cache of the same socket.
    Socket,
    /// Another socket, this number of links away (at least 1).
    Hops(u32),
}

impl Shape {
    /// All cores.
    #[must_use]
    pub fn all_cores(&self) -> u32 {
        self.sockets * self.caches * self.cores
    }

    /// All CPUs (hardware threads), whether they may be used or not.
    #[must_use]
    pub fn all_cpus(&self) -> u32 {
        self.all_cores() * self.threads
    }

    /// Where a CPU is.
    #[must_use]
    pub fn place(&self, cpu: u32) -> Place {
        let core = cpu % self.all_cores();
        let cache = core / self.cores;
        Place { socket: cache / self.caches, cache, core, thread: cpu / self.all_cores() }
    }

    /// The CPU at a place: the reverse of [`Shape::place`].
    #[must_use]
    pub fn cpu(&self, place: Place) -> u32 {
        place.thread * self.all_cores() + place.core
    }

    /// How far two CPUs are from each other.
    #[must_use]
    pub fn distance(&self, cpu_a: u32, cpu_b: u32) -> Distance {
        let (a, b) = (self.place(cpu_a), self.place(cpu_b));
        if a.core == b.core {
            Distance::Core
        } else if a.cache == b.cache {
            Distance::Near
        } else if a.socket == b.socket {
            Distance::Socket
        } else {
            Distance::Hops(self.hops[a.socket as usize][b.socket as usize])
        }
    }
}

impl Machine {
    /// How many CPUs may be used.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.shape.usable
    }

    /// The same machine, of which only the first `cpus` CPUs are used: with as many as there are cores, no
    /// core runs two hardware threads. At least 1, at most what there is.
    #[must_use]
    pub fn limited_to(mut self, cpus: u32) -> Self {
        self.shape.usable = cpus.clamp(1, self.shape.all_cpus());
        self
    }

    /// How many threads can run at a time without being throttled: what a program counts as its CPUs.
    #[must_use]
    pub(crate) fn counted_cpus(&self) -> u32 {
        self.shape.quota.map_or(self.cpus(), |quota| self.cpus().min(quota.ceil() as u32))
    }
}

/// The names of topologies, in the order in which they are listed.
pub const TOPOLOGIES: &[&str] = &["full", "ring", "hypercube", "twisted-hypercube-8"];

/// For each pair of `sockets` sockets, how many links lie between them. `None` if there is no topology of
/// that name for this number of sockets.
///
/// - `full`: a link between any two (also: a bus).
/// - `ring`: each has a link to the next, the last one to the first.
/// - `hypercube`: sockets whose numbers differ in one bit have a link; a power of two of them.
/// - `twisted-hypercube-8`: eight sockets with three links each, of which no two are more than two links
///   apart: a cube of which two parallel edges are crossed. This is how eight-socket x86 machines without a
///   node controller are wired.
#[must_use]
pub fn hops(topology: &str, sockets: u32) -> Option<Vec<Vec<u32>>> {
    let ring_next = |a: u32, b: u32| (a + 1) % sockets == b || (b + 1) % sockets == a;
    let linked: Box<dyn Fn(u32, u32) -> bool> = match topology {
        "full" => Box::new(|_, _| true),
        "ring" => Box::new(ring_next),
        "hypercube" if sockets.is_power_of_two() => Box::new(|a, b| (a ^ b).count_ones() == 1),
        "twisted-hypercube-8" if sockets == 8 => {
            // Two faces, of which the second has two crossed edges; and what is between them.
            const FACES: [(u32, u32); 8] = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 7), (7, 6), (6, 4)];
            const BETWEEN: [(u32, u32); 4] = [(0, 4), (1, 5), (2, 6), (3, 7)];
            let has = |a, b| FACES.contains(&(a, b)) || BETWEEN.contains(&(a, b));
            Box::new(move |a, b| has(a, b) || has(b, a))
        }
        _ => return None,
    };
    Some((0..sockets).map(|from| links_from(from, sockets, &*linked)).collect())
}

/// How many links it takes from a socket to each other one: breadth first.
fn links_from(from: u32, sockets: u32, linked: &dyn Fn(u32, u32) -> bool) -> Vec<u32> {
    let mut found = vec![None; sockets as usize];
    found[from as usize] = Some(0);
    let mut frontier = vec![from];
    for links in 1..=sockets {
        let reached: Vec<u32> = (0..sockets)
            .filter(|&to| found[to as usize].is_none())
            .filter(|&to| frontier.iter().any(|&near| linked(near, to)))
            .collect();
        for &to in &reached {
            found[to as usize] = Some(links);
        }
        frontier = reached;
    }
    found.into_iter().map(|links| links.unwrap_or(sockets)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sockets: u32, caches: u32, cores: u32, threads: u32) -> Shape {
        let usable = sockets * caches * cores * threads;
        Shape { sockets, caches, cores, threads, hops: hops("ring", sockets).unwrap(), usable, quota: None }
    }

    #[test]
    fn every_cpu_has_its_own_place() {
        let shape = shape(2, 3, 4, 2);
        assert_eq!(shape.all_cpus(), 48);
        for cpu in 0..48 {
            assert_eq!(shape.cpu(shape.place(cpu)), cpu);
        }
        assert_eq!(shape.place(0), Place { socket: 0, cache: 0, core: 0, thread: 0 });
        assert_eq!(shape.place(11), Place { socket: 0, cache: 2, core: 11, thread: 0 });
        assert_eq!(shape.place(12), Place { socket: 1, cache: 3, core: 12, thread: 0 });
        assert_eq!(shape.place(24), Place { socket: 0, cache: 0, core: 0, thread: 1 });
        assert_eq!(shape.place(47), Place { socket: 1, cache: 5, core: 23, thread: 1 });
    }

    #[test]
    fn distances() {
        let shape = shape(4, 2, 2, 2);
        for (cpu, distance) in [
            (0, Distance::Core),
            (16, Distance::Core),
            (1, Distance::Near),
            (17, Distance::Near),
            (2, Distance::Socket),
            (4, Distance::Hops(1)),
            (8, Distance::Hops(2)),
            (12, Distance::Hops(1)),
        ] {
            assert_eq!(shape.distance(0, cpu), distance, "CPU {cpu}");
            assert_eq!(shape.distance(cpu, 0), distance, "CPU {cpu}");
        }
        assert!(Distance::Core < Distance::Near && Distance::Socket < Distance::Hops(1));
    }

    #[test]
    fn topologies_by_name() {
        assert_eq!(hops("full", 3).unwrap(), [[0, 1, 1], [1, 0, 1], [1, 1, 0]]);
        assert_eq!(hops("ring", 5).unwrap()[0], [0, 1, 2, 2, 1]);
        assert_eq!(hops("hypercube", 8).unwrap()[0], [0, 1, 1, 2, 1, 2, 2, 3]);
        assert_eq!(hops("hypercube", 6), None);
        assert_eq!(hops("twisted-hypercube-8", 4), None);
        assert_eq!(hops("star", 4), None);
        assert!(TOPOLOGIES.iter().all(|name| hops(name, 8).is_some()));
        assert_eq!(hops("full", 1).unwrap(), [[0]]);
    }

    #[test]
    fn in_the_twisted_hypercube_no_socket_is_farther_than_two_links() {
        for row in hops("twisted-hypercube-8", 8).unwrap() {
            let count = |links| row.iter().filter(|&&found| found == links).count();
            assert_eq!((count(0), count(1), count(2)), (1, 3, 4), "{row:?}");
        }
    }
}
