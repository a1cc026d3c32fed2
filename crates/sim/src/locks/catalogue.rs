//! Which locks there are.

use std::rc::Rc;

use spinpark_classics::RawLock;
use spinpark_classics::condvar_2003::{Condvar as Condvar2003, Orig, Requeue, Signalling, WakeByOp};
use spinpark_classics::mtx_2006::profiling::{
    self, Accesses, AtomicAdd, Counter, Gutted, Larger, ProfiledWithoutAdd,
};
use spinpark_classics::mtx_2006::{Absent, Alone, Profiled};
use spinpark_classics::mutex_2003;
use spinpark_classics::mutex_2010::{Fixed, Mutex, NoSpin as Sleeps, OldSpin};
use spinpark_classics::rwsem_2013::{AsSent, Full, NoSpin, Rwsem, Series, Vanilla};
use spinpark_classics::tas::{BackOff, TasLock, TestAndSet, TestAndTestAndSet};
use spinpark_locks::{RawCondvar, RawMutex, RawRwLock};

use super::any::{Aligned, AnyCondvar, AnyMutex, AnyRwLock, Classic, ClassicRw, Futex, OurPair, Pair2003};
use crate::platform::{LinuxTuning, Sim, Tuned};

/// A lock that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
}

impl LockInfo {
    /// What it can be: a mutex, a read-write lock, a condition variable.
    #[must_use]
    pub fn kinds(&self) -> Vec<&'static str> {
        let kinds = [
            (mutex::<LinuxTuning>(self.name).is_some(), MUTEX),
            (rwlock::<LinuxTuning>(self.name).is_some(), RWLOCK),
            (condvar::<LinuxTuning>(self.name).is_some(), CONDVAR),
        ];
        kinds.into_iter().filter_map(|(is_one, kind)| is_one.then_some(kind)).collect()
    }
}

/// The kinds of locks, as messages call them.
pub(crate) const MUTEX: &str = "mutex";
pub(crate) const RWLOCK: &str = "read-write lock";
pub(crate) const CONDVAR: &str = "condition variable";

const LOCKS: &[LockInfo] = &[
    LockInfo { name: "spinpark", about: "ours" },
    LockInfo { name: "classic-mutex-2.6.34", about: "document 001: spins over changes of owner" },
    LockInfo { name: "classic-mutex-fixed", about: "document 001: leaves when the owner changes" },
    LockInfo { name: "classic-mutex-nospin", about: "document 001: sleeps at once" },
    LockInfo { name: "classic-mutex-2003", about: "document 003: three states, as glibc's normal mutex" },
    LockInfo { name: "classic-rwsem-3.12", about: "document 002: before the series" },
    LockInfo { name: "classic-rwsem-nospin", about: "document 002: all but the writer's spinning" },
    LockInfo { name: "classic-rwsem-full", about: "document 002: the whole series" },
    LockInfo {
        name: "classic-rwsem-as-sent",
        about: "document 002: the same, patch 8 as sent: the owner is cleared last",
    },
    LockInfo { name: "classic-tas", about: "document 004: test-and-set" },
    LockInfo { name: "classic-ttas", about: "document 004: test, and test-and-set" },
    LockInfo { name: "classic-tas-backoff", about: "document 004: the same with exponential back-off" },
    LockInfo { name: "classic-mtx", about: "document 004: FreeBSD's adaptive mutex" },
    LockInfo { name: "classic-mtx-profiled", about: "document 004: its profiling compiled in, not enabled" },
    LockInfo {
        name: "classic-mtx-profiled-no-add",
        about: "document 004: the same without the add of each failed attempt",
    },
    LockInfo { name: "classic-mtx-gutted", about: "document 004: the profile's accesses and calls" },
    LockInfo { name: "classic-mtx-accesses", about: "document 004: the profile's accesses only" },
    LockInfo { name: "classic-mtx-counter", about: "document 004: the machine-wide counter only" },
    LockInfo { name: "classic-mtx-add", about: "document 004: an add at each failed attempt only" },
    LockInfo { name: "classic-mtx-larger", about: "document 004: the larger struct only" },
    LockInfo { name: "classic-mtx-backoff", about: "document 004: exponential back-off, for 12 CPUs" },
    LockInfo { name: "classic-condvar-orig", about: "document 003: wakes under the internal lock" },
    LockInfo { name: "classic-condvar-requeue", about: "document 003: moves the waiter" },
    LockInfo { name: "classic-condvar-wake-op", about: "document 003: FUTEX_WAKE_OP" },
];

/// All locks, in the order in which they are shown.
#[must_use]
pub fn locks() -> &'static [LockInfo] {
    LOCKS
}

fn classic<L: RawLock + 'static>() -> Rc<dyn AnyMutex> {
    Rc::new(Aligned(Classic(L::new())))
}

type AlignedRwsem<T, S> = Aligned<ClassicRw<Rwsem<Sim<T>, S>>>;

fn rwsem<T: Tuned, S: Series>() -> Rc<AlignedRwsem<T, S>> {
    Rc::new(Aligned(ClassicRw(spinpark_classics::RawRwLock::new())))
}

/// The mutex of that name.
#[must_use]
pub fn mutex<T: Tuned>(name: &str) -> Option<Rc<dyn AnyMutex>> {
    Some(match name {
        "spinpark" => Rc::new(Aligned(RawMutex::<Sim<T>>::new())),
        "classic-mutex-2.6.34" => classic::<Mutex<Sim<T>, OldSpin>>(),
        "classic-mutex-fixed" => classic::<Mutex<Sim<T>, Fixed>>(),
        "classic-mutex-nospin" => classic::<Mutex<Sim<T>, Sleeps>>(),
        "classic-mutex-2003" => Rc::new(Aligned(Futex::<T>(mutex_2003::Mutex::new()))),
        "classic-rwsem-3.12" => rwsem::<T, Vanilla>(),
        "classic-rwsem-nospin" => rwsem::<T, NoSpin>(),
        "classic-rwsem-full" => rwsem::<T, Full>(),
        "classic-rwsem-as-sent" => rwsem::<T, AsSent<Full, true, false>>(),
        "classic-tas" => classic::<TasLock<Sim<T>, TestAndSet>>(),
        "classic-ttas" => classic::<TasLock<Sim<T>, TestAndTestAndSet>>(),
        "classic-tas-backoff" => classic::<TasLock<Sim<T>, BackOff>>(),
        "classic-mtx" => classic::<Alone<Sim<T>, Absent>>(),
        "classic-mtx-profiled" => classic::<Alone<Sim<T>, Profiled>>(),
        "classic-mtx-profiled-no-add" => classic::<Alone<Sim<T>, ProfiledWithoutAdd>>(),
        "classic-mtx-gutted" => classic::<Alone<Sim<T>, Gutted>>(),
        "classic-mtx-accesses" => classic::<Alone<Sim<T>, Accesses>>(),
        "classic-mtx-counter" => classic::<Alone<Sim<T>, Counter>>(),
        "classic-mtx-add" => classic::<Alone<Sim<T>, AtomicAdd>>(),
        "classic-mtx-larger" => classic::<Alone<Sim<T>, Larger>>(),
        "classic-mtx-backoff" => classic::<Alone<Sim<T>, profiling::BackOff<12>>>(),
        _ => return None,
    })
}

/// The read-write lock of that name.
#[must_use]
pub fn rwlock<T: Tuned>(name: &str) -> Option<Rc<dyn AnyRwLock>> {
    Some(match name {
        "spinpark" => Rc::new(Aligned(RawRwLock::<Sim<T>>::new())),
        "classic-rwsem-3.12" => rwsem::<T, Vanilla>(),
        "classic-rwsem-nospin" => rwsem::<T, NoSpin>(),
        "classic-rwsem-full" => rwsem::<T, Full>(),
        "classic-rwsem-as-sent" => rwsem::<T, AsSent<Full, true, false>>(),
        _ => return None,
    })
}

fn pair_2003<T: Tuned, S: Signalling + 'static>() -> Rc<dyn AnyCondvar> {
    let condvars = [Aligned(Condvar2003::new()), Aligned(Condvar2003::new())];
    Rc::new(Aligned(Pair2003::<T, S> { mutex: mutex_2003::Mutex::new(), condvars }))
}

/// Two condition variables of that name, with their mutex.
#[must_use]
pub fn condvar<T: Tuned>(name: &str) -> Option<Rc<dyn AnyCondvar>> {
    Some(match name {
        "spinpark" => {
            let condvars = [Aligned(RawCondvar::new()), Aligned(RawCondvar::new())];
            Rc::new(Aligned(OurPair::<T> { mutex: RawMutex::new(), condvars }))
        }
        "classic-condvar-orig" => pair_2003::<T, Orig>(),
        "classic-condvar-requeue" => pair_2003::<T, Requeue>(),
        "classic-condvar-wake-op" => pair_2003::<T, WakeByOp>(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_some_lock() {
        let kinds = |name: &str| locks().iter().find(|lock| lock.name == name).unwrap().kinds();
        assert!(locks().iter().all(|lock| !lock.kinds().is_empty()));
        assert_eq!(kinds("spinpark"), [MUTEX, RWLOCK, CONDVAR]);
        assert_eq!(kinds("classic-rwsem-full"), [MUTEX, RWLOCK]);
        assert_eq!(kinds("classic-condvar-orig"), [CONDVAR]);
    }
}
