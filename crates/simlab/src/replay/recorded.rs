//! What of a recording can be simulated, and what it lacks.

use spinpark_profile::model::{Detail, Kind, Lock, LocksOf, Profile, Role, RoleStats, Thread, Times};
use spinpark_sim::workload::{Replay, Replayed, Use};

/// A program as the simulator sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The program's path.
    pub program: String,
    /// Threads that used a lock.
    pub threads: u32,
    /// How many of them were at work at a time, on average, or waited for a lock: idle ones wait for signals.
    pub workers: u32,
    /// CPUs that it could use; 0: not known.
    pub cpus: u32,
    /// For how long it was recorded, ns.
    pub duration_ns: u64,
    /// Acquisitions of all locks.
    pub acquisitions: u64,
    /// The simulated mutex that works as its own.
    pub lock: &'static str,
    /// Time with the recorder ÷ without; 1 if that is not known.
    pub cost: f64,
    /// Whether its threads wait for signals of condition variables, which are simulated as if there were always work.
    pub waits_for_signals: bool,
    /// Its locks.
    pub replay: Replay,
    /// What the recording does not say, and what is simulated instead: whole sentences.
    pub lacks: Vec<String>,
}

/// Why a recording cannot be simulated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// See the message.
    #[error(
        "{program} was recorded with the detail `{detail}`, which does not time all sections\nRecord it again: spinpark profile \
         --detail full -- {program}"
    )]
    Detail {
        /// The program.
        program: String,
        /// What was recorded.
        detail: &'static str,
    },
    /// See the message.
    #[error(
        "{0} acquired no mutex and no read-write lock while it was recorded, so there is nothing to simulate"
    )]
    NoLocks(String),
}

/// So many locks are simulated, those with the most acquisitions.
const MOST_LOCKS: usize = 512;
impl Recorded {
    /// What this profile says.
    ///
    /// # Errors
    ///
    /// It has not enough detail, or no locks.
    pub fn of(profile: &Profile) -> Result<Self, Unfit> {
        let detail = match profile.detail {
            Detail::Off => Some("off"),
            Detail::Contended => Some("contended"),
            Detail::Sampled | Detail::Full => None,
        };
        if let Some(detail) = detail {
            return Err(Unfit::Detail { program: profile.program.clone(), detail });
        }
        let threads = profile.threads.iter().map(|thread| thread.users.max(1)).sum::<u32>().max(1);
        let mut used: Vec<&Lock> = profile.locks.iter().filter(|lock| acquisitions(lock) > 0).collect();
        used.sort_by_key(|lock| std::cmp::Reverse(acquisitions(lock)));
        let all: u64 = used.iter().copied().map(acquisitions).sum();
        if all == 0 {
            return Err(Unfit::NoLocks(profile.program.clone()));
        }
        let (kept, rest) = used.split_at(used.len().min(MOST_LOCKS));
        let kept_acquisitions: u64 = kept.iter().copied().map(acquisitions).sum();
        let locks: Vec<Replayed> = kept.iter().copied().map(replayed).collect();
        let held: u64 = kept.iter().flat_map(|lock| roles(lock)).map(|role| role.hold.total).sum();
        let busy = busy_ns(profile);
        let outside = busy - held as f64;
        let replay = Replay {
            locks,
            rwlock: String::from("spinpark"),
            outside_ns: outside.max(0.0) / kept_acquisitions.max(1) as f64,
        };
        let mut lacks = lacks(profile, kept);
        let workers = workers(profile).clamp(1, threads);
        if workers < threads {
            lacks.push(format!(
                "Of its {threads} threads, on average {workers} at a time did not wait for signals. So many are simulated as they were \
                 recorded; of those that --threads asks for, all have work."
            ));
        }
        if outside < 0.0 {
            lacks.push(String::from(
                "Sections take longer than the threads' time together, so locks are held within each other. They are simulated \
                 one after the other, without time between them: the rate is too low.",
            ));
        }
        if !rest.is_empty() {
            lacks.push(format!(
                "Simulated are the {MOST_LOCKS} locks with the most acquisitions; {} others have {:.1} % of them.",
                rest.len(),
                100.0 * (1.0 - kept_acquisitions as f64 / all as f64)
            ));
        }
        Ok(Self {
            program: profile.program.clone(),
            threads,
            workers,
            cpus: profile.cpus,
            duration_ns: profile.duration,
            acquisitions: kept_acquisitions,
            lock: match profile.locks_of {
                LocksOf::Glibc => "classic-mutex-2003",
                LocksOf::Spinpark | LocksOf::Library => "spinpark",
            },
            cost: cost(profile),
            waits_for_signals: waits_for_signals(profile),
            replay,
            lacks,
        })
    }

    /// Acquisitions per second while it was recorded.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.acquisitions as f64 / (self.duration_ns.max(1) as f64 * 1e-9)
    }

    /// The same without the time that recording took.
    #[must_use]
    pub fn unrecorded_rate(&self) -> f64 {
        self.rate() * self.cost
    }
}

/// The use of a lock as a lock: not of condition variables, and not returns from them.
fn roles(lock: &Lock) -> impl Iterator<Item = &RoleStats> {
    let is_lock = lock.kind != Kind::Condvar;
    lock.roles.iter().filter(move |role| is_lock && [Role::Write, Role::Read].contains(&role.role))
}

fn acquisitions(lock: &Lock) -> u64 {
    roles(lock).map(|role| role.acquisitions).sum()
}

/// How many threads did not wait for signals at a time, on average.
fn workers(profile: &Profile) -> u32 {
    let at_work = |thread: &Thread| thread.time.min(profile.duration).saturating_sub(thread.signals);
    let time: u64 = profile.threads.iter().map(at_work).sum();
    (time as f64 / profile.duration.max(1) as f64).round() as u32
}

/// Time that all threads spent computing, ns: their time without waits, but no more than their CPUs have, and without what
/// recording cost.
fn busy_ns(profile: &Profile) -> f64 {
    let waited: u64 = profile.locks.iter().flat_map(|lock| &lock.roles).map(|role| role.wait.total).sum();
    let threads: u64 = profile.threads.iter().map(|thread| thread.time.min(profile.duration)).sum();
    let on_cpus =
        if profile.cpus > 0 { profile.duration.saturating_mul(profile.cpus.into()) } else { u64::MAX };
    let busy = threads.saturating_sub(waited).min(on_cpus) as f64;
    busy / cost(profile)
}

fn waits_for_signals(profile: &Profile) -> bool {
    profile.locks.iter().any(|lock| lock.kind == Kind::Condvar)
}

fn cost(profile: &Profile) -> f64 {
    profile.cost.as_ref().map_or(1.0, |cost| cost.ratio.max(1.0))
}

fn replayed(lock: &Lock) -> Replayed {
    let mut uses = [Use::default(), Use::default()];
    for role in roles(lock) {
        uses[usize::from(role.role == Role::Read)] =
            Use { acquisitions: role.acquisitions, holds: holds(role) };
    }
    Replayed { name: lock.label.clone(), is_rwlock: lock.kind == Kind::RwLock, uses }
}

/// The mean times held by call site, so that the mean of all is the recorded one.
fn holds(role: &RoleStats) -> Vec<(u64, f64)> {
    let mean = |times: &Times| (times.count, times.total as f64 / times.count.max(1) as f64);
    let mut holds: Vec<(u64, f64)> = role.sites.iter().map(|site| mean(&site.hold.measured)).collect();
    holds.retain(|&(number, _)| number > 0);
    if holds.is_empty() && role.hold.measured.count > 0 {
        holds.push(mean(&role.hold.measured));
    }
    let (number, sum) =
        holds.iter().fold((0, 0.0), |(n, sum), &(number, ns)| (n + number, sum + number as f64 * ns));
    if sum > 0.0 && role.acquisitions > 0 {
        let wanted = role.hold.total as f64 / role.acquisitions as f64;
        let scale = wanted / (sum / number as f64);
        holds.iter_mut().for_each(|(_, ns)| *ns *= scale);
    }
    holds
}

fn lacks(profile: &Profile, kept: &[&Lock]) -> Vec<String> {
    let mut lacks = vec![
        String::from(
            "A recording has no order of acquisitions: each simulated thread takes the locks at random, by their shares, never \
             one within another.",
        ),
        String::from(
            "It has no think times: between two acquisitions a thread computes, exponentially distributed around the mean. Sleep \
             and I/O outside locks count as computing.",
        ),
        String::from(
            "It has no distribution of times: all sections of one call site take the mean time, with that in which the holder had \
             no CPU.",
        ),
        String::from("It has no data: each exclusive section changes one cache line beside its lock."),
    ];
    if waits_for_signals(profile) {
        lacks.push(String::from(
            "It has no causes of signals: waits for condition variables are left out, as if there were always work. The rate is \
             an upper limit.",
        ));
    }
    if kept.iter().any(|lock| lock.kind == Kind::RwLock) {
        lacks.push(String::from(
            "The simulator has no read-write lock of glibc's: those of the program are ours in every row.",
        ));
    }
    if profile.detail == Detail::Sampled {
        lacks.push(String::from("Times of uncontended sections are samples (detail `sampled`)."));
    }
    lacks
}
