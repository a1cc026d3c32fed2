//! The state of memory: where words lie, lines, store buffers, what threads poll. `crate::memory` has the
//! protocol.

mod bits;
mod layout;
mod line;
pub(crate) mod regions;
mod stores;
mod watch;
mod write;

pub(crate) use layout::{Changed, Lines, Place};
pub(crate) use line::{LINE_BYTES, Move, Request};
pub(crate) use stores::{Buffers, Store, StoreBuffer};
pub(crate) use watch::Watch;
pub(crate) use write::{Access, Value, Write};
