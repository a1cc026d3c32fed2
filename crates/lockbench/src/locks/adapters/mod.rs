//! Whose locks: for each adapter, the functions that run a load on them.

mod classics;
pub mod condvar_2003;
mod lock_api;
mod mtx;
mod parking_lot;
mod pthread;
mod spinpark;
mod std;
mod usync;

use ::std::sync::LazyLock;

use super::any_mutex::MakeMutex;
use super::load::Primitive;
use super::primitives::BenchCondvar;
use super::workloads::{Job, Mismatch, Outcome};

/// The origins, in the order in which they are listed.
macro_rules! origins {
    ($($origin:ty,)*) => {
        const CURRENT: &[Adapter] = &[$(<$origin>::ADAPTER),*];

        /// Does it with the condition variables of `adapter`; none if it has none, or none in this process.
        pub fn with_condvar<U: UseCondvar>(adapter: &str, user: U) -> Option<U::Output> {
            match adapter {
                $(name if name == <$origin>::ADAPTER.name => <$origin>::with_condvar(user),)*
                _ => None,
            }
        }
    };
}

// Ours, and the peers in Rust and libc. (The classics are in their registry, the other peers in a worker of
// their own.)
origins! {
    pthread::Locks,
    pthread::AdaptiveLocks,
    std::Locks,
    parking_lot::Locks,
    usync::Locks,
    spinpark::Locks,
}

/// Runs a load on one kind of lock.
pub type Run = fn(&Job) -> Result<Outcome, Mismatch>;

/// Locks of one origin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Adapter {
    /// Its name in definitions.
    pub name: &'static str,
    /// The mutex, if there is one.
    pub mutex: Option<Run>,
    /// The recursive mutex.
    pub recursive: Option<Run>,
    /// The error-checking mutex.
    pub error_check: Option<Run>,
    /// The read-write lock.
    pub rwlock: Option<Run>,
    /// The condition variable, with its mutex.
    pub condvar: Option<Run>,
    /// Makes a mutex for workloads.
    pub any_mutex: Option<MakeMutex>,
}

impl Adapter {
    /// The function for loads that need `primitive`.
    #[must_use]
    pub fn run(&self, primitive: Primitive) -> Option<Run> {
        match primitive {
            Primitive::Mutex => self.mutex,
            Primitive::Recursive => self.recursive,
            Primitive::ErrorCheck => self.error_check,
            Primitive::RwLock => self.rwlock,
            Primitive::Condvar => self.condvar,
        }
    }
}

/// Locks of one origin, in a file of their own.
trait Origin {
    /// Their adapter.
    const ADAPTER: Adapter;

    /// Does something with their condition variables, if they have some.
    fn with_condvar<U: UseCondvar>(_: U) -> Option<U::Output> {
        None
    }
}

/// What is done with the condition variables of an adapter.
pub trait UseCondvar {
    /// What comes of it.
    type Output;

    /// Does it with the type `C`.
    fn with<C: BenchCondvar>(self) -> Self::Output;
}

/// The adapters in this crate: those that need nothing but Rust and libc.
pub static ADAPTERS: LazyLock<Vec<Adapter>> =
    LazyLock::new(|| CURRENT.iter().copied().chain(classics::adapters()).collect());

/// The adapter of that name among `adapters`.
#[must_use]
pub fn by_name<'a>(adapters: &'a [Adapter], name: &str) -> Option<&'a Adapter> {
    adapters.iter().find(|adapter| adapter.name == name)
}
