//! Where glibc's fields stand in our locks: the state of a lock lies around them.
//!
//! | bytes | a queue of ours  | mutex         | read-write lock | condition variable (from byte 8 on)     |
//! |-------|------------------|---------------|-----------------|-----------------------------------------|
//! | 0     | word             | `__lock`      | `__readers`     | –                                       |
//! | 4–23  | room, five words | `__count`, `__owner`, `__nusers`, `__kind`, – | – | the last word: `__wrefs` (2.41) |
//! | 24    | queue lock       | –             | –               | –                                       |
//! | 28    | gap              | –             | `__shared`      | `__wrefs` (before 2.41)                 |
//! | 32–39 | head             | –             | –               | –                                       |
//!
//! A mutex' fields have glibc's meaning where other code looks at them: Chromium's sandbox reads `__owner`, debuggers' scripts
//! read all of them. Its words that the fast paths touch (`__lock`, `__kind`, the queue lock) are near each other.

use core::sync::atomic::AtomicU32;

use spinpark_linux::{LinuxWith, Rooms};
use spinpark_locks::WaitQueue;

/// What our locks leave room for.
pub(crate) enum Fields {}

impl Rooms for Fields {
    type Room = [AtomicU32; 5];
    type Gap = AtomicU32;
}

/// The platform of all locks here.
pub(crate) type Linux = LinuxWith<Fields>;

/// The first word of [`Rooms::Room`], counted from the start of the queue.
pub(crate) const ROOM_AT: usize = 1;

const _: () =
    assert!(matches!(WaitQueue::<Linux>::layout(), [24, 32]) && size_of::<WaitQueue<Linux>>() == 40);
