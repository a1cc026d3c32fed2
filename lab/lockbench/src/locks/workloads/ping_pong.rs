//! Two threads in strict alternation: what it costs to hand something over.

use super::wait_times::Watch;
use super::worker_pool::{self, Operation};
use super::{Job, Mismatch, RunResult, affinity, expect};
use crate::locks::load::{PingPong, Placement, Signal};
use crate::locks::primitives::{BenchCondvar, Guarded};

/// Whose turn it is: the parity of `turns`.
#[derive(Debug, Default)]
struct Table {
    turns: u64,
    over: bool,
}

/// What one thread does. Its wait is the time from asking for the mutex until it is its turn: the other's
/// turn, too.
struct Player<'a, C: BenchCondvar> {
    me: usize,
    signal: Signal,
    table: &'a Guarded<C::Mutex, Table>,
    your_turn: &'a [C; 2],
}

impl<C: BenchCondvar> Operation for Player<'_, C> {
    #[inline]
    fn run(&mut self, watch: &mut impl Watch) -> bool {
        let other = &self.your_turn[1 - self.me];
        watch.waiting();
        let mut table = self.table.lock();
        while !table.over && table.turns % 2 != self.me as u64 {
            table = table.wait(&self.your_turn[self.me]);
        }
        if table.over {
            return false;
        }
        watch.acquired();
        table.turns += 1;
        if self.signal == Signal::UnderLock {
            other.signal();
            drop(table);
        } else {
            drop(table);
            other.signal();
        }
        true
    }

    fn end(&mut self) {
        self.table.lock().over = true;
        self.your_turn[1 - self.me].signal();
    }
}

/// Two threads alternate.
pub(super) fn run<C: BenchCondvar>(load: &PingPong, job: &Job) -> Result<RunResult, Mismatch> {
    let table = Guarded::<C::Mutex, Table>::new(Table::default());
    let your_turn = [C::default(), C::default()];
    let done = worker_pool::run(job, |me, phase| {
        match load.cpus {
            Placement::Any => {}
            Placement::One => affinity::on(0),
            Placement::Each => affinity::on(me),
        }
        let signal = load.signal;
        worker_pool::drive(phase, &mut Player { me, signal, table: &table, your_turn: &your_turn })
    })?;
    let all = done.shares.iter().map(|share| share.all).sum();
    expect("the number of turns", table.into_inner().turns, all)?;
    Ok(RunResult::new(done))
}
