//! From what a recording has left to finished profiles, one per process: a directory, a recording's file, or a
//! JSON document.
//!
//! A profile is built in two steps, and not changed after them. [`Recorded::read`] has what the recordings alone
//! tell; it needs symbols, and can fail. [`Recorded::complete`] adds what else is known of the run: the
//! [`Surroundings`]. The steps are apart because the command names glibc's locks in what it saw with the symbols
//! that the first one has loaded, and measures costs only if there is a recording.

use std::path::Path;

use crate::cost;
use crate::json;
use crate::model::{Cost, Profile, RecordingEnd};
use crate::read::{ReadError, Unrecorded, directory, profile};
use crate::saved::FILE;
use crate::symbols::Symbols;
use crate::watch::Observation;

/// What was read.
#[derive(Debug)]
pub struct Loaded {
    /// One per process, the oldest first.
    pub profiles: Vec<Profile>,
    /// Files that are no profiles, and why.
    pub broken: Vec<ReadError>,
}

/// What recordings and saved profiles have, without what else is known of their run.
#[derive(Debug)]
pub struct Recorded {
    /// The oldest first.
    profiles: Vec<Profile>,
    broken: Vec<ReadError>,
    /// The processes that are not among them.
    unrecorded: Unrecorded,
    /// What the directory has of an earlier command.
    observation: Option<Observation>,
}

/// What the command knows of a run besides its recordings. A later report knows none of it: then profiles keep
/// what was saved with them.
#[derive(Debug, Default)]
pub struct Surroundings<'a> {
    /// What it saw in `/proc`.
    pub observation: Option<&'a Observation>,
    /// How the program that it started has ended.
    pub end: Option<ProgramEnd>,
    /// What recording cost.
    pub cost: Option<CostSource>,
}

/// How the program ended that the command had started.
#[derive(Clone, Debug)]
pub struct ProgramEnd {
    /// Its process.
    pub pid: u32,
    /// Why, if that was not its own doing: words that follow *it*, such as `was killed by SIGKILL`.
    pub why: Option<String>,
    /// Whether it is known that no signal ended it.
    pub has_exited: bool,
}

/// Where the cost of recording is known from.
#[derive(Clone, Debug)]
pub enum CostSource {
    /// It was measured on the program (`--overhead`).
    Measured(Cost),
    /// It is estimated for each process, with this `untimed_use` of [`cost::estimate`].
    Estimated(f64),
}

/// The profiles of `path`, without a command that knows more of the run than its files.
///
/// # Errors
/// [`ReadError`], if there is no profile that can be read.
pub fn load(path: &Path, symbols: &mut Symbols) -> Result<Loaded, ReadError> {
    if path.extension().is_some_and(|extension| extension == "json") && !path.is_dir() {
        return Ok(Loaded { profiles: json::read(path)?, broken: Vec::new() });
    }
    Ok(Recorded::read(path, symbols)?.complete(&Surroundings::default()))
}

impl Recorded {
    /// Reads the recordings of `path`: of a directory, or the one that it is.
    ///
    /// In a directory, a process is taken from [`FILE`] if that has it, since its symbols were looked up when the
    /// programs were what they had been. A process that was still running then is read again, and all are with a
    /// user's table of waits.
    ///
    /// # Errors
    /// [`ReadError`], if there is no profile that can be read.
    pub fn read(path: &Path, symbols: &mut Symbols) -> Result<Self, ReadError> {
        let mut broken = Vec::new();
        let saved = match json::read(&path.join(FILE)) {
            Ok(profiles) => profiles,
            // Not a directory, or without the file.
            Err(ReadError::Missing(_) | ReadError::Unreadable(..)) => Vec::new(),
            Err(error) => {
                broken.push(error);
                Vec::new()
            }
        };
        let recordings = match directory(path) {
            Ok(found) => {
                broken.extend(found.broken);
                found.recordings
            }
            Err(ReadError::Empty(_)) if !saved.is_empty() => Vec::new(),
            // The reason of a file that exists helps more than that of a missing one.
            Err(ReadError::Empty(_)) if !broken.is_empty() => return Err(broken.remove(0)),
            Err(error) => return Err(error),
        };
        let mut profiles = saved;
        for recording in &recordings {
            let view = recording.view();
            let header = view.header();
            let is_it =
                |profile: &Profile| profile.pid == header.pid && profile.started == header.start_realtime;
            match profiles.iter().position(is_it) {
                // Another table determined then what waits are for.
                Some(at) if profiles[at].ended != RecordingEnd::Running && !symbols.has_users_waits() => {}
                Some(at) => profiles[at] = profile(recording, symbols),
                None => profiles.push(profile(recording, symbols)),
            }
        }
        profiles.sort_by_key(|profile| (profile.started, profile.pid));
        Ok(Self { profiles, broken, unrecorded: Unrecorded::of(path), observation: Observation::of(path) })
    }

    /// The finished profiles: with what was seen of their run, how they ended, and what recording cost.
    #[must_use]
    pub fn complete(self, known: &Surroundings<'_>) -> Loaded {
        let Self { profiles, broken, unrecorded, observation } = self;
        let profiles = match known.observation.or(observation.as_ref()) {
            Some(observation) => observation.added_to(profiles),
            None => profiles,
        };
        let finished = |profile: Profile| Profile {
            cost: match &known.cost {
                Some(CostSource::Measured(cost)) => Some(cost.clone()),
                Some(CostSource::Estimated(untimed_use)) => cost::estimate(&profile, *untimed_use),
                None => profile.cost,
            },
            ended_by: match &known.end {
                Some(end) if end.pid == profile.pid => end.ended_by(profile.ended),
                _ => profile.ended_by,
            },
            warnings: unrecorded.added_to(profile.warnings),
            ..profile
        };
        Loaded { profiles: profiles.into_iter().map(finished).collect(), broken }
    }
}

impl ProgramEnd {
    /// What ended it, as far as a recording that ended so does not tell itself.
    fn ended_by(&self, ended: RecordingEnd) -> Option<String> {
        let is_early = self.has_exited && ended == RecordingEnd::Killed;
        self.why.clone().or_else(|| is_early.then(|| String::from("ended by `_exit` or `exec`")))
    }
}
