//! Programs of locks that serve first come, first served.

use std::rc::Rc;

use spinpark_classics::osq::Osq;
use spinpark_locks::{Entered, SpinQueue};
use spinpark_sim::{Sim, here};

use super::subject::{How, IN_ORDER, draw};
use crate::SpinLines;
use crate::sim_programs::decode;
use crate::sim_programs::guard::wander;
use crate::sim_programs::{Guard, Hold, Line, Mortal, Program};

/// MCS locks: every thread that has arrived is served, in order.
pub(super) fn any(program: &mut Program) {
    let drawn = draw(program, IN_ORDER);
    program.watch_named("lock");
    let (guard, line) = (Rc::new(Guard::new()), Rc::new(Line::of_all()));
    for _ in 0..program.threads() {
        let (lock, guard, line, rounds) =
            (Rc::clone(&drawn.lock), Rc::clone(&guard), Rc::clone(&line), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                lock.section(How::Lock, &mut || {
                    line.serve();
                    guard.visit(Hold::Alone);
                });
                wander();
            }
        });
    }
}

/// The queue of spinners: one head at a time, in order of arrival; a thread that leaves is left out.
pub(super) fn spinners(program: &mut Program) {
    let queue = Mortal::new(Osq::<Sim, 4>::new());
    program.name_fields("osq", &queue, decode::OPAQUE);
    program.watch_order(&queue);
    program.about("queue of spinners");
    let (guard, line) = (Rc::new(Guard::new()), Rc::new(Line::of_those_who_stay()));
    for _ in 0..program.threads() {
        let (queue, guard, line, rounds) =
            (queue.clone(), Rc::clone(&guard), Rc::clone(&line), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                let mut polls = [0, 1, 3, 20, u64::MAX][here::random(5) as usize];
                let spot = queue.enter(|| {
                    polls = polls.saturating_sub(1);
                    polls > 0
                });
                if let Some(spot) = spot {
                    line.serve();
                    guard.visit(Hold::Alone);
                    drop(spot);
                }
                wander();
            }
        });
    }
    program.after(move || if queue.is_empty() { Ok(()) } else { Err("the queue is not empty".to_owned()) });
}

/// The queue of spinners behind a lock: the same, of slots that outlive the spinners; there may be too few.
pub(super) fn spin_queue(program: &mut Program) {
    const LOCK: u32 = 1;
    let lines = Mortal::new(SpinLines::<Sim, 5>::new());
    program.name_fields("spin queue", &lines, decode::OPAQUE);
    program.watch_order(&lines);
    program.about("queue of spinners, in slots");
    let (guard, line) = (Rc::new(Guard::new()), Rc::new(Line::of_those_who_stay()));
    for token in 0..program.threads() {
        let (lines, guard, line, rounds) =
            (lines.clone(), Rc::clone(&guard), Rc::clone(&line), program.rounds());
        program.thread(move || {
            let queue = SpinQueue::<Sim>::new(lines.of(LOCK));
            for _ in 0..rounds {
                let mut polls = [0, 1, 3, 20, u64::MAX][here::random(5) as usize];
                if here::random(3) == 0 {
                    queue.has(1 + here::random(3) as u32);
                }
                let entered = queue.enter(token, |_| {
                    polls = polls.saturating_sub(1);
                    polls > 0
                });
                if let Entered::Head(head) = entered {
                    line.serve();
                    guard.visit(Hold::Alone);
                    drop(head);
                }
                wander();
            }
        });
    }
    program.after(move || {
        let queue = SpinQueue::<Sim>::new(lines.of(LOCK));
        let is_lost = matches!(queue.enter(0, |_| false), Entered::Left);
        if is_lost { Err("no thread has the position".to_owned()) } else { Ok(()) }
    });
}
