//! More than two CPUs: a waiter may have one of its own, and each poll takes the lock's line from the owner.

use spinpark_platform::Platform;

use super::{
    as_learned, watches, Adaptive, Arrival, Asleep, Awake, BeforeQueueing, EarlyWakes, FirstTry, Note,
    OnRelease, Policy, Polling, Reads, Spin, Spinner, Spinning, Times, Timing, Tries, Turn, WhenWoken,
};

/// The policy for more than two CPUs.
#[derive(Debug, Clone, Copy)]
pub enum Many {}

/// How seldom a spinner asks whether the one before it runs, in intervals of the head's questions about the
/// owner.
const QUESTIONS_APART: u64 = 16;

/// With up to this number of CPUs, at most one thread waits awake for each CPU besides the owner's: under a
/// quota, more of them would run, and use it up. With more, spinners are not counted against the CPUs: to read
/// that many slots costs more than it tells.
const MOST_CPUS_COUNTED: u32 = 8;

/// A thread that knows nothing of the lock waits for so long, times the CPUs, ns: through a short section of
/// as many threads as run. Longer ones are not worth its wait, and many threads may have come at once.
const FIRST_WAIT_NS: u64 = 1_250;

/// E1: a waiter that came late wakes this number early, from the head of the queue on, whether woken early
/// before or not. This and the next two are from the simulator (`notes/tuning.md`, "Longest waits").
const LATE_EARLY_WAKES: usize = 8;
/// E1: one that came in time wakes this number early, of those that have not been: one for its own turn, and
/// one more.
const EARLY_WAKES: usize = 2;
/// E1: how far from the head those may be. Further ones would sleep deeply again before their turns come.
const EARLY_WAKES_OF: usize = 16;

const _: () = assert!(LATE_EARLY_WAKES <= EarlyWakes::MOST && EARLY_WAKES <= EarlyWakes::MOST);

/// A read among others is worth this number of reads alone: the lock's line comes from another CPU for it,
/// which takes 50 ns and more. An estimate, on the low side; like `CROWD`, only this value was simulated
/// (`notes/tuning.md`).
const SHARED_READ: u32 = 4;
/// With at least this number of readers inside, one read in as many is counted, for all of them. Readers that
/// share a lock without a bias take its line from each other three times a read if each counts itself, twice
/// if not, and overwrite each other's additions: 64 of them took more than ten times as long to enable the
/// bias as the count says. Which one counts is drawn by its thread: the number of readers does not tell them
/// apart, as some may stay inside for long.
const CROWD: u32 = 8;

impl<P: Platform + Adaptive> Policy<P> for Many {
    const TIMES: Times = Times::of(&P::TUNING);

    #[inline(always)]
    fn learns(lock: usize, note: Note) {
        P::notes(lock, note);
    }

    #[inline]
    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        P::wants_time(lock, queued)
    }

    #[inline(always)]
    fn first_try(lock: usize, asks: FirstTry) -> bool {
        match asks {
            FirstTry::Reads => P::reads_first(),
            FirstTry::HasFailed => P::tries() != Tries::Succeed,
            // A failed try takes the line from the owner, and many threads try.
            FirstTry::JoinsSpinners => P::tries() == Tries::FailOften,
            // Not at back-off: the owner is expected to leave the lock free between its turns.
            FirstTry::JoinsTheseSpinners => P::spinning(lock) == Spinning::Eager,
            FirstTry::IsNoted | FirstTry::LetsSpinnerPass => true,
        }
    }

    /// Writers spin in turn: each poll by a second spinner takes the line, too. But for real-time threads,
    /// whose wait others' polls are not worth.
    #[inline]
    fn before_queueing(lock: usize, arrival: Arrival) -> BeforeQueueing {
        if arrival.writes && arrival.may_take_turns && P::priority() == 0 {
            let awake = P::awake(lock);
            return BeforeQueueing::InTurn(turn::<P>(awake, P::can_spin(Spin::Lock)));
        }
        if P::can_spin(Spin::Lock) {
            BeforeQueueing::Polls
        } else {
            BeforeQueueing::Queues
        }
    }

    #[inline]
    fn spins(lock: usize, spinner: Spinner) -> Option<Polling> {
        match spinner {
            Spinner::Watches(kind) => watches::<P>(kind),
            Spinner::Woken { .. } if !P::can_spin(Spin::Woken) => None,
            Spinner::Woken { writes } | Spinner::Alone { writes } => Some(polling::<P>(lock, writes, false)),
            Spinner::AtHead => Some(polling::<P>(lock, true, true)),
        }
    }

    #[inline]
    fn when_woken(_: usize, _: bool) -> WhenWoken {
        WhenWoken {
            // A waiter need not sleep to leave the owner alone.
            backs_off: false,
            // Running threads pass it on each of their CPUs.
            requests_at_once: true,
            // An idle CPU takes long to leave a deep sleep.
            wakes_others: Some(EarlyWakes {
                after_ns: P::TUNING.longest_wait_ns / 2,
                late_ns: P::TUNING.deep_sleep_ns,
                late: LATE_EARLY_WAKES,
                in_time: EARLY_WAKES,
                among: EARLY_WAKES_OF,
            }),
        }
    }

    #[inline]
    fn sleeps(asks: Asleep) -> bool {
        match asks {
            // No release leaves it asleep, so that its timer need not be fine.
            Asleep::HeadKeepsTime => true,
            Asleep::MayBeLeft => false,
            // A stopped thread is not waiting for this CPU.
            Asleep::ProbesLate => false,
        }
    }

    #[inline]
    fn on_release(lock: usize, asks: OnRelease) -> bool {
        as_learned::<P>(lock, asks)
    }

    #[inline]
    fn reads(readers: u32) -> Option<Reads> {
        let weight = match readers {
            0 | 1 => 1,
            2..CROWD => SHARED_READ,
            _ if P::is_sample(CROWD) => SHARED_READ * CROWD,
            _ => return None,
        };
        Some(Reads { weight, enough: P::reads_before_slots() })
    }
}

/// How a thread waits in the queue of spinners, by what it knows of the lock.
#[inline]
pub(super) fn turn<P: Platform + Adaptive>(awake: Awake, can_spin: bool) -> Turn {
    let others = P::cpus() - 1; // for as many there is a CPU beside the owner's
    let most = match awake {
        _ if !can_spin => 0,
        Awake::AtMost(most) if most < others => most,
        _ if others < MOST_CPUS_COUNTED => others,
        _ => u32::MAX,
    };
    let wait_ns = match awake {
        // As many threads as run may have come at once.
        Awake::Briefly => P::TUNING.primary_spin_ns.max(u64::from(P::cpus()) * FIRST_WAIT_NS),
        Awake::All | Awake::AtMost(_) => u64::MAX,
    };
    Turn {
        most,
        wait_ns: wait_ns.min(P::TUNING.queue_spin_ns),
        // By no more than a timer's slack.
        overstay_ns: P::TUNING.spin_ns,
        probe_ns: QUESTIONS_APART * P::TUNING.owner_probe_ns,
    }
}

/// How a thread polls.
///
/// Each poll takes the owner's cache line away from it, and each success moves the lock and all that it
/// protects to another CPU. Where threads come back for the lock faster than it can move, one that leaves the
/// owner alone for many of its turns costs all threads less than one that takes the first chance (document 004:
/// back-off); elsewhere, to stay away is to leave a free lock idle.
#[inline]
fn polling<P: Platform + Adaptive>(lock: usize, writes: bool, at_head: bool) -> Polling {
    let tuning = &P::TUNING;
    let backs_off = writes && P::spinning(lock) == Spinning::BackOff;
    let gap_ns = if backs_off { tuning.back_off_gap_ns } else { tuning.eager_gap_ns };
    // No thread waits awake for a waiter that the lock is promised to longer than a sleep and a wake-up take:
    // that waiter may be waiting for this very CPU, and many CPUs would wait for one that sleeps.
    let polling = Polling {
        promised_ns: tuning.secondary_spin_ns,
        gap_ns,
        widest_gap_ns: gap_ns.max(tuning.crowded_gap_ns),
        notes_unannounced: false,
        ..Polling::by(tuning)
    };
    if at_head {
        // It waits for readers as long as an announced spinner: they may overlap for ever, until it queues and
        // requests the lock.
        let (span_ns, readers_ns) = (tuning.queue_spin_ns, tuning.primary_spin_ns);
        Polling { span_ns, readers_ns, secondary_ns: 0, ..polling }
    } else {
        // Others sleep, and rely on an announced spinner. A CPU that waits is no other thread's.
        Polling { primary_ns: tuning.primary_spin_ns, ..polling }
    }
}
