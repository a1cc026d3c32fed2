//! Code without names in the summary: why it has none, and what to do about it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::{CallSiteId, Pair, Profile, Unnamed};

/// No hint if less than this share of the waiting is in functions without names.
const MUCH: f64 = 0.25;
/// The most files that are named.
const FILES: usize = 2;

/// Why much of the waiting is in code without names, if it is, and how to get them: two sentences.
#[must_use]
pub fn hint(profile: &Profile) -> Option<String> {
    let mut all = 0;
    let mut without = 0;
    let mut files: BTreeMap<(&Unnamed, &str), u64> = BTreeMap::new();
    for pair in profile.pairs.iter().filter(|pair| pair.role.has_holder()) {
        all += pair.wait_total;
        let unnamed = unnamed(profile, pair);
        without += if unnamed.is_empty() { 0 } else { pair.wait_total };
        unnamed.into_iter().for_each(|file| *files.entry(file).or_default() += pair.wait_total);
    }
    if without == 0 || (without as f64) < MUCH * all as f64 {
        return None;
    }
    // The reason that most of the waiting has.
    let mut reasons: BTreeMap<&Unnamed, u64> = BTreeMap::new();
    files.iter().for_each(|((why, _), waited)| *reasons.entry(why).or_default() += waited);
    let (why, _) = reasons.into_iter().max_by_key(|(_, waited)| *waited)?;
    let mut files: Vec<(&str, u64)> = files
        .into_iter()
        .filter(|((other, _), _)| *other == why)
        .map(|((_, file), waited)| (file, waited))
        .collect();
    files.sort_by_key(|(file, waited)| (Reverse(*waited), *file));
    let is_one = files.len() == 1;
    let more = if files.len() > FILES { " and others" } else { "" };
    let named: Vec<String> = files.iter().take(FILES).map(|(file, _)| format!("`{file}`")).collect();
    let named = named.join(if more.is_empty() { " and " } else { ", " }) + more;
    Some(sentences(why, &named, is_one, profile.pid, &profile.recording))
}

fn sentences(why: &Unnamed, files: &str, is_one: bool, pid: u32, recording: &str) -> String {
    let they_are = if is_one { "it is" } else { "they are" };
    let the_files = if is_one { "the file was" } else { "the files were" };
    match why {
        Unnamed::Stripped => {
            let theirs = if is_one { "its debug package" } else { "their debug packages" };
            format!(
                "Functions in {files} have no names, because {they_are} stripped. Install {theirs} (`-dbgsym`, `-debuginfo`) \
                 and run `spinpark report DIR/{recording}.spinprof`; or build your own program with -g, unstripped, and record it \
                 again."
            )
        }
        Unnamed::NoSymbol => format!(
            "Functions in {files} have no names: it has symbols, and none for this code (assembly, or functions that a linker \
             made). Their callers have names: see the stacks of `--html`."
        ),
        Unnamed::Gone => format!(
            "Functions in {files} have no names, because {the_files} deleted before the report was made. Record with `spinpark \
             profile`, which opens files while the program runs, and let the program run for longer than 20 ms."
        ),
        Unnamed::Replaced => format!(
            "Functions in {files} have no names, because {the_files} replaced by another build after the program had loaded \
             {}. Record again.",
            if is_one { "it" } else { "them" }
        ),
        Unnamed::Unreadable(error) => {
            format!(
                "Functions in {files} have no names, because {the_files} not readable: {error}. Run the report as its owner."
            )
        }
        Unnamed::NotElf => {
            format!(
                "Functions in {files} have no names, because {they_are} damaged: the report finds no ELF file there."
            )
        }
        Unnamed::Jit => format!(
            "Functions in {files} have no names: the code was made at run time, and there is no perf map `/tmp/perf-{pid}.map`. \
             Node.js writes one with `--perf-basic-prof`, Java with `-XX:+DumpPerfMapAtExit`, .NET with \
             `DOTNET_PerfMapEnabled=1`, CPython with `-X perf`."
        ),
    }
}

/// The files in which the waiting or the holding function has no name, and why.
fn unnamed<'a>(profile: &'a Profile, pair: &Pair) -> Vec<(&'a Unnamed, &'a str)> {
    let file = |call_site: CallSiteId| {
        let frame = profile.call_sites.get(call_site)?.frames.first()?;
        let is_it = |path: &str| path.rsplit('/').next() == Some(&frame.module);
        let why = profile.modules.iter().find(|module| is_it(&module.path))?.unnamed.as_ref()?;
        frame.function.is_none().then_some((why, frame.module.as_str()))
    };
    let mut files: Vec<_> = [Some(pair.waiter), pair.holder].into_iter().flatten().filter_map(file).collect();
    files.dedup();
    files
}
