//! Locks of a recording that can be delayed in other runs, and what the recording alone says about them: what
//! `spinpark whatif` begins with.

mod identity;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use spinpark_measure::text::nearest::nearest;
pub use spinpark_recorder::delay;
use spinpark_recorder::delay::{Plan, Point};

pub use self::identity::NoIdentity;
use crate::model::{Kind, Lock, Profile, Role, RoleStats};
use crate::phases;
use crate::read::directory;

/// Names in a message.
const FEW_NAMES: usize = 8;
/// A lock that no thread waits for stands in for another one if it is acquired at least a so many-th as often.
const FEWER: u64 = 10;

/// Locks of one class ([`Lock::class`]) in a process that was recorded with the detail `full`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// What it is.
    pub noun: String,
    /// How many locks are called so.
    pub locks: usize,
    /// How often they were acquired, or, of condition variables, signalled.
    pub uses: u64,
    /// The mean length of a section, ns; none if sections are not seen.
    pub section_ns: Option<f64>,
    /// The share of the recording in which they were held: 1 at most.
    pub held: Option<f64>,
    /// Time waited for them, ns.
    pub waited_ns: u64,
    /// The same as a share of the threads' time.
    pub waited: Option<f64>,
    /// Tries that failed.
    pub failed_tries: u64,
    #[serde(skip)]
    kind: Kind,
    /// The program made it of others.
    #[serde(skip)]
    is_made: bool,
    /// It is another library's, of which its futex is seen.
    #[serde(skip)]
    is_foreign: bool,
    /// Only its waits are known.
    #[serde(skip)]
    is_sampled: bool,
    /// [`Lock::id`]s.
    #[serde(skip)]
    ids: Vec<u32>,
    /// [`Profile::recording`].
    #[serde(skip)]
    recording: String,
}

impl Subject {
    fn new(name: &str, profile: &Profile, members: &[&Lock]) -> Self {
        let first = members[0];
        let stats = || members.iter().flat_map(|lock| &lock.roles);
        let taken = || stats().filter(|stats| stats.role.is_lock());
        let sum = |of: fn(&RoleStats) -> u64| taken().map(of).sum::<u64>();
        let (measured, length) =
            (sum(|stats| stats.hold.measured.count), sum(|stats| stats.hold.measured.total));
        let held = sum(|stats| stats.hold.total);
        let is_libcs = first.type_name.is_none() && !first.is_made;
        let has_sections = measured > 0 && first.kind.is_lock() && is_libcs;
        let time = profile.thread_time();
        let waited_ns = members.iter().map(|lock| lock.lock_wait()).sum();
        Self {
            name: name.to_owned(),
            noun: first.noun().to_owned(),
            locks: members.len(),
            uses: match first.kind {
                Kind::Condvar => stats().map(|stats| stats.wake_ups).sum(),
                _ => stats().map(|stats| stats.acquisitions).sum(),
            },
            section_ns: has_sections.then(|| length as f64 / measured as f64),
            held: (has_sections && profile.duration > 0)
                .then(|| (held as f64 / profile.duration as f64).min(1.0)),
            waited_ns,
            waited: (time > 0).then(|| (waited_ns as f64 / time as f64).min(1.0)),
            failed_tries: stats().map(|stats| stats.failed_tries).sum(),
            kind: first.kind,
            is_made: first.is_made,
            is_foreign: first.type_name.is_some(),
            is_sampled: first.sampled.is_some(),
            ids: members.iter().map(|lock| lock.id).collect(),
            recording: profile.recording.clone(),
        }
    }

    /// Why it cannot be delayed there; none if it can.
    #[must_use]
    pub fn refusal(&self, point: Point) -> Option<String> {
        let name = format!("`{}` ({})", self.name, self.noun);
        if self.is_sampled {
            return Some(format!(
                "{name} is inside of glibc, whose calls are not intercepted: it cannot be delayed"
            ));
        }
        let is_libcs = !self.is_foreign && !self.is_made;
        let has_sections = self.kind.is_lock() && self.kind != Kind::Once && is_libcs;
        let has_wakes = matches!(self.kind, Kind::Condvar | Kind::Semaphore | Kind::Futex);
        let is_woken = has_wakes && is_libcs || self.is_foreign && !self.is_made;
        match point {
            Point::Wake if is_woken => None,
            Point::Wake if has_sections => Some(format!(
                "the release of {name} wakes its waiters inside of the library that implements it, which is not seen\n\
                 --where after delays after the release; --where wake is for condition variables, semaphores and futexes"
            )),
            Point::Retry if has_sections && self.failed_tries == 0 => Some(format!(
                "no try for {name} failed in the recording: what a lock function does between its attempts is inside of the \
                 library that implements it, which is not seen\n--where retry is for programs that try again themselves"
            )),
            _ if has_sections || self.kind == Kind::Semaphore && point != Point::Retry => None,
            _ if is_woken => Some(format!(
                "of {name} only waits and wake-ups are seen, not its sections\nUse --where wake"
            )),
            _ => Some(format!("{name} has no calls that can be delayed")),
        }
    }

    fn is_called(&self, name: &str, profile: &Profile) -> bool {
        let is_it = |lock: &&Lock| lock.label == name || lock.name.as_deref() == Some(name);
        self.name == name
            || profile.locks.iter().filter(|lock| self.ids.contains(&lock.id)).any(|lock| is_it(&lock))
    }

    /// Writes into a plan what tells its locks from others.
    ///
    /// # Errors
    /// [`NoIdentity`], if nothing does.
    pub fn identify(&self, recordings: &Path, plan: &mut Plan) -> Result<(), NoIdentity> {
        let found = directory(recordings).map_err(|error| NoIdentity(error.to_string()))?;
        let is_its = |path: &Path| path.file_stem().is_some_and(|stem| *stem == *self.recording);
        let recording = found.recordings.iter().find(|recording| is_its(recording.path()));
        let recording =
            recording.ok_or_else(|| NoIdentity(format!("the recording {} is gone", self.recording)))?;
        identity::identify(recording.view(), &self.ids, plan)
            .map_err(|NoIdentity(why)| NoIdentity(format!("`{}` ({}) {why}", self.name, self.noun)))
    }
}

/// The subjects of a process, the most waited for first.
fn subjects_of(profile: &Profile) -> Vec<Subject> {
    let mut classes: BTreeMap<(String, Kind), Vec<&Lock>> = BTreeMap::new();
    for lock in &profile.locks {
        classes.entry((lock.class().into_owned(), lock.kind)).or_default().push(lock);
    }
    let mut subjects: Vec<Subject> =
        classes.iter().map(|((name, _), members)| Subject::new(name, profile, members)).collect();
    subjects.sort_by_key(|subject| std::cmp::Reverse((subject.waited_ns, subject.uses)));
    subjects
}

/// The locks that threads waited for most, at most `number`, of those that can be delayed at this point.
///
/// # Errors
/// What to do, if there is none.
pub fn most_waited(profiles: &[Profile], point: Point, number: usize) -> Result<Vec<Subject>, String> {
    let mut found: Vec<Subject> = profiles
        .iter()
        .flat_map(subjects_of)
        .filter(|subject| subject.refusal(point).is_none())
        .filter(|subject| subject.waited_ns > 0 || point == Point::Wake)
        .collect();
    found.sort_by_key(|subject| std::cmp::Reverse((subject.waited_ns, subject.uses)));
    found.truncate(number);
    if found.is_empty() {
        let what = match point {
            Point::Wake => "no condition variable was signalled",
            _ => "no thread waited for a lock that can be delayed there",
        };
        return Err(format!("{what} in the recorded run\n{}", candidates(profiles, point)));
    }
    Ok(found)
}

/// The lock with this name: as reports call it, with or without its number.
///
/// # Errors
/// Which names there are, if none is it; or why it cannot be delayed at this point.
pub fn named(profiles: &[Profile], name: &str, point: Point) -> Result<Subject, String> {
    let is_it = |profile: &&Profile, subject: &Subject| subject.is_called(name, profile);
    let found = profiles
        .iter()
        .flat_map(|profile| subjects_of(profile).into_iter().filter(move |subject| is_it(&profile, subject)));
    // Of several processes that have such a lock, the one that uses it most; of a lock and a condition variable
    // with one name, the one that can be delayed.
    let best =
        found.max_by_key(|subject| (subject.refusal(point).is_none(), subject.waited_ns, subject.uses));
    let Some(subject) = best else {
        let names: Vec<String> = profiles.iter().flat_map(subjects_of).map(|subject| subject.name).collect();
        let meant = nearest(name, names.iter().map(String::as_str));
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        return Err(format!("the recorded run has no lock `{name}`{meant}\n{}", candidates(profiles, point)));
    };
    match subject.refusal(point) {
        Some(why) => Err(why),
        None => Ok(subject),
    }
}

/// The names that can be given.
fn candidates(profiles: &[Profile], point: Point) -> String {
    let can_be = profiles.iter().flat_map(subjects_of).filter(|subject| subject.refusal(point).is_none());
    let mut names: Vec<String> = can_be.map(|subject| format!("`{}`", subject.name)).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.truncate(FEW_NAMES);
    match names.is_empty() {
        true => String::from("It has no lock that can be delayed there"),
        false => format!("Name one with --lock: {}", names.join(", ")),
    }
}

/// A lock of the same process that no thread waits for, which is acquired about as often, or as often as can be
/// found: delays there should cost nothing but the time of their threads. Not one that is taken while the subject
/// is held: that would be a delay in the subject's sections.
#[must_use]
pub fn control(profiles: &[Profile], subject: &Subject) -> Option<Subject> {
    let profile = profiles.iter().find(|profile| profile.recording == subject.recording)?;
    let is_within = |other: &Subject| {
        let nests = profile.nests.iter().filter(|nest| subject.ids.contains(&nest.outer));
        nests.filter(|nest| nest.count > 0).any(|nest| other.ids.contains(&nest.lock))
    };
    let contended = |other: &Subject| {
        let locks = profile.locks.iter().filter(|lock| other.ids.contains(&lock.id));
        locks.flat_map(|lock| &lock.roles).any(|stats| stats.contended > 0 || stats.failed_tries > 0)
    };
    let mut calm: Vec<Subject> = subjects_of(profile)
        .into_iter()
        .filter(|other| other.refusal(Point::Inside).is_none() && other.kind != Kind::Semaphore)
        .filter(|other| other.ids != subject.ids && other.waited_ns == 0 && !contended(other))
        .filter(|other| other.uses >= (subject.uses / FEWER).max(1) && !is_within(other))
        .collect();
    calm.sort_by_key(|other| other.uses.abs_diff(subject.uses));
    calm.into_iter().next()
}

/// When the lock changes that threads wait for most: a sentence, if it does.
#[must_use]
pub fn phases(profiles: &[Profile], subject: &Subject) -> Option<String> {
    let profile = profiles.iter().find(|profile| profile.recording == subject.recording)?;
    phases::changes(profile)
}

/// Whether threads used a lock at all in what was recorded.
#[must_use]
pub fn has_locks(profiles: &[Profile]) -> bool {
    let roles = profiles.iter().flat_map(|profile| &profile.locks).flat_map(|lock| &lock.roles);
    roles.map(|stats| stats.acquisitions.saturating_add(stats.contended)).any(|uses| uses > 0)
        || profiles.iter().flat_map(|profile| &profile.locks).any(|lock| lock.role(Role::Signal).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(kind: Kind, type_name: Option<&str>) -> Subject {
        let lock = Lock { kind, type_name: type_name.map(str::to_owned), ..Lock::default() };
        Subject::new("it", &Profile::default(), &[&lock])
    }

    /// What is not seen is refused, with what can be asked instead.
    #[test]
    fn each_kind_has_its_places() {
        use Point::{After, Before, Inside, Retry, Wake};
        let allowed = |subject: Subject| {
            let points = [Inside, Before, Retry, After, Wake];
            points.into_iter().filter(|point| subject.refusal(*point).is_none()).collect::<Vec<_>>()
        };
        assert_eq!(allowed(subject(Kind::Mutex, None)), [Inside, Before, After], "no try failed");
        let tried = Subject { failed_tries: 1, ..subject(Kind::RwLock, None) };
        assert_eq!(allowed(tried), [Inside, Before, Retry, After]);
        assert_eq!(allowed(subject(Kind::Condvar, None)), [Wake]);
        assert_eq!(allowed(subject(Kind::Semaphore, None)), [Inside, Before, After, Wake]);
        assert_eq!(allowed(subject(Kind::Mutex, Some("std Mutex"))), [Wake]);
        assert_eq!(allowed(subject(Kind::Barrier, None)), []);
        let why = subject(Kind::Mutex, Some("std Mutex")).refusal(Inside);
        assert!(why.is_some_and(|why| why.contains("Use --where wake")));
    }

    #[test]
    fn a_name_that_is_not_there_has_candidates() {
        let lock = |label: &str| Lock { label: label.to_owned(), ..Lock::default() };
        let profiles = [Profile { locks: vec![lock("cache #1"), lock("log")], ..Profile::default() }];
        assert_eq!(named(&profiles, "cache", Point::Inside).map(|found| found.locks), Ok(1));
        assert!(named(&profiles, "cache #1", Point::Inside).is_ok());
        let why = named(&profiles, "cahce", Point::Inside).unwrap_err();
        assert!(why.contains("did you mean `cache`?") && why.contains("--lock: `cache`, `log`"), "{why}");
        assert!(most_waited(&profiles, Point::Inside, 3).unwrap_err().contains("no thread waited"));
    }
}
