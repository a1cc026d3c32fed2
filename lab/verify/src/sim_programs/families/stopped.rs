//! Threads that do not come back to what they do with a lock: one that is stopped, or some that end.
//!
//! *Stopped*: at any point of its lock calls, by a signal handler that sleeps, or that keeps its CPU, for
//! longer than everything else takes. *Left*: a thread ends in its call, in a sleep or in a handler where the
//! call can be left. The others get on, unless they are behind what such a thread holds (`probe.L3`).
//!
//! What excuses a long wait is what docs/drop-in.md says (Limits): the stopped thread has the lock, or is in
//! the middle of its unlock; or it has the queue locked, and the waiter is in that already, or is a writer,
//! which perhaps waits for the bias to be revoked. Nothing excuses one beside threads that have ended.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use spinpark_locks::bits::queue_lock::LOCKED;
use spinpark_locks::{Preference, RawMutex, RawRwLock, WaitQueue, WaitResult};
use spinpark_platform::{AtomicU32, Deadline, Ordering::Relaxed, SpinPolicy, Threads, Tuning};
use spinpark_sim::{Failure, Order, Sim, Tuned, here};

use super::condvar::Pair;
use super::signalled::threads;
use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::guard::{soon_by, stay};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// How long the thread is stopped, ns.
const STOP: u64 = 40_000_000;
/// How long others wait at most, ns: far beyond the looks of all of them.
const LONGEST: u64 = 15_000_000;
/// Threads of a program: more would wait for each other's looks.
const MOST_THREADS: u32 = 8;

/// The constants of `T`, with looks.
#[derive(Debug)]
pub(crate) struct Looks<T>(PhantomData<T>);

impl<T: Tuned> Tuned for Looks<T> {
    // A checked run makes polls rarer while nothing changes: a hundred of them would take longer than the
    // stop.
    const TUNING: Tuning = Tuning {
        probe_ns: 20_000,
        least_probe_ns: 0,
        longest_probe_ns: 640_000,
        queue_polls: 2,
        ..T::TUNING
    };
    const READS_PER_CPU: u32 = T::READS_PER_CPU;
    const GUESSES: bool = T::GUESSES;
}

/// What becomes of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// One is stopped, once in a run.
    Stops,
    /// All but one may end.
    Ends,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Outside,
    Locking,
    /// It may have the lock, or is giving it up: also in a call of a reader, which alone knows whether it is
    /// counted, or in a slot.
    Holding,
}

/// The one stop of a run.
#[derive(Clone, Copy, Debug)]
struct Stop {
    thread: u32,
    since: f64,
    /// The lock, or a part of it, may be the stopped thread's.
    holds: bool,
    has_queue: bool,
}

/// What all threads share besides the lock. Its cells are set and read without a step between.
struct Watch {
    fate: Fate,
    threads: u32,
    stop: Cell<Option<Stop>>,
    phases: [Cell<Phase>; MOST_THREADS as usize],
}

/// Whether a thread has the queue locked, by the word itself and not as a step of the running thread.
#[allow(unsafe_code)]
fn is_queue_locked<T: Tuned>(queue: &WaitQueue<Sim<T>>) -> bool {
    let [lock, _] = WaitQueue::<Sim<T>>::layout();
    let address = std::ptr::from_ref(queue).cast::<u8>().wrapping_add(lock);
    // SAFETY: `layout` says that the queue lock's word is there.
    let word = unsafe { &*address.cast::<<Sim<T> as spinpark_platform::Memory>::AtomicU32>() };
    word.load(Relaxed) & LOCKED != 0
}

impl Watch {
    /// For the threads of `program`, which go in the order of time: by rank, a thread that goes on for long
    /// keeps others from their next steps; and longer delays add up to waits of their own.
    fn new(program: &mut Program, fate: Fate) -> Self {
        program.case.chaos.order = Order::Time;
        program.case.chaos.delay_ns = program.case.chaos.delay_ns.min(3_000.0);
        Self {
            fate,
            threads: program.threads().min(MOST_THREADS),
            stop: Cell::new(None),
            phases: [const { Cell::new(Phase::Outside) }; MOST_THREADS as usize],
        }
    }

    fn phase(&self) -> &Cell<Phase> {
        &self.phases[here::thread().number() as usize]
    }

    /// The running thread's handler. `owns`: it has acquired the lock in a call that has not returned.
    /// `has_queue`: a thread has its queue locked.
    fn handle<T: Tuned>(&self, owns: impl FnOnce() -> bool, has_queue: impl FnOnce() -> bool) {
        if self.phase().get() == Phase::Outside || here::random(4) != 0 {
            return;
        }
        match self.fate {
            Fate::Stops if self.stop.get().is_none() => self.stop_here::<T>(owns, has_queue),
            Fate::Stops => {}
            // The lock tells whether a writer has it already, unless the call itself sees to that.
            Fate::Ends => {
                let is_outside = || self.phase().get() == Phase::Locking && here::may_exit() && !owns();
                if here::has_way_out() || is_outside() {
                    here::exit();
                }
            }
        }
    }

    fn stop_here<T: Tuned>(&self, owns: impl FnOnce() -> bool, has_queue: impl FnOnce() -> bool) {
        let thread = here::thread().number();
        let since = here::now();
        // Before the next step: no other thread is stopped.
        self.stop.set(Some(Stop { thread, since, holds: true, has_queue: true }));
        let holds = self.phase().get() == Phase::Holding || owns();
        let has_queue = has_queue();
        self.stop.set(Some(Stop { thread, since, holds, has_queue }));
        // On few CPUs, its acquisitions would be the others' waits.
        if here::random(2) == 0 || Sim::<T>::cpus() < self.threads {
            here::sleep(STOP);
        } else {
            here::compute(STOP);
        }
    }

    /// The running thread has waited since `began`, but for the time until `due` that it asked for.
    fn check(&self, began: f64, due: f64, excuses_queue: bool) {
        let me = here::thread().number();
        let is_excused = self.stop.get().is_some_and(|stop| {
            stop.thread == me || stop.holds || (stop.has_queue && (excuses_queue || began < stop.since))
        });
        let waited = here::now() - began.max(due);
        if waited > LONGEST as f64 && !is_excused {
            here::end_with(Failure::Starvation { thread: me, waited_ns: LONGEST, others: 0 });
        }
    }
}

/// A call that waits for the lock with `wait`, and gives it up with `leave`.
fn acquisition(
    watch: &Watch,
    guard: &Guard,
    hold: Hold,
    excuses_queue: bool,
    deadline: Option<Deadline>,
    wait: impl FnOnce(Option<Deadline>) -> bool,
    leave: impl FnOnce(),
) {
    let began = here::now();
    // The first thread stays: it sees what the others leave behind.
    let ends = watch.fate == Fate::Ends && here::thread().number() > 0;
    if ends {
        here::begin_call_to_leave();
    }
    watch.phase().set(if hold == Hold::Shared { Phase::Holding } else { Phase::Locking });
    let acquired = wait(deadline);
    watch.phase().set(if acquired { Phase::Holding } else { Phase::Outside });
    if ends {
        here::end_call_to_leave();
    }
    watch.check(began, deadline.map_or(0.0, |deadline| deadline.at as f64), excuses_queue);
    if acquired {
        guard.visit(hold);
        leave();
        watch.phase().set(Phase::Outside);
    }
}

fn deadline<T: Tuned>() -> Option<Deadline> {
    (here::random(4) == 0).then(|| soon_by::<T>(500, 8))
}

struct Mutexes<T: Tuned> {
    lock: Mortal<RawMutex<Sim<T>>>,
    guard: Guard,
    watch: Watch,
}

impl<T: Tuned> Mutexes<T> {
    fn acquisition(&self) {
        let wait = |deadline| match deadline {
            None => {
                self.lock.lock();
                true
            }
            Some(deadline) => self.lock.lock_until(deadline),
        };
        acquisition(&self.watch, &self.guard, Hold::Alone, false, deadline::<T>(), wait, || {
            self.lock.unlock();
        });
    }

    fn handler(&self) {
        let owns = || self.lock.owner() == Sim::<T>::thread_token();
        self.watch.handle::<T>(owns, || is_queue_locked(self.lock.queue()));
    }
}

struct ReadWrites<T: Tuned> {
    lock: Mortal<RawRwLock<Sim<T>>>,
    guard: Guard,
    watch: Watch,
    preference: Preference,
}

impl<T: Tuned> ReadWrites<T> {
    fn acquisition(&self) {
        let Self { lock, guard, watch, preference } = self;
        if here::random(3) == 0 {
            let wait = |deadline| lock.write_until_as(*preference, deadline);
            acquisition(watch, guard, Hold::Alone, true, deadline::<T>(), wait, || lock.unlock_write());
            return;
        }
        // The thread that is stopped with the queue locked may have let in a reader that it has not notified
        // yet. Others come in alongside that one; behind a waiter, a reader of a lock that prefers writers
        // does so no more than a writer.
        let excuses_queue = *preference == Preference::Writers;
        for _ in 0..1 + here::random(4) {
            let wait = |deadline| lock.read_until(*preference, deadline);
            let leave = || lock.unlock_read();
            acquisition(watch, guard, Hold::Shared, excuses_queue, deadline::<T>(), wait, leave);
        }
    }

    fn handler(&self) {
        let owns = || self.lock.owner() == Sim::<T>::thread_token();
        self.watch.handle::<T>(owns, || is_queue_locked(self.lock.queue()));
    }
}

/// A number that threads announce, and wait for.
struct Announcements<T: Tuned> {
    pair: Pair<T>,
    watch: Watch,
    /// When each was made, ns: its broadcast had returned.
    made: RefCell<Vec<Option<f64>>>,
    /// Threads that still wait for some.
    waiting: Cell<u32>,
    rounds: u32,
}

impl<T: Tuned> Announcements<T> {
    /// The first thread announces until no other one waits any more; the others wait, and announce too.
    fn acquisition(&self) {
        let is_first = here::thread().number() == 0;
        while is_first && self.waiting.get() > 0 {
            self.announce();
            here::sleep(here::random(20_000));
        }
        if !is_first {
            for _ in 0..self.rounds {
                if here::random(3) == 0 { self.announce() } else { self.wait() }
            }
            self.waiting.set(self.waiting.get() - 1);
        }
    }

    fn lock(&self) {
        self.watch.phase().set(Phase::Locking);
        self.pair.lock();
        self.watch.phase().set(Phase::Holding);
    }

    fn unlock(&self) {
        self.pair.unlock();
        self.watch.phase().set(Phase::Outside);
    }

    fn announce(&self) {
        self.lock();
        let number = self.made.borrow().len();
        self.made.borrow_mut().push(None);
        let under = here::random(2) == 0;
        if under {
            self.pair.condvar.broadcast();
            stay();
        }
        self.unlock();
        if !under {
            // Waiters that it has dequeued wait for it, as on glibc.
            self.watch.phase().set(Phase::Holding);
            self.pair.condvar.broadcast();
            self.watch.phase().set(Phase::Outside);
        }
        self.made.borrow_mut()[number] = Some(here::now());
    }

    fn wait(&self) {
        self.lock();
        let began = here::now();
        let seen = self.made.borrow().len();
        let deadline = deadline::<T>();
        while self.made.borrow().len() == seen {
            // It has the mutex again at an unknown time: `owns` tells.
            let result = self.pair.wait_and(deadline, || self.watch.phase().set(Phase::Locking));
            self.watch.phase().set(Phase::Holding);
            if result == WaitResult::TimedOut {
                break;
            }
        }
        let first = self.made.borrow()[seen..].iter().flatten().copied().reduce(f64::min);
        let due = deadline.map_or(f64::INFINITY, |deadline| deadline.at as f64);
        // With no announcement to wait for, none is late.
        self.watch.check(began, first.unwrap_or(f64::INFINITY).min(due), true);
        self.unlock();
    }

    fn handler(&self) {
        let owns = || self.pair.mutex.owner() == Sim::<T>::thread_token();
        let has_queue =
            || is_queue_locked(self.pair.mutex.queue()) || is_queue_locked(self.pair.condvar.queue());
        self.watch.handle::<T>(owns, has_queue);
    }
}

fn condvar_with<T: Tuned>(program: &mut Program) {
    program.about("our condition variable, and one thread that is stopped");
    program.most_steps(3_000_000); // the first thread goes on during the stop
    let pair = Pair::<T>::draw(program);
    let watch = Watch::new(program, Fate::Stops);
    let number = watch.threads;
    let rounds = program.rounds();
    let waiting = Cell::new(number - 1);
    let all = Announcements { pair, watch, made: RefCell::default(), waiting, rounds };
    threads(program, number, 1, all, Announcements::acquisition, Announcements::handler);
}

fn mutex_with<T: Tuned>(program: &mut Program, fate: Fate) {
    program.about("our mutex, and threads that are stopped or end");
    let lock = Mortal::new(RawMutex::new());
    program.name_fields("lock", &lock, decode::MUTEX);
    let watch = Watch::new(program, fate);
    let number = watch.threads;
    let lock = Mutexes::<T> { lock, guard: Guard::new(), watch };
    threads(program, number, program.rounds(), lock, Mutexes::acquisition, Mutexes::handler);
}

fn rwlock_with<T: Tuned>(program: &mut Program, fate: Fate, preference: Preference) {
    program
        .about(format!("our read-write lock, {preference:?} preferred, and threads that are stopped or end"));
    let lock = Mortal::new(RawRwLock::new());
    program.name_fields("lock", &lock, decode::RWLOCK);
    let watch = Watch::new(program, fate);
    let number = watch.threads;
    let lock = ReadWrites::<T> { lock, guard: Guard::new(), watch, preference };
    threads(program, number, program.rounds(), lock, ReadWrites::acquisition, ReadWrites::handler);
}

/// Our mutex, and one thread that is stopped.
pub(super) fn mutex(program: &mut Program) {
    tuned!(program.case.constants, T => mutex_with::<Looks<T>>(program, Fate::Stops));
}

/// Our read-write lock, and one thread that is stopped.
pub(super) fn rwlock(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<Looks<T>>(program, Fate::Stops, Preference::Readers));
}

/// The same, of a lock that prefers writers.
pub(super) fn rwlock_first(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<Looks<T>>(program, Fate::Stops, Preference::Writers));
}

/// Our condition variable, and one thread that is stopped.
pub(super) fn condvar(program: &mut Program) {
    tuned!(program.case.constants, T => condvar_with::<Looks<T>>(program));
}

/// Our mutex, and threads that end in a call.
pub(super) fn mutex_left(program: &mut Program) {
    tuned!(program.case.constants, T => mutex_with::<Looks<T>>(program, Fate::Ends));
}

/// Our read-write lock, and threads that end in a call.
pub(super) fn rwlock_left(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<Looks<T>>(program, Fate::Ends, Preference::Readers));
}

/// Mutants: the waiters of [`mutex`] and of [`rwlock`] do not look at the lock by themselves.
pub fn mutex_without_probes(program: &mut Program) {
    tuned!(program.case.constants, T => mutex_with::<T>(program, Fate::Stops));
}

/// See [`mutex_without_probes`].
pub fn rwlock_without_probes(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<T>(program, Fate::Stops, Preference::Readers));
}
