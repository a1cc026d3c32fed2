//! One thread is stopped, at any point of its lock calls, for longer than everything else takes: by a signal handler that sleeps, or that
//! keeps its CPU. The others get on, unless they are behind what the stopped thread holds (`core.L3`).
//!
//! What excuses a long wait is what docs/drop-in.md says (Limits): the stopped thread has the lock, or is in the middle of its
//! unlock; or it has the queue locked, and the waiter is in that already, or is a writer, which perhaps waits for the bias to be revoked.

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

use spinpark_locks::{Preference, RawMutex, RawRwLock, WaitQueue};
use spinpark_platform::{AtomicU32, Deadline, Ordering::Relaxed, SpinPolicy, Threads, Tuning};
use spinpark_sim::{Failure, Order, Sim, Tuned, here};

use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::guard::{soon_by, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// How long the thread is stopped, ns.
const STOP: u64 = 40_000_000;
/// How long others wait at most, ns: far beyond the looks of all of them.
const LONGEST: u64 = 15_000_000;
/// The bit of a queue lock that says that it is locked.
const LOCKED: u32 = 1;

/// The constants of `T`, with looks.
#[derive(Debug)]
pub(crate) struct Looks<T>(PhantomData<T>);

impl<T: Tuned> Tuned for Looks<T> {
    // A checked run makes polls rarer while nothing changes: a hundred of them would take longer than the stop.
    const TUNING: Tuning =
        Tuning { watch_ns: 20_000, longest_watch_ns: 640_000, queue_polls: 2, ..T::TUNING };
    const READS_PER_CPU: u32 = T::READS_PER_CPU;
    const GUESSES: bool = T::GUESSES;
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Outside,
    Locking,
    /// It may have the lock, or is giving it up: also in a call of a reader, which alone knows whether it is counted, or in a slot.
    Holding,
}

/// The one stop of a run.
#[derive(Clone, Copy, Debug)]
struct Stop {
    since: f64,
    /// The lock, or a part of it, may be the stopped thread's.
    holds: bool,
    has_queue: bool,
}

/// What all threads share besides the lock.
#[derive(Default)]
struct Watch {
    stop: Cell<Option<Stop>>,
    threads: Cell<u32>,
}

thread_local! {
    // Of the simulated thread that runs: set and read without a step between. Simulated threads have numbers, not storage of their own.
    static PHASES: Cell<[Phase; 64]> = const { Cell::new([Phase::Outside; 64]) };
    static STOPPED: Cell<Option<u32>> = const { Cell::new(None) };
}

fn set_phase(phase: Phase) {
    let mut phases = PHASES.get();
    phases[here::thread().number() as usize % 64] = phase;
    PHASES.set(phases);
}

fn phase() -> Phase {
    PHASES.get()[here::thread().number() as usize % 64]
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
    /// The running thread's handler: stops it, once in a run. `owns`: it has acquired the lock in a call that has not returned.
    fn stop_here<T: Tuned>(&self, queue: &WaitQueue<Sim<T>>, owns: impl FnOnce() -> bool) {
        if STOPPED.get().is_some() || phase() == Phase::Outside || here::random(4) != 0 {
            return;
        }
        STOPPED.set(Some(here::thread().number())); // before the next step: no other thread is stopped
        let holds = phase() == Phase::Holding || owns();
        let has_queue = is_queue_locked(queue);
        self.stop.set(Some(Stop { since: here::now(), holds, has_queue }));
        // On few CPUs, its turns would be the others' waits.
        if here::random(2) == 0 || Sim::<T>::cpus() < self.threads.get() {
            here::sleep(STOP);
        } else {
            here::compute(STOP);
        }
    }

    /// The running thread has waited since `began`, but for the time until `due` that it asked for.
    fn check(&self, began: f64, due: f64, excuses_queue: bool) {
        let waited = here::now() - began.max(due);
        let Some(stop) = self.stop.get() else { return };
        let me = here::thread().number();
        let is_excused = STOPPED.get() == Some(me)
            || stop.holds
            || (stop.has_queue && (excuses_queue || began < stop.since));
        if waited > LONGEST as f64 && !is_excused {
            here::end_with(Failure::Starvation { thread: me, waited_ns: LONGEST, others: 0 });
        }
    }
}

/// A call that waits for the lock with `wait`, and gives it up with `leave`.
fn turn(
    watch: &Watch,
    guard: &Guard,
    hold: Hold,
    excuses_queue: bool,
    deadline: Option<Deadline>,
    wait: impl FnOnce(Option<Deadline>) -> bool,
    leave: impl FnOnce(),
) {
    let began = here::now();
    set_phase(if hold == Hold::Shared { Phase::Holding } else { Phase::Locking });
    let acquired = wait(deadline);
    set_phase(if acquired { Phase::Holding } else { Phase::Outside });
    watch.check(began, deadline.map_or(0.0, |deadline| deadline.at as f64), excuses_queue);
    if acquired {
        guard.visit(hold);
        leave();
        set_phase(Phase::Outside);
    }
}

fn deadline<T: Tuned>() -> Option<Deadline> {
    (here::random(4) == 0).then(|| soon_by::<T>(500, 8))
}

fn threads<L: 'static>(program: &mut Program, lock: L, turn: fn(&L), handler: fn(&L)) {
    // By rank, a thread that goes on for long keeps others from their next steps; and longer delays add up to waits of their own.
    program.case.chaos.order = Order::Time;
    program.case.chaos.delay_ns = program.case.chaos.delay_ns.min(3_000.0);
    let lock = Rc::new(lock);
    let rounds = program.rounds();
    PHASES.set([Phase::Outside; 64]);
    STOPPED.set(None);
    for _ in 0..program.threads().min(8) {
        let lock = Rc::clone(&lock);
        program.thread(move || {
            let theirs = Rc::clone(&lock);
            here::on_signals(move || handler(&theirs));
            for _ in 0..rounds {
                turn(&lock);
                wander();
            }
        });
    }
}

struct Mutexes<T: Tuned> {
    lock: Mortal<RawMutex<Sim<T>>>,
    guard: Guard,
    watch: Watch,
}

impl<T: Tuned> Mutexes<T> {
    fn turn(&self) {
        let wait = |deadline| match deadline {
            None => {
                self.lock.lock();
                true
            }
            Some(deadline) => self.lock.lock_until(deadline),
        };
        turn(&self.watch, &self.guard, Hold::Alone, false, deadline::<T>(), wait, || self.lock.unlock());
    }

    fn handler(&self) {
        let owns = || self.lock.owner() == Sim::<T>::thread_token();
        self.watch.stop_here(self.lock.queue(), owns);
    }
}

struct ReadWrites<T: Tuned> {
    lock: Mortal<RawRwLock<Sim<T>>>,
    guard: Guard,
    watch: Watch,
}

impl<T: Tuned> ReadWrites<T> {
    fn turn(&self) {
        let Self { lock, guard, watch } = self;
        if here::random(3) == 0 {
            let wait = |deadline| lock.write_until(deadline);
            turn(watch, guard, Hold::Alone, true, deadline::<T>(), wait, || lock.unlock_write());
            return;
        }
        for _ in 0..1 + here::random(4) {
            let wait = |deadline| lock.read_until(Preference::Readers, deadline);
            turn(watch, guard, Hold::Shared, false, deadline::<T>(), wait, || lock.unlock_read());
        }
    }

    fn handler(&self) {
        let owns = || self.lock.owner() == Sim::<T>::thread_token();
        self.watch.stop_here(self.lock.queue(), owns);
    }
}

fn mutex_with<T: Tuned>(program: &mut Program) {
    program.about("our mutex, and one thread that is stopped");
    let lock = Mortal::new(RawMutex::new());
    program.name_fields("lock", &lock, decode::MUTEX);
    let watch = Watch { threads: Cell::new(program.threads()), ..Watch::default() };
    let lock = Mutexes::<T> { lock, guard: Guard::new(), watch };
    threads(program, lock, Mutexes::turn, Mutexes::handler);
}

fn rwlock_with<T: Tuned>(program: &mut Program) {
    program.about("our read-write lock, and one thread that is stopped");
    let lock = Mortal::new(RawRwLock::new());
    program.name_fields("lock", &lock, decode::RWLOCK);
    let watch = Watch { threads: Cell::new(program.threads()), ..Watch::default() };
    let lock = ReadWrites::<T> { lock, guard: Guard::new(), watch };
    threads(program, lock, ReadWrites::turn, ReadWrites::handler);
}

/// Our mutex.
pub(super) fn mutex(program: &mut Program) {
    tuned!(program.case.constants, T => mutex_with::<Looks<T>>(program));
}

/// Our read-write lock.
pub(super) fn rwlock(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<Looks<T>>(program));
}

/// Mutants: the waiters of [`mutex`] and of [`rwlock`] do not look at the lock by themselves.
pub fn mutex_without_looks(program: &mut Program) {
    tuned!(program.case.constants, T => mutex_with::<T>(program));
}

/// See [`mutex_without_looks`].
pub fn rwlock_without_looks(program: &mut Program) {
    tuned!(program.case.constants, T => rwlock_with::<T>(program));
}
