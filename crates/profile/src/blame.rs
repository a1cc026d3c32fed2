//! The sentence on the lock that most of the waiting is on: how much of it, which lock, which function holds it, and
//! which one waits. It is made of these parts, and joined once.

use std::collections::BTreeMap;

use spinpark_measure::text::capital;
use spinpark_measure::text::units::{percent_in_words, short_percent};

use crate::classes::by_class;
use crate::model::{CallSiteId, Lock, OutOfSight, Pair, Profile};
use crate::names::{Names, class, named, with_noun};

/// A lock, or the locks of one class together, stand out from this share of all waiting on.
const LEADS: f64 = 0.5;
/// A holder or waiter with a smaller share of a lock's waiting than this is not named.
const NAMED: f64 = 0.25;
/// From this share on it is not told.
const NEARLY_ALL: f64 = 0.75;

/// The sentence, in its parts.
pub(crate) struct Blame {
    /// Of the waiting: the lock's, or its class'.
    share: f64,
    /// Whether the lock, or its class, stands out.
    leads: bool,
    /// What the waiting is on: `one mutex, `cache_lock``.
    lock: String,
    /// Which functions hold it and wait.
    parties: String,
    /// The profile by classes, if not the lock leads, but the locks that are created or named with it.
    classes: Option<Profile>,
}

/// What the share is of.
#[derive(Clone, Copy)]
pub(crate) enum Whole {
    /// All waiting for locks.
    Waiting,
    /// The same, where waiting that may be for locks is not in it.
    KnownWaiting,
    /// What few snapshots found: there may be other waiting.
    Found,
    /// What the sentence before is about.
    That,
}

impl Whole {
    fn all(self) -> &'static str {
        match self {
            Self::Waiting => "All waiting",
            Self::KnownWaiting => "All waiting that is known to be for locks",
            Self::Found => "All waiting that was found",
            Self::That => "All of that",
        }
    }

    fn part(self) -> &'static str {
        match self {
            Self::Waiting => "all waiting",
            Self::KnownWaiting => "the waiting that is known to be for locks",
            Self::Found => "the waiting that was found",
            Self::That => "that",
        }
    }
}

impl Blame {
    /// Of `top`, which of all locks of the profile has most of the `waited` time.
    pub(crate) fn of(profile: &Profile, top: &Lock, waited: u64) -> Self {
        let share = top.lock_wait() as f64 / waited as f64;
        let leads = share >= LEADS;
        if !leads && let Some(class) = Self::of_class(by_class(profile), waited) {
            return class;
        }
        let (lock, parties) = match &top.sampled {
            Some(sampled) => {
                (sampled.phrase(), format!(", below `{}`{}", sampled.function, in_function(profile, top)))
            }
            None if leads => (one(top), Parties::of(profile, top).clause()),
            None => (format!("the {}", with_noun(top)), Parties::of(profile, top).clause()),
        };
        Self { share, leads, lock, parties, classes: None }
    }

    /// Of the locks that are created or named together, if they lead.
    fn of_class(classes: Profile, waited: u64) -> Option<Self> {
        let top = classes.locks.first()?;
        let share = top.lock_wait() as f64 / waited as f64;
        let lock = class(top).filter(|_| share >= LEADS)?;
        let parties = Parties::of(&classes, top).clause();
        Some(Self { share, leads: true, lock, parties, classes: Some(classes) })
    }

    /// `87 % of all waiting is on one mutex, `cache_lock`, held by `store_update` while `flush` waits.`
    pub(crate) fn sentence(&self, whole: Whole) -> String {
        let how_much = match self.share {
            share if !self.leads => {
                format!("No lock stands out: the most waiting, {},", short_percent(share))
            }
            1.0 => whole.all().to_owned(),
            share => capital(&format!("{} of {}", percent_in_words(share), whole.part())),
        };
        format!("{how_much} is on {}{}.", self.lock, self.parties)
    }

    /// The profile by classes and the first of them, if a class leads and no single lock does.
    pub(crate) fn class(&self) -> Option<(&Profile, &Lock)> {
        let classes = self.classes.as_ref()?;
        Some((classes, classes.locks.first()?))
    }
}

/// `one mutex, `cache_lock``; `one or more of type parking_lot Mutex` if it stands for all that are used in one
/// function.
fn one(lock: &Lock) -> String {
    let noun = match lock.is_several {
        true => format!("one or more of type {}", lock.noun()),
        false => format!("one {}", lock.noun()),
    };
    match named(lock) {
        named if named.is_empty() => noun,
        named => format!("{noun}, {named}"),
    }
}

/// Which functions hold a lock and wait for it.
struct Parties {
    holder: Option<Most>,
    waiter: Option<Most>,
    /// What the holders are for more of the waiting than `holder` has, if no recorded function holds it there.
    unseen: Option<(OutOfSight, f64)>,
    /// Where the lock was released stands in for where it was taken, which is not known.
    is_release: bool,
}

impl Parties {
    fn of(profile: &Profile, top: &Lock) -> Self {
        let names = Names::of_profile(profile);
        let pairs: Vec<&Pair> =
            profile.pairs.iter().filter(|pair| pair.lock == top.id && pair.role.is_lock()).collect();
        let holders: Vec<_> = pairs.iter().filter_map(|pair| Some((pair.holder?, pair.held()))).collect();
        let waiters: Vec<_> = pairs.iter().map(|pair| (pair.waiter, pair.wait_total)).collect();
        let [holder, waiter] =
            [holders, waiters].map(|sites| Most::of(profile, &names, &sites, top.lock_wait()));
        let has_it = |pair: &&&Pair| {
            let is_it = |most: &Most| pair.holder.is_some_and(|site| most.call_sites.contains(&site));
            holder.as_ref().is_some_and(is_it)
        };
        let held = |is_wanted: fn(&Pair) -> bool| {
            pairs.iter().filter(has_it).filter(|pair| is_wanted(pair)).map(|pair| pair.held()).sum::<u64>()
        };
        let is_release = 2 * held(|pair| pair.is_release) > held(|_| true);
        let unseen = out_of_sight(&pairs, top.lock_wait())
            .filter(|(_, share)| holder.as_ref().is_none_or(|holder| holder.share < *share));
        Self { holder, waiter, unseen, is_release }
    }

    /// `, held by `store_update` while `flush` waits`.
    fn clause(&self) -> String {
        let held_by = if self.is_release { "released in" } else { "held by" };
        let waits_for_it = |waiter: &Most| format!("; `{}` waits for it{}", waiter.name, part(waiter.share));
        if let Some((what, share)) = self.unseen {
            let waits =
                self.waiter.as_ref().map_or_else(|| String::from("; threads wait for it"), waits_for_it);
            return format!("{waits}, held by {}{}", what.name(), part(share));
        }
        match (&self.holder, &self.waiter) {
            (Some(holder), Some(waiter)) if holder.name == waiter.name => {
                // Two places may be in two functions of one name, or two parts of one.
                let name = &holder.name;
                match (&holder.line, &waiter.line) {
                    (Some(at), Some(waits_at)) if at != waits_at => format!(
                        ", {held_by} `{name}` ({at}){} while `{name}` ({waits_at}) waits{}",
                        part(holder.share),
                        part(waiter.share)
                    ),
                    _ => format!(", {held_by} `{name}`{} while other threads wait in it", part(holder.share)),
                }
            }
            (Some(holder), Some(waiter)) => format!(
                ", {held_by} `{}`{} while `{}` waits{}",
                holder.name,
                part(holder.share),
                waiter.name,
                part(waiter.share)
            ),
            (Some(holder), None) => {
                format!(", {held_by} `{}`{} while other threads wait", holder.name, part(holder.share))
            }
            (None, Some(waiter)) => waits_for_it(waiter),
            (None, None) => String::new(),
        }
    }
}

/// ` (40 %)`, of a function that is not the only one.
fn part(share: f64) -> String {
    if share < NEARLY_ALL { format!(" ({})", short_percent(share)) } else { String::new() }
}

/// The name that most of the waiting for a lock has, of holders or of waiters.
struct Most {
    name: String,
    /// Of the waiting.
    share: f64,
    /// The call sites of that name, and where in the source most of it is.
    call_sites: Vec<CallSiteId>,
    line: Option<String>,
}

impl Most {
    /// Of `sites` with the time of each; none if no name has enough of `all`.
    fn of(profile: &Profile, names: &Names<'_>, sites: &[(CallSiteId, u64)], all: u64) -> Option<Self> {
        fn largest(parts: impl Iterator<Item = (String, u64)>) -> Option<(String, u64)> {
            let mut sums: BTreeMap<String, u64> = BTreeMap::new();
            parts.for_each(|(name, time)| *sums.entry(name).or_default() += time);
            sums.into_iter().max_by_key(|(_, sum)| *sum)
        }
        let plain = |call_site: CallSiteId| {
            let found = profile.call_sites.get(call_site);
            found.map_or_else(|| String::from("?"), |call_site| names.own_function(call_site))
        };
        let by = |name: &dyn Fn(CallSiteId) -> String| {
            let (name, sum) = largest(sites.iter().map(|(call_site, time)| (name(*call_site), *time)))?;
            let share = sum as f64 / all as f64;
            (share >= NAMED).then_some((name, share))
        };
        // The callers of a wrapper are more useful than the wrapper, unless it has many.
        let (name, share) = by(&|call_site| names.in_sentence(call_site)).or_else(|| by(&plain))?;
        let is_it = |call_site: CallSiteId| [names.in_sentence(call_site), plain(call_site)].contains(&name);
        let its: Vec<(CallSiteId, u64)> =
            sites.iter().copied().filter(|(call_site, _)| is_it(*call_site)).collect();
        let lines: Option<Vec<(String, u64)>> =
            its.iter().map(|(call_site, time)| Some((names.line(*call_site)?, *time))).collect();
        let line = lines.and_then(|lines| largest(lines.into_iter())).map(|(line, _)| line);
        Some(Self {
            name,
            share,
            call_sites: its.into_iter().map(|(call_site, _)| call_site).collect(),
            line,
        })
    }
}

/// ` in `log_line``: the function of the program that called glibc, of one of its locks.
fn in_function(profile: &Profile, top: &Lock) -> String {
    let names = Names::of_profile(profile);
    let pairs = profile.pairs.iter().filter(|pair| pair.lock == top.id);
    let sites: Vec<_> = pairs.map(|pair| (pair.waiter, pair.wait_total)).collect();
    let most = Most::of(profile, &names, &sites, top.lock_wait());
    most.map_or_else(String::new, |most| format!(" in `{}`{}", most.name, part(most.share)))
}

/// What the holders were for most of the waiting whose holder is out of sight, and its share of `all`.
fn out_of_sight(pairs: &[&Pair], all: u64) -> Option<(OutOfSight, f64)> {
    let mut sums: BTreeMap<OutOfSight, u64> = BTreeMap::new();
    for pair in pairs {
        if let Some(what) = pair.out_of_sight {
            *sums.entry(what).or_default() += pair.held();
        }
    }
    let (what, most) = sums.into_iter().max_by_key(|(_, sum)| *sum)?;
    Some((what, most as f64 / all.max(1) as f64)).filter(|(_, share)| *share >= NAMED)
}
