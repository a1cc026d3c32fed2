//! An address space: its lock, what is done under it, and the zones that its pages come from.

use std::rc::Rc;

use spinpark_classics::{RawLock, SpinLock};
use spinpark_platform::{AtomicU32 as _, Ordering::Relaxed};

use super::costs;
use crate::here;
use crate::object::Object;
use crate::platform::{AtomicU32, Sim};
use crate::workload::{KernelTuning, Plan, RwLock, SettingError};
use crate::world::memory::Access;

/// Pages of a mapping: 1 MB.
pub(super) const PAGES: u32 = 256;

/// The locks of a zone, each on a line of its own.
struct Zone {
    pages: SpinLock<Sim<KernelTuning>>,
    lru: Apart,
}

#[repr(align(128))]
struct Apart(SpinLock<Sim<KernelTuning>>);

/// The machine's memory: a zone for each socket.
#[derive(Clone)]
pub(super) struct Zones(Rc<[Rc<Object<Zone>>]>);

impl Zones {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
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
        if index.is_multiple_of(costs::ZONE_BATCH) {
            hold(&zone.pages, costs::ZONE_PAGE * f64::from(costs::ZONE_BATCH));
        }
        if index.is_multiple_of(costs::LRU_BATCH) {
            hold(&zone.lru.0, costs::LRU_PAGE * f64::from(costs::LRU_BATCH));
        }
    }
}

/// Cycles to time.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) ghz: f64,
}

impl Clock {
    /// Computes for so many cycles.
    pub(super) fn run(self, cycles: f64) {
        here::compute_f64(cycles / self.ghz);
    }
}

/// The address space of a process.
#[derive(Clone)]
pub(super) struct Space {
    lock: RwLock,
    /// The kernel's, each on a line of its own.
    words: Rc<[Rc<Object<AtomicU32>>]>,
    zones: Zones,
    clock: Clock,
    syscall_ns: f64,
}

impl Space {
    pub(super) fn new(plan: &mut Plan<'_>, zones: &Zones) -> Result<Self, SettingError> {
        Ok(Self {
            lock: plan.rwlock("mmap_sem")?,
            words: (0..costs::MAP_LINES).map(|_| Object::new(AtomicU32::new(0))).collect(),
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
    pub(super) fn enter(&self) {
        here::in_address_space(self.beside_lock());
    }

    /// A call that changes the list of mappings.
    fn call(&self, under_lock: impl FnOnce()) {
        here::compute_f64(self.syscall_ns);
        here::in_kernel(|| {
            self.clock.run(costs::CALL);
            self.lock.write(|| {
                for word in self.words.iter() {
                    word.store(word.load(Relaxed) + 1, Relaxed);
                }
                under_lock();
            });
        });
    }

    /// Maps memory.
    pub(super) fn map(&self) {
        self.call(|| self.clock.run(costs::MAP));
    }

    /// Unmaps a mapping in which `pages` were written. Other CPUs that run threads of this address space are
    /// to forget where those pages were: each is interrupted, and the last one is waited for. (That a CPU in
    /// line for a `wait_lock` answers only when it has been there was tried, and changes nothing: the line is
    /// empty before that.)
    pub(super) fn unmap(&self, pages: u32) {
        self.call(|| {
            self.clock.run(costs::UNMAP);
            for page in 0..pages {
                self.clock.run(costs::UNMAP_PAGE);
                self.zones.page(page, self.clock);
            }
            if pages > 0 {
                here::interrupt_others();
            }
        });
    }

    /// The program writes to its `index`-th fresh page.
    pub(super) fn fault(&self, index: u32) {
        here::in_kernel(|| {
            self.clock.run(costs::FAULT_OUTSIDE);
            self.lock.read_after_try(|| {
                here::access(self.beside_lock(), Access::Load);
                self.zones.page(index, self.clock);
                self.clock.run(costs::FAULT + costs::ZERO);
            });
        });
        self.clock.run(costs::WRITE_PAGE);
    }
}
