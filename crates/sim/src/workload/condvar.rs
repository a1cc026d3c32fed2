//! Document 003's benchmark: a signaller and a waiter in strict alternation under one mutex, on one CPU.
//!
//! As `spinpark documents condvar`: two condition variables, one for each direction, and each signal is made
//! after the mutex is given up, or under it.

use std::cell::Cell;
use std::rc::Rc;

use super::{Mode, Plan, SettingError, Workload};
use crate::here;

/// The program's own work for a turn, cycles: its loop, the library's entry and exit, the check whose turn it
/// is. The document's program is lost.
///
/// Fitted: with it, `wake-op` is 1.72 times as fast as `orig` on the document's machine (switches between
/// threads: 400 ns).
const TURN: f64 = 700.0;

fn alternate(plan: &mut Plan<'_>, is_under_lock: bool) -> Result<(), SettingError> {
    if plan.setting().threads != 2 {
        let name = &plan.setting().workload;
        return Err(SettingError::Unfit(format!("{name} needs two threads: `--threads 2`")));
    }
    let step = TURN / plan.machine().ghz;
    let condvar = plan.condvar("mutex")?;
    let turns = Rc::new(Cell::new(0_u64));
    // The waiter comes first: it waits before the first signal.
    for me in [1, 0_usize] {
        let (condvar, turns) = (condvar.clone(), Rc::clone(&turns));
        plan.worker_on(0..1, move |worker| {
            let is_mine = || turns.get() % 2 == me as u64;
            let mut is_over = false;
            while !is_over {
                condvar.with(|| {
                    here::compute_f64(step);
                    while !is_mine() {
                        condvar.wait_for(me);
                    }
                    // A thread that finds it over takes this turn, so that the other one finds that too.
                    is_over = here::is_over();
                    turns.set(turns.get() + 1);
                    if is_under_lock {
                        condvar.signal_to(1 - me);
                    }
                });
                if !is_under_lock {
                    condvar.signal_to(1 - me);
                }
                if me == 0 {
                    worker.did_one();
                }
            }
        });
    }
    Ok(())
}

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "condvar",
        about: "a signaller and a waiter take turns on one CPU, signal after the unlock (document 003)",
        mode: Mode::User,
        build: |plan| alternate(plan, false),
    },
    Workload {
        name: "condvar-under-lock",
        about: "the same, signal under the mutex",
        mode: Mode::User,
        build: |plan| alternate(plan, true),
    },
];
