//! Profiles for `go tool pprof` and everything else that reads its format.
//!
//! Two values per stack, as in Go's own mutex profiles: `contentions` (count) and `delay` (nanoseconds); of a process
//! that was sampled, `delay` alone. The
//! stack is the *waiter's*, as in Go's block profile (Go's mutex profile has the stack that unlocks). Labels,
//! which Go's profiles lack, name the lock (`lock`, `address`, `kind`), the mode in which it was wanted
//! (`role`) and the process. `-tags`, `-tagfocus`, `-tagleaf` and `-tagroot` work on labels; the last two
//! turn them into frames. Locks are not frames, so that `-top` lists only functions. Waiting for signals of
//! condition variables is left out.
//!
//! Addresses are those in the file; so each mapping starts at 0.

mod message;

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

pub use self::message::Profile as Message;
pub use self::message::{Function, Label, Line, Location, Mapping, Sample, ValueType};
use crate::model::{CallSite, Frame, Lock, Profile, Role};

/// The message; the profiles are processes of one run.
#[must_use]
pub fn message(profiles: &[Profile]) -> message::Profile {
    // How often threads waited is not known of samples.
    let is_sampled = !profiles.is_empty() && profiles.iter().all(|profile| profile.sampling.is_some());
    let mut writer = Writer { has_counts: !is_sampled, ..Writer::default() };
    writer.string("");
    let [contentions, delay] = [("contentions", "count"), ("delay", "nanoseconds")]
        .map(|(name, unit)| ValueType { r#type: writer.string(name), unit: writer.string(unit) });
    for profile in profiles {
        writer.process(profile);
    }
    let started = profiles.iter().map(|profile| profile.started).min().unwrap_or(0);
    let ended =
        profiles.iter().map(|profile| profile.started.saturating_add(profile.duration)).max().unwrap_or(0);
    let comments: Vec<i64> = profiles
        .iter()
        .flat_map(|profile| &profile.warnings)
        .map(|warning| writer.string(warning.text()))
        .collect();
    let interval = profiles.iter().filter_map(|profile| profile.sampling.as_ref());
    let interval = interval.map(|sampling| sampling.interval).max().unwrap_or(1);
    message::Profile {
        sample_type: if is_sampled { vec![delay] } else { vec![contentions, delay] },
        default_sample_type: delay.r#type,
        period_type: Some(if is_sampled { delay } else { contentions }),
        period: if is_sampled { number(interval) } else { 1 },
        time_nanos: number(started),
        duration_nanos: number(ended.saturating_sub(started)),
        comment: comments,
        ..writer.finish()
    }
}

/// Writes the file, compressed as readers expect.
///
/// # Errors
/// As `output` has them.
pub fn write(profiles: &[Profile], output: impl Write) -> io::Result<()> {
    let mut compressed = GzEncoder::new(output, Compression::default());
    compressed.write_all(&message(profiles).encode_to_vec())?;
    compressed.finish()?.flush()
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[derive(Default)]
struct Writer {
    /// Samples have two values.
    has_counts: bool,
    message: message::Profile,
    strings: HashMap<String, i64>,
    mappings: HashMap<String, u64>,
    locations: HashMap<(u64, u64), u64>,
    functions: HashMap<(i64, i64), u64>,
}

impl Writer {
    fn finish(self) -> message::Profile {
        self.message
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let index = self.message.string_table.len() as i64;
        self.message.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn process(&mut self, profile: &Profile) {
        // The program is the first mapping: readers take it for the main one.
        let program = profile.program.rsplit('/').next().unwrap_or(&profile.program);
        self.mapping(profile, program);
        let uses = profile.uses();
        for (lock, stats) in uses.filter(|(_, stats)| stats.role.has_holder()) {
            // Of samples, the time is known, and not how often threads waited.
            for site in stats.sites.iter().filter(|site| site.contended > 0 || site.wait_total > 0) {
                let Some(call_site) = profile.call_sites.get(site.call_site) else { continue };
                let sample = Sample {
                    location_id: self.locations(profile, call_site),
                    value: match self.has_counts {
                        true => vec![number(site.contended), number(site.wait_total)],
                        false => vec![number(site.wait_total)],
                    },
                    label: self.labels(profile, lock, stats.role),
                };
                self.message.sample.push(sample);
            }
        }
    }

    fn labels(&mut self, profile: &Profile, lock: &Lock, role: Role) -> Vec<Label> {
        let texts = [
            ("lock", lock.label.clone()),
            ("address", format!("{:#x}", lock.address)),
            ("kind", lock.kind.noun().to_owned()),
            ("role", role.word().to_owned()),
        ];
        let mut labels: Vec<Label> = texts
            .iter()
            .map(|(key, text)| Label { key: self.string(key), str: self.string(text), num: 0 })
            .collect();
        labels.push(Label { key: self.string("pid"), str: 0, num: i64::from(profile.pid) });
        labels
    }

    /// Frames that were inlined into one are one location.
    fn locations(&mut self, profile: &Profile, call_site: &CallSite) -> Vec<u64> {
        let groups = call_site.frames.split_inclusive(|frame| !frame.is_inlined);
        groups.map(|frames| self.location(profile, frames)).collect()
    }

    fn location(&mut self, profile: &Profile, frames: &[Frame]) -> u64 {
        let outer = &frames[frames.len() - 1];
        let mapping = self.mapping(profile, &outer.module);
        if let Some(known) = self.locations.get(&(mapping, outer.offset)) {
            return *known;
        }
        let line: Vec<Line> = frames.iter().filter_map(|frame| self.line(frame)).collect();
        let has = |what: fn(&Frame) -> bool| frames.iter().any(what);
        let known = &mut self.message.mapping[mapping as usize - 1];
        known.has_functions |= has(|frame| frame.function.is_some());
        known.has_filenames |= has(|frame| frame.source.is_some());
        known.has_line_numbers |= has(|frame| frame.source.is_some());
        known.has_inline_frames |= has(|frame| frame.is_inlined);
        known.memory_limit = known.memory_limit.max(outer.offset.saturating_add(1));
        let id = self.message.location.len() as u64 + 1;
        self.message.location.push(Location { id, mapping_id: mapping, address: outer.offset, line });
        self.locations.insert((mapping, outer.offset), id);
        id
    }

    fn line(&mut self, frame: &Frame) -> Option<Line> {
        let name = self.string(frame.function.as_deref()?);
        let (file, line) = frame.source.as_ref().map_or(("", 0), |(file, line)| (file.as_str(), *line));
        let filename = self.string(file);
        let next = self.message.function.len() as u64 + 1;
        let id = *self.functions.entry((name, filename)).or_insert(next);
        if id == next {
            self.message.function.push(Function { id, name, system_name: name, filename });
        }
        Some(Line { function_id: id, line: i64::from(line) })
    }

    fn mapping(&mut self, profile: &Profile, name: &str) -> u64 {
        let is_it = |module: &&crate::model::Module| module.path.rsplit('/').next() == Some(name);
        let module = profile.modules.iter().find(is_it);
        let path = module.map_or(name, |module| module.path.as_str());
        if let Some(known) = self.mappings.get(path) {
            return *known;
        }
        let id = self.message.mapping.len() as u64 + 1;
        let build_id = module.and_then(|module| module.build_id.as_deref()).unwrap_or_default();
        let mapping = Mapping {
            id,
            memory_limit: 1,
            filename: self.string(path),
            build_id: self.string(build_id),
            ..Mapping::default()
        };
        self.message.mapping.push(mapping);
        self.mappings.insert(path.to_owned(), id);
        id
    }
}
