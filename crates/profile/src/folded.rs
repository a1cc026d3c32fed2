//! Folded stacks of waiting: for flame graphs (inferno, FlameGraph, speedscope).
//!
//! A line is the frames from the outermost to the innermost, with `;` between them, a leaf that says which
//! lock it was, `[lock: cache_lock]`, and the µs waited there. For a return from a condition variable (the
//! mutex was contended, or the wake-up late) the frame before the leaf is `[back]`. Frames that are not
//! functions are in brackets, as in the output of `perf` and bcc.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::model::{CallSiteId, Frame, Lock, Pair, Profile, Role};

/// What lines have besides the waiter's stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A frame after the lock's with the holder: `[held by store_update]`.
    pub holder: bool,
    /// Waiting for signals of condition variables too; a frame shows it: `[signal]`.
    pub signals: bool,
}

/// The lines, in order. Less than half a µs is left out.
#[must_use]
pub fn folded(profile: &Profile, options: Options) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let mut pairs: Pairs<'_> = HashMap::new();
    for pair in profile.pairs.iter().filter(|_| options.holder) {
        pairs.entry((pair.lock, pair.role, pair.waiter)).or_default().push(pair);
    }
    let uses = profile.uses();
    for (lock, stats) in uses.filter(|(_, stats)| options.signals || stats.role.has_holder()) {
        for site in stats.sites.iter().filter(|site| site.wait_total > 0) {
            let stack = stack(profile, site.call_site, lock, stats.role);
            if options.holder && stats.role.has_holder() {
                for (holder, waited) in
                    holders(profile, &pairs, (lock.id, stats.role, site.call_site), site.wait_total)
                {
                    *lines.entry(format!("{stack};[held by {holder}]")).or_default() += waited;
                }
            } else {
                *lines.entry(stack).or_default() += site.wait_total;
            }
        }
    }
    let mut text = String::new();
    for (stack, waited) in lines {
        let us = (waited + 500) / 1_000;
        if us > 0 {
            let _ = writeln!(text, "{stack} {us}");
        }
    }
    text
}

fn stack(profile: &Profile, call_site: CallSiteId, lock: &Lock, role: Role) -> String {
    let frames = profile.call_sites.get(call_site).map_or(&[][..], |call_site| &call_site.frames);
    let mut names: Vec<String> = frames.iter().rev().map(frame).collect();
    if profile.call_sites.get(call_site).is_some_and(|call_site| call_site.is_cut) {
        names.insert(0, String::from("[…]"));
    }
    match role {
        Role::Signal => names.push(String::from("[signal]")),
        Role::Late => names.push(String::from("[late]")),
        Role::Wake => names.push(String::from("[lock or signal]")),
        Role::Back => names.push(String::from("[back]")),
        Role::Write | Role::Read => {}
    }
    names.push(format!("[lock: {}]", clean(&lock.label)));
    names.join(";")
}

type Use = (u32, Role, CallSiteId);
type Pairs<'a> = HashMap<Use, Vec<&'a Pair>>;

/// The holders of the lock during the waits at a call site, and for how long. Time in no pair has an unknown
/// holder.
fn holders(profile: &Profile, pairs: &Pairs<'_>, waiter: Use, all: u64) -> Vec<(String, u64)> {
    let mut rest = all;
    let mut found: Vec<(String, u64)> = Vec::new();
    for pair in pairs.get(&waiter).into_iter().flatten() {
        let holder = pair.holder.and_then(|holder| profile.call_sites.get(holder));
        let name = holder.and_then(|holder| holder.frames.first());
        let name = name.map_or_else(|| String::from("?"), |frame| clean(&frame.short()));
        let waited = pair.wait_total.min(rest);
        rest -= waited;
        found.push((name, waited));
    }
    if rest > 0 {
        found.push((String::from("?"), rest));
    }
    found
}

fn frame(frame: &Frame) -> String {
    let inlined = if frame.is_inlined { "_[i]" } else { "" };
    clean(&frame.short()) + inlined
}

/// `;` separates frames.
fn clean(name: &str) -> String {
    name.replace(';', ":").replace('\n', " ")
}
