//! The engine: virtual time, what happens in it, and the threads, which are coroutines.

mod fork;
mod next;
pub(crate) mod run;
pub(crate) mod signal;
pub(crate) mod step;
pub(crate) mod stop;
mod threads;
