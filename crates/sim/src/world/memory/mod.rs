//! The state of memory: lines, store buffers, what threads poll. `crate::memory` has the protocol.

mod bits;
mod line;
mod stores;
mod watch;
mod write;

pub(crate) use line::{LINE_BYTES, Lines, Move, Request};
pub(crate) use stores::{Buffers, Store, StoreBuffer};
pub(crate) use watch::Watch;
pub(crate) use write::{Access, Value, Write};
