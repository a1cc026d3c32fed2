//! A profile as it is shown and as it is written to JSON. Times are ns; everything that was sampled is
//! marked.

mod locks;
mod measured;
mod merged;
mod observed;
mod unnamed;
mod waits;
mod warning;

use serde::{Deserialize, Serialize};

pub use self::locks::{
    Bound, Held, HeldTime, Kind, Lock, LockPlace, Outcomes, Role, RoleStats, SampleError, Sampled, SiteStats,
    Split, Times,
};
pub use self::measured::Measured;
pub use self::merged::{Merged, Place, Spread};
pub use self::observed::{Observed, OtherProgram, Recorder, Rest, ThreadTime, Threads};
pub use self::unnamed::Unnamed;
pub use self::waits::{HeldWait, Holder, HolderCall, Nest, OutOfSight, Pair, SlowWait, ThreadWait, Waiting};
pub use self::warning::Warning;
use crate::function_names::{for_people, short};

/// The first field of the JSON document.
pub const FORMAT: &str = "spinpark-profile";
/// Changes when a field changes its meaning or goes. No other version is read.
pub const VERSION: u32 = 3;

/// Fewer samples of threads than this tell nothing.
pub(crate) const FEW: u64 = 10;

/// The index of a call site in [`Profile::call_sites`].
pub type CallSiteId = usize;

/// One process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Name of the recording's file, without its ending: no other process has it.
    pub recording: String,
    /// The PID namespace in which the process has its number; 0 if that is not known.
    pub namespace: u32,
    /// When the kernel started the process, in its ticks since the machine started; 0 if that is not known.
    pub born: u64,
    /// When recording began, ns since 1970.
    pub started: u64,
    /// For how long it was recorded, ns.
    pub duration: u64,
    /// How it ended.
    pub ended: RecordingEnd,
    /// What ended it, if that is known: words that follow *it*, such as `was killed by SIGKILL`.
    pub ended_by: Option<String>,
    /// How much was recorded.
    pub detail: Detail,
    /// One in this number of uncontended acquisitions was timed, with the detail `sampled`.
    pub sample_every: u32,
    /// Whose locks they were.
    pub locks_of: LocksOf,
    /// CPUs that the process could use when it started, where it ran; 0 if that is not known.
    pub cpus: u32,
    /// Threads that used a lock.
    pub threads: Vec<Thread>,
    /// Places in the program: stacks with symbols. Equal ones are one call site.
    pub call_sites: Vec<CallSite>,
    /// Files that the code of call sites is in.
    pub modules: Vec<Module>,
    /// Locks that were waited for or counted, those with the longest total wait first; without waiting for
    /// signals, and the returns after it.
    pub locks: Vec<Lock>,
    /// Pairs of waiters and holders, the longest total wait first; then returns from condition variables
    /// ([`Role::Back`]); waits for signals last.
    pub pairs: Vec<Pair>,
    /// Waits of threads that held another lock meanwhile, in the order of `pairs`: threads that want that
    /// lock wait for these, too.
    pub held_waits: Vec<HeldWait>,
    /// Acquisitions while holding another lock, the most first; with the detail `full`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nests: Vec<Nest>,
    /// Waits by the names of threads, for the flame graph; without those that had not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_waits: Vec<ThreadWait>,
    /// Waits that had not ended when the recording did, the longest first. They are in all numbers, as if
    /// they had ended then.
    pub waiting: Vec<Waiting>,
    /// The longest waits that ended, one by one, the longest first: those of each thread, and all that are
    /// longer than was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_waits: Vec<SlowWait>,
    /// Cycles of threads that waited for each other, as indices of `waiting`: each waited for what the next
    /// one held, and the last one for what the first held.
    pub deadlocks: Vec<Vec<usize>>,
    /// All waiting for locks over time; without waiting for signals, and the returns after it.
    pub strip: Strip,
    /// What did not fit into the recorder's tables: numbers may be too low.
    pub dropped: u64,
    /// Calls from signal handlers that were not recorded because the handler had interrupted the recorder.
    pub nested: u64,
    /// What the recorder measured of itself.
    pub recorder: RecorderCost,
    /// What recording cost, if it was asked for or could be estimated.
    pub cost: Option<Cost>,
    /// What the command saw of the run in `/proc`; none if the recorder was alone.
    pub observed: Option<Observed>,
    /// Of a process that was sampled: how. Then numbers of waits and acquisitions are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The host that it ran on, if that was noted: what `hostname` prints there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Of a profile that adds several up ([`merged`](mod@crate::merged)): what is known of them one by one. Times and
    /// durations are sums then, and there is no process, no order in time, and no wait of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// What `spinpark whatif` has measured of its locks, if that was given ([`measured`](mod@crate::measured)).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
    /// What to know before relying on the rest: whole sentences. In JSON two arrays of them: `warnings` has
    /// all, `losses` those that report missing records. If `dropped` is 0 and there are no losses, no record
    /// is missing.
    #[serde(flatten, with = "warning::in_json")]
    pub warnings: Vec<Warning>,
}

impl Profile {
    /// Whether it is another recording of the same process: of the program that it was before, or of other
    /// locks.
    #[must_use]
    pub fn is_of_process(&self, other: &Self) -> bool {
        let process = |profile: &Self| (profile.pid, profile.namespace, profile.born);
        process(self) == process(other)
    }

    /// The lock with this number.
    #[must_use]
    pub fn lock(&self, id: u32) -> Option<&Lock> {
        self.locks.iter().find(|lock| lock.id == id)
    }

    /// The label of the lock with this number.
    pub(crate) fn lock_label(&self, id: u32) -> String {
        self.lock(id).map_or_else(|| String::from("?"), |lock| lock.label.clone())
    }

    /// Each lock in each of its roles.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (&Lock, &RoleStats)> {
        self.locks.iter().flat_map(|lock| lock.roles.iter().map(move |stats| (lock, stats)))
    }

    /// The name of a call site: [`CallSite::label`].
    #[must_use]
    pub fn call_site_label(&self, call_site: CallSiteId) -> String {
        self.call_sites.get(call_site).map_or_else(|| String::from("?"), CallSite::label)
    }

    /// Time waited for locks, ns. Without waiting for signals (a thread without work waits for work) and the
    /// returns after it, [`back_wait`](Self::back_wait).
    #[must_use]
    pub fn lock_wait(&self) -> u64 {
        self.locks.iter().map(Lock::lock_wait).sum()
    }

    /// Time from signals of condition variables until the waiters had their mutexes again, ns: the mutex was
    /// contended, or the wake-up took long.
    #[must_use]
    pub fn back_wait(&self) -> u64 {
        self.wait_in(Role::Back)
    }

    /// Both, ns: processes are ordered by it.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.lock_wait() + self.back_wait()
    }

    /// Time waited for signals, ns: of condition variables, of channels, at barriers, for work. Without that
    /// for the ends of threads.
    #[must_use]
    pub fn signal_wait(&self) -> u64 {
        self.wait_in(Role::Signal) - self.join_wait()
    }

    /// Time waited for the ends of threads, ns.
    #[must_use]
    pub fn join_wait(&self) -> u64 {
        let joins = self.locks.iter().filter(|lock| lock.kind == Kind::Join);
        joins.filter_map(|lock| lock.role(Role::Signal)).map(|stats| stats.wait.total).sum()
    }

    /// Time waited for what may be a lock or a signal, ns; without that of idle threads.
    #[must_use]
    pub fn unclear_wait(&self) -> u64 {
        self.uses().map(|(lock, stats)| self.busy_unclear(lock, stats)).sum()
    }

    /// The part of [`unclear_wait`](Self::unclear_wait) that is this lock's, in this role.
    pub(crate) fn busy_unclear(&self, lock: &Lock, stats: &RoleStats) -> u64 {
        if stats.role != Role::Wake {
            return 0;
        }
        let idle = self.observed.as_ref().map_or(&[][..], |observed| &observed.threads.idle_ids);
        let of_idle = self.threads.iter().filter(|thread| idle.contains(&thread.id));
        let of_idle = of_idle.flat_map(|thread| &thread.unclear).filter(|(id, _)| *id == lock.id);
        stats.wait.total.saturating_sub(of_idle.map(|(_, waited)| waited).sum())
    }

    pub(crate) fn wait_in(&self, role: Role) -> u64 {
        let roles = self.locks.iter().flat_map(|lock| &lock.roles);
        roles.filter(|stats| stats.role == role).map(|stats| stats.wait.total).sum()
    }

    /// The time of all threads, ns.
    #[must_use]
    pub fn thread_time(&self) -> u64 {
        self.threads_and_time().1
    }

    /// How many threads there were, as far as that was seen.
    #[must_use]
    pub fn number_of_threads(&self) -> u64 {
        let recorded = self.threads.iter().map(|thread| u64::from(thread.users)).sum();
        self.observed.as_ref().map_or(0, |observed| observed.threads.number.into()).max(recorded)
    }

    /// How many threads there were, and their time, ns; without idle ones.
    ///
    /// How many there were at a time, on average, is seen by the command that observes the process, also
    /// where they lived briefly: it sees few of those, and each stands for others ([`watch`](crate::watch)).
    /// The recorder alone knows of threads from their first use of a lock on, and not when they end.
    #[must_use]
    pub fn threads_and_time(&self) -> (u64, u64) {
        let Some(observed) = self.observed_enough() else {
            let number = self.threads.iter().map(|thread| u64::from(thread.users)).sum();
            return (number, self.threads.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.time)));
        };
        let threads = &observed.threads;
        let busy = self.number_of_threads().saturating_sub(threads.idle.into()).max(1);
        let average = threads.time.total() as f64 / observed.seen as f64;
        (busy, (average * self.duration as f64).round() as u64)
    }

    /// What was observed, if it was of most of the recording: what a daemon does at first does not show what
    /// it does later.
    fn observed_enough(&self) -> Option<&Observed> {
        self.observed.as_ref().filter(|observed| {
            let is_most = !observed.is_left || observed.seen >= self.duration / 2;
            is_most
                && observed.seen > 0
                && observed.threads.samples >= FEW
                && observed.threads.time.total() > 0
        })
    }
}

/// How a program without its exit handlers ended, as far as a recording alone shows: what follows *it*.
pub const ENDED_EARLY: &str = "ended by a signal, `_exit` or `exec`";

/// How a running process was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// The mean time between two snapshots, ns.
    pub interval: u64,
    /// How many there were.
    pub snapshots: u64,
    /// How many of them found threads that waited for locks. 0 also if that is not known.
    #[serde(default)]
    pub found: u64,
    /// So many snapshots that were independent of each other would tell as much about the shares of locks: fewer than
    /// [`found`](Self::found) where waits last for several snapshots. 0 if that is not known.
    #[serde(default)]
    pub independent: u64,
    /// CPU time of the sampler, ns.
    pub cost: u64,
    /// What the holders of locks did while threads waited for them, the longest first.
    pub holders: Vec<HolderTime>,
}

/// For how long threads waited for a lock whose holder did this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderTime {
    /// [`Lock::id`].
    pub lock: u32,
    /// Which kind of thing.
    #[serde(default)]
    pub kind: Doing,
    /// What follows *its holder*: `was in `fsync` in `flush``.
    pub doing: String,
    /// Of all waiters, ns.
    pub time: u64,
}

/// What a holder does, as far as advice depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// It runs, or is ready to.
    Runs,
    /// It is in a call of the system.
    Calls,
    /// It waits for another lock.
    WaitsForLock,
    /// Anything else, or not known.
    #[default]
    Other,
}

/// How recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingEnd {
    /// The program exited.
    #[default]
    Exited,
    /// It ended without its exit handlers: it was killed, called `_exit`, or became another program.
    Killed,
    /// It was still running when the profile was read.
    Running,
}

/// How much was recorded; see the recorder's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::Detail`")]
pub enum Detail {
    Off,
    #[default]
    Contended,
    Sampled,
    Full,
}

/// Whose locks they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::Locks`")]
pub enum LocksOf {
    #[default]
    Glibc,
    Spinpark,
    Library,
}

/// A table, which several threads may have used after each other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Thread {
    /// The last one's id.
    pub id: u32,
    /// The last one's name.
    pub name: String,
    /// How many threads used the table.
    pub users: u32,
    /// From each one's first use of a lock on, ns: the last one's until the end of the recording, also if it
    /// had ended before, since the recorder does not see it end; others' until the end of their latest wait
    /// or measured hold.
    pub time: u64,
    /// The last one had ended before the recording did, as far as that is known: the program exited in order,
    /// or still ran when the recording was read.
    pub has_ended: bool,
    /// Waits.
    pub waits: u64,
    /// Time waited.
    pub waited: u64,
    /// The part of it that was for signals of condition variables.
    pub signals: u64,
    /// Of `waited`: for the ends of threads, and for what may be a lock or a signal.
    pub others: u64,
    /// The waits for what may be a lock or a signal: by [`Lock::id`], ns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclear: Vec<(u32, u64)>,
    /// Acquisitions of which the hold was measured, over time; with the details `full` and `sampled`.
    #[serde(default, skip_serializing_if = "Activity::is_empty")]
    pub activity: Activity,
}

impl Thread {
    /// Time waited for locks, ns.
    #[must_use]
    pub fn locks(&self) -> u64 {
        self.waited.saturating_sub(self.signals).saturating_sub(self.others)
    }
}

/// Acquisitions over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The length of a part, ns.
    pub part: u64,
    /// Number of acquisitions, counted where their holds ended: part *n* begins at `n * part` after the
    /// start.
    pub acquisitions: Vec<u64>,
}

impl Activity {
    fn is_empty(&self) -> bool {
        self.acquisitions.is_empty()
    }
}

/// A call site of a lock function: the frames from the innermost of the program outwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallSite {
    /// Frames; functions that were inlined come before the one that they are in.
    pub frames: Vec<Frame>,
    /// There were more frames than were recorded.
    pub is_cut: bool,
}

impl CallSite {
    /// `function (file.c:12)`, or `module+0x1234`: of the innermost frame with a name.
    #[must_use]
    pub fn label(&self) -> String {
        let Some(frame) = self.frames.get(self.named()) else { return String::from("?") };
        match (&frame.function, &frame.source) {
            (Some(_), Some(_)) if self.named() == 0 => format!("{} ({})", self.function(), frame.position()),
            _ => self.function(),
        }
    }

    /// `file.c:12`, if that is known of the innermost frame.
    pub(crate) fn line(&self) -> Option<String> {
        self.frames
            .first()
            .filter(|frame| frame.function.is_some() && frame.source.is_some())
            .map(Frame::position)
    }

    /// The innermost function with a name; if it calls into code without names that uses the lock, `function
    /// → library.so`. Without any names `module+0x1234`.
    #[must_use]
    pub fn function(&self) -> String {
        let named = self.named();
        let Some(frame) = self.frames.get(named) else { return String::from("?") };
        match named {
            0 => frame.shown(),
            _ => format!("{} → {}", frame.shown(), library(&self.frames[0].module)),
        }
    }

    /// Which frame the call site has its name from: the innermost one that has a function of some program, or
    /// the first.
    pub(crate) fn named(&self) -> usize {
        let is_named = |frame: &Frame| frame.function.is_some() && !frame.is_entry();
        self.frames.iter().position(is_named).unwrap_or(0)
    }
}

/// A library's name without its version: `libcuda.so` of `libcuda.so.580.159.04`.
pub(crate) fn library(module: &str) -> &str {
    module.find(".so.").map_or(module, |at| &module[..at + 3])
}

/// A program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its path; the file name is what [`Frame::module`] has.
    pub path: String,
    /// Its build id, in hexadecimal digits, if it has one.
    pub build_id: Option<String>,
    /// Why functions of it have no names, where they have none.
    pub unnamed: Option<Unnamed>,
}

/// A frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function, demangled; none for code without symbols.
    pub function: Option<String>,
    /// Its source file and line.
    pub source: Option<(String, u32)>,
    /// File name of the program or library.
    pub module: String,
    /// The return address in that file.
    pub offset: u64,
    /// Where the function begins in that file, if it has no name, but unwind tables have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Inlined into the frame after it.
    pub is_inlined: bool,
    /// By its code it takes locks for its callers and releases none, or releases some and takes none. Known
    /// of the innermost frames of call sites.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_half: bool,
}

impl Frame {
    /// The function for people, [`for_people`], or `module+0x1234`.
    #[must_use]
    pub fn shown(&self) -> String {
        self.function.as_deref().map_or_else(|| self.short(), for_people)
    }

    /// The function without its parameters, or `module+0x1234`: where it begins, if that is known.
    #[must_use]
    pub fn short(&self) -> String {
        match &self.function {
            Some(function) => short(function).into_owned(),
            None => format!("{}+{:#x}", self.module, self.start.unwrap_or(self.offset)),
        }
    }

    /// Whether it is where threads start, which does not show what they do.
    pub(crate) fn is_entry(&self) -> bool {
        const ENTRIES: [&str; 11] = [
            "g_thread_proxy",
            "start_thread",
            "clone",
            "clone3",
            "__clone",
            "__clone3",
            "_start",
            "__libc_start_main",
            "__libc_start_main_impl",
            "__libc_start_call_main",
            "execute_native_thread_routine",
        ];
        self.function
            .as_deref()
            .is_some_and(|function| ENTRIES.contains(&function) || function.ends_with("::thread_start"))
    }

    /// `file.c:12` without the directory, or `module+0x1234`.
    #[must_use]
    pub fn position(&self) -> String {
        match &self.source {
            Some((file, line)) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)),
            None => format!("{}+{:#x}", self.module, self.offset),
        }
    }
}

/// Time waited, over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Strip {
    /// The length of a part, ns.
    pub part: u64,
    /// Time waited by all threads, counted where waits ended: part *n* begins at `n * part` after the start.
    pub waited: Vec<u64>,
}

impl Strip {
    /// The sum of several, in the longest of their parts.
    pub(crate) fn sum<'a>(strips: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let used = strips.filter(|strip| !strip.waited.is_empty());
        let part = used.clone().map(|strip| strip.part).max().unwrap_or_default();
        let mut waited: Vec<u64> = Vec::new();
        for strip in used {
            for (place, ns) in strip.in_parts(part).into_iter().enumerate() {
                waited.resize(waited.len().max(place + 1), 0);
                waited[place] += ns;
            }
        }
        Self { part, waited }
    }

    /// The same in parts of this length, a multiple of its own.
    pub(crate) fn in_parts(&self, part: u64) -> Vec<u64> {
        let together = (part / self.part.max(1)).max(1) as usize;
        self.waited.chunks(together).map(|parts| parts.iter().sum()).collect()
    }
}

/// What the recorder did and how long it took, in all threads. Calls were timed by lot, and what is rare each
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecorderCost {
    /// Time of its calls, without what is rare.
    pub calls: u64,
    /// Time for what is rare: unwinding, new records, a thread's first call.
    pub rare: u64,
    /// Of both: while the thread had a lock that others have waited for.
    pub held: u64,
    /// Stacks that were unwound.
    pub unwound: u64,
    /// Acquisitions and waits that were recorded.
    pub recorded: u64,
    /// Acquisitions of contended locks that were left out of a sample.
    pub left_out: u64,
    /// Short waits that were left out.
    pub waits_left_out: u64,
    /// Uses of contended locks.
    pub uses: u64,
    /// Waits for them and for signals.
    pub waits: u64,
    /// Waits for semaphores and futexes.
    pub other_waits: u64,
    /// CPU time of the process; 0: not known, since it did not exit in order.
    pub cpu: u64,
    /// CPU time that beginning to record has taken.
    pub start: u64,
    /// What the recorder's experiment has found; none if it made none.
    pub experiment: Option<Experiment>,
}

/// An experiment within the run: in some spans of time, at random, the process recorded; in the others the
/// recorder forwarded calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// How many spans of each kind there were.
    pub spans: u64,
    /// Time in which the process recorded.
    pub recorded: u64,
    /// Time in which the recorder forwarded calls.
    pub light: u64,
    /// The time for a use of a contended lock while the process recorded ÷ the same in the other spans: the
    /// 95 % interval. None if there is too little to tell.
    pub time: Option<(f64, f64)>,
    /// The same of CPU time.
    pub cpu_time: Option<(f64, f64)>,
}

/// What recording cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Measured on the program itself (`--overhead`), or estimated from what the recorder measured of itself.
    pub is_measured: bool,
    /// Time of the program with recording ÷ without; 1 if that is not known.
    pub ratio: f64,
    /// Its 95 % interval, if measured; its bounds, if estimated: then `ratio` is between them. None if that
    /// is not known.
    pub interval: Option<(f64, f64)>,
    /// How far two runs without recording differ: no smaller effect can be seen.
    pub noise: Option<f64>,
    /// In words, one sentence.
    #[serde(rename = "says")]
    pub sentence: String,
}
