//! Programs of mutexes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use spinpark_platform::Event;
use spinpark_sim::here;
use spinpark_sim::here::has_priorities;

use super::subject::{ALL, Drawn, FREED, How, draw, of_a_policy, ours};
use crate::sim_programs::guard::{stay, wander};
use crate::sim_programs::{Guard, Hold, Program};

/// The threads that requested the lock, and how often others had come in before. Calls that do not wait, or
/// no longer, do not heed a promise (H4 in the lock's core): they do not count.
#[derive(Default)]
struct Requests {
    made: RefCell<Vec<(u32, u64)>>,
    past_promises: Cell<u64>,
}

impl Requests {
    fn forget(&self, thread: u32) {
        self.made.borrow_mut().retain(|(who, _)| *who != thread);
    }

    fn acquisitions(&self, guard: &Guard) -> u64 {
        guard.acquisitions() - self.past_promises.get()
    }

    /// The running thread comes in. Since its request, no other did, but perhaps one that had the lock
    /// already.
    fn check(&self, how: How, guard: &Guard) {
        let now = self.acquisitions(guard);
        if matches!(how, How::Try | How::Until(_)) {
            self.past_promises.set(self.past_promises.get() + 1); // it counts as an acquisition in a moment
        }
        let me = here::thread().number();
        let mine = self.made.borrow().iter().find(|(who, _)| *who == me).copied();
        self.forget(me);
        if let Some((_, before)) = mine
            && now > before + 1
            && !has_priorities()
        {
            let passed = now - before;
            here::fail(format!(
                "starvation: thread {me} requested the lock, and was passed {passed} times then"
            ));
        }
    }
}

/// Each thread comes in again and again, in any way.
pub(super) fn any(program: &mut Program) {
    let drawn = draw(program, ALL);
    again_and_again(program, drawn);
}

/// The same, of our mutex with any policy.
pub(super) fn policies(program: &mut Program) {
    let drawn = of_a_policy(program);
    again_and_again(program, drawn);
}

fn again_and_again(program: &mut Program, drawn: Drawn) {
    let (guard, requests) = (Rc::new(Guard::new()), Rc::new(Requests::default()));
    if drawn.is_ours {
        let (guard, requests) = (Rc::clone(&guard), Rc::clone(&requests));
        program.on_event(move |thread, event| {
            if event == Event::RequestedHandoff {
                requests.forget(thread);
                requests.made.borrow_mut().push((thread, requests.acquisitions(&guard)));
            }
        });
    }
    for _ in 0..program.threads() {
        let (lock, guard, requests) = (Rc::clone(&drawn.lock), Rc::clone(&guard), Rc::clone(&requests));
        let rounds = program.rounds();
        program.thread(move || {
            for _ in 0..rounds {
                requests.forget(here::thread().number());
                let how = How::random();
                lock.section(how, &mut || {
                    requests.check(how, &guard);
                    guard.visit(Hold::Alone);
                });
                wander();
            }
        });
    }
    let lock = drawn.lock;
    program.after(move || match lock.is_clean() {
        true => Ok(()),
        false => Err(format!("{}: it is not free, or a flag was left behind", drawn.name)),
    });
}

/// Our mutex, as contended as it can be: releases and waiters meet all the time.
pub(super) fn tight(program: &mut Program) {
    let drawn = ours(program);
    tightly(program, &drawn);
}

/// The same, with any policy.
pub(super) fn tight_policies(program: &mut Program) {
    let drawn = of_a_policy(program);
    tightly(program, &drawn);
}

fn tightly(program: &mut Program, drawn: &Drawn) {
    let guard = Rc::new(Guard::new());
    for _ in 0..program.threads() {
        let (lock, guard) = (Rc::clone(&drawn.lock), Rc::clone(&guard));
        let rounds = program.rounds();
        program.thread(move || {
            for _ in 0..rounds {
                lock.section(How::Lock, &mut || {
                    guard.enter(Hold::Alone);
                    here::compute(here::random(40));
                    guard.leave(Hold::Alone);
                });
            }
        });
    }
    let lock = Rc::clone(&drawn.lock);
    program.after(move || if lock.is_clean() { Ok(()) } else { Err("a flag was left behind".to_owned()) });
}

/// Each thread comes in once, at last; the last one gives the lock's memory back.
pub(super) fn freed(program: &mut Program) {
    let drawn = draw(program, FREED);
    let (guard, users) = (Rc::new(Guard::new()), Rc::new(Cell::new(0)));
    let threads = program.threads();
    for _ in 0..threads {
        let (drawn, guard, users) = (drawn.clone(), Rc::clone(&guard), Rc::clone(&users));
        let rounds = program.rounds().min(3);
        program.thread(move || {
            for _ in 1..rounds {
                drawn.lock.section(How::random(), &mut || guard.visit(Hold::Alone));
                wander();
            }
            let mut is_last = false;
            let how = if here::random(4) == 0 { How::Fair } else { How::Lock };
            drawn.lock.section(how, &mut || {
                guard.visit(Hold::Alone);
                users.set(users.get() + 1);
                is_last = users.get() == threads;
                stay();
            });
            if is_last {
                (drawn.destroy)();
            }
        });
    }
}
