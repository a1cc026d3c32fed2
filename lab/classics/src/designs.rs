//! The registry: each design under its one name.
//!
//! The benchmark, the simulator, the documents and the command know a lock by the name that it has here, and
//! get it as a type over a platform of their own ([`with`]). A design that is added to the table at the end
//! of this file is in all of them.

use spinpark_platform::Platform;

use crate::condvar_2003::{Orig, Requeue, Signalling, WakeByOp};
use crate::mcs_mutex::McsMutex;
use crate::mtx_2006::Profiling;
use crate::mtx_2006::profiling::{
    Absent, Accesses, Aligned, AtomicAdd, AtomicAddApart, Counter, Gutted, Larger, Outlined, Profiled,
    ProfiledApart, ProfiledWithoutAdd,
};
use crate::mutex_2010::{Fixed, Mutex, NoSpin as Sleeps, OldSpin};
use crate::rwsem_2013::{AsSent, Full, NoSpin, Rwsem, Vanilla};
use crate::tas::{BackOff, TasLock, TestAndSet, TestAndTestAndSet};

use crate::{RawLock, RawRwLock, TicketLock};

/// A lock that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Design {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The design from which it differs in one thing.
    pub varies: Option<&'static str>,
    /// Where it runs.
    pub runs: Runs,
}

/// Where a design runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// On this machine and on simulated ones.
    Everywhere,
    /// On this machine only: what it changes is nothing that the simulator models (calls, the neighbours in
    /// memory, a clock that is read for each hold).
    Natively,
    /// On simulated machines only: to compare with what was published of it.
    Simulated,
}

impl Design {
    /// Whether it runs on this machine.
    #[must_use]
    pub const fn is_native(&self) -> bool {
        !matches!(self.runs, Runs::Simulated)
    }

    /// Whether it runs on simulated machines.
    #[must_use]
    pub const fn is_simulated(&self) -> bool {
        !matches!(self.runs, Runs::Natively)
    }
}

/// What is done with a design as a type over `P`. What is not for every design is left to
/// [`otherwise`](Self::otherwise).
pub trait Use<P: Platform>: Sized {
    /// What comes of it.
    type Output;

    /// For all other designs.
    fn otherwise(self) -> Self::Output;

    /// A mutex.
    fn mutex<L: RawLock + 'static>(self) -> Self::Output {
        self.otherwise()
    }

    /// A read-write lock, which is a mutex as well.
    fn rwlock<L: RawLock + RawRwLock + 'static>(self) -> Self::Output {
        self.otherwise()
    }

    /// [`mutex_2003::Mutex`](crate::mutex_2003::Mutex).
    fn mutex_2003(self) -> Self::Output {
        self.otherwise()
    }

    /// [`condvar_2003::Condvar`](crate::condvar_2003::Condvar), with that mutex.
    fn condvar_2003<S: Signalling + 'static>(self) -> Self::Output {
        self.otherwise()
    }

    /// FreeBSD's mutex, on globals of the user's; `ENABLED`: its profile is on.
    fn mtx<F: Profiling + 'static, const ENABLED: bool>(self) -> Self::Output {
        self.otherwise()
    }

    /// The same with [`BackOff`](crate::mtx_2006::profiling::BackOff), for as many CPUs as the user's machine
    /// has.
    fn mtx_backing_off(self) -> Self::Output {
        self.otherwise()
    }

    /// The same with [`Delayed`](crate::mtx_2006::profiling::Delayed): of which lengths, and where, is the
    /// user's.
    fn mtx_delayed(self) -> Self::Output {
        self.otherwise()
    }
}

/// The design of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Design> {
    DESIGNS.iter().find(|design| design.name == name)
}

macro_rules! designs {
    ($($name:literal = $method:ident[$($generic:tt)*] $runs:ident
        $(varies $base:literal)?: $about:literal;)*) => {
        /// All designs, in the order in which they are listed.
        pub const DESIGNS: &[Design] = &[$(
            Design {
                name: $name,
                about: $about,
                varies: first(&[$($base)?]),
                runs: Runs::$runs,
            },
        )*];

        /// Does something with the design of that name. None: there is no such design.
        pub fn with<P: Platform, U: Use<P>>(name: &str, user: U) -> Option<U::Output> {
            Some(match name {
                $($name => user.$method::<$($generic)*>(),)*
                _ => return None,
            })
        }
    };
}

const fn first(names: &[&'static str]) -> Option<&'static str> {
    if let [name, ..] = names { Some(name) } else { None }
}

designs! {
    "classic-mutex-2003" = mutex_2003[] Everywhere:
        "document 003: glibc's mutex of three states, which sleeps at once";
    "classic-mutex-2.6.34" = mutex[Mutex<P, OldSpin>] Everywhere:
        "document 001, before: the kernel's mutex, whose spinners go on over changes of owner";
    "classic-mutex-fixed" = mutex[Mutex<P, Fixed>] Everywhere varies "classic-mutex-2.6.34":
        "document 001, after: spinners leave when the lock went to another thread";
    "classic-mutex-nospin" = mutex[Mutex<P, Sleeps>] Everywhere varies "classic-mutex-2.6.34":
        "document 001, without spinning";
    "classic-rwsem-3.12" = rwlock[Rwsem<P, Vanilla>] Everywhere:
        "document 002, before: the kernel's rwsem, also as a mutex";
    "classic-rwsem-nospin" = rwlock[Rwsem<P, NoSpin>] Everywhere varies "classic-rwsem-3.12":
        "document 002, all patches but the optimistic spin";
    "classic-rwsem-full" = rwlock[Rwsem<P, Full>] Everywhere varies "classic-rwsem-3.12":
        "document 002, all patches";
    "classic-rwsem-as-sent" = rwlock[Rwsem<P, AsSent<Full, true, false>>] Simulated varies "classic-rwsem-3.12":
        "document 002, all patches, patch 8 as sent: a release clears the owner last";
    "classic-tas" = mutex[TasLock<P, TestAndSet>] Everywhere:
        "test and set, without a pause between two tries that is longer than one hint";
    "classic-ttas" = mutex[TasLock<P, TestAndTestAndSet>] Everywhere varies "classic-tas":
        "the same, reading until it is free: FreeBSD's spin mutex";
    "classic-tas-backoff" = mutex[TasLock<P, BackOff>] Everywhere varies "classic-tas":
        "the same, with exponential back-off";
    "classic-ticket" = mutex[TicketLock<P>] Everywhere:
        "a ticket lock: first come, first served, by spinning";
    "classic-mcs" = mutex[McsMutex<P>] Everywhere:
        "a queue lock: first come, first served, each waiter on a cache line of its own";
    "classic-mtx" = mtx[Absent, false] Everywhere:
        "document 004: FreeBSD's adaptive mutex of 2006, without profiling";
    "classic-mtx-backoff" = mtx_backing_off[] Everywhere varies "classic-mtx":
        "with exponential back-off: the message's own patch";
    "classic-mtx-profiled" = mtx[Profiled, false] Everywhere varies "classic-mtx":
        "with its profiling compiled in, not enabled";
    "classic-mtx-profiled-no-add" = mtx[ProfiledWithoutAdd, false] Everywhere varies "classic-mtx":
        "the same, without the atomic add per contended attempt";
    "classic-mtx-profiled-apart" = mtx[ProfiledApart, false] Everywhere varies "classic-mtx":
        "profiling compiled in, with its fields on another cache line than the lock's word";
    "classic-mtx-enabled" = mtx[Profiled, true] Natively varies "classic-mtx":
        "with its profiling enabled: every hold is timed and recorded";
    "classic-mtx-gutted" = mtx[Gutted, false] Everywhere varies "classic-mtx":
        "with the extra accesses, called: the bulk of the profiling code gone";
    "classic-mtx-accesses" = mtx[Accesses, false] Everywhere varies "classic-mtx":
        "with the extra reads and writes of the struct only";
    "classic-mtx-counter" = mtx[Counter, false] Everywhere varies "classic-mtx":
        "with the plain counter of the whole machine only";
    "classic-mtx-add" = mtx[AtomicAdd, false] Everywhere varies "classic-mtx":
        "with the atomic add per contended attempt only";
    "classic-mtx-add-apart" = mtx[AtomicAddApart, false] Everywhere varies "classic-mtx":
        "the same add, to another cache line than the lock's word";
    "classic-mtx-larger" = mtx[Larger, false] Everywhere varies "classic-mtx":
        "with 128 bytes more of struct only: what lies behind it is on another cache line";
    "classic-mtx-outlined" = mtx[Outlined, false] Natively varies "classic-mtx":
        "with calls instead of inlined fast paths only";
    "classic-mtx-aligned" = mtx[Aligned, false] Natively varies "classic-mtx":
        "with the struct aligned to 0x100 only: no neighbour is on its cache line";
    "classic-mtx-delayed" = mtx_delayed[] Everywhere varies "classic-mtx":
        "with delays: +PLACE=TIME, as in classic-mtx-delayed+attempt=6us";
    "classic-condvar-orig" = condvar_2003[Orig] Everywhere:
        "document 003: glibc's condition variable of 2003: a wake, then an unlock";
    "classic-condvar-requeue" = condvar_2003[Requeue] Everywhere varies "classic-condvar-orig":
        "the same, with the waiter moved to the internal lock";
    "classic-condvar-wake-op" = condvar_2003[WakeByOp] Everywhere varies "classic-condvar-orig":
        "the same, with the unlock in the kernel (FUTEX_WAKE_OP)";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_design() {
        for (index, design) in DESIGNS.iter().enumerate() {
            let is_other = |other: &&Design| other.name == design.name;
            assert_eq!(DESIGNS[..index].iter().find(is_other), None, "{}", design.name);
            assert!(design.varies.is_none_or(|base| by_name(base).is_some()), "{}", design.name);
        }
    }
}
