//! `spinpark report A B C …`: many recordings, added up by program and build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use spinpark_profile::attach::is_core;
use spinpark_profile::load::{Loaded, load};
use spinpark_profile::merged::Merger;
use spinpark_profile::read::EXTENSION;
use spinpark_profile::saved;
use spinpark_profile::symbols::Symbols;

use super::request::waits;
use super::show::Shower;
use crate::cli::Report;
use crate::exit::{FAILED, in_full};
use crate::progress::Progress;
use crate::say::Say;

/// Directories below one that is given are read to this depth: a host, a service, a day, a recording.
const DEPTH: usize = 6;
/// Entries of directories that are looked at.
const ENTRIES: usize = 1_000_000;
/// What cannot be read is named so often; the rest is counted.
const NAMED: usize = 20;

/// What is to be added up; none if `report` names one recording, which is shown as it is.
pub(super) fn sources(report: &Report) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let sources = recordings(&report.recordings)?;
    let is_one = sources == report.recordings && sources.len() == 1;
    Ok((report.merge || !is_one).then_some(sources))
}

/// The recordings that paths name, a directory those below it. If there are none, the paths: reading them says so.
pub(super) fn recordings(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    let mut entries = 0;
    for path in paths {
        match is_recording(path) {
            true => sources.push(path.clone()),
            false => below(path, 0, &mut entries, &mut sources)?,
        }
    }
    if sources.is_empty() {
        sources = paths.to_vec();
    }
    Ok(sources)
}

/// A file, or a directory in which a process or a command has left something.
fn is_recording(path: &Path) -> bool {
    if !path.is_dir() {
        return true;
    }
    let has_recording = || {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.take(ENTRIES).any(|entry| {
            Path::new(&entry.file_name()).extension().is_some_and(|extension| extension == EXTENSION)
        })
    };
    path.join(saved::FILE).is_file() || has_recording()
}

/// The recordings below a directory: those in directories of their own, and profiles in JSON. Links are not followed.
fn below(
    directory: &Path,
    depth: usize,
    entries: &mut usize,
    sources: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let Ok(found) = fs::read_dir(directory) else {
        // Reading it says why.
        sources.push(directory.to_owned());
        return Ok(());
    };
    let mut found: Vec<fs::DirEntry> = found.flatten().collect();
    found.sort_by_key(fs::DirEntry::file_name);
    for entry in found {
        *entries += 1;
        if *entries > ENTRIES {
            bail!(
                "there are more than {ENTRIES} files below {}\nName the directories of recordings instead",
                directory.display()
            );
        }
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if kind.is_dir() && is_recording(&path) || kind.is_file() && is_json {
            sources.push(path);
        } else if kind.is_dir() && depth < DEPTH {
            below(&path, depth + 1, entries, sources)?;
        }
    }
    Ok(())
}

/// Adds them up, and shows the sums.
pub(super) fn report(report: &Report, sources: Vec<PathBuf>) -> anyhow::Result<ExitCode> {
    if let Some(option) = only_for_one(report) {
        bail!(
            "{option} is for one recording: what it shows is not added up\nName one of them, or leave {option} out"
        );
    }
    let shower = Shower::new(&report.show, false)?;
    let mut symbols = Symbols::new().with_debuginfod().with_waits(waits(&report.show)?);
    let mut merger = Merger::default();
    let mut unread: Vec<String> = Vec::new();
    let mut read = 0;
    let progress = Progress::free();
    for (number, source) in sources.iter().enumerate() {
        progress.at(
            number as f64 / sources.len() as f64,
            format!("reading recording {} of {}", number + 1, sources.len()),
        );
        if is_core(source) {
            unread.push(format!("{} is a core dump: see it by `spinpark why`", source.display()));
            continue;
        }
        match load(source, &mut symbols) {
            Ok(loaded) => {
                read += loaded.profiles.len();
                loaded.profiles.iter().for_each(|profile| merger.add(profile, &place(source)));
                unread.extend(loaded.broken.iter().map(first_line));
            }
            Err(error) => unread.push(first_line(&error)),
        }
    }
    drop(progress);
    let say = Say { on_stderr: true };
    let (mut profiles, notes) = merger.finish();
    if profiles.is_empty() {
        let why = unread.first().map_or_else(|| notes.join(" "), Clone::clone);
        bail!("nothing can be added up of {} recordings: {why}", sources.len().max(read));
    }
    super::add_measured(&mut profiles, &report.whatif)?;
    for why in unread.iter().take(NAMED) {
        say.wrapped(&format!("Left out: {why}"), 2);
    }
    if unread.len() > NAMED {
        say.wrapped(&format!("Left out, too: {} more that cannot be read.", unread.len() - NAMED), 2);
    }
    shower.show(&Loaded { profiles, broken: Vec::new() })?;
    notes.iter().for_each(|note| say.wrapped(note, 0));
    Ok(if unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// An error without the advice on its further lines, which is for one recording.
pub(super) fn first_line(error: &spinpark_profile::read::ReadError) -> String {
    let text = in_full(&anyhow::Error::msg(error.to_string()));
    text.lines().next().unwrap_or_default().to_owned()
}

/// Where a recording was found: the directory of a file that a directory keeps, or the path.
fn place(source: &Path) -> String {
    let is_kept = source.extension().is_some_and(|extension| extension == EXTENSION)
        || source.file_name().is_some_and(|name| name == saved::FILE);
    let parent = source.parent().filter(|parent| is_kept && !parent.as_os_str().is_empty());
    parent.unwrap_or(source).display().to_string()
}

/// An option of what is not added up.
fn only_for_one(report: &Report) -> Option<&'static str> {
    let show = &report.show;
    let given = [
        ("--from", report.from.is_some()),
        ("--to", report.to.is_some()),
        ("--slow", show.slow.is_some()),
        ("--perfetto", show.perfetto.is_some()),
        ("--speedscope", show.speedscope.is_some()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}
