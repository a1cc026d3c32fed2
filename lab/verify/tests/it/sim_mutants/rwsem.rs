//! The semaphore of 2013.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_classics::RawRwLock as _;
use spinpark_classics::rwsem_2013::{AsSent, Full, Patches, Rwsem, Series, Vanilla};
use spinpark_sim::check::Fault;
use spinpark_sim::{Sim, here};
use spinpark_verify::sim_programs::{Checker, Family, Guard, Hold, Limits, Mortal, Program};
use spinpark_verify::{breaks, breaks_rule};

use super::harness::{accepted, hangs, rejected, uses_what_is_gone};

/// Patch 9 as sent: a release that sees `wakeup` set leaves the waking to another.
#[test]
fn patch_9_as_sent_loses_wake_ups() {
    type Patch9 = Patches<false, false, false, false, false, true>;
    accepted(Family { name: "patch_9", build: writers_and_thieves::<Patch9> });
    accepted(Family { name: "patches_8_and_9", build: writers_and_thieves::<Full> });
    let family =
        Family { name: "patch_9_as_sent", build: writers_and_thieves::<AsSent<Patch9, false, true>> };
    rejected(breaks("rwsem_2013.S4"), Checker::new(family).limits(FEW), hangs);
    let family = Family { name: "with_patch_8", build: writers_and_thieves::<AsSent<Full, false, true>> };
    rejected(breaks("rwsem_2013.S4"), Checker::new(family).limits(FEW), hangs);
}

/// rwsem_2013.S4: a woken writer says that it sleeps again, and looks at the count; without its fence it
/// looks before a waker can see that it sleeps. (With patch 9 it looks under the list's lock, which is a
/// fence on x86.)
#[test]
fn a_writer_sleeps_without_its_fence() {
    let family = Family { name: "a_writer_sleeps_without_its_fence", build: writers_and_thieves::<Vanilla> };
    accepted(family);
    rejected(breaks("rwsem_2013.S4"), Checker::new(family).fault(Fault::NoFullFence), hangs);
}

/// A lost wake-up is made good by the next release: so there are not many.
const FEW: Limits = Limits { threads: 4, rounds: 2 };

/// Writers in line, and some that take a lock that is free past the line.
fn writers_and_thieves<S: Series>(program: &mut Program) {
    let lock = Mortal::new(<Rwsem<Sim, S> as spinpark_classics::RawRwLock>::new());
    program.name("rwsem", &lock);
    let guard = Rc::new(Guard::new());
    for number in 0..program.threads() {
        let (lock, guard, rounds) = (lock.clone(), Rc::clone(&guard), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                if number % 3 == 2 {
                    let steals = |_: &u32| {
                        here::compute(here::random(500));
                        lock.steal()
                    };
                    if (0..20).find(steals).is_none() {
                        continue;
                    }
                } else {
                    lock.write();
                }
                guard.enter(Hold::Alone);
                here::compute(here::random(40));
                guard.leave(Hold::Alone);
                lock.unlock_write();
            }
        });
    }
}

/// A writer that takes and releases it; then the last one gives the memory back, if `late` is whether the
/// owner is cleared after the release.
fn freed_by_the_last_writer<S: Series>(program: &mut Program) {
    let lock = Mortal::new(<Rwsem<Sim, S> as spinpark_classics::RawRwLock>::new());
    program.name("rwsem", &lock);
    let users = Rc::new(Cell::new(0));
    for _ in 0..2 {
        let (lock, users) = (lock.clone(), Rc::clone(&users));
        program.thread(move || {
            // Without a wait there is no list to be unlocked late.
            while !lock.try_write() {
                here::sleep(100);
            }
            users.set(users.get() + 1);
            let is_last = users.get() == 2;
            lock.unlock_write();
            if is_last {
                lock.destroy();
            }
        });
    }
}

/// Patch 8 as sent writes to a semaphore that is gone.
#[test]
fn patch_8_as_sent_writes_to_what_is_gone() {
    let family = Family { name: "patch_8", build: freed_by_the_last_writer::<Full> };
    accepted(family);
    let family =
        Family { name: "patch_8_as_sent", build: freed_by_the_last_writer::<AsSent<Full, true, false>> };
    rejected(
        breaks_rule("of document 002: the release is the last access"),
        Checker::new(family),
        uses_what_is_gone,
    );
}
