//! Code without names in the summary: why it has none, and what to do about it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

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
    let paths = files.iter().filter_map(|(file, _)| {
        let mut paths = profile.modules.iter().map(|module| module.path.as_str());
        paths.find(|path| path.rsplit('/').next() == Some(file))
    });
    let packages: BTreeSet<String> =
        paths.filter_map(|path| package(Path::new("/var/lib/dpkg/info"), path)).collect();
    Some(sentences(why, &named, is_one, &packages, (profile.pid, &profile.recording)))
}

/// The Debian package that has a file, by dpkg's lists of files.
fn package(lists: &Path, path: &str) -> Option<String> {
    // `/lib` and `/bin` are links into `/usr` today.
    let other = path.strip_prefix("/usr").map_or_else(|| format!("/usr{path}"), str::to_owned);
    let has_it = |list: &str| list.lines().any(|line| line == path || line == other);
    fs::read_dir(lists).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let package = name.strip_suffix(".list")?.split(':').next()?;
        fs::read_to_string(entry.path()).is_ok_and(|list| has_it(&list)).then(|| package.to_owned())
    })
}

fn sentences(
    why: &Unnamed,
    files: &str,
    is_one: bool,
    packages: &BTreeSet<String>,
    (pid, recording): (u32, &str),
) -> String {
    let they_are = if is_one { "it is" } else { "they are" };
    let the_files = if is_one { "the file was" } else { "the files were" };
    match why {
        Unnamed::Stripped => {
            let again = format!("report the recording's file `{recording}.spinprof` again");
            let named: Vec<String> = packages.iter().map(|package| format!("`{package}-dbgsym`")).collect();
            let theirs = if is_one { "its debug package" } else { "their debug packages" };
            let install = match named.is_empty() {
                true => format!("Install {theirs} (`-dbgsym`, `-debuginfo`)"),
                false => format!("Install {}", named.join(" and ")),
            };
            format!(
                "Functions in {files} have no names, because {they_are} stripped. {install}, or set `DEBUGINFOD_URLS`, and \
                 {again}; or build your own program with -g, unstripped, and record it again."
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_package_is_named() {
        let lists = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| fs::write(lists.path().join(name), text).expect("a file");
        write("samtools.list", "/.\n/usr/bin\n/usr/bin/samtools\n");
        write("libz1:amd64.list", "/lib/x86_64-linux-gnu/libz.so.1\n");
        write("libz1:amd64.md5sums", "/usr/bin/other\n");
        let of = |path: &str| package(lists.path(), path);
        assert_eq!(of("/usr/bin/samtools").as_deref(), Some("samtools"));
        assert_eq!(of("/usr/lib/x86_64-linux-gnu/libz.so.1").as_deref(), Some("libz1"));
        assert_eq!((of("/usr/bin/other"), of("/usr/bin/sam")), (None, None));
        let said = |packages: &[&str]| {
            let packages = packages.iter().map(|package| (*package).to_owned()).collect();
            sentences(&Unnamed::Stripped, "`samtools`", true, &packages, (7, "7-1"))
        };
        assert!(said(&["samtools"]).contains("Install `samtools-dbgsym`, or set `DEBUGINFOD_URLS`"));
        assert!(said(&[]).contains("Install its debug package") && !said(&[]).contains("DIR"));
    }
}
