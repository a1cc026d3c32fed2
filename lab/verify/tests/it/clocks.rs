//! Models of a clock that is set back: a waiter that keeps its own time looks after that time, whatever
//! becomes of the clock that its deadline is on.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use loom::sync::atomic::AtomicBool;
use loom::thread::yield_now;
use spinpark_locks::RawMutex;
use spinpark_platform::{Clock, Deadline, Event::Parked};
use spinpark_verify::platform::{EPOCH_NS, Fault, Loom, advance, set_back};
use spinpark_verify::{Model, Shared, breaks, rejected};

/// Longer than an execution.
const HANGS: &str = "exceeded maximum number of branches";

/// A release leaves the waiter asleep (`TIMED`). Its deadline has not come, and does not come; the wall clock
/// is set back at any point of its way, by far more than it has left until its look.
fn set_back_under_a_waiter(model: Model) {
    model
        .moving_clock()
        .backing_off()
        .check(|| {
            let shared = Shared::new(RawMutex::<Loom>::new());
            let done = Arc::new(AtomicBool::new(false));
            shared.lock.lock();
            let waiter = {
                let done = Arc::clone(&done);
                shared.spawn(move |shared| {
                    let deadline = Deadline { clock: Clock::Realtime, at: EPOCH_NS + 500 };
                    assert!(shared.lock.lock_until(deadline), "it is not over");
                    shared.data.add();
                    shared.lock.unlock_to_wait();
                    done.store(true, Release);
                })
            };
            shared.data.add();
            set_back(800);
            shared.lock.unlock();
            while !done.load(Acquire) {
                advance(1);
                yield_now();
            }
            waiter.join().unwrap();
            assert_eq!(shared.finish(), 2);
        })
        .reaches(&[Parked]);
}

#[test]
fn a_waiter_looks_although_its_clock_is_set_back() {
    set_back_under_a_waiter(Model::new().preemptions(2));
}

/// The waiter's own sleep is on the clock of its deadline.
#[test]
fn a_look_on_the_wall_clock() {
    rejected!("a_look_on_the_wall_clock", breaks("core.L1"), HANGS, || {
        set_back_under_a_waiter(Model::new().fault(Fault::SpansByWall).preemptions(1));
    });
}
