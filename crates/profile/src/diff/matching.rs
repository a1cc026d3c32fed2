//! Which locks of two profiles are the same, although the program may have been edited in between.
//!
//! Addresses differ from run to run, and lines from edit to edit. These steps compare properties that survive
//! edits, the most certain first; a matched lock is not considered again:
//!
//! 1. the name that the program gave the lock, or its variable;
//! 2. its call site with the line, if both files are the same build;
//! 3. the functions that created it, or used it first, from the innermost one out: all of them; then four,
//!    three, two, and the innermost alone, unless it only wraps locks;
//! 4. if its creation was not seen: the functions that take it, if no other lock has any of them.
//!
//! In each step kinds and modules must be equal. Locks that match equally in a step are distinguished by the
//! functions that take them, then by the order of their lines, if there are as many before as after.
//! Otherwise they cannot be distinguished, and share one row.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::classes::by_class;
use crate::function_names::for_people;
use crate::model::{CallSite, Frame, Kind, Lock, Profile};
use crate::names::Names;

/// What compilers add to the names of functions that they copied or split.
const CLONES: [&str; 6] = [".constprop.", ".isra.", ".part.", ".cold", ".llvm.", ".lto_priv."];

/// Locks of one class ([`Lock::class`]) of a profile, as one.
#[derive(Debug)]
pub(crate) struct Class {
    /// Their sums.
    pub(crate) lock: Lock,
    /// Their common name.
    pub(crate) label: String,
    /// How many they are.
    pub(crate) count: usize,
    /// How locks without a name of their own are matched.
    creation: Option<Creation>,
}

/// Where locks were created or first used.
#[derive(Debug)]
struct Creation {
    is_created: bool,
    /// The build of the file that has the call site.
    build: Option<String>,
    /// The functions, from the innermost one out.
    chains: BTreeSet<Vec<String>>,
    /// The innermost one only wraps locks.
    is_wrapper: bool,
    /// Lines, or addresses where there are none, from the innermost one out.
    order: Vec<(String, u32, u64)>,
    /// The functions that take it.
    takers: BTreeSet<String>,
}

/// Classes that match: indices before and after. Several on a side cannot be distinguished.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Matched {
    pub(crate) before: Vec<usize>,
    pub(crate) after: Vec<usize>,
    /// Several were equal, and the order of their lines decided.
    pub(crate) by_order: bool,
}

/// What is compared in a step: kind, whether its creation was seen, and names.
type Key = (Kind, bool, BTreeSet<Vec<String>>);
/// The key of a class in a step; none if it has no such property.
type Step = dyn Fn(&Class) -> Option<Key>;

/// The classes of a profile.
pub(crate) fn classes(profile: &Profile) -> Vec<Class> {
    classes_of(profile, by_class(profile).locks)
}

/// The same, where the locks by class are known ([`by_class`]): in their order.
pub(crate) fn classes_of(profile: &Profile, merged: Vec<Lock>) -> Vec<Class> {
    let mut members: BTreeMap<(String, Kind), Vec<&Lock>> = BTreeMap::new();
    for lock in &profile.locks {
        members.entry((lock.class().into_owned(), lock.kind)).or_default().push(lock);
    }
    let names = Names::of(&profile.call_sites);
    merged
        .into_iter()
        .map(|lock| {
            let label = label(&lock).into_owned();
            let members = members.get(&(label.clone(), lock.kind)).cloned().unwrap_or_default();
            let creation = (!is_named(&lock, &label)).then(|| creation(profile, &names, &members)).flatten();
            Class { label, count: members.len().max(1), creation, lock }
        })
        .collect()
}

/// The label of a class, without the number of its locks.
fn label(lock: &Lock) -> Cow<'_, str> {
    match lock.label.rsplit_once(" (") {
        Some((class, rest)) if rest.ends_with(" locks)") => Cow::Borrowed(class),
        _ => lock.class(),
    }
}

/// Whether it has a name of its own, not that of a call site.
fn is_named(lock: &Lock, label: &str) -> bool {
    let call_site = label.strip_prefix(lock.kind.noun());
    let is_call_site =
        call_site.is_some_and(|rest| [" of ", " in "].iter().any(|word| rest.starts_with(word)));
    lock.name.as_ref().is_some_and(|name| !name.is_empty()) || !is_call_site
}

fn creation(profile: &Profile, names: &Names<'_>, members: &[&Lock]) -> Option<Creation> {
    let users: Vec<usize> = members.iter().filter_map(|lock| lock.user()).collect();
    let call_sites: Vec<&CallSite> =
        users.iter().filter_map(|call_site| profile.call_sites.get(*call_site)).collect();
    let order = |call_site: &&CallSite| call_site.frames.iter().map(position).collect::<Vec<_>>();
    let module = &call_sites.first()?.frames.first()?.module;
    let build = profile.modules.iter().find(|known| file_name(&known.path) == module);
    let sites = members.iter().flat_map(|lock| &lock.roles).flat_map(|stats| &stats.sites);
    let program = file_name(&profile.program);
    let taker = |call_site: &CallSite| call_site.frames.first().map(|frame| function(frame, program));
    Some(Creation {
        is_created: members.iter().any(|lock| lock.is_created),
        build: build.and_then(|module| module.build_id.clone()),
        chains: call_sites
            .iter()
            .map(|call_site| call_site.frames.iter().map(|frame| function(frame, program)).collect())
            .collect(),
        is_wrapper: users.iter().any(|call_site| names.is_wrapper(*call_site)),
        order: call_sites.iter().map(order).min().unwrap_or_default(),
        takers: sites
            .filter(|site| !names.is_wrapper(site.call_site))
            .filter_map(|site| taker(profile.call_sites.get(site.call_site)?))
            .collect(),
    })
}

fn position(frame: &Frame) -> (String, u32, u64) {
    let (file, line) = frame.source.clone().unwrap_or_default();
    (file, line, frame.offset)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The part of a frame that survives edits: the function, and the module without its version. The program may
/// have another name; code without symbols is compared by its offset.
fn function(frame: &Frame, program: &str) -> String {
    let library = frame.module.split_inclusive(".so").next().unwrap_or(&frame.module);
    let module = if frame.module == program { "" } else { library };
    let Some(name) = &frame.function else { return format!("{module}+{:#x}", frame.offset) };
    let name = for_people(name);
    let end = CLONES.iter().filter_map(|clone| name.find(clone)).min().unwrap_or(name.len());
    format!("{module}:{}", &name[..end])
}

impl Class {
    /// By its own name.
    fn name(&self) -> Option<Key> {
        self.creation.is_none().then(|| (self.lock.kind, true, BTreeSet::from([vec![self.label.clone()]])))
    }

    /// By its call site in a build.
    fn call_site(&self) -> Option<Key> {
        let creation = self.creation.as_ref()?;
        let call_site = vec![creation.build.clone()?, self.label.clone()];
        Some((self.lock.kind, creation.is_created, BTreeSet::from([call_site])))
    }

    /// By the innermost `depth` functions.
    fn functions(&self, depth: usize) -> Option<Key> {
        let creation = self.creation.as_ref().filter(|creation| depth > 1 || !creation.is_wrapper)?;
        let chains = creation.chains.iter().map(|chain| chain.iter().take(depth).cloned().collect());
        Some((self.lock.kind, creation.is_created, chains.collect()))
    }

    /// Takes on what another one is matched by, which is the same lock.
    pub(crate) fn take_on(&mut self, other: Self) {
        self.count = self.count.max(other.count);
        let (Some(known), Some(other)) = (&mut self.creation, other.creation) else { return };
        known.is_created |= other.is_created;
        known.is_wrapper |= other.is_wrapper;
        known.chains.extend(other.chains);
        known.takers.extend(other.takers);
    }

    fn order(&self) -> &[(String, u32, u64)] {
        self.creation.as_ref().map_or(&[], |creation| &creation.order)
    }

    /// Whether its creation was not seen.
    fn is_used_only(&self) -> bool {
        self.creation.as_ref().is_some_and(|creation| !creation.is_created)
    }

    /// Whether one function takes both.
    fn shares_takers(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (&self.creation, &other.creation) else { return false };
        !one.takers.is_disjoint(&other.takers)
    }
}

impl Matched {
    fn pair((one, other): (usize, usize)) -> Self {
        Self { before: vec![one], after: vec![other], by_order: false }
    }
}

/// Matches the classes of two profiles. Each of them is in one of the results, alone if there is no other.
pub(crate) fn matched(before: &[&Class], after: &[&Class]) -> Vec<Matched> {
    let mut left: [BTreeSet<usize>; 2] = [(0..before.len()).collect(), (0..after.len()).collect()];
    let mut found: Vec<Matched> = Vec::new();
    let by_functions = |depth| move |class: &Class| class.functions(depth);
    let steps: [&Step; 7] = [
        &Class::name,
        &Class::call_site,
        &by_functions(usize::MAX),
        &by_functions(4),
        &by_functions(3),
        &by_functions(2),
        &by_functions(1),
    ];
    for key in steps {
        let mut equal: BTreeMap<Key, Matched> = BTreeMap::new();
        for index in &left[0] {
            key(before[*index]).into_iter().for_each(|key| equal.entry(key).or_default().before.push(*index));
        }
        for index in &left[1] {
            key(after[*index]).into_iter().for_each(|key| equal.entry(key).or_default().after.push(*index));
        }
        for same in equal.into_values().filter(|same| !same.before.is_empty() && !same.after.is_empty()) {
            left[0].retain(|index| !same.before.contains(index));
            left[1].retain(|index| !same.after.contains(index));
            found.extend(apart(same, before, after));
        }
    }
    let [mut before_left, mut after_left] = left.map(Vec::from_iter);
    let by_takers = pairs(&before_left, &after_left, |one, other| {
        let (one, other) = (before[one], after[other]);
        one.is_used_only()
            && other.is_used_only()
            && one.lock.kind == other.lock.kind
            && one.shares_takers(other)
    });
    before_left.retain(|index| !by_takers.iter().any(|(one, _)| one == index));
    after_left.retain(|index| !by_takers.iter().any(|(_, other)| other == index));
    found.extend(by_takers.into_iter().map(Matched::pair));
    found.extend(before_left.into_iter().map(|index| Matched { before: vec![index], ..Matched::default() }));
    found.extend(after_left.into_iter().map(|index| Matched { after: vec![index], ..Matched::default() }));
    found
}

/// Equal ones apart: by the functions that take them, then in the order of their lines, if there are as many
/// on both sides.
fn apart(mut same: Matched, before: &[&Class], after: &[&Class]) -> Vec<Matched> {
    if same.before.len() == 1 && same.after.len() == 1 {
        return vec![same];
    }
    let pairs = pairs(&same.before, &same.after, |one, other| before[one].shares_takers(after[other]));
    let mut found: Vec<Matched> = pairs.iter().copied().map(Matched::pair).collect();
    same.before.retain(|index| !pairs.iter().any(|(one, _)| one == index));
    same.after.retain(|index| !pairs.iter().any(|(_, other)| other == index));
    let alone = |index: &usize| vec![*index];
    if same.before.is_empty() || same.after.is_empty() {
        found.extend(same.before.iter().map(alone).map(|before| Matched { before, ..Matched::default() }));
        found.extend(same.after.iter().map(alone).map(|after| Matched { after, ..Matched::default() }));
    } else if same.before.len() == same.after.len() {
        same.before.sort_by_key(|index| before[*index].order());
        same.after.sort_by_key(|index| after[*index].order());
        let by_order = same.before.len() > 1;
        found.extend(same.before.into_iter().zip(same.after).map(|(one, other)| Matched {
            by_order: by_order && before[one].label != after[other].label,
            ..Matched::pair((one, other))
        }));
    } else {
        found.push(same);
    }
    found
}

/// Pairs of one class before and one after that match each other and no other class.
fn pairs(before: &[usize], after: &[usize], are_alike: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    fn only(mut found: impl Iterator<Item = usize>) -> Option<usize> {
        found.next().filter(|_| found.next().is_none())
    }
    let pair = |one: &usize| {
        let other = only(after.iter().copied().filter(|other| are_alike(*one, *other)))?;
        let back = only(before.iter().copied().filter(|one| are_alike(*one, other)))?;
        Some((back, other))
    };
    before.iter().filter_map(pair).collect()
}
