//! The simulated kernel: which threads run where, futexes, interrupts.

mod balance;
mod barrier;
mod futex;
mod schedule;
mod spinlock;

pub(crate) use futex::Futexes;
pub(crate) use schedule::{Cpu, CpuId};
pub(crate) use spinlock::SpinLocks;
