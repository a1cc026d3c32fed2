//! Waiting for a lock that nobody was in.
//!
//! While a lock is held, no more threads wait for it than its longest queue; so its holders account for that many times
//! the time for which it was held, at most. What was waited beyond that passed while nobody held it: who was to have it next
//! slept still, or had no CPU. Nothing more can be told from outside, and less than that is not said: below the bound, it may
//! have been the same, or threads that were overtaken.
//!
//! The bound needs every hold. Of those that `contended` and `sampled` leave out, a few may be so long that they change it: a
//! holder that loses its CPU is rare, and keeps others waiting for milliseconds. Then both are named. The library does not
//! see who got a lock at once, so that nothing is said of its locks.

use crate::model::{Detail, Lock, LocksOf, Profile, RoleStats};
use crate::units::{count, percent, time};

/// Between getting a lock and the look at the clock, and between another look and letting it go, ns: held, and not measured.
const UNMEASURED: f64 = 200.0;
/// It is said if holders account for no more than this part of the waiting.
const EXPLAINED: f64 = 0.5;
/// Fewer waits, or holds, are chance.
const FEW: u64 = 10;

/// Of the lock that was waited for most: the sentence, if its holders cannot be why. What is only possible is not said where it
/// is known already why they held it for long.
pub(crate) fn late(profile: &Profile, lock: &Lock, are_holders_known: bool) -> Option<String> {
    let roles = || lock.roles.iter().filter(|stats| stats.role.is_lock());
    let sum = |of: fn(&RoleStats) -> u64| roles().map(of).sum::<u64>();
    let is_waiting = sum(|stats| stats.outcomes.still_waiting) > 0;
    if profile.is_partial() || is_waiting || profile.locks_of == LocksOf::Library {
        return None;
    }
    let (waits, queue) = (sum(|stats| stats.contended), sum(|stats| stats.longest_queue));
    let (acquisitions, measured) = (sum(|stats| stats.acquisitions), sum(|stats| stats.hold.measured.count));
    if waits < FEW || queue == 0 || measured < FEW {
        return None;
    }
    let threads: u64 = profile.threads.iter().map(|thread| u64::from(thread.users)).sum();
    // With `full`, what is missing was held still at the end, when nobody waited; but somebody may have given up.
    let are_held = profile.detail == Detail::Full
        && measured + threads >= acquisitions
        && sum(|stats| stats.outcomes.timed_out) == 0;
    let are_all_measured = measured >= acquisitions || are_held;
    let held = match profile.detail {
        _ if are_all_measured => sum(|stats| stats.hold.total) as f64,
        Detail::Contended => {
            sum(|stats| stats.hold.measured.total) as f64 / measured as f64 * acquisitions as f64
        }
        Detail::Sampled => sum(|stats| stats.hold.total.saturating_add(stats.hold.total_error)) as f64,
        Detail::Off | Detail::Full => return None,
    };
    let waited = lock.lock_wait() as f64;
    let explained = (held + UNMEASURED * acquisitions as f64) * queue as f64;
    if explained > EXPLAINED * waited || (are_holders_known && !are_all_measured) {
        return None;
    }
    let at_a_time = match queue {
        1 => String::from("one thread"),
        queue => format!("{} threads", count(queue)),
    };
    let sleepers = sum(|stats| stats.outcomes.parked + stats.outcomes.handed_over);
    let slept = match sleepers {
        0 => String::new(),
        sleepers => format!(" ({} of the waits slept)", percent(sleepers as f64 / waits as f64)),
    };
    let cpus = u64::from(profile.cpus);
    let crowd = match threads {
        threads if cpus > 0 && threads > cpus => {
            format!(" ({} threads, {} CPUs)", count(threads), count(cpus))
        }
        _ => String::new(),
    };
    let (explained, rest) = (time(explained), time(waited - explained));
    Some(if are_all_measured {
        format!(
            "Its holders are not why: it was held for {} in all (and 0.2 µs more for each acquisition, which is not measured), \
             with {at_a_time} waiting at most, which makes {explained} of waiting. For the other {rest} or more nobody was in it, and threads that were to have it were not running yet: they \
             were woken late{slept}, or had no CPU{crowd}.",
            time(held)
        )
    } else {
        format!(
            "Holds as they were measured make {explained} of this waiting at most ({} on average, {at_a_time} waiting): for the \
             rest either holds that were not measured were long, because holders lost their CPU{crowd}, say, or nobody was in it, \
             and threads were woken late{slept}; `--detail full` tells which.",
            time(held / acquisitions as f64)
        )
    })
}
