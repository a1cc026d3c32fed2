//! Names of call sites and locks for people: short, and different for different call sites if possible.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::fit::fit;
use crate::model::{CallSite, CallSiteId, Frame, Lock, Profile};

/// The most frames that a name has to tell two call sites apart.
const MOST: usize = 4;

/// What wrappers of locks have in their names.
const WRAPPERS: [&str; 9] = ["lock", "mutex", "latch", "acquire", "enter", "leave", "wait", "cond", "gil"];

/// A name in a sentence is not longer.
pub(crate) const LONGEST: usize = 44;

/// In the place of a call site.
pub(crate) const UNKNOWN: &str = "not known";

/// In the place of a holder: no thread had the lock.
pub(crate) const FREE: &str = "none: it was free";

/// A class in C++ whose constructor takes a lock, or whose destructor releases one, is there for that.
fn is_guard(function: &str) -> bool {
    let mut parts = function.rsplit("::");
    let name = parts.next().unwrap_or(function);
    name.starts_with('~') || parts.next().is_some_and(|class| class == name)
}

/// Between a function and its caller.
const CALLED_BY: &str = " < ";

/// The names of the call sites of a profile.
///
/// The name of a call site is its function. If several would have the same name, such as all that take locks
/// through a wrapper of the program's own, the callers are added: `my_mutex_lock < store`. Code without
/// symbols is named by the function that calls into it: `cudaMemcpyAsync → libcuda.so`.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    call_sites: &'a [CallSite],
    /// The number of frames in each name.
    depths: Vec<usize>,
    /// Whether a name has the address, too: nothing else distinguishes it from another.
    precise: Vec<bool>,
    /// Names that several functions without symbols have: they are distinguished by where they begin.
    shared: BTreeSet<String>,
    wrappers: BTreeSet<String>,
    /// File name of the program, if it is known.
    program: Option<String>,
}

impl<'a> Names<'a> {
    /// The names of these call sites.
    #[must_use]
    pub fn of(call_sites: &'a [CallSite]) -> Self {
        Self::of_uses(call_sites, std::iter::empty())
    }

    /// The same where it is known which lock, by its number, is used at a call site.
    pub(crate) fn of_uses(call_sites: &'a [CallSite], uses: impl Iterator<Item = (u32, CallSiteId)>) -> Self {
        let count = call_sites.len();
        let mut names = Self {
            call_sites,
            depths: vec![1; count],
            precise: vec![false; count],
            shared: shared(call_sites),
            wrappers: BTreeSet::new(),
            program: None,
        };
        names.tell_apart((0..call_sites.len()).collect(), 0);
        // Any caller.
        let mut callers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for call_site in call_sites {
            let caller = call_site.frames.get(call_site.named() + 1).map(Frame::shown).unwrap_or_default();
            callers.entry(call_site.function()).or_default().insert(caller);
        }
        let is_wrapper = |function: &str, callers: &BTreeSet<String>| {
            let name = function.rsplit("::").next().unwrap_or(function).to_ascii_lowercase();
            callers.len() > 1 && (is_guard(function) || WRAPPERS.iter().any(|word| name.contains(word)))
        };
        names.wrappers = callers
            .into_iter()
            .filter(|(name, callers)| is_wrapper(name, callers))
            .map(|(name, _)| name)
            .collect();
        names.wrappers.extend(by_shape(call_sites, uses));
        names
    }

    /// The same for a profile: what is the program's own function is known.
    #[must_use]
    pub fn of_profile(profile: &'a Profile) -> Self {
        let program = profile.program.rsplit('/').next().filter(|name| !name.is_empty());
        let uses = uses(&profile.locks);
        let pairs = profile.pairs.iter();
        let pairs = pairs.flat_map(|pair| pair.holder.map(|holder| (pair.lock, holder)));
        Self { program: program.map(str::to_owned), ..Self::of_uses(&profile.call_sites, uses.chain(pairs)) }
    }

    /// Gives `ids`, which are called the same by their first `depth` frames, one more frame if that helps.
    fn tell_apart(&mut self, ids: Vec<CallSiteId>, depth: usize) {
        if ids.len() < 2 || depth == MOST {
            let is_unnamed = |id: &CallSiteId| self.call_sites[*id].named() > 0;
            let unnamed: Vec<CallSiteId> = ids.into_iter().filter(is_unnamed).collect();
            for id in unnamed.iter().filter(|_| unnamed.len() > 1) {
                self.precise[*id] = true;
            }
            return;
        }
        let mut groups: HashMap<String, Vec<CallSiteId>> = HashMap::new();
        for id in ids {
            groups.entry(label(&self.call_sites[id], depth + 1, false)).or_default().push(id);
        }
        let are_told_apart = groups.len() > 1;
        for ids in groups.into_values() {
            for id in ids.iter().filter(|_| are_told_apart) {
                self.depths[*id] = depth + 1;
            }
            self.tell_apart(ids, depth + 1);
        }
    }

    /// `function (file.c:12)`; with callers, if it needs them.
    #[must_use]
    pub fn label(&self, call_site: CallSiteId) -> String {
        self.call_sites.get(call_site).map_or_else(
            || String::from("?"),
            |found| label(found, self.depths[call_site], self.precise[call_site]),
        )
    }

    /// The same of a call site that may not be known.
    pub(crate) fn label_or_unknown(&self, call_site: Option<CallSiteId>) -> String {
        call_site.map_or_else(|| String::from(UNKNOWN), |call_site| self.label(call_site))
    }

    /// The function; with callers, if it needs them.
    #[must_use]
    pub fn function(&self, call_site: CallSiteId) -> String {
        self.call_sites.get(call_site).map_or_else(
            || String::from("?"),
            |found| chain(found, self.depths[call_site], self.precise[call_site]),
        )
    }

    /// `function (file.c:12)`; with callers only if the function is a wrapper of locks: it is no help
    /// then.
    #[must_use]
    pub fn label_without_wrapper(&self, call_site: CallSiteId) -> String {
        match self.is_wrapper(call_site) {
            true => self.label(call_site),
            false => self.call_sites.get(call_site).map_or_else(|| String::from("?"), CallSite::label),
        }
    }

    /// The function, for a sentence that puts it in back quotes; of a wrapper of locks, the function that
    /// calls it. Each name is not longer than [`LONGEST`]. Code without symbols is named by what the program
    /// called, and by the program's own function, which is in back quotes of its own: ``cudaMemcpyAsync`,
    /// called by `copier``.
    #[must_use]
    pub fn in_sentence(&self, call_site: CallSiteId) -> String {
        let Some(found) = self.call_sites.get(call_site) else { return String::from("?") };
        if let Some((called, caller)) = self.entry(found) {
            return format!(
                "{}`, called by `{}",
                fit(&called.shown(), LONGEST),
                fit(&caller.shown(), LONGEST)
            );
        }
        match self.is_wrapper(call_site).then(|| self.caller(found)).flatten() {
            Some(caller) => fit(&caller.shown(), LONGEST),
            None => self.own_function(found),
        }
    }

    /// The function that takes a lock by way of wrappers.
    fn caller<'b>(&self, call_site: &'b CallSite) -> Option<&'b Frame> {
        let callers = call_site.frames.get(call_site.named() + 1..)?.iter();
        let mut callers = callers.filter(|caller| !self.wrappers.contains(&caller.shown()));
        callers.next().filter(|caller| caller.function.is_some() && !caller.is_entry())
    }

    /// The function alone, not longer than [`LONGEST`].
    pub(crate) fn own_function(&self, call_site: &CallSite) -> String {
        let name = call_site.function();
        match self.shared.contains(&name).then(|| call_site.frames.first()?.start).flatten() {
            Some(start) => fit(&format!("{name}+{start:#x}"), LONGEST),
            None => fit(&name, LONGEST),
        }
    }

    /// What the program called that led to code without symbols, and the function of the program that called
    /// it.
    fn entry<'b>(&self, call_site: &'b CallSite) -> Option<(&'b Frame, &'b Frame)> {
        let named = call_site.named();
        if call_site.frames.first().is_some_and(|frame| self.program.as_deref() == Some(&frame.module)) {
            return None;
        }
        let mut rest = call_site
            .frames
            .get(named..)
            .filter(|_| named > 0)?
            .iter()
            .filter(|frame| frame.function.is_some());
        let mut called = rest.next()?;
        for caller in rest {
            if self.program.as_deref() == Some(&caller.module) {
                return Some((called, caller));
            }
            called = caller;
        }
        None
    }

    /// `file.c:12`; of its caller, if the function is a wrapper of locks.
    #[must_use]
    pub fn position(&self, call_site: CallSiteId) -> String {
        let Some(found) = self.call_sites.get(call_site) else { return String::from("?") };
        let last = if self.is_wrapper(call_site) { self.depths[call_site] - 1 } else { 0 };
        let frame = found.frames.get(found.named() + last).or(found.frames.get(found.named()));
        frame.map_or_else(|| String::from("?"), Frame::position)
    }

    /// `file.c:12`, if that is known of the function that a sentence names.
    pub(crate) fn line(&self, call_site: CallSiteId) -> Option<String> {
        let found = self.call_sites.get(call_site)?;
        match self.is_wrapper(call_site).then(|| self.caller(found)).flatten() {
            Some(caller) => caller.source.is_some().then(|| caller.position()),
            None => found.line(),
        }
    }

    /// The call site with this number.
    pub(crate) fn call_site(&self, call_site: CallSiteId) -> Option<&'a CallSite> {
        self.call_sites.get(call_site)
    }

    /// Whether the function of a call site does nothing but take locks for others, by its name and its
    /// callers.
    #[must_use]
    pub fn is_wrapper(&self, call_site: CallSiteId) -> bool {
        self.call_sites.get(call_site).is_some_and(|call_site| self.wrappers.contains(&call_site.function()))
    }
}

/// Which lock is used where.
pub(crate) fn uses(locks: &[Lock]) -> impl Iterator<Item = (u32, CallSiteId)> {
    let stats = locks.iter().flat_map(|lock| lock.roles.iter().map(move |stats| (lock.id, stats)));
    stats.flat_map(|(lock, stats)| stats.sites.iter().map(move |site| (lock, site.call_site)))
}

/// The wrappers of locks by their shape: functions that take locks which outlive the call, or release such
/// ones, for several callers or several locks. A function that takes a lock and releases it is none, however
/// many call it.
fn by_shape(call_sites: &[CallSite], uses: impl Iterator<Item = (u32, CallSiteId)>) -> BTreeSet<String> {
    const CALLERS: usize = 3;
    const LOCKS: usize = 2;
    let mut locks: BTreeMap<CallSiteId, BTreeSet<u32>> = BTreeMap::new();
    for (lock, call_site) in uses {
        locks.entry(call_site).or_default().insert(lock);
    }
    let mut shapes: BTreeMap<String, (BTreeSet<String>, BTreeSet<u32>)> = BTreeMap::new();
    for (id, call_site) in call_sites.iter().enumerate() {
        let halves = call_site.frames.iter().take_while(|frame| frame.is_half).count();
        // Of wrappers of wrappers, the caller of all of them counts.
        let Some(caller) = call_site.frames.get(halves) else { continue };
        for half in &call_site.frames[..halves] {
            let (callers, used) = shapes.entry(half.shown()).or_default();
            callers.insert(caller.shown());
            used.extend(locks.get(&id).into_iter().flatten());
        }
    }
    let is_wrapper = |(callers, used): &(BTreeSet<String>, BTreeSet<u32>)| {
        callers.len() >= CALLERS || callers.len() > 1 && used.len() >= LOCKS
    };
    shapes.into_iter().filter(|(_, shape)| is_wrapper(shape)).map(|(name, _)| name).collect()
}

/// See [`Names::shared`].
fn shared(call_sites: &[CallSite]) -> BTreeSet<String> {
    let mut starts: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for call_site in call_sites.iter().filter(|call_site| call_site.named() > 0) {
        let start = call_site.frames.first().and_then(|frame| frame.start);
        starts.entry(call_site.function()).or_default().extend(start);
    }
    starts.into_iter().filter(|(_, starts)| starts.len() > 1).map(|(name, _)| name).collect()
}

fn chain(call_site: &CallSite, depth: usize, is_precise: bool) -> String {
    let named = call_site.named();
    let mut first = call_site.function();
    if is_precise && named > 0 {
        first += &format!("+{:#x}", call_site.frames[0].start.unwrap_or(call_site.frames[0].offset));
    }
    let callers = call_site.frames.iter().skip(named + 1).take(depth.max(1) - 1).map(Frame::shown);
    std::iter::once(first).chain(callers).collect::<Vec<_>>().join(CALLED_BY)
}

fn label(call_site: &CallSite, depth: usize, is_precise: bool) -> String {
    let last = (call_site.named() + depth.max(1)).min(call_site.frames.len());
    match call_site.frames.get(last.wrapping_sub(1)) {
        Some(frame)
            if frame.function.is_some()
                && frame.source.is_some()
                && (depth > 1 || call_site.named() == 0) =>
        {
            format!("{} ({})", chain(call_site, depth, is_precise), frame.position())
        }
        _ => chain(call_site, depth, is_precise),
    }
}

/// `the 16 locks of `shard``, if this is a class of several.
pub(crate) fn class(lock: &Lock) -> Option<String> {
    several(lock, "locks")
}

/// The same with another word for them.
pub(crate) fn several(lock: &Lock, what: &str) -> Option<String> {
    // As `classes` labels them.
    let (class, count) = lock.label.strip_suffix(" locks)")?.rsplit_once(" (")?;
    let named = named(&Lock { label: class.to_owned(), ..lock.clone() });
    let of = if named.starts_with('`') { "of " } else { "" };
    Some(format!("the {count} {what} {of}{named}"))
}

/// The label of what is no lock: several of it are no locks, either.
pub(crate) fn label_of_object(lock: &Lock) -> String {
    match lock.label.strip_suffix(" locks)") {
        Some(label) if !lock.kind.is_lock() => format!("{label} objects)"),
        _ => lock.label.clone(),
    }
}

/// `mutex `cache_lock``; the noun alone if there is no name.
pub(crate) fn with_noun(lock: &Lock) -> String {
    match named(lock) {
        named if named.is_empty() => lock.noun().to_owned(),
        named => format!("{} {named}", lock.noun()),
    }
}

/// The label in quotes; a label that says what kind it is without the kind. Empty if it says no more.
pub(crate) fn named(lock: &Lock) -> String {
    if lock.type_name.as_ref().is_some_and(|name| *name == lock.label) {
        return String::new();
    }
    // A variable may be called `mutex`.
    let without = lock.label.strip_prefix(lock.noun()).and_then(|rest| rest.strip_prefix(' '));
    let label = without.unwrap_or(&lock.label);
    // The second of its kind.
    if label.starts_with('#') {
        return label.to_owned();
    }
    match label.split_once(' ') {
        Some((word @ ("of" | "in"), call_site)) => {
            let word = if word == "of" { "created by" } else { "used in" };
            let (function, line) = call_site
                .split_once(" (")
                .map_or((call_site, String::new()), |(function, line)| (function, format!(" ({line}")));
            format!("{word} `{}`{line}", fit(function, LONGEST))
        }
        Some(("at", address)) => format!("at {address}"),
        _ => format!("`{}`", fit(label, LONGEST)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call_site(functions: &[&str]) -> CallSite {
        let frame = |(number, function): (usize, &&str)| Frame {
            function: Some((*function).to_owned()),
            source: Some((String::from("/src/wrap.c"), 10 + number as u32)),
            module: String::from("wrap"),
            offset: 0x10,
            ..Frame::default()
        };
        CallSite { frames: functions.iter().enumerate().map(frame).collect(), is_cut: false }
    }

    #[test]
    fn wrappers_have_a_shape() {
        let site = |functions: &[&str], halves: usize| {
            let mut site = call_site(functions);
            site.frames[..halves].iter_mut().for_each(|frame| frame.is_half = true);
            site
        };
        let grabbed = |caller: &str| site(&["grab", caller, "main"], 1);
        let wrappers = |sites: &[CallSite], uses: &[(u32, CallSiteId)]| {
            by_shape(sites, uses.iter().copied()).into_iter().collect::<Vec<_>>()
        };
        let three = [grabbed("load"), grabbed("store"), grabbed("scan")];
        assert_eq!(wrappers(&three, &[]), ["grab"]);
        assert!(wrappers(&three[..2], &[(1, 0), (1, 1)]).is_empty(), "two callers of one lock");
        assert_eq!(wrappers(&three[..2], &[(1, 0), (2, 1)]), ["grab"]);
        let workers = three.map(|mut site| {
            site.frames[0].is_half = false;
            site
        });
        assert!(wrappers(&workers, &[(1, 0), (2, 1)]).is_empty(), "it releases what it takes");
        let names = Names::of(&workers);
        assert_eq!(names.in_sentence(0), "grab");
        let nested = ["load", "store", "scan"].map(|caller| site(&["grab", "take", caller], 2));
        let names = Names::of(&nested);
        assert_eq!(names.in_sentence(1), "store", "past both");
    }

    #[test]
    fn callers_tell_wrappers_apart() {
        let call_sites = [
            call_site(&["my_mutex_lock", "load", "A"]),
            call_site(&["my_mutex_lock", "store", "B"]),
            call_site(&["my_mutex_lock", "log", "load"]),
            call_site(&["my_mutex_lock", "log", "store"]),
            call_site(&["parse", "main"]),
            call_site(&["render", "A"]),
            call_site(&["render", "B"]),
        ];
        let names = Names::of(&call_sites);
        let functions: Vec<String> = (0..call_sites.len()).map(|id| names.function(id)).collect();
        assert_eq!(
            functions,
            [
                "my_mutex_lock < load",
                "my_mutex_lock < store",
                "my_mutex_lock < log < load",
                "my_mutex_lock < log < store",
                "parse",
                "render < A",
                "render < B"
            ]
        );
        assert_eq!(names.label(1), "my_mutex_lock < store (wrap.c:11)");
        assert_eq!(names.label_without_wrapper(1), "my_mutex_lock < store (wrap.c:11)");
        assert_eq!(names.label_without_wrapper(5), "render (wrap.c:10)");
        assert_eq!(
            (names.in_sentence(1), names.in_sentence(2)),
            (String::from("store"), String::from("log"))
        );
        assert_eq!(names.in_sentence(5), "render");
        assert_eq!(names.label(77), "?");
    }

    #[test]
    fn code_without_symbols_is_named_by_its_callers() {
        let stack = |frames: &[(Option<&str>, &str, u64)]| {
            let frame = |&(function, module, offset): &(Option<&str>, &str, u64)| Frame {
                function: function.map(str::to_owned),
                source: None,
                module: module.to_owned(),
                offset,
                ..Frame::default()
            };
            CallSite { frames: frames.iter().map(frame).collect(), is_cut: false }
        };
        // Where threads start is no function of the program.
        let worker = |start| {
            let mut stack =
                stack(&[(None, "s", 0x1280), (None, "s", 0x12a0), (Some("start_thread"), "libc.so.6", 0x60)]);
            stack.frames[0].start = start;
            stack
        };
        assert_eq!(worker(Some(0x1234)).function(), "s+0x1234");
        assert_eq!(worker(None).function(), "s+0x1280", "as much as is known");
        // Two functions below one that has a name.
        let inner = |start| {
            let mut stack = stack(&[(None, "libv.so.1", 0x80), (Some("v_call"), "libv.so.1", 0x90)]);
            stack.frames[0].start = Some(start);
            stack
        };
        let both = [inner(0x70), inner(0x40), inner(0x40)];
        let names = Names::of(&both);
        assert_eq!(names.in_sentence(0), "v_call → libv.so+0x70");
        assert_eq!(names.in_sentence(1), "v_call → libv.so+0x40");
        assert_eq!(Names::of(&both[1..]).in_sentence(0), "v_call → libv.so");
        let of = |offset, copier| {
            let cuda = "libcuda.so.580.159.04";
            stack(&[
                (None, cuda, offset),
                (Some("cuMemcpyHtoDAsync_v2"), cuda, 0x20),
                (None, "libcudart.so.12", 0x30),
                (Some("cudaMemcpyAsync"), "libcudart.so.12", 0x40),
                (Some(copier), "lazy", 0x50),
                (Some("start_thread"), "libc.so.6", 0x60),
            ])
        };
        let nameless = stack(&[(None, "libcuda.so.580.159.04", 0x10), (None, "lazy", 0x20)]);
        let call_sites = [of(0x10, "copier(int)"), of(0x18, "copier(int)"), nameless];
        let names = Names { program: Some(String::from("lazy")), ..Names::of(&call_sites) };
        assert_eq!(call_sites[0].function(), "cuMemcpyHtoDAsync_v2 → libcuda.so");
        assert_eq!(names.in_sentence(0), "cudaMemcpyAsync`, called by `copier");
        assert_eq!(
            names.function(0),
            "cuMemcpyHtoDAsync_v2 → libcuda.so+0x10",
            "nothing else tells them apart"
        );
        assert_eq!(names.in_sentence(2), "libcuda.so.580.159.04+0x10", "nothing above has a name");
        assert_eq!(Names::of(&call_sites[..1]).in_sentence(0), "cuMemcpyHtoDAsync_v2 → libcuda.so");
    }
}
