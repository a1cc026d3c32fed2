//! Locks, and what threads did with them.

use std::borrow::Cow;
use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{CallSiteId, Strip};

/// A lock, from creation or first use to destruction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Where it is, if it is part of a variable of a program or library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LockPlace>,
    /// It stands for all that are waited for in one function: which of them it was is not known, and
    /// `address` is one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_several: bool,
    /// The program made it of a mutex and condition variables, as stacks tell: where it is, its mutex is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_made: bool,
    /// It is one of glibc's own: only its waits are known, and they are sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// What created it, or used it first.
    pub creation_site: Option<CallSiteId>,
    /// Whether `creation_site` created it.
    pub is_created: bool,
    /// It was destroyed before the end.
    pub is_destroyed: bool,
    /// What threads did with it.
    pub roles: Vec<RoleStats>,
}

impl Lock {
    /// Time waited for it, ns; without waiting for signals, and the returns after it.
    #[must_use]
    pub fn lock_wait(&self) -> u64 {
        self.roles.iter().filter(|stats| stats.role.is_lock()).map(|stats| stats.wait.total).sum()
    }

    /// Whether only the waits are known in which a thread slept: acquisitions without one are not seen.
    #[must_use]
    pub fn is_slept_for(&self) -> bool {
        self.type_name.is_some()
            || self.is_made
            || !self.kind.is_lock() && self.kind != Kind::Condvar
            || self.kind == Kind::Once
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn noun(&self) -> &str {
        match (&self.type_name, self.is_made, self.kind) {
            (Some(name), ..) => name,
            (None, true, Kind::RwLock) => "condvar-based rwlock",
            (None, true, _) => "condvar-based lock",
            (None, false, kind) => kind.noun(),
        }
    }

    /// The order of locks: longest waiting first, then the longest returns, then the most acquisitions.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let sum = |of: fn(&RoleStats) -> u64| self.roles.iter().map(of).sum::<u64>();
        let back = self.role(Role::Back).map_or(0, |stats| stats.wait.total);
        (Reverse(self.lock_wait()), Reverse(back), Reverse(sum(|stats| stats.acquisitions)), self.id)
    }

    /// Its use in a role.
    #[must_use]
    pub fn role(&self, role: Role) -> Option<&RoleStats> {
        self.roles.iter().find(|stats| stats.role == role)
    }

    /// The call site that created it, or used it first. If the first user never waited and never blocked
    /// others, it may have used an older lock at this address whose destruction cannot be observed
    /// (`std::mutex`): then the site that waits most.
    #[must_use]
    pub fn user(&self) -> Option<CallSiteId> {
        let sites = || self.roles.iter().flat_map(|stats| &stats.sites);
        let is_used = |call_site: CallSiteId| sites().any(|site| site.call_site == call_site);
        let most = || sites().max_by_key(|site| site.wait_total).filter(|site| site.wait_total > 0);
        match self.creation_site {
            Some(call_site) if self.is_created || is_used(call_site) => Some(call_site),
            first => most().map(|site| site.call_site).or(first),
        }
    }

    /// The common name of the locks that one call site created: the label without the number. Of elements of
    /// one array, the variable: `table` of `table[3]`, and `table[].lock` of `table[3].lock`.
    #[must_use]
    pub fn class(&self) -> Cow<'_, str> {
        let class = self.class_of_label();
        let Some((variable, rest)) = class.split_once('[').filter(|(variable, _)| !variable.is_empty())
        else {
            return Cow::Borrowed(class);
        };
        let Some((number, member)) = rest.split_once(']') else { return Cow::Borrowed(class) };
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        match is_number && member.starts_with('.') {
            true => Cow::Owned(format!("{variable}[]{member}")),
            false => Cow::Borrowed(class),
        }
    }

    fn class_of_label(&self) -> &str {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let label = match self.label.rsplit_once(" #") {
            Some((label, number)) if is_number(number) => label,
            _ => &self.label,
        };
        // Elements and parts of one variable: `table[3]`, `table+0x40`.
        if let Some((variable, number)) = label.strip_suffix(']').and_then(|label| label.rsplit_once('['))
            && !variable.is_empty()
            && is_number(number)
        {
            return variable;
        }
        match label.rsplit_once("+0x") {
            Some((variable, digits))
                if !variable.contains(' ') && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                variable
            }
            _ => label,
        }
    }
}

/// The place of a variable in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockPlace {
    /// The path of the program or library.
    pub path: String,
    /// Its build id, in hexadecimal digits, if it has one.
    pub build_id: Option<String>,
    /// The address that the file gives it.
    pub address: u64,
}

/// A lock of glibc's own, at which threads were seen sleeping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// What it is of: `stdout`.
    pub of: String,
    /// The function of glibc below which threads waited for it most.
    pub function: String,
}

impl Sampled {
    /// What it is, in a sentence.
    pub(crate) fn phrase(&self) -> String {
        match self.of.contains(' ') {
            true => format!("glibc's lock of {}", self.of),
            false => format!("glibc's lock of `{}`", self.of),
        }
    }
}

/// What a lock is; see the recorder's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "see `spinpark_recorder::format::Kind`, and `waits.toml` for those that stacks tell"
)]
pub enum Kind {
    #[default]
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

impl Kind {
    /// In a sentence.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Mutex | Self::Special => "mutex",
            Self::Recursive => "recursive mutex",
            Self::ErrorChecking => "error-checking mutex",
            Self::Adaptive => "adaptive mutex",
            Self::RwLock => "rwlock",
            Self::Spin => "spin lock",
            Self::Once => "once",
            Self::Condvar => "condvar",
            Self::Channel => "channel",
            Self::Idle => "idle threads",
            Self::Barrier => "barrier",
            Self::Join => "join",
            Self::Job => "job",
            Self::Semaphore => "semaphore",
            Self::Futex => "futex",
            Self::Call => "call",
        }
    }

    /// Whether it is a lock: a thread that waits for one waits until another one lets it go.
    #[must_use]
    pub fn is_lock(self) -> bool {
        use Kind::{Adaptive, ErrorChecking, Mutex, Once, Recursive, RwLock, Special, Spin};
        matches!(self, Mutex | Recursive | ErrorChecking | Adaptive | Special | RwLock | Spin | Once)
    }

    /// All of them.
    pub(crate) const ALL: [Self; 17] = [
        Self::Mutex,
        Self::Recursive,
        Self::ErrorChecking,
        Self::Adaptive,
        Self::Special,
        Self::RwLock,
        Self::Spin,
        Self::Once,
        Self::Condvar,
        Self::Channel,
        Self::Idle,
        Self::Barrier,
        Self::Join,
        Self::Job,
        Self::Semaphore,
        Self::Futex,
        Self::Call,
    ];
}

/// The mode in which threads want a lock; see the recorder's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::Role`")]
pub enum Role {
    #[default]
    Write,
    Read,
    Signal,
    Back,
    Late,
    Wake,
}

impl Role {
    /// Whether a waiter in this role certainly waits for a lock: not for a signal, and not to return after
    /// one.
    #[must_use]
    pub fn is_lock(self) -> bool {
        matches!(self, Self::Write | Self::Read)
    }

    /// Whether a waiter in this role may wait for a holder: of a lock, or of the mutex of a condition
    /// variable. (After a deadline it usually waits for a CPU.)
    #[must_use]
    pub fn has_holder(self) -> bool {
        self.is_lock() || self == Self::Back
    }

    /// The order in tables: waits for locks, for mutexes after a signal, the rest.
    #[must_use]
    pub fn rank(self) -> u8 {
        if self.is_lock() { 0 } else { u8::from(!self.has_holder()) + 1 }
    }

    /// As a remark.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Signal => "signal",
            Self::Back => "mutex back",
            Self::Late => "back after time-out",
            Self::Wake => "lock or signal",
        }
    }
}

/// The use of a lock in one role.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    pub non_critical: Times,
    /// How the time waited is split.
    pub split: Split,
    /// Share of the recording in which it was held in this role, 0 to 1: time held ÷
    /// [`Profile::duration`](super::Profile::duration). With the detail `contended` a lower bound. None if no
    /// hold is known, for readers, which hold it at the same time, and for several locks together.
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
    pub error: SampleError,
}

impl RoleStats {
    /// How long it was held, as every report shows it; none if that is not known.
    #[must_use]
    pub fn held(&self) -> Option<HeldTime> {
        let hold = &self.hold;
        let bound = match hold {
            _ if hold.is_estimate() => Bound::About,
            // Also a hold that had not ended.
            _ if hold.measured.count < self.acquisitions || hold.while_waited > 0 => Bound::AtLeast,
            _ => Bound::Exact,
        };
        (hold.total > 0).then_some(HeldTime { time: hold.total, error: hold.total_error, bound })
    }

    /// The part of acquisitions that had to wait. None if nothing was counted.
    #[must_use]
    pub fn contended_share(&self) -> Option<f64> {
        // A wait that timed out is a try without an acquisition.
        let tries = self.acquisitions.max(self.contended);
        (tries > 0).then(|| self.contended as f64 / tries as f64)
    }
}

/// A time held, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldTime {
    /// ns.
    pub time: u64,
    /// Half the width of its 95 % interval; 0 if it is no estimate.
    pub error: u64,
    /// How it relates to the truth.
    pub bound: Bound,
}

/// How a figure relates to the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Everything was measured.
    Exact,
    /// A part was measured.
    AtLeast,
    /// It is estimated from samples.
    About,
}

impl Bound {
    /// What stands before the figure.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::AtLeast => "≥ ",
            Self::About => "~ ",
        }
    }
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

impl Times {
    /// Their mean, ns; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total as f64 / self.count as f64 }
    }
}

/// How long a lock was held.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Held {
    /// What was measured.
    pub measured: Times,
    /// Total time held: measured, or estimated from samples; and `while_waited`.
    pub total: u64,
    /// Half the width of the 95 % interval of `total`; 0 if every acquisition was measured.
    pub total_error: u64,
    /// Of `total`, for how long the lock was held while others waited: with the detail `contended`, of holds
    /// whose start is not known; with every detail, of a hold that had not ended.
    pub while_waited: u64,
}

impl Held {
    /// The mean over `acquisitions`, ns, if `total` is about all of them; else the mean of what was measured.
    #[must_use]
    pub fn mean(&self, acquisitions: u64) -> f64 {
        if self.is_estimate() && acquisitions > 0 {
            self.total as f64 / acquisitions as f64
        } else {
            self.measured.mean()
        }
    }

    /// Whether `total` is an estimate.
    #[must_use]
    pub fn is_estimate(&self) -> bool {
        self.total > self.measured.total.saturating_add(self.while_waited)
    }
}

/// How time waited is split: `held`, `free` and `unknown` add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Another thread held the lock. The pairs have which.
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
            held: self.held.saturating_add(other.held),
            free: self.free.saturating_add(other.free),
            unknown: self.unknown.saturating_add(other.unknown),
            watched: self.watched.saturating_add(other.watched),
            no_cpu: self.no_cpu.saturating_add(other.no_cpu),
        }
    }
}

/// How waits ended. `owner_changed`, `off_cpu` and `budget` are why spinning ended, and count the same waits
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::WaitOutcome`")]
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
    pub still_waiting: u64,
}

/// The use of a lock in one role at one call site.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SiteStats {
    /// Where.
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
    pub is_release: bool,
}
