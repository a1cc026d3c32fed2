//! What one execution of a model has besides its objects: the configuration, the clock, the sleepers, the
//! threads.
//!
//! Loom runs all threads of an execution as coroutines on one OS thread and switches only inside its own
//! operations. So plain cells in a `std` thread-local are enough, if no borrow spans a loom operation. What
//! the threads of a model do to each other through this state is made visible to loom's partial-order
//! reduction by [`World::step`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use loom::sync::Mutex;
use loom::sync::atomic::AtomicU32;
use loom::thread::{self, Thread, ThreadId};
use spinpark_platform::{Clock, Event, OnCpu, Ordering::Relaxed};

use super::EPOCH_NS;
use super::sleepers::Sleepers;
use super::slot_lines::{Held, Slots, slots};
use super::steps::{Steps, steps};
use spinpark_sim::check::{Applied, Faults};

/// How the machine of a model behaves.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Whether lock cores spin.
    pub can_spin: bool,
    /// Whether the scheduler wants every CPU for other threads.
    pub need_resched: bool,
    /// What is said about every owner.
    pub oracle: OnCpu,
    /// Whether the model moves the clock (with [`advance`]). If not, the clock costs no exploration.
    pub clock_moves: bool,
    /// Whether the first wait of each thread ends at once, woken for no reason.
    pub spurious: bool,
    /// Whether a release without waiters is a restartable step; if not, it is a compare-exchange.
    pub restartable: bool,
    /// Whether the first such step of each thread fails for no reason.
    pub aborted: bool,
    /// How many CPUs the process is told it has.
    pub cpus: u32,
    /// Whether a lock stays contended when its queue is empty.
    pub stays_contended: bool,
    /// See [`Model::defers`](crate::Model::defers).
    pub defers: bool,
    /// See [`Model::unmarked`](crate::Model::unmarked).
    pub unmarked: bool,
    /// Whether waiters leave the lock to its owner, and owners come back for it: also asks for every turn to
    /// be timed.
    pub backs_off: bool,
    /// Threads that acquire a lock guess that it is free, and do not read first.
    pub never_reads: bool,
    /// What is wrong.
    pub faults: Faults,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            can_spin: false,
            need_resched: false,
            oracle: OnCpu::Unknown,
            clock_moves: false,
            spurious: false,
            restartable: true,
            aborted: false,
            cpus: 1,
            stays_contended: false,
            defers: false,
            unmarked: false,
            backs_off: false,
            never_reads: false,
            faults: Faults::default(),
        }
    }
}

/// Has the calling thread leave its call in its next sleep in a lock's queue: it cleans up, and panics
/// without a message, which the model catches.
pub fn leave_next_sleep() {
    world().local(|local| local.leaves = true);
}

/// Gives the calling thread a real-time priority.
pub fn set_priority(priority: u8) {
    world().local(|local| local.priority = priority);
}

/// The calling thread does not run on from its next sleep, once that has ended, before [`let_come`].
pub fn come_late() {
    world().local(|local| local.comes_late = true);
}

/// Lets the threads run on that [`come_late`] holds back.
pub fn let_come() {
    let world = world();
    world.step([&world.clock]);
    world.lets_come.set(true);
    for thread in world.held_back.take() {
        thread.unpark();
    }
}

/// What a thread of a model remembers.
pub(super) struct Local {
    id: ThreadId,
    pub(super) token: u32,
    pub(super) read: Vec<Held>,
    pub(super) has_slept: bool,
    /// Whether it leaves its call in its next sleep in a lock's queue.
    pub(super) leaves: bool,
    /// What it does before it leaves. Valid while its call is in `or_leave`, which takes it away again.
    pub(super) leave: Option<*const dyn Fn()>,
    pub(super) has_aborted: bool,
    /// What it last wrote by a compare-exchange, and the same until the first load after a barrier. Only
    /// kept if a fault wants it.
    pub(super) written: u32,
    pub(super) after_fence: Option<u32>,
    /// Whether it is held back after its next sleep.
    comes_late: bool,
    /// Its real-time priority.
    pub(super) priority: u8,
    /// The time that it has spun away, ns.
    pub(super) spun: u64,
    /// Whether its full fences do nothing.
    pub(super) loses_full_fences: bool,
    /// It stops after this many more accesses.
    pub(super) stops_after: Option<u32>,
    /// What a mutant does once it has unlocked a queue.
    pub(super) put_off: Option<PutOff>,
}

/// A compare-exchange of an atomic word that happens later, in a mutant.
#[derive(Clone, Copy)]
pub(super) struct PutOff {
    pub(super) word: *const (),
    pub(super) current: u32,
    pub(super) new: u32,
}

/// How many futex addresses are told apart by the reduction; more share.
const BUSES: usize = 6;

pub(super) struct World {
    pub(super) config: Config,
    pub(super) sleepers: Sleepers,
    pub(super) steps: Steps,
    pub(super) slots: Slots,
    now: Cell<u64>,
    /// How far the wall clock has been set back.
    behind: Cell<u64>,
    is_leading_in: Cell<bool>,
    lets_come: Cell<bool>,
    held_back: RefCell<Vec<Thread>>,
    locals: RefCell<Vec<Local>>,
    /// Held while threads that stop stay so.
    stop: Mutex<()>,
    /// Stands for the clock.
    clock: AtomicU32,
    /// Stand for the kernel's queues, by address in order of first use.
    buses: [AtomicU32; BUSES],
    addresses: RefCell<Vec<usize>>,
}

thread_local! {
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
    /// How often each event happened, over all executions of the model.
    static NOTED: RefCell<Vec<(Event, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Counts an event.
pub(super) fn note(event: Event) {
    NOTED.with_borrow_mut(|noted| match noted.iter_mut().find(|(known, _)| *known == event) {
        Some((_, times)) => *times += 1,
        None => noted.push((event, 1)),
    });
}

/// How often an event has happened, in this execution and those before it.
pub fn noted(event: Event) -> u64 {
    NOTED.with_borrow(|noted| noted.iter().find(|(known, _)| *known == event).map_or(0, |(_, times)| *times))
}

/// The events since the last call.
pub(crate) fn take_noted() -> Vec<(Event, u64)> {
    NOTED.take()
}

/// The world of the execution that runs on this OS thread.
pub(super) fn world() -> Rc<World> {
    WORLD.with_borrow(|world| world.clone()).expect("the platform is used outside `Model::check`")
}

/// Starts an execution: call it first in the model, before any thread is spawned.
pub(crate) fn begin(config: Config) {
    Applied::begin(config.faults);
    let world = World {
        config,
        sleepers: Sleepers::default(),
        steps: steps(),
        slots: slots(),
        now: Cell::new(EPOCH_NS),
        behind: Cell::new(0),
        is_leading_in: Cell::new(false),
        lets_come: Cell::new(false),
        held_back: RefCell::default(),
        locals: RefCell::default(),
        stop: Mutex::new(()),
        clock: AtomicU32::new(0),
        buses: std::array::from_fn(|_| AtomicU32::new(0)),
        addresses: RefCell::default(),
    };
    WORLD.set(Some(Rc::new(world)));
}

/// Moves the clock by `ns`; waits whose deadline is reached end.
pub fn advance(ns: u64) {
    let world = world();
    assert!(world.config.clock_moves, "a model that moves the clock says so in its configuration");
    world.step([&world.clock].into_iter().chain(&world.buses));
    world.now.set(world.now.get() + ns);
    world.sleepers.expire(|clock| world.shown(clock));
}

/// Sets the wall clock back by `ns`, to its start at most.
pub fn set_back(ns: u64) {
    let world = world();
    assert!(world.config.clock_moves, "as for `advance`");
    world.step([&world.clock].into_iter().chain(&world.buses));
    world.behind.set(world.behind.get() + ns);
}

/// From now on, full fences do nothing in the calling thread: in a mutant whose threads have one part each,
/// one side of each pair of fences.
pub fn lose_full_fences() {
    world().local(|local| local.loses_full_fences = true);
}

/// Runs `body` while every thread that stops stays stopped; afterwards they go on.
pub fn while_stopped<R>(body: impl FnOnce() -> R) -> R {
    let world = world();
    let stopped = world.stop.lock().expect("no model panics here");
    let result = body();
    drop(stopped);
    result
}

/// The calling thread stops once, after this many more accesses to words of locks and nodes.
pub fn stop_after(accesses: u32) {
    world().local(|local| local.stops_after = Some(accesses));
}

/// Runs `path`, and what other threads do meanwhile, in one order only: the way to the place that a model is
/// about.
pub fn lead_in<R>(path: impl FnOnce() -> R) -> R {
    let world = world();
    world.is_leading_in.set(true);
    loom::stop_exploring();
    let result = path();
    loom::explore();
    world.is_leading_in.set(false);
    result
}

impl World {
    /// One step of the machine that depends on, and changes, what `objects` stand for: no other thread runs
    /// between them. The caller goes on without a loom operation to make the step's changes.
    pub(super) fn step<'a>(&self, objects: impl IntoIterator<Item = &'a AtomicU32>) {
        let touch = |object: &AtomicU32| {
            // Fails, so nothing is stored and nothing is ordered; yet the reduction takes it for a change.
            let _ = object.compare_exchange(1, 1, Relaxed, Relaxed);
        };
        let mut objects = objects.into_iter();
        if let Some(first) = objects.next() {
            touch(first);
        }
        for object in objects {
            self.undivided(|| touch(object));
        }
    }

    /// Holds the calling thread back, if it comes late.
    pub(super) fn hold_back(&self) {
        if self.local(|local| std::mem::take(&mut local.comes_late)) {
            self.step([&self.clock]);
            while !self.lets_come.get() {
                self.held_back.borrow_mut().push(thread::current());
                thread::park();
            }
        }
    }

    /// Before each access to a word outside of a restartable step (in which a stopped thread would start
    /// again).
    pub(super) fn stop_here(&self) {
        let stops = self.local(|local| match &mut local.stops_after {
            Some(0) => local.stops_after.take().is_some(),
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        });
        if stops {
            drop(self.stop.lock());
        }
    }

    /// Runs `operation` right after the last step, as part of it.
    pub(super) fn undivided<R>(&self, operation: impl FnOnce() -> R) -> R {
        if self.is_leading_in.get() {
            return operation(); // unexplored as it is
        }
        loom::stop_exploring();
        let result = operation();
        loom::explore();
        result
    }

    /// What stands for the kernel's queue of the word at `address`.
    pub(super) fn bus(&self, address: usize) -> &AtomicU32 {
        let mut addresses = self.addresses.borrow_mut();
        let index = addresses.iter().position(|&known| known == address).unwrap_or_else(|| {
            addresses.push(address);
            addresses.len() - 1
        });
        &self.buses[index % BUSES]
    }

    /// The objects that a timed wait on the word at `address` depends on.
    pub(super) fn queue_and_clock(&self, address: usize, timed: bool) -> impl Iterator<Item = &AtomicU32> {
        let clock = timed && self.config.clock_moves;
        [self.bus(address)].into_iter().chain(clock.then_some(&self.clock))
    }

    pub(super) fn now(&self, clock: Clock) -> u64 {
        if self.config.clock_moves && !std::thread::panicking() {
            // A load, which depends on `advance` only: two that read the clock need not be tried in both
            // orders.
            let _ = self.clock.load(Relaxed);
        }
        self.shown(clock)
    }

    /// The time within a step that includes the clock.
    pub(super) fn shown(&self, clock: Clock) -> u64 {
        match clock {
            Clock::Monotonic => self.now.get(),
            Clock::Realtime => self.now.get().saturating_sub(self.behind.get()),
        }
    }

    /// The calling thread's own state. Tokens count from 1 in order of first use.
    pub(super) fn local<R>(&self, f: impl FnOnce(&mut Local) -> R) -> R {
        let id = thread::current().id();
        let mut locals = self.locals.borrow_mut();
        let index = locals.iter().position(|local| local.id == id).unwrap_or_else(|| {
            let token = locals.len() as u32 + 1;
            locals.push(Local {
                id,
                token,
                read: Vec::new(),
                has_slept: false,
                leaves: false,
                leave: None,
                has_aborted: false,
                written: 0,
                after_fence: None,
                comes_late: false,
                priority: 0,
                spun: 0,
                loses_full_fences: false,
                stops_after: None,
                put_off: None,
            });
            locals.len() - 1
        });
        f(&mut locals[index])
    }
}
