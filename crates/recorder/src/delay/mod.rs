//! Delays at one point of some locks: what `spinpark whatif` puts into a program to see what it costs.
//!
//! A process that delays records nothing. At each use of a lock it only finds out whether the lock is one of the
//! [`Plan`], and how many locks its thread holds; a run with delays of no length does the same.
//!
//! | question                     | answered                                                                  |
//! |------------------------------|---------------------------------------------------------------------------|
//! | Is this lock of the plan?    | once a lock: at its creation or its first uses ([`Recorder::is_delayed`]), then by its address (`addresses`) |
//! | In which module is it?       | by glibc (`_dl_find_object`), without a lock; which one that is in the plan, once a module |
//! | Where is a delay outside?    | it is owed until the thread holds no lock ([`Recorder::let_go_of_one`])     |
//!
//! An address that is used again by another lock, whose predecessor's end is not seen (`std::mutex`), keeps its
//! verdict; the recorder cannot tell these apart either.

mod addresses;
mod plan;
mod spin;

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{compiler_fence, AtomicPtr, AtomicU64, Ordering::SeqCst};

use spinpark_linux::raw;

pub use self::plan::{
    By, Count, Counted, Identity, Module, Obstacle, Place, Plan, Point, BUILD_ID, COUNTS, DEPTH, IDENTITIES,
    MAGIC, MODULES, NAME, PLAN_BYTES, PLAN_VERSION,
};

use self::addresses::{Addresses, Verdict};
use self::spin::Spin;
use crate::maps::build_id_of;
use crate::site::Site;
use crate::stack_bounds::of_this_thread;
use crate::thread_state::here;
use crate::unwind::{Object, Trace};
use crate::Recorder;

/// After so many uses from unknown stacks a lock is none of the plan.
const USES: u8 = 16;
/// Modules whose number in the plan is known.
const KNOWN: usize = 64;
/// A module that is none of the plan's.
const FOREIGN: u64 = 63;
const _: () = assert!(MODULES < FOREIGN as usize);
/// Modules start at pages: the bits below have the number.
const PAGE: u64 = 4096;

/// The delays of this process. The default has none.
pub(crate) struct Delays {
    /// Null: there are none.
    plan: AtomicPtr<Plan>,
    addresses: AtomicPtr<Addresses>,
    spin: Spin,
    /// Where a module starts, and its number in the plan, plus 1; 0: unused.
    known: [AtomicU64; KNOWN],
    /// The next of `known` to be used.
    next: AtomicU64,
    /// File name of the program, and zeros. Written before the plan is there.
    program: UnsafeCell<[u8; NAME]>,
}

// SAFETY: the name is written once, before any thread reads it.
unsafe impl Sync for Delays {}

impl Delays {
    pub(crate) const fn new() -> Self {
        Self {
            plan: AtomicPtr::new(ptr::null_mut()),
            addresses: AtomicPtr::new(ptr::null_mut()),
            spin: Spin::new(),
            known: [const { AtomicU64::new(0) }; KNOWN],
            next: AtomicU64::new(0),
            program: UnsafeCell::new([0; NAME]),
        }
    }

    /// A plan, and the table with it.
    #[inline(always)]
    fn get(&self) -> Option<(&Plan, &Addresses)> {
        // Acquire: pairs with the Release in `delay_by`; the table and the rest are written before.
        // SAFETY: null, or memory that stays, of which only the counts change.
        let plan = unsafe { self.plan.load(Acquire).as_ref() }?;
        // SAFETY: set before the plan was; all zero is an empty table.
        Some((plan, unsafe { &*self.addresses.load(Relaxed) }))
    }
}

impl Plan {
    /// Where this thread counts. Threads may share one: they add.
    fn count(&self) -> &Count {
        // What distinguishes threads is where their thread-local memory is.
        &self.counts[crate::hash::hash(ptr::from_ref(here()) as usize) % COUNTS]
    }

    fn meets(&self, obstacle: Obstacle) {
        self.counts[0].obstacles.fetch_or(1 << obstacle as u32, Relaxed);
    }
}

impl Recorder {
    /// Delays what the plan in the file `path` says, from now on; whether there is anything to delay. After
    /// [`Recorder::prepare`], and before the process has another thread.
    #[must_use]
    pub fn delay_by(&self, path: &CStr, is_detected: bool) -> bool {
        let Some(plan) = map(path) else { return false };
        // SAFETY: mapped just now, as long as a plan; its bytes are numbers, and it stays.
        let plan: &'static Plan = unsafe { &*plan };
        if plan.magic != MAGIC {
            return false;
        }
        let memory = raw::map_zero(size_of::<Addresses>());
        let obstacle = match memory {
            _ if plan.version != PLAN_VERSION => Some(Obstacle::Version),
            _ if is_detected => Some(Obstacle::Detector),
            _ if !self.unwinder.knows_modules() => Some(Obstacle::Modules),
            None => Some(Obstacle::Memory),
            Some(_) => None,
        };
        let (None, Some(memory)) = (obstacle, memory) else {
            obstacle.into_iter().for_each(|obstacle| plan.meets(obstacle));
            return false;
        };
        let mut link = [0; 4096];
        let length = usize::try_from(raw::read_link(c"/proc/self/exe", &mut link)).unwrap_or(0);
        // SAFETY: no other thread reads it yet.
        let program = unsafe { &mut *self.delays.program.get() };
        let path = link.get(..length).unwrap_or(&[]);
        program.iter_mut().zip(file_name(path)).for_each(|(to, from)| *to = *from);
        self.delays.spin.set(plan.delay_ns, &self.ticks);
        self.delays.addresses.store(memory.cast().as_ptr(), Relaxed);
        // Release: what is written above is there for threads that see the plan.
        self.delays.plan.store(ptr::from_ref(plan).cast_mut(), Release);
        true
    }

    /// Whether the lock at `address`, which is used at `site`, is one of the plan. Not while the thread has it: the
    /// first time, this takes microseconds.
    #[inline(always)]
    pub fn is_delayed(&self, address: usize, site: Site) -> bool {
        let Some((plan, addresses)) = self.delays.get() else { return false };
        match addresses.get(address) {
            Some(Verdict::Delayed { .. }) => true,
            Some(Verdict::Left { .. }) => false,
            open => self.meet(plan, addresses, (address, site), open),
        }
    }

    /// The same of one that was used before, without its site.
    #[inline(always)]
    pub fn is_known_delayed(&self, address: usize) -> bool {
        let known = self.delays.get().and_then(|(_, addresses)| addresses.get(address));
        matches!(known, Some(Verdict::Delayed { .. }))
    }

    /// A point was reached at a lock of the plan: if it is that of the plan, a delay.
    #[inline(always)]
    pub fn reach(&self, point: Point) {
        if let Some((plan, _)) = self.delays.get().filter(|(plan, _)| plan.point == point as u32) {
            self.reached(plan);
        }
    }

    fn reached(&self, plan: &Plan) {
        let count = plan.count();
        count.reached.fetch_add(1, Relaxed);
        if !self.delays.spin.is_long() {
            return;
        }
        let here = here();
        if plan.is_outside != 0 && here.held.get() > 0 {
            here.owed.set(here.owed.get().saturating_add(1));
            return;
        }
        count.delayed.fetch_add(1, Relaxed);
        self.delays.spin.take(&self.ticks);
    }

    /// The thread has acquired a lock.
    #[inline(always)]
    pub fn hold_one_more(&self) {
        let held = &here().held;
        held.set(held.get().saturating_add(1));
    }

    /// It has released one. With the last one, it makes the delays that it owes.
    #[inline(always)]
    pub fn let_go_of_one(&self) {
        let here = here();
        here.held.set(here.held.get().saturating_sub(1));
        if here.owed.get() > 0 && here.held.get() == 0 {
            self.pay();
        }
    }

    #[cold]
    #[inline(never)]
    fn pay(&self) {
        let Some((plan, _)) = self.delays.get() else { return };
        // A signal handler pays what it owes itself.
        for _ in 0..here().owed.replace(0) {
            plan.count().delayed.fetch_add(1, Relaxed);
            self.delays.spin.take(&self.ticks);
        }
    }

    /// The object at `address` was created at `site`.
    pub fn meet_created(&self, address: usize, site: Site) {
        let Some((plan, addresses)) = self.delays.get() else { return };
        addresses.forget(address);
        self.classify(plan, addresses, (address, site), |stack| Some(stack.is_one_of(plan, By::Creation)));
    }

    /// The object at `address` is about to be destroyed.
    pub fn forget_delayed(&self, address: usize) {
        if let Some((_, addresses)) = self.delays.get() {
            addresses.forget(address);
        }
    }

    /// A module may have been unloaded.
    pub fn forget_modules(&self) {
        if let Some((_, addresses)) = self.delays.get() {
            self.delays.known.iter().for_each(|known| known.store(0, Relaxed));
            addresses.forget_variables();
        }
    }

    /// A lock is used whose creation was not seen, for the first time, or some time after.
    #[cold]
    #[inline(never)]
    fn meet(&self, plan: &Plan, addresses: &Addresses, used: (usize, Site), open: Option<Verdict>) -> bool {
        let uses = if let Some(Verdict::Open(uses)) = open { uses } else { 0 };
        self.classify(plan, addresses, used, |stack| match stack.is_one_of(plan, By::Use) {
            true => Some(true),
            false if uses + 1 < USES && plan.identities().iter().any(|it| it.by == By::Use as u32) => None,
            false => Some(false),
        });
        match addresses.get(used.0) {
            Some(Verdict::Open(_)) => {
                addresses.set(used.0, Verdict::Open(uses + 1));
                false
            }
            verdict => matches!(verdict, Some(Verdict::Delayed { .. })),
        }
    }

    /// Finds out whether a lock is of the plan: by its place, if it is in a module; else by its stack.
    fn classify(
        &self,
        plan: &Plan,
        addresses: &Addresses,
        (address, site): (usize, Site),
        by_stack: impl FnOnce(&Stack<'_>) -> Option<bool>,
    ) {
        let here = here();
        // The unwinder, and what it calls, may use locks; so may a signal handler.
        if here.is_busy.get() != 0 {
            return;
        }
        here.is_busy.set(1);
        compiler_fence(SeqCst); // as in `enter`
        let verdict = match self.unwinder.object(address) {
            Some(object) => {
                let place = self.place_in(plan, &object, address as u64);
                let is_its =
                    |it: &Identity| it.by == By::Place as u32 && it.places().first() == place.as_ref();
                match place.is_some() && plan.identities().iter().any(is_its) {
                    true => Verdict::Delayed { in_module: true },
                    false => Verdict::Left { in_module: true },
                }
            }
            None => {
                let bounds = of_this_thread(&self.main_stack);
                let trace = self.unwinder.capture(site, bounds, raw::thread_id(), self);
                match by_stack(&Stack { recorder: self, trace: &trace }) {
                    Some(true) => Verdict::Delayed { in_module: false },
                    Some(false) => Verdict::Left { in_module: false },
                    None => Verdict::Open(0),
                }
            }
        };
        if !addresses.set(address, verdict) {
            plan.count().unknown.fetch_add(1, Relaxed);
        } else if matches!(verdict, Verdict::Delayed { .. }) {
            plan.count().locks.fetch_add(1, Relaxed);
        }
        compiler_fence(SeqCst);
        here.is_busy.set(0);
    }

    /// An address of a module, as the plan has it; none if the module is none of the plan's.
    fn place_in(&self, plan: &Plan, object: &Object, address: u64) -> Option<Place> {
        let start = object.start as u64;
        let known = self.delays.known.iter().map(|known| known.load(Relaxed));
        let found = known.clone().find(|word| *word / PAGE == start / PAGE && *word != 0);
        let number = match found {
            Some(word) => word % PAGE - 1,
            None => {
                let number = self.number_of(plan, object).unwrap_or(FOREIGN);
                let next = self.delays.next.fetch_add(1, Relaxed) as usize % KNOWN;
                self.delays.known[next].store(start / PAGE * PAGE + number + 1, Relaxed);
                number
            }
        };
        (number != FOREIGN).then(|| Place { module: number, offset: address - start })
    }

    /// The number of a module of the plan.
    #[cold]
    #[inline(never)]
    fn number_of(&self, plan: &Plan, object: &Object) -> Option<u64> {
        let (start, end) = (object.start as u64, object.end as u64);
        let mut buffer = [0; 4096];
        // The calling thread runs in the module, or uses a lock of it: it stays.
        let id = build_id_of(start, &mut buffer, &mut |from, bytes| {
            for (byte, at) in bytes.iter_mut().zip(from..) {
                // SAFETY: the module's headers and notes are in its first pages, which are readable.
                *byte = if (start..end).contains(&at) { unsafe { *(at as *const u8) } } else { 0 };
            }
        });
        let is_it = |module: &Module| match (module.build_id_bytes, id.as_ref()) {
            (0, _) => self.is_called(object, &module.name),
            (length, Some((bytes, of))) => length == *of as u64 && module.build_id == *bytes,
            (_, None) => false,
        };
        plan.modules().iter().position(is_it).map(|at| at as u64)
    }

    /// Whether a module has this file name, which zeros follow.
    fn is_called(&self, object: &Object, name: &[u8; NAME]) -> bool {
        // SAFETY: the loader's, of a module that stays.
        let path = unsafe { object.path() };
        let mut cut = [0; NAME];
        match path {
            // The loader has no name of the program.
            None => {
                // SAFETY: written before the plan was there.
                cut = unsafe { *self.delays.program.get() };
            }
            Some(path) => {
                cut.iter_mut().zip(file_name(path.to_bytes())).for_each(|(to, from)| *to = *from);
            }
        }
        cut == *name
    }
}

/// A captured stack.
struct Stack<'a> {
    recorder: &'a Recorder,
    trace: &'a Trace,
}

impl Stack<'_> {
    /// Whether an identity of this sort begins as it does.
    fn is_one_of(&self, plan: &Plan, by: By) -> bool {
        let depth = self.trace.depth.min(DEPTH);
        let mut places = [None; DEPTH];
        for (place, address) in places.iter_mut().zip(&self.trace.frames[..depth]) {
            // A return address may be the first one behind its module's end, but never its first one.
            let object = self.recorder.unwinder.object(*address as usize - 1);
            *place = object.and_then(|object| self.recorder.place_in(plan, &object, *address));
        }
        plan.identities().iter().filter(|it| it.by == by as u32).any(|it| {
            let wanted = it.places();
            !wanted.is_empty()
                && wanted.len() <= depth
                && wanted.iter().zip(&places).all(|(wanted, place)| Some(*wanted) == *place)
        })
    }
}

/// A path without its directory.
fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Maps a plan's file, which stays mapped.
fn map(path: &CStr) -> Option<*const Plan> {
    let file = raw::open_write(path);
    if file < 0 {
        return None;
    }
    let length = PLAN_BYTES.next_multiple_of(PAGE as usize);
    let mut end = [0];
    let is_whole = raw::read_at(file, &mut end, PLAN_BYTES as u64 - 1) == 1;
    let memory = is_whole.then(|| raw::map_file(file, length)).flatten();
    raw::close(file);
    let start = memory?.as_ptr();
    raw::open_mapping(start, length).then(|| start.cast_const().cast())
}
