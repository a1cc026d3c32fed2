//! Which CPUs there are, where they lie, and which pairs of them are measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::CalibrateError;

/// Where one CPU is: numbers as the kernel gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its number.
    pub cpu: usize,
    /// Its socket.
    pub socket: usize,
    /// The first CPU behind its last-level cache.
    pub cache: usize,
    /// The first CPU of its core.
    pub core: usize,
}

/// The CPUs that this process may use.
#[derive(Debug, Clone)]
pub struct Cpus {
    /// All of them; at least one.
    pub places: Vec<Place>,
    /// Size of a core's own largest cache, bytes.
    pub own_cache: usize,
}

/// How many sockets, last-level caches in a socket, cores behind one, and hardware threads of a core.
pub type Counts = [usize; 4];

impl Cpus {
    /// Reads where they are.
    ///
    /// # Errors
    ///
    /// If `/sys` does not tell.
    pub fn read() -> Result<Self, CalibrateError> {
        let set = sched_getaffinity(None).map_err(CalibrateError::refused("ask for the allowed CPUs"))?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
        let places: Vec<Place> = cpus.map(place).collect::<Option<_>>().ok_or_else(|| {
            CalibrateError::Cpus(
                "/sys/devices/system/cpu/cpu*/topology is missing or has another form".to_owned(),
            )
        })?;
        let first = places.first().ok_or_else(|| CalibrateError::Cpus("none is allowed".to_owned()))?;
        let own_cache = own_cache(first.cpu).unwrap_or(1 << 20);
        Ok(Self { places, own_cache })
    }

    /// The CPU on which most is measured: the last one, as the first often serves more interrupts.
    #[must_use]
    pub fn main(&self) -> Place {
        self.places[self.places.len() - 1]
    }

    /// Another core behind the same last-level cache, if there is one.
    #[must_use]
    pub fn near(&self) -> Option<Place> {
        let main = self.main();
        self.places.iter().copied().find(|other| other.cache == main.cache && other.core != main.core)
    }

    /// A core behind another last-level cache of the same socket.
    #[must_use]
    pub fn same_socket(&self) -> Option<Place> {
        let main = self.main();
        self.places.iter().copied().find(|other| other.socket == main.socket && other.cache != main.cache)
    }

    /// A core of another socket.
    #[must_use]
    pub fn other_socket(&self) -> Option<Place> {
        let main = self.main();
        self.places.iter().copied().find(|other| other.socket != main.socket)
    }

    /// The other hardware thread of the core.
    #[must_use]
    pub fn sibling(&self) -> Option<Place> {
        let main = self.main();
        self.places.iter().copied().find(|other| other.core == main.core && other.cpu != main.cpu)
    }

    /// Any CPU of another core, the nearest first.
    #[must_use]
    pub fn other(&self) -> Option<Place> {
        self.near().or_else(|| self.same_socket()).or_else(|| self.other_socket())
    }

    /// How many there are of each level. A machine may be lopsided; then these are the largest numbers.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let most = |outer: fn(&Place) -> usize, inner: fn(&Place) -> usize| {
            let mut groups: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for place in &self.places {
                groups.entry(outer(place)).or_default().insert(inner(place));
            }
            groups.values().map(BTreeSet::len).max().unwrap_or(1)
        };
        [
            most(|_| 0, |place| place.socket),
            most(|place| place.socket, |place| place.cache),
            most(|place| place.cache, |place| place.core),
            most(|place| place.core, |place| place.cpu),
        ]
    }
}

/// Puts the calling thread on one CPU.
pub(super) fn pin(cpu: usize) -> Result<(), CalibrateError> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(CalibrateError::refused("bind a thread to a CPU"))
}

fn place(cpu: usize) -> Option<Place> {
    let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    let socket = read(&format!("{topology}/physical_package_id"))?.parse().unwrap_or(0);
    let core = first_of_list(&read(&format!("{topology}/thread_siblings_list"))?)?;
    let last = caches(cpu).max_by_key(|(level, _)| *level);
    // Without a word about caches, all cores of a socket are taken to share one.
    let cache = last.and_then(|(_, index)| first_of_list(&read(&format!("{index}/shared_cpu_list"))?));
    Some(Place { cpu, socket, cache: cache.unwrap_or(1_000_000 + socket), core })
}

/// The data caches of a CPU: level, and the directory that describes them.
fn caches(cpu: usize) -> impl Iterator<Item = (u32, String)> {
    (0..8).filter_map(move |number| {
        let index = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{number}");
        let level = read(&format!("{index}/level"))?.parse().ok()?;
        (read(&format!("{index}/type"))? != "Instruction").then_some((level, index))
    })
}

fn own_cache(cpu: usize) -> Option<usize> {
    let (_, index) = caches(cpu).find(|(level, _)| *level == 2)?;
    let size = read(&format!("{index}/size"))?;
    size.strip_suffix('K')?.parse::<usize>().ok().map(|kib| kib << 10)
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// `2` of `2-5,8`.
fn first_of_list(list: &str) -> Option<usize> {
    list.split(['-', ',']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets, two caches each, two cores behind each, two threads of each.
    fn machine() -> Cpus {
        let place = |cpu: usize| {
            let core = cpu % 8;
            Place { cpu, socket: core / 4, cache: core / 2 * 2, core }
        };
        Cpus { places: (0..16).map(place).collect(), own_cache: 1 << 20 }
    }

    #[test]
    fn one_cpu_of_each_distance() {
        let cpus = machine();
        assert_eq!(cpus.main().cpu, 15);
        assert_eq!(cpus.sibling().unwrap().cpu, 7);
        assert_eq!(cpus.near().unwrap().cpu, 6);
        assert_eq!(cpus.same_socket().unwrap().cpu, 4);
        assert_eq!(cpus.other_socket().unwrap().cpu, 0);
        assert_eq!(cpus.counts(), [2, 2, 2, 2]);
    }

    #[test]
    fn one_cpu_alone() {
        let mut cpus = machine();
        cpus.places.truncate(1);
        assert!(cpus.other().is_none() && cpus.sibling().is_none());
        assert_eq!(cpus.counts(), [1, 1, 1, 1]);
    }

    #[test]
    fn lists() {
        assert_eq!(first_of_list("2-5,8"), Some(2));
        assert_eq!(first_of_list("3"), Some(3));
        assert_eq!(first_of_list(""), None);
    }

    #[test]
    fn this_machine_is_described() {
        assert!(!Cpus::read().unwrap().places.is_empty());
    }
}
