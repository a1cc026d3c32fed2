//! Waits: which call site waited for which, and those that had not ended.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{CallSiteId, Role};

/// A waiting call site, and the one that held the lock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pair {
    /// [`Lock::id`](super::Lock::id).
    pub lock: u32,
    /// The mode in which the waiter wanted it.
    pub role: Role,
    /// Where it waited.
    pub waiter: CallSiteId,
    /// Where the holder had taken the lock; none if that is not known.
    pub holder: Option<CallSiteId>,
    /// `holder` is where it released the lock: where it had taken it is not known.
    pub is_release: bool,
    /// The holder was out of sight; none if it was not, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_sight: Option<OutOfSight>,
    /// Number of waits for this holder, or for others and this one.
    pub count: u64,
    /// Time waited for this holder: from when the lock was released to it until it released the lock, or, at
    /// the end of a wait, until its next owner had it.
    pub wait_total: u64,
    /// The longest of these times.
    pub wait_longest: u64,
    /// Of `wait_total`: the lock was free.
    pub free: u64,
}

/// Waits while holding another lock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HeldWait {
    /// [`Lock::id`](super::Lock::id) of what was held: of several locks the one that most others waited for,
    /// then the one that was taken last.
    pub outer: u32,
    /// In which role.
    pub outer_role: Role,
    /// [`Lock::id`](super::Lock::id) of what was waited for.
    pub lock: u32,
    /// The mode in which the waiter wanted it.
    pub role: Role,
    /// The waits had deadlines.
    pub is_timed: bool,
    /// [`Thread::id`](super::Thread::id) of the waiter; none if there were several.
    pub thread: Option<u32>,
    /// Number of waits.
    pub count: u64,
    /// Their sum.
    pub wait_total: u64,
    /// The longest.
    pub wait_longest: u64,
    /// For how long others waited for the outer lock meanwhile.
    pub time_blocked: u64,
}

/// Acquisitions while holding another lock, which was released later. Known with the detail `full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nest {
    /// [`Lock::id`](super::Lock::id) of what was held: of several locks the one that was taken last.
    pub outer: u32,
    /// In which role.
    pub outer_role: Role,
    /// [`Lock::id`](super::Lock::id) of what was acquired.
    pub lock: u32,
    /// In which role.
    pub role: Role,
    /// Number of acquisitions.
    pub count: u64,
    /// Time waited for them.
    pub wait_total: u64,
    /// Time held.
    pub hold_total: u64,
}

impl Pair {
    /// For so long the holder had the lock while others waited, as far as that is known.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.wait_total.saturating_sub(self.free)
    }
}

impl HeldWait {
    pub(crate) fn add(&mut self, other: &Self) {
        self.thread = self.thread.filter(|thread| other.thread == Some(*thread));
        self.count = self.count.saturating_add(other.count);
        self.wait_total = self.wait_total.saturating_add(other.wait_total);
        self.time_blocked = self.time_blocked.saturating_add(other.time_blocked);
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
    /// [`Thread::id`](super::Thread::id).
    pub thread: u32,
    /// [`Lock::id`](super::Lock::id).
    pub lock: u32,
    /// What it waited for. [`Role::Signal`]: for a signal, or after it for the mutex.
    pub role: Role,
    /// Where; none if that is not known.
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
    /// [`Thread::id`](super::Thread::id); none if that is not known.
    pub thread: Option<u32>,
    /// Where it had taken it, or, of a process that is sampled, where it was; none if that is not known.
    pub call_site: Option<CallSiteId>,
    /// It had it at the end. Otherwise it had it when the wait began; of a process that is sampled, it only seems to have it.
    pub is_sure: bool,
    /// What it did instead, where [`call_site`](Self::call_site) is none: of a process that is sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// It is out of sight, or has ended; none if it is not, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_sight: Option<OutOfSight>,
}

/// A holder that cannot release the lock, or of which the recorder sees nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutOfSight {
    /// A thread of the process that took the lock by calls that are not recorded.
    Unseen,
    /// A thread of another process.
    Process,
    /// A thread of the process that forked this one, in which there is no such thread.
    Parent,
    /// A thread that has ended.
    Ended,
}

impl OutOfSight {
    /// What follows *held by*.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unseen => {
                "code whose calls are not recorded (a plugin of its own namespace, a system call of its own)"
            }
            Self::Process => "another process",
            Self::Parent => {
                "a thread of the parent process, which this forked child does not have: no thread can release it"
            }
            Self::Ended => "a thread that has ended",
        }
    }
}

/// What the threads of one name waited at a call site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadWait {
    /// The name of the threads; of several that differ by a number at the end, `worker-*`.
    pub thread: String,
    /// [`Lock::id`](super::Lock::id).
    pub lock: u32,
    /// What they wanted it for.
    pub role: Role,
    /// Where they waited.
    pub call_site: CallSiteId,
    /// Waits.
    pub count: u64,
    /// Time waited, ns.
    pub wait_total: u64,
}

/// One wait, as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowWait {
    /// The thread's id.
    pub thread: u32,
    /// Its name then.
    pub name: String,
    /// [`Lock::id`](super::Lock::id).
    pub lock: u32,
    /// What it was for.
    pub role: Role,
    /// Where; none if that is not known.
    pub call_site: Option<CallSiteId>,
    /// Where the thread had taken the lock, or released it, that had it longest meanwhile; for what is no
    /// lock, where it was woken. None if that is not known.
    pub holder: Option<CallSiteId>,
    /// `holder` is where it released the lock, or woke the thread.
    pub is_release: bool,
    /// When it began, ns after the start of the recording ([`Profile::started`](super::Profile::started) is
    /// the wall clock then).
    pub start: u64,
    /// How long it was, ns.
    pub time: u64,
    /// Of that, the lock was free, ns; none if that is not known.
    pub free: Option<u64>,
    /// How many threads waited when it began, this one included; 0 if that is not known.
    pub queue: u32,
    /// It ended at its deadline.
    pub is_timed_out: bool,
    /// The longest call that `holder` made while it had the lock, if it was the last one; none if none was
    /// seen.
    pub holder_call: Option<HolderCall>,
}

/// A call of a function that blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderCall {
    /// Its name.
    pub function: String,
    /// How long it took, ns.
    pub time: u64,
}
