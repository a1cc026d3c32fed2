//! What to do first, as a numbered list.

use super::{Style, wrap};
use crate::advice::advice;
use crate::model::Profile;

/// The list under its title; nothing if there is nothing to do.
#[must_use]
pub fn steps(profile: &Profile, style: Style) -> String {
    let all = advice(profile);
    let title = "What to do first";
    let title = if style.color { format!("\x1b[1m{title}\x1b[0m") } else { title.to_owned() };
    let step = |(number, step): (usize, &crate::advice::Advice)| {
        wrap(&format!(" {}. {} {}", number + 1, step.cost, step.advice), style.width, 4) + "\n"
    };
    let shown: String = all.iter().enumerate().take(style.rows).map(step).collect();
    let more = match all.len().saturating_sub(style.rows) {
        0 => String::new(),
        more => format!(" … and {more} more\n"),
    };
    if shown.is_empty() { shown } else { format!("{title}\n{shown}{more}") }
}
