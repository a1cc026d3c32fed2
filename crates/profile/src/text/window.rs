//! A part of the run: what threads waited for in it.

use super::{Style, render, slow, wrap};
use crate::model::{Profile, Role};
use crate::phases::window;
use crate::units::{percent, time};

/// The time waited for each lock between `from` and `to` (ns after the start), and the longest waits then.
#[must_use]
pub fn part(profile: &Profile, (from, to): (u64, u64), style: Style) -> String {
    let shown = window(profile, from, to);
    let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
    let title = format!("Waiting from {} to {}", seconds(shown.from), seconds(shown.to));
    let all: u64 = shown.locks.iter().map(|(_, waited)| waited).sum();
    let length = shown.to.saturating_sub(shown.from).max(1);
    let rows = shown.locks.iter().map(|(lock, waited)| {
        let may_be = if lock.role(Role::Wake).is_some() { "yes" } else { "it is" };
        vec![
            lock.label.clone(),
            time(*waited as f64),
            percent(*waited as f64 / all.max(1) as f64),
            format!("{:.2}", *waited as f64 / length as f64),
            String::from(may_be),
        ]
    });
    let header = ["lock", "waited", "share", "waiting\non average", "may be\na lock"];
    let table = render(style, &title, &header, 1, (rows, |row| row));
    if from >= profile.duration {
        let text = format!("The run had ended by then: it took {}.", seconds(profile.duration));
        return wrap(&text, style.width, 0) + "\n";
    }
    if table.is_empty() {
        let text =
            format!("No thread waited for a lock from {} to {}.", seconds(shown.from), seconds(shown.to));
        return wrap(&text, style.width, 0) + "\n";
    }
    let is_in = |wait: &crate::model::SlowWait| wait.start < to && wait.start + wait.time > from;
    let mut waits = profile.clone();
    waits.slow_waits.retain(is_in);
    let longest = slow(&waits, style);
    let note =
        "Waits are counted in the part of the run in which they ended; the parts are those of the recording.";
    [table, longest, wrap(note, style.width, 2) + "\n"]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
