//! Names of the model's parts, and the sums that tables need.

use std::cmp::Reverse;

use crate::model::{
    CallSite, CallSiteId, Frame, Held, Kind, Lock, Profile, Role, RoleStats, SiteStats, Thread, Times,
};
use crate::names::{for_people, short};

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

    /// Time waited for what may be a lock or a signal, ns.
    #[must_use]
    pub fn unclear_wait(&self) -> u64 {
        self.wait_in(Role::Wake)
    }

    fn wait_in(&self, role: Role) -> u64 {
        let roles = self.locks.iter().flat_map(|lock| &lock.roles);
        roles.filter(|stats| stats.role == role).map(|stats| stats.wait.total).sum()
    }

    /// The time of all threads, ns.
    #[must_use]
    pub fn thread_time(&self) -> u64 {
        self.threads_and_time().1
    }

    /// How many threads there were, and their time, ns. The recorder knows of them from their first use of a
    /// lock on; the command that observes the process, from their beginning, but nothing of those that lived
    /// between two looks. What is more is right.
    #[must_use]
    pub fn threads_and_time(&self) -> (u64, u64) {
        let number = self.threads.iter().map(|thread| u64::from(thread.users)).sum();
        let time = self.threads.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.time));
        let observed = self.observed.as_ref().map(|observed| &observed.threads).map(|threads| {
            (u64::from(threads.number), threads.time.total().saturating_add(threads.idle_time.total()))
        });
        // Where all threads were seen, that is what they lived for: the recorder counts those that have ended
        // until the end.
        let is_better = |observed: &(u64, u64)| observed.1 > time || observed.0 >= number && observed.1 > 0;
        observed.filter(is_better).unwrap_or((number, time))
    }
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
            || !self.kind.is_lock() && self.kind != Kind::Condvar
            || self.kind == Kind::Once
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn noun(&self) -> &str {
        self.type_name.as_deref().unwrap_or(self.kind.noun())
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

    /// The common name of the locks that one call site created: the label without the number.
    #[must_use]
    pub fn class(&self) -> &str {
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

impl Thread {
    /// Time waited for locks, ns.
    #[must_use]
    pub fn locks(&self) -> u64 {
        self.waited.saturating_sub(self.signals).saturating_sub(self.others)
    }
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
        match self {
            Self::Mutex
            | Self::Recursive
            | Self::ErrorChecking
            | Self::Adaptive
            | Self::Special
            | Self::RwLock
            | Self::Spin
            | Self::Once => true,
            Self::Condvar
            | Self::Channel
            | Self::Idle
            | Self::Barrier
            | Self::Join
            | Self::Job
            | Self::Semaphore
            | Self::Futex
            | Self::Call => false,
        }
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

impl RoleStats {
    /// The part of acquisitions that had to wait. None if nothing was counted.
    #[must_use]
    pub fn contended_share(&self) -> Option<f64> {
        // A wait that timed out is a try without an acquisition.
        let tries = self.acquisitions.max(self.contended);
        (tries > 0).then(|| self.contended as f64 / tries as f64)
    }
}

impl Times {
    /// Their mean, ns; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total as f64 / self.count as f64 }
    }
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
        self.total != self.measured.total
    }
}

impl SiteStats {
    /// A site where nothing happened yet.
    #[must_use]
    pub fn new(call_site: CallSiteId) -> Self {
        Self {
            call_site,
            acquisitions: 0,
            contended: 0,
            wait_total: 0,
            wait_longest: 0,
            hold: Held::default(),
            blocked: 0,
            blocked_total: 0,
            is_release: false,
        }
    }
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

    /// Which frame the call site has its name from: the innermost one that has a function, or the first.
    pub(crate) fn named(&self) -> usize {
        self.frames.iter().position(|frame| frame.function.is_some()).unwrap_or(0)
    }
}

/// A library's name without its version: `libcuda.so` of `libcuda.so.580.159.04`.
pub(crate) fn library(module: &str) -> &str {
    module.find(".so.").map_or(module, |at| &module[..at + 3])
}

impl Frame {
    /// The function for people, [`for_people`], or `module+0x1234`.
    #[must_use]
    pub fn shown(&self) -> String {
        self.function.as_deref().map_or_else(|| self.short(), for_people)
    }

    /// The function without its parameters, or `module+0x1234`.
    #[must_use]
    pub fn short(&self) -> String {
        match &self.function {
            Some(function) => short(function).to_owned(),
            None => format!("{}+{:#x}", self.module, self.offset),
        }
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
