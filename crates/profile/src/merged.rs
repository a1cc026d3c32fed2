//! Several profiles as one: of the processes of one build of a program, on one host or many.
//!
//! | what                                      | how it is added up                                                         |
//! |-------------------------------------------|----------------------------------------------------------------------------|
//! | programs                                  | by file name and build id, by whose locks were recorded, by detail; samples apart from recordings: figures of different ones mean different things, and are never one figure |
//! | locks                                     | by name, variable, or the line that made or first used them ([`Lock::class`]); those that are left, as [`diff`](mod@crate::diff) matches them |
//! | call sites                                | equal stacks: the same functions at the same addresses in files of the same names |
//! | times, numbers, histograms, pairs         | sums; the longest is the longest                                           |
//! | threads                                   | by name, without the number at its end                                     |
//! | what threads did otherwise (`/proc`)      | sums, if it was seen of every process; else it is not known                |
//! | order in time, single waits, deadlocks    | left out: they are of one process. Deadlocks are counted                   |
//! | utilisation, the cost of recording        | left out: they are of one process                                          |
//!
//! One profile is held at a time, and the sums: the memory depends on how many locks and call sites there are, not on
//! how many profiles.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use spinpark_measure::text::units::count;

use crate::classes::{self, by_class};
use crate::diff::matching::{Class, classes_of, matched};
use crate::model::{
    CallSite, CallSiteId, Detail, Doing, FORMAT, HeldWait, HolderTime, Kind, Lock, LocksOf, Merged, Nest,
    Observed, OutOfSight, Pair, Place, Profile, Role, RoleStats, Sampling, SiteStats, Spread, Strip, Thread,
    ThreadTime, ThreadWait, VERSION, Warning,
};

/// Sentences of single recordings that are kept; the others are counted.
const SENTENCES: usize = 8;

/// Profiles added up so far.
#[derive(Debug, Default)]
pub struct Merger {
    groups: Vec<Group>,
    /// The processes that are in: no process counts twice.
    seen: HashSet<Identity>,
    doubles: u64,
    off: u64,
}

/// Of a recording of a process. No other one began at the same nanosecond in a process of this number.
type Identity = (u32, u64, u64, String);

/// A waiter, its holder, whether that is where it released the lock, and whether it was out of sight.
type Blocked = (CallSiteId, Option<CallSiteId>, bool, Option<OutOfSight>);

/// Which profiles are added up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    /// File name of the program.
    program: String,
    build_id: Option<String>,
    locks_of: LocksOf,
    detail: Detail,
    is_sampled: bool,
}

/// Profiles of one key.
#[derive(Debug)]
struct Group {
    key: Key,
    sum: Profile,
    merged: Merged,
    /// How its locks are recognised, in the order of the locks of `sum`. Their ids are their places there.
    classes: Vec<Class>,
    /// The place of a lock with this label.
    by_label: HashMap<(String, Kind), usize>,
    /// The part of `spread` of each lock: in the order of the locks.
    spread: Vec<Spread>,
    sites: HashMap<CallSite, CallSiteId>,
    /// By name, and whether they were idle; with what they waited for that may be a lock, by its number.
    threads: BTreeMap<(String, bool), (Thread, BTreeMap<u32, u64>)>,
    places: BTreeMap<String, Place>,
    pairs: HashMap<(u32, Role, Blocked), Pair>,
    held_waits: HashMap<(u32, Role, u32, Role, bool), HeldWait>,
    nests: HashMap<(u32, Role, u32, Role), Nest>,
    thread_waits: HashMap<(String, u32, Role, CallSiteId), ThreadWait>,
    holders: BTreeMap<(u32, Doing, String), u64>,
    /// None once a process was not observed.
    observed: Option<Observed>,
    /// Sentences, whether they are losses, and of how many recordings.
    warnings: BTreeMap<(bool, String), u64>,
    slowed: u64,
    /// Locks that could be one or another of those that were known.
    unsure: u64,
    /// Libraries of which there were several builds.
    builds: BTreeMap<String, u64>,
}

impl Merger {
    /// Adds the profile of a process, or one that adds several up. `place`: where it was found, which stands for its
    /// host if that was not noted.
    pub fn add(&mut self, profile: &Profile, place: &str) {
        let identity = (profile.pid, profile.started, profile.born, profile.recording.clone());
        if profile.merged.is_none() && !self.seen.insert(identity) {
            self.doubles += 1;
            return;
        }
        if profile.detail == Detail::Off {
            self.off += 1;
            return;
        }
        let key = Key::of(profile);
        let at = match self.groups.iter().position(|group| group.key == key) {
            Some(at) => at,
            None => {
                self.groups.push(Group::new(key));
                self.groups.len() - 1
            }
        };
        self.groups[at].add(profile, profile.host.as_deref().unwrap_or(place));
    }

    /// The sums, those with the longest total wait first; and what was not added up, in sentences.
    #[must_use]
    pub fn finish(self) -> (Vec<Profile>, Vec<String>) {
        let mut notes = Vec::new();
        if self.doubles > 0 {
            notes.push(format!(
                "{} given more than once, and counted once.",
                were(self.doubles, "recording was", "recordings were")
            ));
        }
        if self.off > 0 {
            notes.push(format!(
                "{} made with `--detail off`: nothing is in them.",
                were(self.off, "recording was", "recordings were")
            ));
        }
        let mut profiles: Vec<Profile> = self.groups.into_iter().map(Group::finish).collect();
        profiles.sort_by_key(|profile| Reverse((profile.waited(), profile.signal_wait())));
        name_apart(&mut profiles);
        notes.extend(apart(&profiles));
        (profiles, notes)
    }
}

fn were(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

/// Gives each sum a name of its own: that of its program, and what tells it from the others.
fn name_apart(profiles: &mut [Profile]) {
    let mut taken: HashSet<String> = HashSet::new();
    for profile in profiles {
        let build = profile.merged.as_ref().and_then(Merged::build);
        let base = match build {
            Some(build) => format!("{}-{build}", file_name(&profile.program)),
            None => file_name(&profile.program).to_owned(),
        };
        let mut name = base.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{base}-{number}");
            number += 1;
        }
        profile.recording = name;
    }
}

/// Why there are several sums of one program: one sentence for each.
fn apart(profiles: &[Profile]) -> Vec<String> {
    let mut by_program: BTreeMap<&str, Vec<&Profile>> = BTreeMap::new();
    for profile in profiles {
        by_program.entry(file_name(&profile.program)).or_default().push(profile);
    }
    let several = by_program.into_iter().filter(|(_, profiles)| profiles.len() > 1);
    several
        .map(|(program, profiles)| {
            let first = profiles[0];
            let build = |profile: &Profile| profile.merged.as_ref().and_then(|merged| merged.build_id.clone());
            let differs = |is: &dyn Fn(&Profile) -> bool| profiles.iter().any(|other| is(other));
            let mut why = Vec::new();
            if differs(&|other| build(other) != build(first)) {
                why.push("builds");
            }
            if differs(&|other| other.detail != first.detail) {
                why.push("details (`--detail`)");
            }
            if differs(&|other| other.locks_of != first.locks_of) {
                why.push("locks (glibc's, spinpark's, the library's)");
            }
            if differs(&|other| other.sampling.is_some() != first.sampling.is_some()) {
                why.push("kinds (recorded, or sampled by `--pid`)");
            }
            format!(
                "The recordings of `{program}` are of different {}, and are in {} sums: figures of different ones are not \
                 added up.",
                why.join(", and of different "),
                profiles.len()
            )
        })
        .collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name of threads without the number at its end: `worker-*`.
fn group_of(name: &str) -> String {
    let start = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    if start.is_empty() || start == name { name.to_owned() } else { format!("{start}*") }
}

impl Key {
    fn of(profile: &Profile) -> Self {
        let program = file_name(&profile.program);
        let module = profile.modules.iter().find(|module| file_name(&module.path) == program);
        let build_id = match &profile.merged {
            Some(merged) => merged.build_id.clone(),
            None => module.and_then(|module| module.build_id.clone()),
        };
        Self {
            program: program.to_owned(),
            build_id,
            locks_of: profile.locks_of,
            detail: profile.detail,
            is_sampled: profile.sampling.is_some(),
        }
    }
}

impl Group {
    fn new(key: Key) -> Self {
        let merged = Merged { build_id: key.build_id.clone(), ..Merged::default() };
        Self {
            sum: Profile {
                format: FORMAT.to_owned(),
                version: VERSION,
                detail: key.detail,
                locks_of: key.locks_of,
                sampling: key.is_sampled.then(Sampling::default),
                ..Profile::default()
            },
            key,
            merged,
            classes: Vec::new(),
            by_label: HashMap::new(),
            spread: Vec::new(),
            sites: HashMap::new(),
            threads: BTreeMap::new(),
            places: BTreeMap::new(),
            pairs: HashMap::new(),
            held_waits: HashMap::new(),
            nests: HashMap::new(),
            thread_waits: HashMap::new(),
            holders: BTreeMap::new(),
            observed: Some(Observed::default()),
            warnings: BTreeMap::new(),
            slowed: 0,
            unsure: 0,
            builds: BTreeMap::new(),
        }
    }

    fn add(&mut self, profile: &Profile, place: &str) {
        // Locks of one class have one number, in everything that names them.
        let folded = by_class(profile);
        let known_as = self.locks(profile, &folded);
        let sites: Vec<CallSiteId> = profile.call_sites.iter().map(|site| self.site(site)).collect();
        self.add_roles(&folded, &known_as, &sites);
        self.add_spread(profile, &folded, &known_as, place);
        self.add_waits(&folded, &known_as, &sites);
        self.add_threads(profile, &known_as);
        self.add_modules(profile);
        self.add_run(profile, place);
    }

    /// The numbers of a profile's locks in the sum. New ones are added, without what threads did with them.
    fn locks(&mut self, profile: &Profile, folded: &Profile) -> HashMap<u32, u32> {
        let new: Vec<Class> = classes_of(profile, folded.locks.clone());
        let known = |class: &Class| self.by_label.get(&(class.label.clone(), class.lock.kind)).copied();
        let mut found: Vec<Option<usize>> = new.iter().map(known).collect();
        if found.iter().any(Option::is_none) {
            self.match_others(&new, &mut found);
        }
        let mut numbers = HashMap::new();
        for ((class, found), lock) in new.into_iter().zip(found).zip(&folded.locks) {
            let label = (class.label.clone(), class.lock.kind);
            let at = match found {
                Some(at) => {
                    self.classes[at].take_on(class);
                    at
                }
                None => self.add_lock(lock, class),
            };
            self.by_label.entry(label).or_insert(at);
            numbers.insert(lock.id, number(at));
        }
        // The others of a class have the number of its first.
        let mut firsts: HashMap<(Cow<'_, str>, Kind), u32> = HashMap::new();
        for lock in &profile.locks {
            let first = firsts.entry((lock.class(), lock.kind)).or_insert(lock.id);
            *first = lock.id.min(*first);
        }
        for lock in &profile.locks {
            let first = firsts.get(&(lock.class(), lock.kind)).and_then(|first| numbers.get(first)).copied();
            first.map(|number| numbers.entry(lock.id).or_insert(number));
        }
        numbers
    }

    /// Those with another label than the known ones: by the functions that create and use them.
    fn match_others(&mut self, new: &[Class], found: &mut [Option<usize>]) {
        let taken: HashSet<usize> = found.iter().flatten().copied().collect();
        let known: Vec<usize> = (0..self.classes.len()).filter(|at| !taken.contains(at)).collect();
        let open: Vec<usize> = (0..new.len()).filter(|at| found[*at].is_none()).collect();
        if known.is_empty() {
            return;
        }
        let before: Vec<&Class> = known.iter().map(|at| &self.classes[*at]).collect();
        let after: Vec<&Class> = open.iter().map(|at| &new[*at]).collect();
        for same in matched(&before, &after) {
            self.unsure += u64::from(same.before.len() > 1 && !same.after.is_empty());
            let Some(first) = same.before.first() else { continue };
            same.after.iter().for_each(|other| found[open[*other]] = Some(known[*first]));
        }
    }

    fn add_lock(&mut self, lock: &Lock, class: Class) -> usize {
        let at = self.classes.len();
        let label = class.label.clone();
        self.sum.locks.push(Lock {
            id: number(at),
            label,
            // Each process has it elsewhere, and creates it at a site of its own.
            address: 0,
            creation_site: None,
            is_created: false,
            is_destroyed: false,
            roles: Vec::new(),
            ..lock.clone()
        });
        self.classes.push(class);
        self.spread.push(Spread { lock: number(at), ..Spread::default() });
        at
    }

    /// The number of a call site in the sum.
    fn site(&mut self, site: &CallSite) -> CallSiteId {
        if let Some(known) = self.sites.get(site) {
            return *known;
        }
        let number = self.sum.call_sites.len();
        self.sum.call_sites.push(site.clone());
        self.sites.insert(site.clone(), number);
        number
    }

    fn add_roles(&mut self, folded: &Profile, known_as: &HashMap<u32, u32>, sites: &[CallSiteId]) {
        for lock in &folded.locks {
            let Some(sum) = known_as.get(&lock.id).and_then(|id| self.sum.locks.get_mut(place_of(*id)))
            else {
                continue;
            };
            let made = lock.creation_site.and_then(|site| sites.get(site)).copied();
            if sum.creation_site.is_none() || lock.is_created && !sum.is_created {
                (sum.creation_site, sum.is_created) = (made, lock.is_created);
            }
            for stats in &lock.roles {
                let renumbered = stats.sites.iter().filter_map(|site| {
                    Some(SiteStats { call_site: *sites.get(site.call_site)?, ..site.clone() })
                });
                let stats = RoleStats {
                    sites: renumbered.collect(),
                    // Of one process each.
                    strip: Strip::default(),
                    utilisation: None,
                    ..stats.clone()
                };
                match sum.roles.iter_mut().find(|known| known.role == stats.role) {
                    Some(known) => classes::add(known, &stats),
                    None => sum.roles.push(stats),
                }
            }
        }
    }

    /// Where threads waited for each lock.
    fn add_spread(&mut self, profile: &Profile, folded: &Profile, known_as: &HashMap<u32, u32>, place: &str) {
        let here = |profile: &Profile| format!("process {} of {place}", profile.pid);
        for lock in &folded.locks {
            let Some(at) = known_as.get(&lock.id).map(|id| place_of(*id)) else { continue };
            let sum = &mut self.spread[at];
            let earlier = profile.merged.as_ref();
            let earlier =
                earlier.and_then(|merged| merged.spread.iter().find(|spread| spread.lock == lock.id));
            let waited = lock.lock_wait();
            let longest = lock.roles.iter().filter(|stats| stats.role.is_lock());
            let longest = longest.map(|stats| stats.wait.longest).max().unwrap_or(0);
            let (processes, most, longest) = match earlier {
                Some(spread) => (spread.processes, spread.most, spread.longest),
                None => (u64::from(waited > 0), waited, longest),
            };
            sum.processes = sum.processes.saturating_add(processes);
            if most > sum.most {
                sum.most = most;
                sum.most_in = earlier.map_or_else(|| here(profile), |spread| spread.most_in.clone());
            }
            if longest > sum.longest {
                sum.longest = longest;
                sum.longest_in = earlier.map_or_else(|| here(profile), |spread| spread.longest_in.clone());
            }
        }
    }

    /// Waits of a lock for its holders, with another lock held, by threads.
    fn add_waits(&mut self, folded: &Profile, known_as: &HashMap<u32, u32>, sites: &[CallSiteId]) {
        let lock = |id: u32| known_as.get(&id).copied();
        for pair in &folded.pairs {
            let (Some(lock), Some(waiter)) = (lock(pair.lock), sites.get(pair.waiter).copied()) else {
                continue;
            };
            let holder = pair.holder.and_then(|holder| sites.get(holder)).copied();
            let key = (lock, pair.role, (waiter, holder, pair.is_release, pair.out_of_sight));
            let sum = self.pairs.entry(key).or_insert_with(|| Pair {
                lock,
                waiter,
                holder,
                count: 0,
                wait_total: 0,
                wait_longest: 0,
                free: 0,
                ..pair.clone()
            });
            sum.count = sum.count.saturating_add(pair.count);
            sum.wait_total = sum.wait_total.saturating_add(pair.wait_total);
            sum.wait_longest = sum.wait_longest.max(pair.wait_longest);
            sum.free = sum.free.saturating_add(pair.free);
        }
        for waits in &folded.held_waits {
            let (Some(outer), Some(lock)) = (lock(waits.outer), lock(waits.lock)) else { continue };
            let key = (outer, waits.outer_role, lock, waits.role, waits.is_timed);
            let sum = self.held_waits.entry(key).or_insert_with(|| HeldWait {
                outer,
                outer_role: waits.outer_role,
                lock,
                role: waits.role,
                is_timed: waits.is_timed,
                ..HeldWait::default()
            });
            // The threads are of different processes.
            sum.add(&HeldWait { thread: None, ..waits.clone() });
        }
        for nest in &folded.nests {
            let (Some(outer), Some(lock)) = (lock(nest.outer), lock(nest.lock)) else { continue };
            let nothing = Nest { outer, lock, count: 0, wait_total: 0, hold_total: 0, ..*nest };
            let sum = self.nests.entry((outer, nest.outer_role, lock, nest.role)).or_insert(nothing);
            sum.count = sum.count.saturating_add(nest.count);
            sum.wait_total = sum.wait_total.saturating_add(nest.wait_total);
            sum.hold_total = sum.hold_total.saturating_add(nest.hold_total);
        }
        for waits in &folded.thread_waits {
            let (Some(lock), Some(call_site)) = (lock(waits.lock), sites.get(waits.call_site).copied())
            else {
                continue;
            };
            let thread = group_of(&waits.thread);
            let nothing =
                ThreadWait { thread: thread.clone(), lock, call_site, count: 0, wait_total: 0, ..*waits };
            let sum = self.thread_waits.entry((thread, lock, waits.role, call_site)).or_insert(nothing);
            sum.count = sum.count.saturating_add(waits.count);
            sum.wait_total = sum.wait_total.saturating_add(waits.wait_total);
        }
        for holder in folded.sampling.iter().flat_map(|sampling| &sampling.holders) {
            let Some(lock) = lock(holder.lock) else { continue };
            let sum = self.holders.entry((lock, holder.kind, holder.doing.clone())).or_default();
            *sum = sum.saturating_add(holder.time);
        }
    }

    fn add_threads(&mut self, profile: &Profile, known_as: &HashMap<u32, u32>) {
        let idle: HashSet<u32> = match &profile.observed {
            Some(observed) => observed.threads.idle_ids.iter().copied().collect(),
            None => HashSet::new(),
        };
        for thread in &profile.threads {
            let key = (group_of(&thread.name), idle.contains(&thread.id));
            let (sum, unclear) = self.threads.entry(key.clone()).or_insert_with(|| {
                (Thread { name: key.0, has_ended: true, ..Thread::default() }, BTreeMap::new())
            });
            sum.users = sum.users.saturating_add(thread.users);
            sum.has_ended &= thread.has_ended;
            let parts = [
                (&mut sum.time, thread.time),
                (&mut sum.waits, thread.waits),
                (&mut sum.waited, thread.waited),
                (&mut sum.signals, thread.signals),
                (&mut sum.others, thread.others),
            ];
            for (sum, more) in parts {
                *sum = sum.saturating_add(more);
            }
            for (lock, time) in &thread.unclear {
                let Some(lock) = known_as.get(lock) else { continue };
                let sum = unclear.entry(*lock).or_default();
                *sum = sum.saturating_add(*time);
            }
        }
    }

    /// Files that code is in. The first of a name stands for all; other builds are counted.
    fn add_modules(&mut self, profile: &Profile) {
        for module in &profile.modules {
            let name = file_name(&module.path);
            let known = self.sum.modules.iter().find(|known| file_name(&known.path) == name);
            match known {
                None => self.sum.modules.push(module.clone()),
                Some(known)
                    if known.build_id.is_some()
                        && module.build_id.is_some()
                        && known.build_id != module.build_id =>
                {
                    *self.builds.entry(name.to_owned()).or_default() += 1;
                }
                Some(_) => {}
            }
        }
    }

    /// What is of the run as a whole.
    fn add_run(&mut self, profile: &Profile, place: &str) {
        let sum = &mut self.sum;
        if self.merged.processes == 0 {
            sum.program = profile.program.clone();
            sum.arguments = profile.arguments.clone();
            (sum.started, sum.cpus, sum.sample_every) = (profile.started, profile.cpus, profile.sample_every);
            sum.ended = profile.ended;
        }
        if sum.program != profile.program {
            sum.program = file_name(&sum.program).to_owned();
        }
        if sum.arguments != profile.arguments {
            sum.arguments.clear();
        }
        if sum.cpus != profile.cpus {
            sum.cpus = 0;
        }
        sum.started = sum.started.min(profile.started);
        sum.duration = sum.duration.saturating_add(profile.duration);
        sum.dropped = sum.dropped.saturating_add(profile.dropped);
        sum.nested = sum.nested.saturating_add(profile.nested);
        let (own, other) = (&mut sum.recorder, &profile.recorder);
        own.left_out = own.left_out.saturating_add(other.left_out);
        own.waits_left_out = own.waits_left_out.saturating_add(other.waits_left_out);
        if let (Some(sum), Some(sampling)) = (&mut sum.sampling, &profile.sampling) {
            sum.snapshots = sum.snapshots.saturating_add(sampling.snapshots);
            sum.found = sum.found.saturating_add(sampling.found);
            // Where one does not know, as many as it found.
            let independent = |of: &Sampling| if of.independent == 0 { of.found } else { of.independent };
            sum.independent = sum.independent.saturating_add(independent(sampling));
            sum.cost = sum.cost.saturating_add(sampling.cost);
            sum.interval = sum.interval.max(sampling.interval);
        }
        self.add_observed(profile);
        self.slowed += u64::from(profile.slowed().is_some());
        let mut lost: Vec<(bool, String)> =
            profile.warnings.iter().map(|warning| (warning.is_loss(), warning.text().to_owned())).collect();
        lost.sort();
        lost.dedup();
        for key in lost {
            *self.warnings.entry(key).or_default() += 1;
        }
        self.add_place(profile, place);
    }

    fn add_observed(&mut self, profile: &Profile) {
        let Some(seen) = profile.observed.as_ref().filter(|observed| observed.seen > 0) else {
            self.observed = None;
            return;
        };
        let Some(sum) = &mut self.observed else { return };
        sum.duration = sum.duration.saturating_add(seen.duration);
        sum.seen = sum.seen.saturating_add(seen.seen);
        sum.interval = sum.interval.max(seen.interval);
        let (threads, more) = (&mut sum.threads, &seen.threads);
        threads.number = threads.number.saturating_add(more.number);
        threads.idle = threads.idle.saturating_add(more.idle);
        threads.samples = threads.samples.saturating_add(more.samples);
        let add = |sum: &mut ThreadTime, more: &ThreadTime| {
            let mut more = *more;
            for (part, more) in sum.parts().into_iter().zip(more.parts()) {
                *part = part.saturating_add(*more);
            }
        };
        add(&mut threads.time, &more.time);
        add(&mut threads.idle_time, &more.idle_time);
        sum.is_left |= seen.is_left;
    }

    fn add_place(&mut self, profile: &Profile, place: &str) {
        let merged = &mut self.merged;
        let deadlock = (!profile.deadlocks.is_empty()).then(|| format!("process {} of {place}", profile.pid));
        if let Some(earlier) = &profile.merged {
            merged.processes = merged.processes.saturating_add(earlier.processes);
            merged.deadlocks = merged.deadlocks.saturating_add(earlier.deadlocks);
            merged.deadlock = merged.deadlock.take().or_else(|| earlier.deadlock.clone());
            earlier.places.iter().for_each(|place| add_to(&mut self.places, place));
            return;
        }
        merged.processes += 1;
        merged.deadlocks += u64::from(deadlock.is_some());
        merged.deadlock = merged.deadlock.take().or(deadlock);
        let here = Place {
            name: place.to_owned(),
            processes: 1,
            waited: profile.lock_wait(),
            thread_time: profile.thread_time(),
        };
        add_to(&mut self.places, &here);
    }

    fn finish(self) -> Profile {
        let Self { mut sum, mut merged, spread, .. } = self;
        for (lock, class) in sum.locks.iter_mut().zip(&self.classes) {
            if class.count > 1 {
                lock.label = format!("{} ({} locks)", lock.label, class.count);
            }
            for stats in &mut lock.roles {
                stats.sites.sort_by_key(|site| {
                    (Reverse(site.wait_total), Reverse(site.blocked_total), site.call_site)
                });
            }
            lock.roles.sort_by_key(|stats| stats.role);
        }
        // Numbers by waiting, as in a profile that was read.
        let mut order: Vec<usize> = (0..sum.locks.len()).collect();
        order.sort_by_key(|at| sum.locks[*at].order());
        sum.locks.sort_by_key(Lock::order);
        sum.pairs = self.pairs.into_values().collect();
        sum.pairs.sort_by_key(|pair| {
            (
                pair.role.rank(),
                Reverse(pair.held()),
                Reverse(pair.count),
                (pair.lock, pair.waiter, pair.holder),
            )
        });
        sum.held_waits = self.held_waits.into_values().collect();
        sum.held_waits.sort_by_key(|waits| (waits.order(), waits.outer, waits.lock));
        sum.nests = self.nests.into_values().collect();
        sum.nests.sort_by_key(|nest| (Reverse(nest.count), nest.outer, nest.lock));
        sum.thread_waits = self.thread_waits.into_values().collect();
        sum.thread_waits.sort_by(|one, other| {
            (&one.thread, one.lock, one.role, one.call_site).cmp(&(
                &other.thread,
                other.lock,
                other.role,
                other.call_site,
            ))
        });
        merged.spread = order.into_iter().map(|at| spread[at].clone()).collect();
        merged.places = self.places.into_values().collect();
        merged.places.sort_by(|one, other| {
            (Reverse(one.waited), &one.name).cmp(&(Reverse(other.waited), &other.name))
        });
        let mut idle_ids = Vec::new();
        for (id, ((_, is_idle), (thread, unclear))) in (1..).zip(self.threads) {
            idle_ids.extend(is_idle.then_some(id));
            sum.threads.push(Thread { id, unclear: unclear.into_iter().collect(), ..thread });
        }
        sum.observed = self.observed.map(|mut observed| {
            observed.threads.idle_ids = idle_ids;
            observed
        });
        if let Some(sampling) = &mut sum.sampling {
            let holder = |((lock, kind, doing), time)| HolderTime { lock, kind, doing, time };
            sampling.holders = self.holders.into_iter().map(holder).collect();
            sampling.holders.sort_by_key(|holder| Reverse(holder.time));
        }
        sum.warnings = warnings(self.warnings, &merged);
        let more = [
            (self.slowed > 0).then(|| {
                format!(
                    "Recording slowed {} of the {} processes by more than 5 %: their figures are not those of the program.",
                    count(self.slowed),
                    count(merged.processes)
                )
            }),
            (self.unsure > 0).then(|| {
                format!(
                    "{} could be one or another lock of the other recordings, and {} added to the first of them.",
                    were(self.unsure, "lock", "locks"),
                    if self.unsure == 1 { "was" } else { "were" }
                )
            }),
            (!self.builds.is_empty()).then(|| {
                let names: Vec<String> = self.builds.keys().map(|name| format!("`{name}`")).collect();
                format!(
                    "There are several builds of {}: places in them with equal functions are rows of their own.",
                    few(&names)
                )
            }),
        ];
        sum.warnings.extend(more.into_iter().flatten().map(Warning::Note));
        sum.merged = Some(merged);
        sum
    }
}

/// The first of `items`, and how many more there are.
fn few(items: &[String]) -> String {
    const NAMED: usize = 4;
    match items.len().saturating_sub(NAMED) {
        0 => items.join(", "),
        more => format!("{} and {more} more", items[..NAMED].join(", ")),
    }
}

fn add_to(places: &mut BTreeMap<String, Place>, more: &Place) {
    let sum = places
        .entry(more.name.clone())
        .or_insert_with(|| Place { name: more.name.clone(), ..Place::default() });
    sum.processes = sum.processes.saturating_add(more.processes);
    sum.waited = sum.waited.saturating_add(more.waited);
    sum.thread_time = sum.thread_time.saturating_add(more.thread_time);
}

/// The sentences of single recordings: those of the most recordings first; of the rest, how many there are.
fn warnings(found: BTreeMap<(bool, String), u64>, merged: &Merged) -> Vec<Warning> {
    let mut kept: Vec<((bool, String), u64)> = found.into_iter().collect();
    kept.sort_by_key(|((is_loss, _), recordings)| (!is_loss, Reverse(*recordings)));
    let rest = kept.split_off(kept.len().min(SENTENCES));
    let sentence = |text: String, recordings: u64| match recordings {
        all if all == merged.processes => text,
        1 => format!("Of one recording: {text}"),
        some => format!("Of {} recordings: {text}", count(some)),
    };
    let warning =
        |is_loss: bool, text: String| if is_loss { Warning::Loss(text) } else { Warning::Note(text) };
    let mut shown: Vec<Warning> = kept
        .into_iter()
        .map(|((is_loss, text), recordings)| warning(is_loss, sentence(text, recordings)))
        .collect();
    for is_loss in [true, false] {
        let more = rest.iter().filter(|((loss, _), _)| *loss == is_loss).count() as u64;
        let what = if is_loss { "of missing records" } else { "on the figures" };
        if more > 0 {
            shown.push(warning(
                is_loss,
                format!("{} more sentences {what} of single recordings are not shown.", count(more)),
            ));
        }
    }
    shown
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn place_of(number: u32) -> usize {
    number as usize
}
