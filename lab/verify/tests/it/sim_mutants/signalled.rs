//! Signals: a handler's release meets the queue that its own thread has locked.

use spinpark_locks::bits::queue_lock::{ASKED, LOCKED};
use spinpark_platform::Ordering::Release;
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_verify::breaks;
use spinpark_verify::sim_programs::Checker;

use super::harness::{family, never_ends, rejected};

/// V1: the release does not leave the look to the thread that has the queue locked, but waits for it: for
/// itself.
#[test]
fn a_handlers_release_waits_for_the_queue() {
    let asks = |op: &Op| op.is(Kind::CompareExchange, Release) && op.has(LOCKED | ASKED);
    rejected(
        breaks("core.V1"),
        Checker::new(family("mutex_signalled")).fault(Fault::Refused(asks)),
        never_ends,
    );
}
