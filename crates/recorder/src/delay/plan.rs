//! The plan of a run with delays: a file that the command writes, and that each process of the run maps. It says
//! what is delayed, where and for how long; the processes count in it.
//!
//! A lock has another address in each run. What stays is its *identity*: the module that it is in and its place
//! there; or, on the heap, the stack that created it, or that used it first. Addresses of a stack are places in
//! modules, too.
//!
//! | part      | written by                     | read by              |
//! |-----------|--------------------------------|----------------------|
//! | [`Count`] | the processes, while they run  | the command, after   |
//! | all else  | the command, before            | the processes, once mapped |

use core::sync::atomic::AtomicU64;

/// How a plan begins.
pub const MAGIC: u64 = u64::from_le_bytes(*b"SPINDELY");
/// Command and library are of one build as a rule; a library of another version does nothing.
pub const PLAN_VERSION: u32 = 1;
/// Modules of a plan, at most.
pub const MODULES: usize = 56;
/// Identities of a plan, at most: a class of locks has one for each of its static locks, or for each stack.
pub const IDENTITIES: usize = 256;
/// Addresses of a stack that are compared, at most.
pub const DEPTH: usize = 16;
/// A module's name that is longer is cut, bytes.
pub const NAME: usize = 64;
/// A build id has fewer bytes, or is cut.
pub const BUILD_ID: usize = 32;
/// Threads count in several places, so that they do not wait for each other's cache lines.
pub const COUNTS: usize = 64;

/// Where the delay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Point {
    /// Inside sections: after an acquisition.
    Inside = 1,
    /// Before an attempt to acquire.
    Before = 2,
    /// After a try that failed.
    Retry = 3,
    /// After a release.
    After = 4,
    /// Before a wake-up: a signal of a condition variable, a post, a wake of a futex.
    Wake = 5,
}

/// What an [`Identity`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum By {
    /// The place of the lock itself.
    Place = 1,
    /// The stack that created it.
    Creation = 2,
    /// A stack that used it, where no creation is seen.
    Use = 3,
}

/// Why a process delays nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Obstacle {
    /// The plan is another version's.
    Version = 1,
    /// glibc cannot tell which module an address is in (before 2.35).
    Modules = 2,
    /// There is no memory.
    Memory = 3,
    /// It runs under a race detector.
    Detector = 4,
}

/// A file that code or data of the program is in. Its build id tells, if it has one; else its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Module {
    /// The file's name without directory, and zeros.
    pub name: [u8; NAME],
    /// And zeros.
    pub build_id: [u8; BUILD_ID],
    /// 0: it has none.
    pub build_id_bytes: u64,
}

/// An address, as it is in every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// Which of the plan's modules, from 0.
    pub module: u64,
    /// From where the module begins in memory.
    pub offset: u64,
}

/// What tells a lock from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Identity {
    /// A [`By`].
    pub by: u32,
    /// Of a stack: how many of its innermost addresses. 1 of a place.
    pub depth: u32,
    /// The place, or the stack's return addresses, the innermost first.
    pub places: [Place; DEPTH],
}

/// What one group of threads counts. A line of its own.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Count {
    /// How often the point was reached at a lock of the plan.
    pub reached: AtomicU64,
    /// How many delays were made: none if the delay has no length; fewer than reached if they are owed still.
    pub delayed: AtomicU64,
    /// Locks that were found to be of the plan.
    pub locks: AtomicU64,
    /// Uses of locks for which the table had no space.
    pub unknown: AtomicU64,
    /// A bit for each [`Obstacle`] that was met.
    pub obstacles: AtomicU64,
    /// Zeros.
    pub spare: [u64; 3],
}

/// See above.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Plan {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// A [`Point`].
    pub point: u32,
    /// How long, ns.
    pub delay_ns: u64,
    /// Not 0: the delay is not made at the point, but once the thread holds no lock.
    pub is_outside: u32,
    /// How many modules there are.
    pub modules_used: u32,
    /// How many identities there are.
    pub identities_used: u32,
    /// Zeros.
    pub spare: [u32; 7],
    /// The modules.
    pub modules: [Module; MODULES],
    /// The identities.
    pub identities: [Identity; IDENTITIES],
    /// The counts.
    pub counts: [Count; COUNTS],
}

/// Bytes of a plan's file.
pub const PLAN_BYTES: usize = size_of::<Plan>();

impl Module {
    /// None.
    pub const EMPTY: Self = Self { name: [0; NAME], build_id: [0; BUILD_ID], build_id_bytes: 0 };

    /// One with this name and this build id; what is longer is cut.
    #[must_use]
    pub fn new(name: &[u8], build_id: &[u8]) -> Self {
        let mut module = Self { build_id_bytes: build_id.len().min(BUILD_ID) as u64, ..Self::EMPTY };
        module.name.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        module.build_id.iter_mut().zip(build_id).for_each(|(to, from)| *to = *from);
        module
    }
}

impl Identity {
    /// None.
    pub const EMPTY: Self = Self { by: 0, depth: 0, places: [Place { module: 0, offset: 0 }; DEPTH] };

    /// That of these places; more than [`DEPTH`] are left out.
    #[must_use]
    pub fn new(by: By, places: &[Place]) -> Self {
        let mut identity = Self { by: by as u32, depth: places.len().min(DEPTH) as u32, ..Self::EMPTY };
        identity.places.iter_mut().zip(places).for_each(|(to, from)| *to = *from);
        identity
    }

    /// The places.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places[..(self.depth as usize).min(DEPTH)]
    }
}

impl Plan {
    /// One without identities.
    #[must_use]
    pub fn new(point: Point, delay_ns: u64, is_outside: bool) -> Self {
        Self {
            magic: MAGIC,
            version: PLAN_VERSION,
            point: point as u32,
            delay_ns,
            is_outside: u32::from(is_outside),
            modules_used: 0,
            identities_used: 0,
            spare: [0; 7],
            modules: [Module::EMPTY; MODULES],
            identities: [Identity::EMPTY; IDENTITIES],
            counts: [const { Count::new() }; COUNTS],
        }
    }

    /// Makes it that of another run: with this delay, and nothing counted.
    pub fn begin_run(&mut self, delay_ns: u64, is_outside: bool) {
        (self.delay_ns, self.is_outside) = (delay_ns, u32::from(is_outside));
        self.counts = [const { Count::new() }; COUNTS];
    }

    /// The number of a module, which is added if it is new; `None` if there are too many.
    pub fn add_module(&mut self, module: Module) -> Option<u64> {
        let used = self.modules_used as usize;
        if let Some(at) = self.modules[..used].iter().position(|known| *known == module) {
            return Some(at as u64);
        }
        *self.modules.get_mut(used)? = module;
        self.modules_used += 1;
        Some(used as u64)
    }

    /// Adds an identity, unless it is there; whether there was space.
    pub fn add(&mut self, identity: Identity) -> bool {
        if self.identities().contains(&identity) {
            return true;
        }
        let free = self.identities.get_mut(self.identities_used as usize);
        let has_space = free.map(|free| *free = identity).is_some();
        self.identities_used += u32::from(has_space);
        has_space
    }

    /// Those that are used.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules[..(self.modules_used as usize).min(MODULES)]
    }

    /// Those that are used.
    #[must_use]
    pub fn identities(&self) -> &[Identity] {
        &self.identities[..(self.identities_used as usize).min(IDENTITIES)]
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: plain numbers without padding between them (checked below), for as long as the borrow; no
        // other thread counts in this copy.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), PLAN_BYTES) }
    }

    /// The sums of what a file's processes have counted; `None` if that is no plan.
    #[must_use]
    pub fn counted(file: &[u8]) -> Option<Counted> {
        let word = |at: usize| -> Option<u64> { Some(u64::from_le_bytes(*file.get(at..)?.first_chunk()?)) };
        if file.len() != PLAN_BYTES || word(0)? != MAGIC {
            return None;
        }
        let mut all = Counted::default();
        for number in 0..COUNTS {
            let of = |field: usize| {
                word(core::mem::offset_of!(Plan, counts) + number * size_of::<Count>() + field)
            };
            all.reached = all.reached.saturating_add(of(core::mem::offset_of!(Count, reached))?);
            all.delayed = all.delayed.saturating_add(of(core::mem::offset_of!(Count, delayed))?);
            all.locks = all.locks.saturating_add(of(core::mem::offset_of!(Count, locks))?);
            all.unknown = all.unknown.saturating_add(of(core::mem::offset_of!(Count, unknown))?);
            all.obstacles |= of(core::mem::offset_of!(Count, obstacles))?;
        }
        Some(all)
    }
}

/// The sums of [`Count`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// See [`Count::reached`].
    pub reached: u64,
    /// See [`Count::delayed`].
    pub delayed: u64,
    /// See [`Count::locks`].
    pub locks: u64,
    /// See [`Count::unknown`].
    pub unknown: u64,
    /// See [`Count::obstacles`].
    pub obstacles: u64,
}

impl Counted {
    /// Whether a process met this.
    #[must_use]
    pub fn has(&self, obstacle: Obstacle) -> bool {
        self.obstacles & 1 << obstacle as u32 != 0
    }
}

impl Count {
    const fn new() -> Self {
        Self {
            reached: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            locks: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            obstacles: AtomicU64::new(0),
            spare: [0; 3],
        }
    }
}

// No padding: each part begins where the one before ends.
const _: () = {
    assert!(core::mem::offset_of!(Plan, modules) == 64);
    assert!(size_of::<Module>() == NAME + BUILD_ID + 8);
    assert!(size_of::<Identity>() == 8 + DEPTH * 16);
    let identities = 64 + MODULES * size_of::<Module>();
    assert!(core::mem::offset_of!(Plan, identities) == identities);
    assert!(core::mem::offset_of!(Plan, counts) == identities + IDENTITIES * size_of::<Identity>());
    assert!(size_of::<Count>() == 64 && core::mem::offset_of!(Plan, counts) + COUNTS * 64 == PLAN_BYTES);
};

#[cfg(test)]
mod tests {
    extern crate std;

    use core::sync::atomic::Ordering::Relaxed;
    use std::boxed::Box;

    use super::*;

    #[test]
    fn counts_are_added_up() {
        let mut plan = Box::new(Plan::new(Point::Inside, 5, false));
        plan.counts[0].reached.store(3, Relaxed);
        plan.counts[COUNTS - 1].reached.store(4, Relaxed);
        plan.counts[7].obstacles.store(1 << Obstacle::Memory as u32, Relaxed);
        let counted = Plan::counted(plan.bytes()).expect("a plan");
        assert_eq!((counted.reached, counted.delayed), (7, 0));
        assert!(counted.has(Obstacle::Memory) && !counted.has(Obstacle::Version));
        assert_eq!(Plan::counted(&plan.bytes()[1..]), None);
        plan.magic = 0;
        assert_eq!(Plan::counted(plan.bytes()), None);
    }

    #[test]
    fn what_is_added_twice_is_there_once() {
        let mut plan = Box::new(Plan::new(Point::Wake, 5, true));
        let [one, other] = [b"a", b"b"].map(|name| Module::new(name, &[]));
        assert_eq!([one, other, one].map(|module| plan.add_module(module)), [Some(0), Some(1), Some(0)]);
        let identity = |offset| Identity::new(By::Place, &[Place { module: 1, offset }]);
        assert!((0..IDENTITIES as u64).all(|offset| plan.add(identity(offset))));
        assert!(plan.add(identity(3)) && !plan.add(identity(9999)));
        assert_eq!(plan.identities().len(), IDENTITIES);
    }
}
