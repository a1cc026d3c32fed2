//! The simulated kernel: which threads run where, futexes, interrupts.

mod balance;
mod barrier;
mod futex;
mod quota;
mod schedule;
mod spinlock;
