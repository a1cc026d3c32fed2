//! Which locks there are: ours, and the documents' designs by their names in the
//! [registry](spinpark_classics::designs).

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::LazyLock;

use spinpark_classics::condvar_2003::{Condvar as Condvar2003, Signalling};
use spinpark_classics::designs::{self, DESIGNS, Use};
use spinpark_classics::mtx_2006::profiling::BackOff;
use spinpark_classics::mtx_2006::{Alone, Profiling};
use spinpark_classics::{RawLock, RawRwLock as ClassicRwLock, mutex_2003};
use spinpark_locks::{RawCondvar, RawMutex, RawRwLock};

use super::any::{AnyCondvar, AnyMutex, AnyRwLock, Apart, Classic, ClassicRw, Futex, OurPair, Pair2003};
use crate::object::Object;
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

const OURS: LockInfo = LockInfo { name: "spinpark", about: "ours" };

/// All locks, in the order in which they are shown.
#[must_use]
pub fn locks() -> &'static [LockInfo] {
    static ALL: LazyLock<Vec<LockInfo>> = LazyLock::new(|| {
        let designs = DESIGNS.iter().filter(|design| design.is_simulated());
        let designs = designs.map(|design| LockInfo { name: design.name, about: design.about });
        std::iter::once(OURS).chain(designs).collect()
    });
    &ALL
}

/// What makes the locks of one name; none: there is no lock of that kind.
struct Makers {
    mutex: Option<fn() -> Rc<dyn AnyMutex>>,
    rwlock: Option<fn() -> Rc<dyn AnyRwLock>>,
    condvar: Option<fn() -> Rc<dyn AnyCondvar>>,
}

const NONE: Makers = Makers { mutex: None, rwlock: None, condvar: None };

/// Those of a design.
struct OfDesign<T>(PhantomData<T>);

impl<T: Tuned> Use<Sim<T>> for OfDesign<T> {
    type Output = Makers;

    fn otherwise(self) -> Makers {
        NONE
    }

    fn mutex<L: RawLock + 'static>(self) -> Makers {
        Makers { mutex: Some(|| Object::new(Classic(L::new()))), ..NONE }
    }

    fn rwlock<L: RawLock + ClassicRwLock + 'static>(self) -> Makers {
        Makers {
            mutex: Some(|| Object::new(ClassicRw(<L as ClassicRwLock>::new()))),
            rwlock: Some(|| Object::new(ClassicRw(<L as ClassicRwLock>::new()))),
            ..NONE
        }
    }

    fn mutex_2003(self) -> Makers {
        Makers { mutex: Some(|| Object::new(Futex::<T>(mutex_2003::Mutex::new()))), ..NONE }
    }

    fn condvar_2003<S: Signalling + 'static>(self) -> Makers {
        Makers { condvar: Some(pair_2003::<T, S>), ..NONE }
    }

    /// With globals of its own: one lock of a run is hot. Its profile is never enabled here.
    fn mtx<F: Profiling + 'static, const ENABLED: bool>(self) -> Makers {
        self.mutex::<Alone<Sim<T>, F>>()
    }

    /// For document 004's machine.
    fn mtx_backing_off(self) -> Makers {
        self.mtx::<BackOff<12>, false>()
    }
}

fn makers<T: Tuned>(name: &str) -> Makers {
    if name == OURS.name {
        return Makers {
            mutex: Some(|| Object::new(RawMutex::<Sim<T>>::new())),
            rwlock: Some(|| Object::new(RawRwLock::<Sim<T>>::new())),
            condvar: Some(our_pair::<T>),
        };
    }
    match designs::by_name(name) {
        Some(design) if design.is_simulated() => {
            designs::with(name, OfDesign::<T>(PhantomData)).unwrap_or(NONE)
        }
        _ => NONE,
    }
}

/// The mutex of that name.
#[must_use]
pub fn mutex<T: Tuned>(name: &str) -> Option<Rc<dyn AnyMutex>> {
    makers::<T>(name).mutex.map(|make| make())
}

/// The read-write lock of that name.
#[must_use]
pub fn rwlock<T: Tuned>(name: &str) -> Option<Rc<dyn AnyRwLock>> {
    makers::<T>(name).rwlock.map(|make| make())
}

/// Two condition variables of that name, with their mutex.
#[must_use]
pub fn condvar<T: Tuned>(name: &str) -> Option<Rc<dyn AnyCondvar>> {
    makers::<T>(name).condvar.map(|make| make())
}

fn our_pair<T: Tuned>() -> Rc<dyn AnyCondvar> {
    let condvars = [Apart(RawCondvar::new()), Apart(RawCondvar::new())];
    Object::new(OurPair::<T> { mutex: RawMutex::new(), condvars })
}

fn pair_2003<T: Tuned, S: Signalling + 'static>() -> Rc<dyn AnyCondvar> {
    let condvars = [Apart(Condvar2003::new()), Apart(Condvar2003::new())];
    Object::new(Pair2003::<T, S> { mutex: mutex_2003::Mutex::new(), condvars })
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

    #[test]
    fn what_does_not_run_here_is_no_lock() {
        for name in ["classic-mtx-enabled", "classic-mtx-aligned", "orig", "glibc"] {
            assert!(mutex::<LinuxTuning>(name).is_none() && condvar::<LinuxTuning>(name).is_none(), "{name}");
        }
    }
}
