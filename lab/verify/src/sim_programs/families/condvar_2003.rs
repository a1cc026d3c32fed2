//! Programs of the condition variable of 2003.

use std::cell::Cell;
use std::rc::Rc;

use spinpark_classics::condvar_2003::{Condvar, Orig, Requeue, Signalling, WaitResult, WakeByOp};
use spinpark_classics::mutex_2003::Mutex;
use spinpark_sim::{Sim, here};

use super::subject::soon;
use crate::sim_programs::decode;
use crate::sim_programs::guard::{stay, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// With one of its ways to signal.
pub(super) fn tokens(program: &mut Program) {
    match program.random(3) {
        0 => tokens_with::<Orig>(program, "classic-condvar-orig"),
        1 => tokens_with::<Requeue>(program, "classic-condvar-requeue"),
        _ => tokens_with::<WakeByOp>(program, "classic-condvar-wake-op"),
    }
}

/// Some put tokens, and signal or broadcast for each; some take them; some give up.
pub fn tokens_with<S: Signalling>(program: &mut Program, name: &'static str) {
    let mutex = Mortal::new(Mutex::<Sim>::new());
    let condvar = Mortal::new(Condvar::<Sim, S>::new());
    program.name_fields("mutex", &mutex, decode::THREE_STATES);
    program.name_fields("condvar", &condvar, decode::OPAQUE);
    program.about(name);
    let (guard, tokens) = (Rc::new(Guard::new()), Rc::new(Cell::new(0u32)));
    let rounds = program.rounds();
    let takers = 1 + program.random(program.threads().div_ceil(2) as usize) as u32;
    let putters = 1 + program.random(takers as usize) as u32;
    let impatient = program.threads().saturating_sub(takers);
    let all = takers * rounds;
    let enter = |mutex: &Mutex<Sim>, guard: &Guard| {
        mutex.lock();
        guard.enter(Hold::Alone);
    };
    let leave = |mutex: &Mutex<Sim>, guard: &Guard| {
        guard.leave(Hold::Alone);
        mutex.unlock();
    };
    for number in 0..putters {
        let (mutex, condvar, guard, tokens) =
            (mutex.clone(), condvar.clone(), Rc::clone(&guard), Rc::clone(&tokens));
        let mine = all / putters + u32::from(number < all % putters);
        program.thread(move || {
            for _ in 0..mine {
                enter(&mutex, &guard);
                tokens.set(tokens.get() + 1);
                let under = here::random(2) == 0;
                if !under {
                    leave(&mutex, &guard);
                }
                if here::random(8) == 0 {
                    condvar.broadcast();
                } else {
                    condvar.signal();
                }
                if under {
                    stay();
                    leave(&mutex, &guard);
                }
                wander();
            }
        });
    }
    for number in 0..takers + impatient {
        let (mutex, condvar, guard, tokens) =
            (mutex.clone(), condvar.clone(), Rc::clone(&guard), Rc::clone(&tokens));
        let is_patient = number < takers;
        program.thread(move || {
            for _ in 0..rounds {
                enter(&mutex, &guard);
                let mut pass_on = false;
                while tokens.get() == 0 {
                    guard.leave(Hold::Alone);
                    let deadline = if is_patient { None } else { Some(soon()) };
                    let result = condvar.wait(&mutex, deadline);
                    guard.enter(Hold::Alone);
                    if !is_patient {
                        pass_on = result == WaitResult::Signalled;
                        break;
                    }
                }
                if is_patient {
                    tokens.set(tokens.get() - 1);
                    stay();
                }
                leave(&mutex, &guard);
                if pass_on {
                    condvar.signal();
                }
                wander();
            }
        });
    }
    program.after(move || match tokens.get() {
        0 if mutex.try_lock() => Ok(()),
        left => Err(format!("{left} tokens are left, or the mutex is not free")),
    });
}
