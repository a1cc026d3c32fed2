//! Signals: a handler's release meets the queue that its own thread has locked.

use spinpark_platform::Ordering::Release;
use spinpark_sim::check::{Fault, Kind, Op};
use spinpark_verify::sim_programs::Checker;

use super::harness::{family, never_ends, rejected};

/// Of the queue.
const LOCKED: u64 = 1;
const ASKED: u64 = 16;

/// V1: the release does not leave the look to the thread that has the queue locked, but waits for it: for
/// itself.
#[test]
fn a_handlers_release_waits_for_the_queue() {
    let asks =
        |op: &Op| op.is(Kind::CompareExchange, Release) && op.value & LOCKED != 0 && op.value & ASKED != 0;
    rejected(Checker::new(family("mutex_signalled")).fault(Fault::Refused(asks)), never_ends);
}
