//! Programs on a machine that is fair: nothing goes wrong on it, and each thread has a CPU. There a lock has
//! to let every thread in after a time, however often those come back that had it just now.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{Preference, RawMutex, RawRwLock};
use spinpark_platform::Tuning;
use spinpark_sim::machine::Machine;
use spinpark_sim::{Chaos, Failure, Sim, Tuned, here};

use crate::sim_programs::case::tuned;
use crate::sim_programs::decode;
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// The longest section, ns.
const LONGEST: u64 = 3_000;

/// The longest time between two sections of a thread, ns: so short that a woken thread does not find the
/// lock free by luck.
const OUTSIDE: u64 = 40;

/// How long a thread waits at most. A writer waits awake first, in the queue of spinners and as its head. All
/// waiters grow impatient side by side, `starvation_ns` after they queued. Then one after the other is
/// woken, requests the lock, is woken again, and has its section.
fn bound(tuning: &Tuning, threads: u32) -> u64 {
    /// Two wakes, and the system calls.
    const WAKES: u64 = 50_000;
    let acquisition = tuning.spin_ns + WAKES + LONGEST;
    2 * tuning.queue_spin_ns + tuning.starvation_ns + u64::from(threads + 1) * acquisition
}

/// Makes the program's machine a fair one with a CPU for each of a few threads; returns their number.
pub(super) fn fair(program: &mut Program) -> u32 {
    let threads = program.threads().min(8);
    program.case.machine = Machine::plain(threads);
    program.case.chaos = Chaos::default();
    program.case.realtime = false;
    program.most_steps(50_000_000);
    threads
}

/// What every thread does: it comes in again and again, until the run has lasted for several times the
/// longest wait.
struct Crowd {
    guard: Guard,
    longest: u64,
}

impl Crowd {
    fn new(tuning: &Tuning, threads: u32) -> Self {
        Self { guard: Guard::new(), longest: bound(tuning, threads) }
    }

    fn is_over(&self) -> bool {
        here::now() >= 4.0 * self.longest as f64
    }

    /// Comes in by `acquire`, works, and leaves by `release`.
    fn section(&self, hold: Hold, acquire: impl FnOnce(), release: impl FnOnce()) {
        let (before, since) = (self.guard.acquisitions(), here::now());
        acquire();
        let (waited_ns, others) = ((here::now() - since) as u64, self.guard.acquisitions() - before);
        if waited_ns > self.longest {
            let thread = here::thread().number();
            here::end_with(Failure::Starvation { thread, waited_ns, others });
        }
        self.guard.enter(hold);
        here::compute(here::random(LONGEST));
        self.guard.leave(hold);
        release();
        here::compute(here::random(OUTSIDE));
    }
}

/// Our mutex.
pub(super) fn mutex(program: &mut Program) {
    tuned!(program.case.constants, T => patience_of::<T>(program));
}

/// Our mutex with constants `T`.
fn patience_of<T: Tuned>(program: &mut Program) {
    let lock = Mortal::new(RawMutex::<Sim<T>>::new());
    program.name_fields("lock", &lock, decode::MUTEX);
    program.about("our mutex: the longest wait");
    let (into, out_of) = (lock.clone(), lock);
    patience_with(program, &T::TUNING, move |_| into.lock(), move || out_of.unlock());
}

/// Some lock of which is asked what ours promises with the constants `promised`: `acquire` gets the thread's
/// number.
pub fn patience_with(
    program: &mut Program,
    promised: &Tuning,
    acquire: impl Fn(u32) + Clone + 'static,
    release: impl Fn() + Clone + 'static,
) {
    let threads = fair(program);
    let crowd = Rc::new(Crowd::new(promised, threads));
    for number in 0..threads {
        let (crowd, acquire, release) = (Rc::clone(&crowd), acquire.clone(), release.clone());
        program.thread(move || {
            while !crowd.is_over() {
                crowd.section(Hold::Alone, || acquire(number), &release);
            }
        });
    }
}

/// Our read-write lock: neither readers nor writers starve.
pub(super) fn rwlock(program: &mut Program) {
    fn put_together<T: Tuned>(program: &mut Program) {
        let threads = fair(program);
        let lock = Mortal::new(RawRwLock::<Sim<T>>::new());
        program.name_fields("lock", &lock, decode::RWLOCK);
        let preference = [Preference::Readers, Preference::Writers][program.random(2)];
        let writers = 1 + program.random(threads as usize) as u32;
        program.about(format!(
            "our read-write lock, {preference:?} preferred: the longest wait of {writers} writers and the others"
        ));
        let crowd = Rc::new(Crowd::new(&T::TUNING, threads));
        let inside = Rc::new(Cell::new(0_u32));
        for number in 0..threads {
            let (lock, crowd) = (lock.clone(), Rc::clone(&crowd));
            let inside = Rc::clone(&inside);
            program.thread(move || {
                while !crowd.is_over() {
                    if number < writers {
                        crowd.section(Hold::Alone, || lock.write(), || lock.unlock_write());
                    } else {
                        let enter = || {
                            lock.read(preference);
                            inside.set(inside.get() + 1);
                        };
                        // While it can, a reader stays until the next one is there: they are never all out.
                        let leave = || {
                            let end = here::now() + LONGEST as f64;
                            while inside.get() < 2 && here::now() < end {
                                here::compute(100);
                            }
                            inside.set(inside.get() - 1);
                            lock.unlock_read();
                        };
                        crowd.section(Hold::Shared, enter, leave);
                    }
                }
            });
        }
    }
    tuned!(program.case.constants, T => put_together::<T>(program));
}
