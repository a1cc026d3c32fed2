//! Policies: which threads spin and for how long, which waiter is woken or left asleep, when a lock is
//! promised, and until when a waiter sleeps. The protocol ([`core`](crate::core)) asks, and is right whatever
//! the answers: no invariant leans on one. They are about speed, and about which thread waits for how long.
//!
//! A policy answers the questions of each moment of a wait:
//!
//! | moment | questions | answers |
//! |---|---|---|
//! | any | [`learns`](Policy::learns), [`wants_time`](Policy::wants_time) | – (what the calling thread does; when it reads the clock) |
//! | the first try | [`first_try`](Policy::first_try) | whether the thread reads first, or skips the try |
//! | before the thread queues | [`before_queueing`](Policy::before_queueing), [`spins`](Policy::spins) | [`BeforeQueueing`], [`Polling`] |
//! | asleep | [`sleeps`](Policy::sleeps), [`TIMES`](Policy::TIMES) | which waiters have timers, [`Times`] |
//! | woken | [`when_woken`](Policy::when_woken), [`spins`](Policy::spins) | [`WhenWoken`], [`Polling`] |
//! | the release | [`on_release`](Policy::on_release); [`reads`](Policy::reads) by count | whom it wakes, leaves asleep, or promises the lock; [`Reads`] |
//!
//! | policy | file | what it does |
//! |---|---|---|
//! | [`Usual`] | here | as [`Few`] with one or two CPUs, as [`Many`] with more: that of a lock whose type names no other |
//! | [`Few`] | `few_cpus.rs` | threads take turns, or back off asleep |
//! | [`Many`] | `many_cpus.rs` | spinners queue, or poll from afar |
//! | [`Park`] | `park.rs` | no thread spins, and waiters are woken in order: the shortest, to start from |
//! | [`Chosen`] | `chosen.rs` | as [`Usual`], or as was chosen for the lock |
//!
//! A lock has its policy as a type parameter: `RawMutex<P, Park>`. CONTRIBUTING shows how to write one.
//! `verify` runs each protocol under these, and under answers at random.
//!
//! What threads learn about locks is in `learned`: a policy asks it through [`Adaptive`], or does without.
//!
//! A constant stands in the file of the policy that uses it, with its reason; those that depend on the machine
//! are in [`Tuning`]. Measured: `notes/tuning.md` ("CPUs to spare", "One CPU", and the sections of each
//! mechanism).

mod chosen;
mod few_cpus;
mod learned;
mod many_cpus;
mod park;

use spinpark_platform::{Platform, Tuning};

pub use chosen::{Choice, Choices, Chosen, Only};
pub use few_cpus::Few;
pub use learned::{
    Adaptive, Awake, Note, Spin, SpinStats, Spinning, Timing, TransferCost, Tries, Try, READS_AFTER_WAIT,
};
pub use many_cpus::Many;
pub use park::Park;

/// What a lock asks. `lock` is its address, 0 where that is not at hand; but for [`Policy::learns`], whose lock may be
/// gone, the calling thread holds it or is about to wait for it. Answers may
/// differ from call to call, and may rest on what [`Policy::learns`] was told.
///
/// No question has an answer here: the file of a policy has all of its answers. (Those that [`Few`] and [`Many`] have
/// in common, from what threads learn, are functions at the end.)
pub trait Policy<P: Platform>: Sized + Send + Sync + 'static {
    /// The times of a sleep.
    const TIMES: Times;

    /// Notes what the calling thread does. [`Note::Sleeps`] is for the machine in any case: it may have to wake a
    /// waiter of another lock early, which it had left asleep (E2).
    fn learns(lock: usize, note: Note);

    /// Whether and how the acquisition that the calling thread has just made, after a wait, is timed:
    /// [`Note::Acquired`], then [`Note::Released`] and [`Note::Returns`]. `queued`: it waited in the queue.
    fn wants_time(lock: usize, queued: bool) -> Option<Timing>;

    /// How the calling thread makes its first try. Each acquisition asks [`FirstTry::Reads`], and one that
    /// reads [`FirstTry::HasFailed`]: an implementation is `#[inline(always)]`.
    fn first_try(lock: usize, asks: FirstTry) -> bool;

    /// What the calling thread does before it queues, after a first try that failed.
    fn before_queueing(lock: usize, arrival: Arrival) -> BeforeQueueing;

    /// For how long the calling thread spins now, and how it polls; `None`: it does not spin. Asked after a
    /// poll that has failed; of a thread that arrives, only if [`Policy::before_queueing`] let it spin.
    fn spins(lock: usize, spinner: Spinner) -> Option<Polling>;

    /// What the calling thread does that a release has woken. `writes`: it is to have the lock alone, and has
    /// no real-time priority.
    fn when_woken(lock: usize, writes: bool) -> WhenWoken;

    /// Which waiters have timers.
    fn sleeps(asks: Asleep) -> bool;

    /// What the calling thread, which holds the lock, does for others.
    fn on_release(lock: usize, asks: OnRelease) -> bool;

    /// For how much the read counts that the calling thread has just begun, beside `readers` with itself (1
    /// also if that is not known); `None`: it is not counted.
    fn reads(readers: u32) -> Option<Reads>;
}

// ---- the first try

/// What a lock asks about a first try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstTry {
    /// Whether the thread reads the lock before it tries to take it: a failed try takes the line from the
    /// owner. Counts an attempt.
    Reads,
    /// Whether some of its latest tries have failed: if so, it is asked the next two, and notes how it goes on.
    HasFailed,
    /// Whether a thread whose tries have failed joins the spinners, if there are some, without a try.
    JoinsSpinners,
    /// There are some: whether it does so for this lock, whose owner is perhaps better left alone.
    JoinsTheseSpinners,
    /// Of a lock that has waiters, or had some lately, and that the thread has read first: whether its try is
    /// left to the slow call, which notes how it went ([`Note::Tried`]).
    IsNoted,
    /// Whether a reader first lets a writer go that spins for the readers to leave.
    LetsSpinnerPass,
}

// ---- before the thread queues

/// A thread that has failed to acquire a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Whether it is to have the lock alone.
    pub writes: bool,
    /// Whether it may spin in turn. The queue of spinners has no room for a thread that is asked again.
    pub may_take_turns: bool,
}

/// What a thread does before it queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeQueueing {
    /// It queues at once.
    Queues,
    /// It queues at once, and leaves the lock to its owner for a while. If it is the first, the next release
    /// need not wake it: it keeps its own time.
    BacksOff,
    /// It polls the lock by itself.
    Polls,
    /// It joins the queue of spinners, of which only the head polls.
    InTurn(Turn),
}

/// A wait in the queue of spinners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// If as many threads spin in turn already, it polls once, and queues. 0: always. `u32::MAX`: they are not
    /// counted.
    pub most: u32,
    /// For how long it waits to become the head, ns.
    pub wait_ns: u64,
    /// For how long it does so if it has a deadline on another clock than the monotonic one, ns.
    pub overstay_ns: u64,
    /// Interval of its probes whether the thread before it runs, ns.
    pub probe_ns: u64,
}

/// A thread that is about to spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spinner {
    /// It arrives, and spins for the lock by itself.
    Alone {
        /// Whether it is to have the lock alone.
        writes: bool,
    },
    /// It is the head of the queue of spinners.
    AtHead,
    /// A release has woken it, and another thread acquired the lock meanwhile.
    Woken {
        /// As of [`Spinner::Alone`].
        writes: bool,
    },
    /// It watches its own node, or readers let a writer go first, for what the kind of spin says. Of the
    /// answer, [`Polling::span_ns`] counts, and of [`Spin::Writer`] also [`Polling::gap_ns`].
    Watches(Spin),
}

/// For how long a thread spins, and how it polls. 0 in any span but the first means no limit. A
/// spinner is in no queue, so no release notifies it, and some do not read the caller's deadline: spans are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// For how long, ns.
    pub span_ns: u64,
    /// For how long instead if it is announced, so that waiters that sleep rely on it, ns.
    pub primary_ns: u64,
    /// For how long at most, from its start, once it has seen another announced spinner, ns.
    pub secondary_ns: u64,
    /// For how long at most while the lock is promised to another thread, ns.
    pub promised_ns: u64,
    /// For how long at most while readers hold the lock, ns.
    pub readers_ns: u64,
    /// The time between two polls, ns.
    pub gap_ns: u64,
    /// That time doubles, up to this, each time that the lock has another owner, ns.
    pub widest_gap_ns: u64,
    /// Interval of its probes whether the owner runs, ns. Not 0.
    pub probe_ns: u64,
    /// How often it reads the clock at most, in case that the clock stands. Not 0.
    pub most_clock_reads: u64,
    /// Whether a spin that did not acquire is noted ([`Note::Spun`]) of a thread that was not announced: as paid, unless
    /// the owner was off its CPU.
    pub notes_unannounced: bool,
}

impl Polling {
    /// Polls at short intervals for `span_ns`, whatever other threads do.
    pub const fn lasting(span_ns: u64) -> Self {
        Self {
            span_ns,
            primary_ns: 0,
            secondary_ns: 0,
            promised_ns: 0,
            readers_ns: 0,
            gap_ns: 30,
            widest_gap_ns: 30,
            probe_ns: 1_000,
            most_clock_reads: span_ns.saturating_mul(2).saturating_add(2), // each takes more than 1 ns
            notes_unannounced: true,
        }
    }

    /// As long and as often as `tuning` says for a spinner outside the queue of spinners.
    const fn by(tuning: &Tuning) -> Self {
        Self {
            secondary_ns: tuning.secondary_spin_ns,
            gap_ns: tuning.eager_gap_ns,
            widest_gap_ns: tuning.eager_gap_ns,
            probe_ns: tuning.owner_probe_ns,
            ..Self::lasting(tuning.spin_ns)
        }
    }
}

// ---- asleep

/// The times of a sleep, ns. They are not up to answers at random: waiters rely on timers if a thread is
/// stopped (L3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// A waiter that is woken this long after it queued, and finds the lock taken, requests a hand-off.
    pub starvation_ns: u64,
    /// The last reader leaves the lock to a preferred writer that has waited for this long, though it sleeps.
    pub preferred_ns: u64,
    /// How long a waiter that backs off first leaves the lock to its owner; twice as long each further time.
    pub repark_ns: u64,
    /// How long a starved waiter first keeps new readers out.
    pub request_ns: u64,
    /// How long it does so at most.
    pub reader_patience_ns: u64,
    /// How long a waiter that is woken without `WAKING` waits until it is woken with it (L4).
    pub unmarked_ns: u64,
    /// The time until a waiter with a timer first probes the lock (L3), and then after twice as long each time.
    /// At most the machine's longest time, as the longest one here.
    pub probe_ns: u64,
    /// The first probe comes no earlier than this, if [`Asleep::ProbesLate`] says so.
    pub least_probe_ns: u64,
    /// The longest time between two probes.
    pub longest_probe_ns: u64,
}

impl Times {
    /// Those that `tuning` says.
    pub const fn of(tuning: &Tuning) -> Self {
        Self {
            starvation_ns: tuning.starvation_ns,
            preferred_ns: tuning.preferred_ns,
            repark_ns: tuning.repark_ns,
            request_ns: tuning.request_ns,
            reader_patience_ns: tuning.reader_patience_ns,
            unmarked_ns: tuning.unmarked_ns,
            probe_ns: tuning.probe_ns,
            least_probe_ns: tuning.least_probe_ns,
            longest_probe_ns: tuning.longest_probe_ns,
        }
    }
}

/// Whether waiters of this machine probe at all (L3 in `core`). A policy chooses when they do; that they never do, or
/// do not sleep before that, does not compile.
pub(crate) const fn has_probes<P: Platform, Q: Policy<P>>() -> bool {
    const {
        let longest = P::TUNING.longest_probe_ns;
        let times = Q::TIMES;
        let probes = times.probe_ns <= longest && times.longest_probe_ns <= longest;
        assert!(probes || P::TUNING.probe_ns == u64::MAX, "waiters probe within the machine's longest time");
        let sleeps = times.probe_ns > 0 && times.longest_probe_ns > 0;
        assert!(sleeps || P::TUNING.probe_ns == 0, "a waiter that probes sleeps before that");
    }
    P::TUNING.probe_ns != u64::MAX
}

/// What a lock asks about a waiter that is about to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asleep {
    /// Whether a head that was woken and lost is to be left to its own timer (`TIMED`).
    HeadKeepsTime,
    /// Whether a release may leave one asleep that keeps its own time ([`OnRelease::LeavesHead`]), so that it
    /// notes where it sleeps.
    MayBeLeft,
    /// Whether its first probe comes after [`Times::least_probe_ns`] at the earliest.
    ProbesLate,
}

// ---- woken

/// What a woken waiter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhenWoken {
    /// Whether it polls once, and leaves the lock to its owner for a while.
    pub backs_off: bool,
    /// Whether it polls once if it has starved, and then requests the lock.
    pub requests_at_once: bool,
    /// Whether it wakes waiters behind it early (E1).
    pub wakes_others: Option<EarlyWakes>,
}

/// E1: which waiters are woken early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyWakes {
    /// By a waiter that has waited for this long, ns.
    pub after_ns: u64,
    /// That waiter came late if it was not woken early itself, or so long ago, ns.
    pub late_ns: u64,
    /// If it came late: this number, from the head of the queue on, whether woken early before or not. At most
    /// [`EarlyWakes::MOST`], as the next.
    pub late: usize,
    /// If it came in time: this number, of those that have not been woken early.
    pub in_time: usize,
    /// How far from the head those may be.
    pub among: usize,
}

impl EarlyWakes {
    /// The most waiters that one thread wakes early at a time.
    pub const MOST: usize = 8;
}

// ---- the release

/// What a lock asks its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRelease {
    /// E2: whether the release leaves a head asleep that keeps its own time, as the thread comes back at once.
    LeavesHead,
    /// L4: whether the head is woken without a mark.
    WakesUnmarked,
    /// H4: whether threads that run have passed a woken waiter for long, so that the lock is kept for it. Notes
    /// that the calling thread is one of them.
    Promises,
    /// A3: whether the release of a lock without waiters clears `CONTENDED`.
    EndsContended,
    /// Whether a signal under the mutex leaves the wake-up to the release in any case.
    DefersWakes,
    /// Else: whether it does so because the thread usually waits soon after it. Counts the signal.
    DefersThisWake,
}

/// For how much a read counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// This read: as much as this number of reads of a lock that is not shared.
    pub weight: u32,
    /// After how many reads without a write in between the lock's bias is enabled.
    pub enough: u32,
}

// ---- by the number of CPUs

/// As [`Few`] or as [`Many`], by the number of CPUs that the process may use now.
#[derive(Debug, Clone, Copy)]
pub enum Usual {}

/// The answer of [`Few`] or that of [`Many`].
macro_rules! by_cpus {
    ($name:ident($($argument:expr),*)) => {
        match P::cpus() {
            1 | 2 => <Few as Policy<P>>::$name($($argument),*),
            _ => <Many as Policy<P>>::$name($($argument),*),
        }
    };
}

// To ask how many CPUs there are takes time: it does not where both answer alike.
impl<P: Platform + Adaptive> Policy<P> for Usual {
    const TIMES: Times = Times::of(&P::TUNING);

    #[inline(always)]
    fn learns(lock: usize, note: Note) {
        match note {
            Note::Tried(_) => by_cpus!(learns(lock, note)),
            _ => P::notes(lock, note),
        }
    }

    #[inline]
    fn wants_time(lock: usize, queued: bool) -> Option<Timing> {
        P::wants_time(lock, queued)
    }

    #[inline(always)]
    fn first_try(lock: usize, asks: FirstTry) -> bool {
        match asks {
            FirstTry::Reads => P::reads_first(),
            // Only `Many` counts failures, and else there are none.
            FirstTry::HasFailed => P::tries() != Tries::Succeed,
            _ => by_cpus!(first_try(lock, asks)),
        }
    }

    #[inline]
    fn before_queueing(lock: usize, arrival: Arrival) -> BeforeQueueing {
        by_cpus!(before_queueing(lock, arrival))
    }

    #[inline]
    fn spins(lock: usize, spinner: Spinner) -> Option<Polling> {
        match spinner {
            Spinner::Watches(kind) => watches::<P>(kind),
            _ => by_cpus!(spins(lock, spinner)),
        }
    }

    #[inline]
    fn when_woken(lock: usize, writes: bool) -> WhenWoken {
        by_cpus!(when_woken(lock, writes))
    }

    #[inline]
    fn sleeps(asks: Asleep) -> bool {
        by_cpus!(sleeps(asks))
    }

    #[inline]
    fn on_release(lock: usize, asks: OnRelease) -> bool {
        match asks {
            OnRelease::LeavesHead | OnRelease::DefersWakes => by_cpus!(on_release(lock, asks)),
            _ => as_learned::<P>(lock, asks),
        }
    }

    #[inline]
    fn reads(readers: u32) -> Option<Reads> {
        match readers {
            0 | 1 => <Many as Policy<P>>::reads(readers),
            _ => by_cpus!(reads(readers)),
        }
    }
}

/// What [`Few`] and [`Many`] answer alike on a release: as the thread has learned.
#[inline(always)]
fn as_learned<P: Platform + Adaptive>(lock: usize, asks: OnRelease) -> bool {
    match asks {
        OnRelease::WakesUnmarked => P::wakes_unmarked(),
        OnRelease::Promises => P::has_passed_woken(),
        OnRelease::EndsContended => P::ends_contended(lock),
        OnRelease::DefersThisWake => P::waits_next(lock),
        OnRelease::LeavesHead | OnRelease::DefersWakes => false,
    }
}

/// So of a thread that watches.
#[inline(always)]
fn watches<P: Platform + Adaptive>(kind: Spin) -> Option<Polling> {
    let span_ns = match kind {
        Spin::Writer => P::TUNING.pass_ns,
        Spin::Lock | Spin::Woken | Spin::Signal | Spin::HandOver | Spin::Readers => P::TUNING.spin_ns,
    };
    P::can_spin(kind).then_some(Polling { span_ns, ..Polling::by(&P::TUNING) })
}
