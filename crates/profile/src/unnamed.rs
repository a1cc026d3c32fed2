//! Code without names in the summary, and what to do about it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::{CallSiteId, Pair, Profile};

/// No hint if less than this share of the waiting is in functions without names.
const MUCH: f64 = 0.25;
/// The most files that are named.
const FILES: usize = 2;

/// How to get the names, if much of the waiting is in code that has none: two sentences.
#[must_use]
pub fn hint(profile: &Profile) -> Option<String> {
    let mut all = 0;
    let mut without = 0;
    let mut files: BTreeMap<&str, u64> = BTreeMap::new();
    for pair in profile.pairs.iter().filter(|pair| pair.role.has_holder()) {
        all += pair.wait_total;
        let unnamed = unnamed(profile, pair);
        without += if unnamed.is_empty() { 0 } else { pair.wait_total };
        unnamed.into_iter().for_each(|file| *files.entry(file).or_default() += pair.wait_total);
    }
    if without == 0 || (without as f64) < MUCH * all as f64 {
        return None;
    }
    let mut files: Vec<(&str, u64)> = files.into_iter().collect();
    files.sort_by_key(|(file, waited)| (Reverse(*waited), *file));
    let (they_are, theirs) = match files.len() {
        1 => ("it is", "its debug package"),
        _ => ("they are", "their debug packages"),
    };
    let more = if files.len() > FILES { " and others" } else { "" };
    let files: Vec<String> = files.iter().take(FILES).map(|(file, _)| format!("`{file}`")).collect();
    Some(format!(
        "Functions in {}{more} have no names, because {they_are} stripped. Install {theirs} (`-dbgsym`, `-debuginfo`) and run \
         `spinpark report DIR/{}.spinprof`; or build your own program with -g, unstripped, and record it again.",
        files.join(if more.is_empty() { " and " } else { ", " }),
        profile.recording
    ))
}

/// The files in which the waiting or the holding function has no name. Code outside of files cannot have one.
fn unnamed<'a>(profile: &'a Profile, pair: &Pair) -> Vec<&'a str> {
    let file = |call_site: CallSiteId| {
        let frame = profile.call_sites.get(call_site)?.frames.first()?;
        let is_it = |path: &str| path.starts_with('/') && path.rsplit('/').next() == Some(&frame.module);
        let is_a_file = profile.modules.iter().any(|module| is_it(&module.path));
        (frame.function.is_none() && is_a_file).then_some(frame.module.as_str())
    };
    let mut files: Vec<&str> =
        [Some(pair.waiter), pair.holder].into_iter().flatten().filter_map(file).collect();
    files.dedup();
    files
}
