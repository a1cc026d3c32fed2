//! A profile as it is shown and as it is written to JSON. Times are ns; everything that was sampled says so.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::warnings::Warning;

/// The first field of the JSON document.
pub const FORMAT: &str = "spinpark-profile";
/// Changes when a field changes its meaning or goes.
pub const VERSION: u32 = 2;
/// The oldest version that is read: fields that have another name today have the old one as an alias.
pub const OLDEST: u32 = 1;

/// The index of a call site in [`Profile::call_sites`].
pub type CallSiteId = usize;

/// One process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Path of the program.
    pub program: String,
    /// Its arguments, the program's name among them.
    pub arguments: Vec<String>,
    /// The process.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// When recording began, ns since 1970.
    pub started: u64,
    /// For how long it was recorded, ns.
    pub duration: u64,
    /// How it ended.
    pub ended: Ended,
    /// What ended it, if that is known: words that follow *it*, such as `was killed by SIGKILL`.
    #[serde(default)]
    pub ended_by: Option<String>,
    /// How much was recorded.
    pub detail: Detail,
    /// One in so many uncontended acquisitions was timed, with the detail `sampled`.
    pub sample_every: u32,
    /// Whose locks they were.
    pub locks_of: LocksOf,
    /// CPUs that the process could use when it started, where it ran; 0 if that is not known.
    pub cpus: u32,
    /// Threads that used a lock.
    pub threads: Vec<Thread>,
    /// Places in the program: stacks with symbols. Equal ones are one call site.
    #[serde(alias = "places")]
    pub call_sites: Vec<CallSite>,
    /// Files that the code of call sites is in.
    pub modules: Vec<Module>,
    /// Locks that were waited for or counted, those with the longest total wait first; without waiting for signals, and the
    /// returns after it.
    pub locks: Vec<Lock>,
    /// Pairs of waiters and holders, the longest total wait first; then returns from condition variables ([`Role::Back`]);
    /// waits for signals last.
    pub pairs: Vec<Pair>,
    /// Waits of threads that held another lock meanwhile, in the order of `pairs`: threads that want that lock wait for these,
    /// too.
    #[serde(default)]
    pub held_waits: Vec<HeldWait>,
    /// Waits that had not ended when the recording did, the longest first. They are in all numbers, as if they had ended then.
    #[serde(default)]
    pub waiting: Vec<Waiting>,
    /// Cycles of threads that waited for each other, as indices of `waiting`: each waited for what the next one held, and
    /// the last one for what the first held.
    #[serde(default)]
    pub deadlocks: Vec<Vec<usize>>,
    /// All waiting for locks over time; without waiting for signals, and the returns after it.
    pub strip: Strip,
    /// What did not fit into the recorder's tables: numbers may be too low.
    pub dropped: u64,
    /// Calls from signal handlers that were not recorded because the handler had interrupted the recorder.
    pub nested: u64,
    /// What recording cost, if it was asked for or could be estimated.
    pub cost: Option<Cost>,
    /// What to know before relying on the rest: whole sentences. In JSON two arrays of them: `warnings` has all, `losses` those
    /// that report missing records. If `dropped` is 0 and there are no losses, no record is missing.
    #[serde(flatten, with = "crate::warnings::in_json")]
    pub warnings: Vec<Warning>,
}

/// How recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The program exited.
    Exited,
    /// It was killed, or became another program.
    Killed,
    /// It was still running when the profile was read.
    Running,
}

/// How much was recorded; see the recorder's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_observe::format::Detail`")]
pub enum Detail {
    Off,
    Contended,
    Sampled,
    Full,
}

/// Whose locks they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_observe::format::Locks`")]
pub enum LocksOf {
    Glibc,
    Spinpark,
    Library,
}

/// A table, which several threads may have used after each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Thread {
    /// The last one's id.
    pub id: u32,
    /// The last one's name.
    pub name: String,
    /// How many threads used the table.
    pub users: u32,
    /// From each one's first use of a lock on, ns: the last one's until the end of the recording, also if it had ended before,
    /// since the recorder does not see it end; others' until the end of their latest wait or measured hold.
    pub time: u64,
    /// The last one had ended before the recording did, as far as that is known: the program exited in order, or still ran
    /// when the recording was read.
    #[serde(default)]
    pub has_ended: bool,
    /// Waits.
    pub waits: u64,
    /// Time waited.
    pub waited: u64,
}

/// A call site of a lock function: the frames from the innermost of the program outwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallSite {
    /// Frames; functions that were inlined come before the one that they are in.
    pub frames: Vec<Frame>,
    /// There were more frames than were recorded.
    pub is_cut: bool,
}

/// A program or library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its path; the file name is what [`Frame::module`] has.
    pub path: String,
    /// Its build id, in hexadecimal digits, if it has one.
    pub build_id: Option<String>,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function, demangled; none for code without symbols.
    pub function: Option<String>,
    /// Its source file and line.
    pub source: Option<(String, u32)>,
    /// File name of the program or library.
    pub module: String,
    /// The return address in that file.
    pub offset: u64,
    /// Inlined into the frame after it.
    pub is_inlined: bool,
}

/// A lock, from creation or first use to destruction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// Its number in the recording; unique in this profile.
    pub id: u32,
    /// Its name in reports: its own name; otherwise what created or first used it, with a number if there are several.
    pub label: String,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// Its address.
    pub address: u64,
    /// Its kind.
    pub kind: Kind,
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
#[expect(missing_docs, reason = "see `spinpark_observe::format::Kind`")]
pub enum Kind {
    Mutex,
    Recursive,
    ErrorChecking,
    Adaptive,
    Special,
    RwLock,
    Condvar,
}

/// The mode in which threads want a lock; see the recorder's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_observe::format::Role`")]
pub enum Role {
    Write,
    Read,
    Signal,
    Back,
    Late,
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
}

/// How waits ended. `owner_changed`, `off_cpu` and `budget` say why spinning ended, and count the same waits again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "see `spinpark_observe::format::Outcome`")]
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
    /// Number of acquisitions here; with the details `contended` and `sampled` only those that waited, or were in a sample.
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
    /// Time for which others waited while it was held from here.
    pub blocked_total: u64,
}

/// A waiting call site, and the one that held the lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// [`Lock::id`].
    pub lock: u32,
    /// The mode in which the waiter wanted it.
    pub role: Role,
    /// Where it waited.
    pub waiter: CallSiteId,
    /// Where the holder had taken the lock, when the wait began; none if that is not known.
    pub holder: Option<CallSiteId>,
    /// Number of waits.
    pub count: u64,
    /// Their sum.
    pub wait_total: u64,
    /// The longest.
    pub wait_longest: u64,
}

/// Waits while holding another lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeldWait {
    /// [`Lock::id`] of what was held: of several locks the one that most others waited for, then the one that was taken last.
    pub outer: u32,
    /// In which role.
    pub outer_role: Role,
    /// [`Lock::id`] of what was waited for.
    pub lock: u32,
    /// The mode in which the waiter wanted it.
    pub role: Role,
    /// The waits had deadlines.
    pub is_timed: bool,
    /// [`Thread::id`] of the waiter; none if there were several.
    pub thread: Option<u32>,
    /// Number of waits.
    pub count: u64,
    /// Their sum.
    pub wait_total: u64,
    /// The longest.
    pub wait_longest: u64,
    /// For how long others waited for the outer lock meanwhile, estimated from how many they were at beginning and end.
    #[serde(alias = "made_wait")]
    pub time_blocked: u64,
}

impl HeldWait {
    pub(crate) fn add(&mut self, other: &Self) {
        self.thread = self.thread.filter(|thread| other.thread == Some(*thread));
        self.count += other.count;
        self.wait_total += other.wait_total;
        self.time_blocked += other.time_blocked;
        self.wait_longest = self.wait_longest.max(other.wait_longest);
    }

    /// For locks first, the longest total first.
    pub(crate) fn order(&self) -> (u8, Reverse<u64>, Reverse<u64>) {
        (self.role.rank(), Reverse(self.wait_total), Reverse(self.count))
    }
}

/// A wait that had not ended when the recording did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// [`Thread::id`].
    pub thread: u32,
    /// [`Lock::id`].
    pub lock: u32,
    /// What it waited for. [`Role::Signal`]: for a signal, or after it for the mutex.
    pub role: Role,
    /// Where; none if that is not known.
    #[serde(alias = "place")]
    pub call_site: Option<CallSiteId>,
    /// For so long, ns.
    pub time: u64,
    /// It would have ended by itself, at a deadline.
    pub is_timed: bool,
    /// The holder; none if that is not known, or it is a signal.
    pub holder: Option<Holder>,
}

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// [`Thread::id`]; none if that is not known.
    pub thread: Option<u32>,
    /// Where it had taken it; none if that is not known.
    #[serde(alias = "place")]
    pub call_site: Option<CallSiteId>,
    /// It had it at the end. Otherwise it had it when the wait began.
    pub is_sure: bool,
}

/// Time waited, over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Strip {
    /// The length of a part, ns.
    pub part: u64,
    /// Time waited by all threads, counted where waits ended: part *n* begins at `n * part` after the start.
    pub waited: Vec<u64>,
}

/// What recording cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Measured on the program itself (`--overhead`), or estimated: cost of an event × events.
    pub is_measured: bool,
    /// Time of the program with recording ÷ without.
    pub ratio: f64,
    /// Its 95 % interval, if measured.
    pub interval: Option<(f64, f64)>,
    /// How far two runs without recording differ: no smaller effect can be seen.
    pub noise: Option<f64>,
    /// In words, one sentence.
    pub says: String,
}
