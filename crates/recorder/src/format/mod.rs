//! The file of one profiled process, `PID-START.spinprof`: START is when it began, in ms since 1970.
//!
//! ```text
//! header (one page) │ pieces of regions, as they were needed
//! ```
//!
//! | region     | a record is                                                  | written by                                 |
//! |------------|--------------------------------------------------------------|--------------------------------------------|
//! | `locks`    | [`Lock`]: address, kind, where it was created, its name        | the first thread that meets a lock; once    |
//! | `stacks`   | [`Stack`]: return addresses                                   | the first thread with that stack; once      |
//! | `threads`  | [`Thread`]: a table of statistics, used by one thread at a time | that thread; what it waits for before it blocks |
//! | `segments` | [`Segment`]: a piece of a table, full of entries               | the thread whose table it is                |
//! | `maps`     | snapshots of `/proc/self/maps`, each with a line before it     | a thread that finds newly mapped code       |
//! | `text`     | names of locks                                                | the thread that names a lock                |
//! | `slow`     | [`Slow`]: waits that are kept whole                            | the thread that has waited                  |
//!
//! Regions grow by pieces ([`Piece`]). While the program runs the file has a long hole at its end, for the
//! pieces to come; once it has ended the file ends with the last one. Records are claimed by adding one to
//! the region's `used`; a record whose first word is 0 is claimed and not written yet. A record that does not
//! fit is counted in the region's `dropped`.
//!
//! Numbers are little-endian, as on the machine that wrote them. Times are in ticks of the header's clock
//! unless a name states otherwise. Counters of tables are written by one thread with plain stores (Relaxed),
//! so a reader of a living program sees numbers that are a moment old, and not all of the same moment.

mod calls;
mod control;
mod entry;
mod header;
mod pieces;
mod quota;
mod record;
mod slow;
mod view;
mod waiting;

pub use self::calls::CALLS;
pub use self::control::{
    Control, Request, BEAT_NS, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, CONTROL_VERSION, LEASE_NS,
    MEMORY_FILE, NO_BARRIER, REQUESTS,
};
pub use self::entry::{
    Entry, Head, Held, HeldWaitStats, HolderId, LockStats, NestStats, OutOfSight, PairStats, Role, SiteStats,
    Spread, Strip, WaitOutcome, BINS, NONE, STRIP,
};
pub use self::header::{Clock, Detail, Header, Locks, Region, MAGIC, VERSION};
pub use self::header::{Experiment, EXPERIMENT};
pub use self::pieces::{Piece, RegionId, CLOSED, HEADER_BYTES, MOST_PAGES, PAGE, PIECES, REGIONS};
pub use self::quota::{Cause, QuotaCount, CAUSES, QUOTA_FILE};
pub use self::record::{Cost, Kind, Lock, Segment, Stack, Thread, FRAMES, SEGMENT_BYTES, TAKEN};
pub use self::slow::{Slow, SlowWait, LONGEST};
pub use self::view::{Broken, View};
pub use self::waiting::{Begun, Hold, Holds, Waiting, HOLDS};
