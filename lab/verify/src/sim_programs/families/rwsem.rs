//! Programs of the semaphore of 2013.

use std::rc::Rc;

use spinpark_classics::RawRwLock as Classic;
use spinpark_classics::rwsem_2013::{Full, NoSpin, Patches, Rwsem, Series, Vanilla};
use spinpark_sim::{Sim, here};

use crate::sim_programs::decode;
use crate::sim_programs::guard::{stay, wander};
use crate::sim_programs::{Guard, Hold, Mortal, Program};

/// With some of the patches.
pub(super) fn any(program: &mut Program) {
    type Patch4 = Patches<false, true, false, false, false, false>;
    type UpTo8 = Patches<true, true, true, true, true, false>;
    type Patch9 = Patches<false, false, false, false, false, true>;
    match program.random(6) {
        0 => rwsem::<Vanilla>(program, "classic-rwsem-3.12"),
        1 => rwsem::<Patch4>(program, "rwsem, patch 4"),
        2 => rwsem::<UpTo8>(program, "rwsem, up to patch 8"),
        3 => rwsem::<Patch9>(program, "rwsem, patch 9"),
        4 => rwsem::<NoSpin>(program, "classic-rwsem-nospin"),
        _ => rwsem::<Full>(program, "classic-rwsem-full"),
    }
}

/// Each thread uses it again and again, in any way.
fn rwsem<S: Series>(program: &mut Program, name: &'static str) {
    let lock = Mortal::new(<Rwsem<Sim, S> as Classic>::new());
    program.name_fields("rwsem", &lock, decode::OPAQUE);
    program.about(name);
    let guard = Rc::new(Guard::new());
    for _ in 0..program.threads() {
        let (lock, guard, rounds) = (lock.clone(), Rc::clone(&guard), program.rounds());
        program.thread(move || {
            for _ in 0..rounds {
                semaphore_round(&*lock, &guard);
                wander();
            }
        });
    }
    program.after(move || if lock.try_write() { Ok(()) } else { Err("the lock is not free".to_owned()) });
}

/// What a thread does with a classic lock.
fn semaphore_round(lock: &impl Classic, guard: &Guard) {
    match here::random(8) {
        0 => {
            if lock.try_read() {
                guard.visit(Hold::Shared);
                lock.unlock_read();
            }
        }
        1 => {
            if lock.try_write() {
                guard.visit(Hold::Alone);
                lock.unlock_write();
            }
        }
        2 => {
            lock.write();
            guard.visit(Hold::Alone);
            guard.enter(Hold::Shared);
            lock.downgrade();
            stay();
            guard.leave(Hold::Shared);
            lock.unlock_read();
        }
        3..6 => {
            lock.write();
            guard.visit(Hold::Alone);
            lock.unlock_write();
        }
        _ => {
            lock.read();
            guard.visit(Hold::Shared);
            lock.unlock_read();
        }
    }
}
