//! The condition variables of the adapters by name, for code that is generic over them.

use super::{parking_lot_locks, pthread, spinpark_locks, std, usync_locks};
use crate::locks::primitives::BenchCondvar;

/// What is done with the condition variables of an adapter.
pub trait UseCondvar {
    /// What comes of it.
    type Output;

    /// Does it with the type `C`.
    fn with<C: BenchCondvar>(self) -> Self::Output;
}

/// Does it with the condition variables of `adapter`; none if it has none, or none in this process.
pub fn with_condvar<U: UseCondvar>(adapter: &str, user: U) -> Option<U::Output> {
    Some(match adapter {
        "pthread" => user.with::<pthread::Condvar>(),
        "pthread-adaptive" => user.with::<pthread::AdaptiveCondvar>(),
        "std" => user.with::<std::Condvar>(),
        "parking_lot" => user.with::<parking_lot_locks::Condvar>(),
        "usync" => user.with::<usync_locks::Condvar>(),
        "spinpark" => user.with::<spinpark_locks::Condvar>(),
        _ => return None,
    })
}
