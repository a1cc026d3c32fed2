//! Waiting for a lock while it was free.
//!
//! While a lock is held, at most as many threads wait for it as its longest queue had. So its holders explain at most *time
//! held × longest queue* of the waiting. For the rest the lock was free: its next owner still slept, or had no CPU. The
//! recorder cannot tell which. Below the bound nothing is reported: the lock may have been free there too, or threads were
//! barged past.
//!
//! The bound needs every hold. A few of those that `contended` and `sampled` leave out may be long enough to change it: a
//! holder that loses its CPU is rare, and blocks others for milliseconds. Then the sentence names both causes. The library does
//! not record acquisitions that succeed at once, so its locks have no such sentence.

use crate::model::{Detail, Lock, LocksOf, Profile, RoleStats};
use crate::units::{count, percent, time};

/// The part of a hold that is not measured, ns: from the acquisition to the first clock reading, and from the second one to the
/// release.
const UNMEASURED: f64 = 200.0;
/// Reported if holders explain at most this share of the waiting.
const EXPLAINED: f64 = 0.5;
/// Fewer waits, or holds, than this may be chance.
const FEW: u64 = 10;

/// For the lock that was waited for most: the sentences, if its holders explain too little of the waiting. Where the cause of
/// long holds is known already (`are_holders_known`), a mere possibility is not reported.
pub(crate) fn sentence(profile: &Profile, lock: &Lock, are_holders_known: bool) -> Option<String> {
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
    // With `full`, unmeasured holds had not ended when the recording did, and no thread waited then; but a wait may have
    // timed out.
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
    let advice = match crowd.as_str() {
        "" => "`spinpark compare` shows whether other locks help.",
        _ => "Run fewer threads; `spinpark compare` shows whether other locks help.",
    };
    let (explained, rest) = (time(explained), time(waited - explained));
    Some(if are_all_measured {
        format!(
            "Its holders explain at most {explained} of this waiting: it was held for {} (plus 0.2 µs per acquisition, not \
             measured), with at most {at_a_time} waiting. For the other {rest} or more, the lock was free: its next owners woke \
             late{slept}, or had no CPU{crowd}. {advice}",
            time(held)
        )
    } else {
        format!(
            "The measured holds explain at most {explained} of this waiting ({} on average, at most {at_a_time} waiting). Either \
             unmeasured holds were long, for example because holders lost their CPU{crowd}, or the lock was free and threads woke \
             late{slept}. Record with `--detail full` to find out which.",
            time(held / acquisitions as f64)
        )
    })
}
