//! The engine: virtual time, what happens in it, and the threads, which are coroutines.

mod ahead;
mod costs;
mod disturb;
pub(crate) mod event;
mod failing;
mod fork;
mod places;
pub(crate) mod recent;
pub(crate) mod run;
mod running_ahead;
pub(crate) mod signal;
mod spread;
pub(crate) mod stop;
pub(crate) mod thread;
pub(crate) mod world;
