//! Document 002's workloads on the lock of an address space, `mmap_sem`: mapping, page faults, unmapping.
//!
//! The chosen lock is the kernel's. A mutex of the program around an iteration is glibc's of three states.
//! Each thread has a CPU of its own, the first ones on the first socket, as will-it-scale has it, from which
//! the document's test comes.
//!
//! Not modelled: locks of page tables (split, and a mapping has its own but for the neighbour's half),
//! accounting by control group, and everything that a machine does besides.
//!
//! What the kernel (Linux 3.12, x86-64) and the program do around the lock is in cycles of the CPU. No
//! published figures were found for the machine of document 002. They are put together from what is known of
//! the steps, for CPUs of 2010 to 2013; each says from what. One is fitted: [`FAULT`].

use std::rc::Rc;

use spinpark_classics::{RawLock, SpinLock};
use spinpark_platform::AtomicU32 as _;
use spinpark_platform::Ordering::Relaxed;

use crate::here;
use crate::platform::{AtomicU32, Sim};
use crate::workload::{KernelTuning, Mode, Plan, RwLock, SettingError, Workload};
use crate::world::memory::Access;
use crate::world::memory::object::Object;

/// The program's mutex.
const MUTEX: &str = "classic-mutex-2003";

/// What the mutex is held for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serialize {
    None,
    Iteration,
    Calls,
}

fn mmap(plan: &mut Plan<'_>, pages: u32, serialize: Serialize) -> Result<(), SettingError> {
    let zones = Zones::new(plan);
    let space = Space::new(plan, &zones)?;
    let mutex = plan.mutex_in(Mode::User, MUTEX, "mutex")?;
    for cpu in cpus(plan)? {
        let (space, mutex) = (space.clone(), mutex.clone());
        plan.worker_on(cpu..cpu + 1, move |worker| {
            space.enter();
            let touch = || (0..pages).for_each(|page| space.fault(page));
            let iteration = || {
                space.map();
                touch();
                space.unmap(pages);
            };
            worker.repeat(|| match serialize {
                Serialize::None => iteration(),
                Serialize::Iteration => mutex.with(iteration),
                Serialize::Calls => {
                    mutex.with(|| space.map());
                    touch();
                    mutex.with(|| space.unmap(pages));
                }
            });
        });
    }
    Ok(())
}

/// Faults in threads, which share an address space, or in processes, which do not.
fn faults(plan: &mut Plan<'_>, are_processes: bool) -> Result<(), SettingError> {
    let zones = Zones::new(plan);
    let shared = Space::new(plan, &zones)?;
    for cpu in cpus(plan)? {
        let space = if are_processes { Space::new(plan, &zones)? } else { shared.clone() };
        plan.worker_on(cpu..cpu + 1, move |worker| {
            space.enter();
            while !crate::here::is_over() {
                space.map();
                for page in 0..PAGES {
                    space.fault(page);
                    worker.did_one();
                }
                space.unmap(PAGES);
            }
        });
    }
    Ok(())
}

/// A CPU for each thread.
fn cpus(plan: &Plan<'_>) -> Result<std::ops::Range<u32>, SettingError> {
    let (threads, cpus) = (plan.setting().threads, plan.machine().cpus());
    if threads > cpus {
        let workload = &plan.setting().workload;
        return Err(SettingError::Unfit(format!(
            "{workload} has each thread on a CPU of its own, and {} has {cpus}: `--threads {cpus}` or fewer",
            plan.machine().name
        )));
    }
    Ok(0..threads)
}

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload::kernel("mmap-untouched", "map 1 MB and unmap it, one address space (document 002)", |plan| {
        mmap(plan, 0, Serialize::None)
    }),
    Workload::kernel("mmap-untouched-mutex", "the same, a mutex around both calls", |plan| {
        mmap(plan, 0, Serialize::Iteration)
    }),
    Workload::kernel("mmap-untouched-calls", "the same, a mutex around each call", |plan| {
        mmap(plan, 0, Serialize::Calls)
    }),
    Workload::kernel(
        "mmap-touched",
        "map 1 MB, write each page, unmap it, one address space (document 002)",
        |plan| mmap(plan, PAGES, Serialize::None),
    ),
    Workload::kernel("mmap-touched-mutex", "the same, a mutex around all of it", |plan| {
        mmap(plan, PAGES, Serialize::Iteration)
    }),
    Workload::kernel("mmap-touched-calls", "the same, a mutex around each call", |plan| {
        mmap(plan, PAGES, Serialize::Calls)
    }),
    Workload::kernel(
        "faults-threads",
        "page faults in threads, which share an address space and its lock",
        |plan| faults(plan, false),
    ),
    Workload::kernel("faults-processes", "page faults in processes, each with an address space", |plan| {
        faults(plan, true)
    }),
];

/// Pages of a mapping: 1 MB.
const PAGES: u32 = 256;

/// The locks of a zone, each on a line of its own.
struct Zone {
    pages: SpinLock<Sim<KernelTuning>>,
    lru: Apart,
}

#[repr(align(128))]
struct Apart(SpinLock<Sim<KernelTuning>>);

/// The machine's memory: a zone for each socket.
#[derive(Clone)]
struct Zones(Rc<[Rc<Object<Zone>>]>);

impl Zones {
    fn new(plan: &Plan<'_>) -> Self {
        let zone = |_| Object::new(Zone { pages: SpinLock::new(), lru: Apart(SpinLock::new()) });
        Self((0..plan.machine().shape.sockets).map(zone).collect())
    }

    /// The `index`-th page of many is taken, or given back.
    fn page(&self, index: u32, clock: Clock) {
        let zone = &self.0[here::socket() as usize];
        let hold = |lock: &SpinLock<_>, cycles: f64| {
            lock.lock();
            clock.run(cycles);
            lock.unlock();
        };
        if index.is_multiple_of(ZONE_BATCH) {
            hold(&zone.pages, ZONE_PAGE * f64::from(ZONE_BATCH));
        }
        if index.is_multiple_of(LRU_BATCH) {
            hold(&zone.lru.0, LRU_PAGE * f64::from(LRU_BATCH));
        }
    }
}

/// Cycles to time.
#[derive(Clone, Copy)]
struct Clock {
    ghz: f64,
}

impl Clock {
    /// Computes for this number of cycles.
    fn run(self, cycles: f64) {
        here::compute_f64(cycles / self.ghz);
    }
}

/// The address space of a process.
#[derive(Clone)]
struct Space {
    lock: RwLock,
    /// The kernel's, each on a line of its own.
    words: Rc<[Rc<Object<AtomicU32>>]>,
    zones: Zones,
    clock: Clock,
    syscall_ns: f64,
}

impl Space {
    fn new(plan: &mut Plan<'_>, zones: &Zones) -> Result<Self, SettingError> {
        Ok(Self {
            lock: plan.rwlock("mmap_sem")?,
            words: (0..MAP_LINES).map(|_| Object::new(AtomicU32::new(0))).collect(),
            zones: zones.clone(),
            clock: Clock { ghz: plan.machine().ghz },
            syscall_ns: plan.machine().kernel.syscall_ns,
        })
    }

    /// The last word of the lock's cache line. In `mm_struct` of Linux 3.12 these lie there, beside the lock:
    /// the root of the page tables, which each fault reads; the count of idle CPUs that keep the space; the
    /// lock under which page tables are added.
    fn beside_lock(&self) -> usize {
        self.lock.address() + 60
    }

    /// The calling thread runs in it from now on.
    fn enter(&self) {
        here::in_address_space(self.beside_lock());
    }

    /// A call that changes the list of mappings.
    fn call(&self, under_lock: impl FnOnce()) {
        here::compute_f64(self.syscall_ns);
        here::in_kernel(|| {
            self.clock.run(CALL);
            self.lock.write(|| {
                for word in self.words.iter() {
                    word.store(word.load(Relaxed) + 1, Relaxed);
                }
                under_lock();
            });
        });
    }

    /// Maps memory.
    fn map(&self) {
        self.call(|| self.clock.run(MAP));
    }

    /// Unmaps a mapping in which `pages` were written. Other CPUs that run threads of this address space are
    /// to forget where those pages were: each is interrupted, and the last one is waited for. (That a CPU in
    /// line for a `wait_lock` answers only when it has been there was tried, and changes nothing: the line is
    /// empty before that.)
    fn unmap(&self, pages: u32) {
        self.call(|| {
            self.clock.run(UNMAP);
            for page in 0..pages {
                self.clock.run(UNMAP_PAGE);
                self.zones.page(page, self.clock);
            }
            if pages > 0 {
                here::interrupt_others();
            }
        });
    }

    /// The program writes to its `index`-th fresh page.
    fn fault(&self, index: u32) {
        here::in_kernel(|| {
            self.clock.run(FAULT_OUTSIDE);
            self.lock.read_after_try(|| {
                here::access(self.beside_lock(), Access::Load);
                self.zones.page(index, self.clock);
                self.clock.run(FAULT + ZERO);
            });
        });
        self.clock.run(WRITE_PAGE);
    }
}

/// A system call's way to the lock and back: checks of arguments and security hooks outside of it. A guess;
/// entering the kernel comes on top, from the machine.
const CALL: f64 = 200.0;

/// `mmap` under the lock: a free range is searched, a VMA is allocated, filled and linked into tree and list.
/// Derived: mapping and unmapping takes 1.5 to 2 µs in all where will-it-scale's `mmap1` does 0.5 to 0.6
/// million a second on one CPU of that age; less two system calls and the lines of [`MAP_LINES`].
const MAP: f64 = 1_300.0;

/// `munmap` under the lock, without pages: the VMA is found, unlinked and freed, an empty range of page
/// tables is walked. As [`MAP`].
const UNMAP: f64 = 1_300.0;

/// Cache lines of the address space that either call changes (`mm_struct`: the VMA cache, counters; the
/// neighbours' VMAs; the tree's nodes): they come from the CPU that made the last call. A count of those
/// fields.
const MAP_LINES: usize = 8;

/// A page fault without the lock: the exception, its return, and the walk to the lock. Derived: 1,000 to
/// 1,200 cycles for a fault that finds everything ready, with exception and return 500 to 600 of them.
const FAULT_OUTSIDE: f64 = 700.0;

/// A page fault under the lock, without the zone: the VMA is found, a page of the CPU's own list is taken,
/// its entry written under the page table's lock, counters and the reverse map are kept.
///
/// Fitted: with it, one thread at a time (a mutex) is as much slower than two plain threads as document 002
/// says, 39.3 %. A touched page then takes 1.5 µs in all. Guessed before: 700.
const FAULT: f64 = 1_200.0;

/// Zeroing 4 KB under the lock: 64 lines that were freed just now, so they are in the last-level cache: 8 to
/// 10 cycles each for `rep stos` with a few lines under way.
const ZERO: f64 = 600.0;

/// The program writes a page, 512 words of 8 bytes: a word per cycle, the page being in the first cache.
const WRITE_PAGE: f64 = 550.0;

/// `munmap` under the lock, for each page that is there: its entry is cleared, its reverse map and counters
/// are undone, it leaves the LRU and is freed. Zone and LRU locks come on top. A guess.
const UNMAP_PAGE: f64 = 280.0;

/// Pages that a CPU takes from its zone, or gives back, at a time: `pcp->batch` of a large zone.
const ZONE_BATCH: u32 = 31;

/// The zone's lock for one of them: a list operation and the buddy's state, cold. A guess.
const ZONE_PAGE: f64 = 50.0;

/// Pages that a CPU collects before it takes the lock of the zone's LRU (`PAGEVEC_SIZE`).
const LRU_BATCH: u32 = 14;

/// That lock for one of them: a list operation and counters. A guess.
const LRU_PAGE: f64 = 40.0;
