//! A profile as it is shown and as it is written to JSON. Times are ns; everything that was sampled says so.

mod locks;
mod observed;
mod unnamed;
mod waits;
mod warning;

use serde::{Deserialize, Serialize};

pub use self::locks::{Held, Kind, Lock, Outcomes, Role, RoleStats, SampleError, SiteStats, Split, Times};
pub use self::observed::{Observed, OtherProgram, Recorder, Rest, ThreadTime, Threads};
pub use self::unnamed::Unnamed;
pub use self::waits::{HeldWait, Holder, HolderCall, Nest, Pair, SlowWait, ThreadWait, Waiting};
pub use self::warning::Warning;

/// The first field of the JSON document.
pub const FORMAT: &str = "spinpark-profile";
/// Changes when a field changes its meaning or goes.
pub const VERSION: u32 = 3;
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
    /// Name of the recording's file, without its ending: no other process has it.
    #[serde(default)]
    pub recording: String,
    /// The PID namespace in which the process has its number; 0 if that is not known.
    #[serde(default)]
    pub namespace: u32,
    /// When the kernel started the process, in its ticks since the machine started; 0 if that is not known.
    #[serde(default)]
    pub born: u64,
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
    /// Locks that were waited for or counted, those with the longest total wait first; without waiting for
    /// signals, and the returns after it.
    pub locks: Vec<Lock>,
    /// Pairs of waiters and holders, the longest total wait first; then returns from condition variables
    /// ([`Role::Back`]); waits for signals last.
    pub pairs: Vec<Pair>,
    /// Waits of threads that held another lock meanwhile, in the order of `pairs`: threads that want that
    /// lock wait for these, too.
    #[serde(default)]
    pub held_waits: Vec<HeldWait>,
    /// Acquisitions while holding another lock, the most first; with the detail `full`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nests: Vec<Nest>,
    /// Waits by the names of threads, for the flame graph; without those that had not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_waits: Vec<ThreadWait>,
    /// Waits that had not ended when the recording did, the longest first. They are in all numbers, as if
    /// they had ended then.
    #[serde(default)]
    pub waiting: Vec<Waiting>,
    /// The longest waits that ended, one by one, the longest first: those of each thread, and all that are
    /// longer than was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_waits: Vec<SlowWait>,
    /// Cycles of threads that waited for each other, as indices of `waiting`: each waited for what the next
    /// one held, and the last one for what the first held.
    #[serde(default)]
    pub deadlocks: Vec<Vec<usize>>,
    /// All waiting for locks over time; without waiting for signals, and the returns after it.
    pub strip: Strip,
    /// What did not fit into the recorder's tables: numbers may be too low.
    pub dropped: u64,
    /// Calls from signal handlers that were not recorded because the handler had interrupted the recorder.
    pub nested: u64,
    /// What the recorder measured of itself.
    #[serde(default)]
    pub recorder: RecorderCost,
    /// What recording cost, if it was asked for or could be estimated.
    pub cost: Option<Cost>,
    /// What the command saw of the run in `/proc`; none if the recorder was alone.
    #[serde(default)]
    pub observed: Option<Observed>,
    /// What to know before relying on the rest: whole sentences. In JSON two arrays of them: `warnings` has
    /// all, `losses` those that report missing records. If `dropped` is 0 and there are no losses, no record
    /// is missing.
    #[serde(flatten, with = "warning::in_json")]
    pub warnings: Vec<Warning>,
}

/// How a program without its exit handlers ended, as far as a recording alone tells: what follows *it*.
pub const ENDED_EARLY: &str = "ended by a signal, `_exit` or `exec`";

/// How recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The program exited.
    Exited,
    /// It ended without its exit handlers: it was killed, called `_exit`, or became another program.
    Killed,
    /// It was still running when the profile was read.
    Running,
}

/// How much was recorded; see the recorder's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::Detail`")]
pub enum Detail {
    Off,
    Contended,
    Sampled,
    Full,
}

/// Whose locks they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "see `spinpark_recorder::format::Locks`")]
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
    /// From each one's first use of a lock on, ns: the last one's until the end of the recording, also if it
    /// had ended before, since the recorder does not see it end; others' until the end of their latest wait
    /// or measured hold.
    pub time: u64,
    /// The last one had ended before the recording did, as far as that is known: the program exited in order,
    /// or still ran when the recording was read.
    #[serde(default)]
    pub has_ended: bool,
    /// Waits.
    pub waits: u64,
    /// Time waited.
    pub waited: u64,
    /// The part of it that was for signals of condition variables.
    #[serde(default)]
    pub signals: u64,
    /// Of `waited`: for the ends of threads, and for what may be a lock or a signal.
    #[serde(default)]
    pub others: u64,
    /// Acquisitions of which the hold was measured, over time; with the details `full` and `sampled`.
    #[serde(default, skip_serializing_if = "Activity::is_empty")]
    pub activity: Activity,
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
    /// Why functions of it have no names, where they have none.
    #[serde(default)]
    pub unnamed: Option<Unnamed>,
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

/// Time waited, over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Strip {
    /// The length of a part, ns.
    pub part: u64,
    /// Time waited by all threads, counted where waits ended: part *n* begins at `n * part` after the start.
    pub waited: Vec<u64>,
}

/// What the recorder did and how long it took, in all threads. Calls were timed by lot, and what is rare each
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// What recording cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Measured on the program itself (`--overhead`), or estimated from what the recorder measured of itself.
    pub is_measured: bool,
    /// Time of the program with recording ÷ without.
    pub ratio: f64,
    /// Its 95 % interval, if measured; its bounds, if estimated: then `ratio` is the lower one.
    pub interval: Option<(f64, f64)>,
    /// How far two runs without recording differ: no smaller effect can be seen.
    pub noise: Option<f64>,
    /// In words, one sentence.
    pub says: String,
}
