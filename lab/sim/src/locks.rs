//! The locks that can be chosen by name, the same names as in `spinpark-lab bench locks`: ours, and the
//! documents' designs by their names in the [registry](spinpark_classics::designs). Behind one face, so that
//! a workload takes any of them.

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::LazyLock;

use spinpark_classics::condvar_2003::{Condvar as Condvar2003, Signalling};
use spinpark_classics::designs::{self, DESIGNS, Use};
use spinpark_classics::mtx_2006::delays::{self, Delays};
use spinpark_classics::mtx_2006::profiling::{BackOff, Delayed};
use spinpark_classics::mtx_2006::{Alone, Profiling};
use spinpark_classics::{RawLock, RawRwLock as ClassicRwLock, mutex_2003};
use spinpark_locks::{Preference, RawCondvar, RawMutex, RawRwLock, TryRwLock};

use crate::platform::{LinuxTuning, Sim, Tuned};
use crate::world::memory::object::Object;

/// A mutex.
pub trait AnyMutex {
    /// Acquires.
    fn lock(&self);
    /// Releases.
    fn unlock(&self);
}

/// A read-write lock.
pub trait AnyRwLock {
    /// Acquires for reading.
    fn read(&self);
    /// Acquires for reading if that is possible at once.
    fn try_read(&self) -> bool;
    /// Releases a read lock.
    fn unlock_read(&self);
    /// Acquires for writing.
    fn write(&self);
    /// Releases the write lock.
    fn unlock_write(&self);
}

/// Two condition variables with their mutex.
pub trait AnyCondvar: AnyMutex {
    /// Releases the mutex, waits for a signal of variable `which` (0 or 1), or for nothing, and acquires the
    /// mutex.
    fn wait(&self, which: usize);
    /// Wakes one that waits for variable `which`.
    fn signal(&self, which: usize);
    /// Wakes all that wait for variable `which`.
    fn broadcast(&self, which: usize);
}

/// A part of an object that has a pair of cache lines of its own.
#[repr(align(128))]
struct Apart<L>(L);

/// A classic mutex.
struct Classic<L>(L);

/// A classic read-write lock. As a mutex, it is taken for writing.
struct ClassicRw<L>(L);

/// Two condition variables and their mutex.
struct Pair<M, C> {
    mutex: M,
    condvars: [Apart<C>; 2],
}

macro_rules! any_mutex {
    ([$($of:tt)*] $lock:ty, $this:ident => $inner:expr, $acquire:ident, $release:ident) => {
        impl<$($of)*> AnyMutex for $lock {
            fn lock(&self) {
                let $this = self;
                $inner.$acquire();
            }
            fn unlock(&self) {
                let $this = self;
                $inner.$release();
            }
        }
    };
}

macro_rules! any_rwlock {
    ([$($of:tt)*] $lock:ty, $this:ident => $inner:expr, $try_read:expr, $($preference:expr)?) => {
        impl<$($of)*> AnyRwLock for $lock {
            fn read(&self) {
                let $this = self;
                $inner.read($($preference)?);
            }
            fn try_read(&self) -> bool {
                let $this = self;
                $try_read
            }
            fn unlock_read(&self) {
                let $this = self;
                $inner.unlock_read();
            }
            fn write(&self) {
                let $this = self;
                $inner.write();
            }
            fn unlock_write(&self) {
                let $this = self;
                $inner.unlock_write();
            }
        }
    };
}

macro_rules! any_condvar {
    ([$($of:tt)*] $mutex:ty, $condvar:ty) => {
        impl<$($of)*> AnyCondvar for Pair<$mutex, $condvar> {
            fn wait(&self, which: usize) {
                self.condvars[which].0.wait(&self.mutex, None);
            }
            fn signal(&self, which: usize) {
                self.condvars[which].0.signal();
            }
            fn broadcast(&self, which: usize) {
                self.condvars[which].0.broadcast();
            }
        }
    };
}

any_mutex!([T: Tuned] RawMutex<Sim<T>>, this => this, lock, unlock);
any_mutex!([L: RawLock] Classic<L>, this => this.0, lock, unlock);
any_mutex!([L: ClassicRwLock] ClassicRw<L>, this => this.0, write, unlock_write);
any_mutex!([T: Tuned] mutex_2003::Mutex<Sim<T>>, this => this, lock, unlock);
any_mutex!([M: AnyMutex, C] Pair<M, C>, this => this.mutex, lock, unlock);
any_rwlock!([T: Tuned] RawRwLock<Sim<T>>, this => this, TryRwLock::try_read(this, Preference::default()), Preference::default());
any_rwlock!([L: ClassicRwLock] ClassicRw<L>, this => this.0, this.0.try_read(),);
any_condvar!([T: Tuned] RawMutex<Sim<T>>, RawCondvar<Sim<T>>);
any_condvar!([T: Tuned, S: Signalling] mutex_2003::Mutex<Sim<T>>, Condvar2003<Sim<T>, S>);

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

/// Makes a lock.
type Make<L> = fn() -> Rc<Object<L>>;

/// What makes the locks of one name; none: there is no lock of that kind.
struct Makers {
    mutex: Option<Make<dyn AnyMutex>>,
    rwlock: Option<Make<dyn AnyRwLock>>,
    condvar: Option<Make<dyn AnyCondvar>>,
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
        Makers { mutex: Some(|| Object::new(mutex_2003::Mutex::<Sim<T>>::new())), ..NONE }
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

    /// Without delays: [`mutex`] makes it with those of its name.
    fn mtx_delayed(self) -> Makers {
        self.mtx::<Delayed, false>()
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

/// Whether there is a lock of that name: one of [`locks`], or `classic-mtx-delayed+PLACE=TIME`.
#[must_use]
pub fn is_lock(name: &str) -> bool {
    locks().iter().any(|lock| lock.name == name) || Delays::in_name(name).is_some()
}

/// What to say of a name that begins as that of the lock with delays.
pub(crate) fn wrong_delays(name: &str) -> Option<String> {
    let lock = delays::LOCK;
    name.starts_with(lock).then(|| format!(": write {lock}{} {lock}+attempt=6us", delays::SYNTAX))
}

/// The mutex of that name.
#[must_use]
pub fn mutex<T: Tuned>(name: &str) -> Option<Rc<Object<dyn AnyMutex>>> {
    if let Some(delays) = Delays::in_name(name) {
        return Some(Object::new(Classic(Alone::<Sim<T>, Delayed>::delayed(delays))));
    }
    makers::<T>(name).mutex.map(|make| make())
}

/// The read-write lock of that name.
#[must_use]
pub fn rwlock<T: Tuned>(name: &str) -> Option<Rc<Object<dyn AnyRwLock>>> {
    makers::<T>(name).rwlock.map(|make| make())
}

/// Two condition variables of that name, with their mutex.
#[must_use]
pub fn condvar<T: Tuned>(name: &str) -> Option<Rc<Object<dyn AnyCondvar>>> {
    makers::<T>(name).condvar.map(|make| make())
}

fn our_pair<T: Tuned>() -> Rc<Object<dyn AnyCondvar>> {
    let condvars = [RawCondvar::new(), RawCondvar::new()].map(Apart);
    Object::new(Pair { mutex: RawMutex::<Sim<T>>::new(), condvars })
}

fn pair_2003<T: Tuned, S: Signalling + 'static>() -> Rc<Object<dyn AnyCondvar>> {
    let condvars = [Condvar2003::<Sim<T>, S>::new(), Condvar2003::new()].map(Apart);
    Object::new(Pair { mutex: mutex_2003::Mutex::<Sim<T>>::new(), condvars })
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
    fn a_lock_has_the_delays_of_its_name() {
        assert!(is_lock("classic-mtx-delayed") && is_lock("classic-mtx-delayed+attempt=6us+wake=1ms"));
        for wrong in ["classic-mtx+attempt=6us", "classic-mtx-delayed+attempt=6", "classic-mtx-delayed+"] {
            assert!(!is_lock(wrong) && mutex::<LinuxTuning>(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn what_does_not_run_here_is_no_lock() {
        for name in ["classic-mtx-enabled", "classic-mtx-aligned", "orig", "glibc"] {
            assert!(mutex::<LinuxTuning>(name).is_none() && condvar::<LinuxTuning>(name).is_none(), "{name}");
        }
    }
}
