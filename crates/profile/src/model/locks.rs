//! Locks, and what threads did with them.

use serde::{Deserialize, Serialize};

use super::{CallSiteId, Strip};

/// A lock, from creation or first use to destruction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// Its number in the recording; unique in this profile.
    pub id: u32,
    /// Its name in reports: its own name; otherwise what created or first used it, with a number if there are
    /// several.
    pub label: String,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// Its address.
    pub address: u64,
    /// Its kind.
    pub kind: Kind,
    /// What it is called, if it is none of libc's: `std Mutex`, `GMutex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// It stands for all that are waited for in one function: which of them it was is not known, and
    /// `address` is one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_several: bool,
    /// What created it, or used it first.
    #[serde(alias = "place")]
    pub creation_site: Option<CallSiteId>,
    /// Whether `creation_site` created it.
    pub is_created: bool,
    /// It was destroyed before the end.
    pub is_destroyed: bool,
    /// What threads did with it.
    pub roles: Vec<RoleStats>,
}

/// What a lock is; see the recorder's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "see `spinpark_recorder::format::Kind`, and `waits.toml` for those that stacks tell"
)]
pub enum Kind {
    Mutex,
    Recursive,
    ErrorChecking,
    Adaptive,
    Special,
    RwLock,
    Spin,
    Once,
    Condvar,
    Channel,
    Idle,
    Barrier,
    Join,
    Job,
    Semaphore,
    Futex,
    Call,
}

/// The mode in which threads want a lock; see the recorder's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::Role`")]
pub enum Role {
    Write,
    Read,
    Signal,
    Back,
    Late,
    Wake,
}

/// The use of a lock in one role.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoleStats {
    /// Which.
    pub role: Role,
    /// Number of acquisitions; with the detail `contended`: from its first wait on.
    pub acquisitions: u64,
    /// Number of acquisitions that had to wait.
    pub contended: u64,
    /// Number of failed tries.
    pub failed_tries: u64,
    /// Time waited.
    pub wait: Times,
    /// Time held.
    pub hold: Held,
    /// With the detail `full`: the non-critical sections before its acquisitions by threads that held no
    /// other lock, since their last release or wait. The longest is not kept.
    #[serde(default)]
    pub non_critical: Times,
    /// How the time waited is split.
    #[serde(default)]
    pub split: Split,
    /// Share of the recording in which it was held in this role, 0 to 1: time held ÷
    /// [`Profile::duration`](super::Profile::duration). With the detail `contended` a lower bound. None for
    /// readers, which hold it at the same time, and for several locks together.
    #[serde(default)]
    pub utilisation: Option<f64>,
    /// How its waits ended.
    pub outcomes: Outcomes,
    /// Releases that woke a waiter; of condition variables: signals.
    pub wake_ups: u64,
    /// The most threads that waited at a time.
    pub longest_queue: u64,
    /// Waits over time.
    pub strip: Strip,
    /// By call site, the longest total wait first.
    pub sites: Vec<SiteStats>,
    /// How far sums of a sample may be from the truth: 0 where everything was recorded.
    #[serde(default)]
    pub error: SampleError,
}

/// Half the widths of 95 % intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleError {
    /// Of [`RoleStats::acquisitions`].
    pub acquisitions: u64,
    /// Of [`RoleStats::contended`].
    pub contended: u64,
    /// Of the total of [`RoleStats::wait`], ns.
    pub waited: u64,
}

/// Lengths of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The longest.
    pub longest: u64,
    /// By length: bin *n* from 2^n ns up to 2^(n+1). Bins at the end that are 0 are left out.
    pub histogram: Vec<u64>,
}

/// How long a lock was held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Held {
    /// What was measured.
    pub measured: Times,
    /// Total time held: measured, or estimated from samples.
    pub total: u64,
    /// Half the width of the 95 % interval of `total`; 0 if every acquisition was measured.
    pub total_error: u64,
    /// With the detail `contended`: besides `total`, for how long the lock was held while others waited, of
    /// holds whose start is not known.
    #[serde(default)]
    pub while_waited: u64,
}

/// How time waited is split: `held`, `free` and `unknown` add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Another thread held the lock. The pairs say which.
    pub held: u64,
    /// The lock was free: it had been released, and its next owner had not woken up yet, or had no CPU.
    pub free: u64,
    /// Whether it was held or free is not known.
    pub unknown: u64,
    /// Of `held`: waits in which the holder was watched.
    pub watched: u64,
    /// Of `watched`: the holder was ready to run and had no CPU.
    pub no_cpu: u64,
}

impl Split {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            held: self.held + other.held,
            free: self.free + other.free,
            unknown: self.unknown + other.unknown,
            watched: self.watched + other.watched,
            no_cpu: self.no_cpu + other.no_cpu,
        }
    }
}

/// How waits ended. `owner_changed`, `off_cpu` and `budget` say why spinning ended, and count the same waits
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::Outcome`")]
pub struct Outcomes {
    pub spun: u64,
    pub parked: u64,
    pub handed_over: u64,
    pub timed_out: u64,
    pub unknown: u64,
    pub owner_changed: u64,
    pub off_cpu: u64,
    pub budget: u64,
    /// The wait had not ended when the recording did.
    #[serde(default)]
    pub still_waiting: u64,
}

/// The use of a lock in one role at one call site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteStats {
    /// Where.
    #[serde(alias = "place")]
    pub call_site: CallSiteId,
    /// Number of acquisitions here; with the details `contended` and `sampled` only those that waited, or
    /// were in a sample.
    pub acquisitions: u64,
    /// Number of acquisitions that had to wait.
    pub contended: u64,
    /// Time waited here.
    pub wait_total: u64,
    /// The longest wait.
    pub wait_longest: u64,
    /// Time held when taken here, as measured.
    pub hold: Held,
    /// Waits of other threads while it was held from here (FreeBSD's `cnt_hold`).
    pub blocked: u64,
    /// Time for which others waited while it was held from here, and until the next owner had it.
    pub blocked_total: u64,
    /// The lock was released here by threads of which it is not known where they had taken it.
    #[serde(default)]
    pub is_release: bool,
}
