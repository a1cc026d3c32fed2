//! Tables of several processes added up: how their waiting is spread.

use spinpark_measure::text::units::{count, short_percent, time};

use super::{Style, dash, render};
use crate::model::{Merged, Place, Profile, Spread};

/// Lock by lock, in how many processes threads waited for it, and in which one most. Empty for a profile of one
/// process.
#[must_use]
pub fn spread(profile: &Profile, style: Style) -> String {
    let Some(merged) = &profile.merged else { return String::new() };
    let waited = merged.spread.iter().filter(|spread| spread.processes > 0);
    let header = ["lock", "longest wait in", "processes\nwaited", "wait max", "most in one"];
    let row = |spread: &Spread| {
        vec![
            profile.lock_label(spread.lock),
            if spread.longest_in.is_empty() { spread.most_in.clone() } else { spread.longest_in.clone() },
            count(spread.processes),
            if spread.longest > 0 { time(spread.longest as f64) } else { dash() },
            time(spread.most as f64),
        ]
    };
    render(style, "Locks, over processes", &header, 2, (waited, row))
}

/// Host by host, or directory by directory, how much threads waited. Empty if there is one.
#[must_use]
pub fn places(profile: &Profile, style: Style) -> String {
    let places = profile.merged.as_ref().map_or(&[][..], |merged| &merged.places);
    if places.len() < 2 {
        return String::new();
    }
    let header = ["host or directory", "processes", "wait\ntotal", "of threads'\ntime"];
    let row = |place: &Place| {
        let share = place.waited as f64 / place.thread_time.max(1) as f64;
        vec![
            place.name.clone(),
            count(place.processes),
            time(place.waited as f64),
            if place.thread_time > 0 { short_percent(share.min(1.0)) } else { dash() },
        ]
    };
    render(style, "Where they ran", &header, 1, (places.iter(), row))
}

/// The sums, where there are several: of other programs, or of other builds.
#[must_use]
pub fn sums(profiles: &[Profile], style: Style) -> String {
    if profiles.len() < 2 {
        return String::new();
    }
    let header = ["name", "build", "processes", "wait\ntotal", "of threads'\ntime"];
    let row = |profile: &Profile| {
        let nothing = Merged::default();
        let merged = profile.merged.as_ref().unwrap_or(&nothing);
        let share = profile.lock_wait() as f64 / profile.thread_time().max(1) as f64;
        vec![
            profile.recording.clone(),
            merged.build().map_or_else(dash, str::to_owned),
            count(merged.processes),
            time(profile.lock_wait() as f64),
            short_percent(share.min(1.0)),
        ]
    };
    render(style, "Programs and builds", &header, 1, (profiles.iter(), row))
}
