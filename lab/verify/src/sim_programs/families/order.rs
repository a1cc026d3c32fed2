//! The order in which waits on a condition variable end.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use spinpark_sim::here;

use crate::sim_programs::Program;
use crate::sim_programs::guard::stay;

/// A mutex with a condition variable.
pub trait Monitor: Clone + 'static {
    /// Waiters of a higher real-time priority come first.
    const BY_PRIORITY: bool = false;

    /// Comes in.
    fn lock(&self);

    /// Goes out.
    fn unlock(&self);

    /// Goes out, and comes in again once its wait was ended.
    fn wait(&self);

    /// Ends the longest wait. Returns whether there was one.
    fn signal(&self) -> bool;

    /// Ends all waits. Returns how many there were.
    fn broadcast(&self) -> u32;
}

/// All threads but one wait again and again; that one signals and broadcasts, with the mutex. Then the waits
/// that end are those that have lasted longest, of the highest priority.
pub fn order_of<M: Monitor>(program: &mut Program, monitor: M) {
    let line = Rc::new(RefCell::new(VecDeque::<(u32, u8)>::new()));
    let told = Rc::new(RefCell::new(Vec::new()));
    let ended = Rc::new(Cell::new(0));
    let (waiters, rounds) = (program.threads() - 1, program.rounds());
    for _ in 0..waiters {
        let (monitor, line, told, ended) =
            (monitor.clone(), Rc::clone(&line), Rc::clone(&told), Rc::clone(&ended));
        program.thread(move || {
            let me = here::thread().number();
            for _ in 0..rounds {
                let priority = if M::BY_PRIORITY { here::random_priority() } else { 0 };
                here::set_priority(priority);
                monitor.lock();
                let behind = line.borrow().iter().position(|other| other.1 < priority);
                let place = behind.unwrap_or(line.borrow().len());
                line.borrow_mut().insert(place, (me, priority));
                monitor.wait();
                let mine = told.borrow().iter().position(|&thread| thread == me);
                match mine {
                    Some(mine) => drop(told.borrow_mut().swap_remove(mine)),
                    None => here::fail(format!(
                        "order: the wait of thread {me} ended, and others have waited longer"
                    )),
                }
                monitor.unlock();
            }
            ended.set(ended.get() + 1);
        });
    }
    program.thread(move || {
        while ended.get() < waiters {
            monitor.lock();
            let all = here::random(4) == 0;
            let count = if all { line.borrow().len() } else { line.borrow().len().min(1) };
            told.borrow_mut().extend(line.borrow_mut().drain(..count).map(|(thread, _)| thread));
            let signalled = if all { monitor.broadcast() as usize } else { usize::from(monitor.signal()) };
            if signalled != count {
                here::fail(format!("{signalled} waits were ended, not {count}"));
            }
            stay();
            monitor.unlock();
            here::sleep(here::random(5_000));
        }
    });
}
