//! A writer that queues beside a stream of readers, on a machine that is fair: the queue is not kept locked
//! by readers that leave.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_locks::{Preference, RawRwLock};
use spinpark_platform::{Clock, Clocks, Deadline, Event, Tuning};
use spinpark_sim::machine::Machine;
use spinpark_sim::{Failure, LinuxTuning, Sim, Tuned, here};

use super::patience::fair;
use crate::sim_programs::decode;
use crate::sim_programs::{Guard, Hold, Mortal, Program};

const READERS: u32 = 16;
/// The longest section, ns.
const LONGEST: u64 = 400;
/// From its call, a writer that does not spin is in the queue, or through, after this many ns: the cache line
/// of the word goes to each reader a few times.
const BOUND: f64 = 20_000.0;
const WRITES: u32 = 60;

/// As on Linux, but a thread queues at once, and readers are counted.
#[derive(Debug)]
enum Queues {}

impl Tuned for Queues {
    const TUNING: Tuning = Tuning {
        spin_ns: 0,
        primary_spin_ns: 0,
        secondary_spin_ns: 0,
        queue_spin_ns: 0,
        ..LinuxTuning::TUNING
    };
    const READS_PER_CPU: u32 = 1 << 20;
}

/// The readers leave one after the other, but never all: a release that leaves others inside could do no more
/// than look.
pub(super) fn rwlock(program: &mut Program) {
    fair(program);
    program.case.machine = Machine::plain(READERS + 1);
    let lock = Mortal::new(RawRwLock::<Sim<Queues>>::new());
    program.name_fields("lock", &lock, decode::RWLOCK);
    program.about(format!("our read-write lock: a writer queues beside {READERS} readers"));
    let guard = Rc::new(Guard::new());
    let is_over = Rc::new(Cell::new(false));
    // When the writer's call began; nothing, if it has queued since.
    let called = Rc::new(Cell::new(None::<f64>));
    let told = Rc::clone(&called);
    let queued = move || {
        if let Some(since) = told.take() {
            let waited_ns = here::now() - since;
            if waited_ns > BOUND {
                let (thread, waited_ns) = (here::thread().number(), waited_ns as u64);
                here::end_with(Failure::Starvation { thread, waited_ns, others: 0 });
            }
        }
    };
    let parked = queued.clone();
    program.on_event(move |thread, event| {
        if thread == READERS && event == Event::Parked {
            parked();
        }
    });
    for _ in 0..READERS {
        let (lock, guard, is_over) = (lock.clone(), Rc::clone(&guard), Rc::clone(&is_over));
        program.thread(move || {
            while !is_over.get() {
                lock.read(Preference::Readers);
                guard.enter(Hold::Shared);
                here::compute(here::random(LONGEST));
                guard.leave(Hold::Shared);
                lock.unlock_read();
            }
        });
    }
    program.thread(move || {
        for _ in 0..WRITES {
            here::compute(here::random(10_000));
            called.set(Some(here::now()));
            let deadline = Sim::<Queues>::now(Clock::Monotonic) + 30_000;
            let acquired = lock.write_until(Some(Deadline { clock: Clock::Monotonic, at: deadline }));
            queued();
            if acquired {
                guard.visit(Hold::Alone);
                lock.unlock_write();
            }
        }
        is_over.set(true);
    });
}
