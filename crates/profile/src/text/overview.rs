//! The first screen of a report: what a person acts on. All other tables are behind `--view`.

use super::report::{first, head, missing, notes, slowed};
use super::wrap;
use super::{
    Style, blocking, condvars, held_waits, locks, other_waits, outcomes, places, sites, slow, split, spread,
    steps, waiting,
};
use crate::model::Profile;
use crate::swap;

/// A table: what `--view` calls it, and what makes it.
type Table = (&'static str, fn(&Profile, Style) -> String);

/// More steps are behind `--view steps`.
const STEPS: usize = 3;
/// With fewer rows a table is not worth its header.
const FEWEST_ROWS: usize = 3;

/// The report of one process on a screen of `lines` lines: what ran, what is missing, the summary, the tables
/// that show it, what recording cost, and where the rest is.
///
/// Sentences are never left out: tables have the lines that these leave.
#[must_use]
pub fn overview(profile: &Profile, style: Style, lines: usize) -> String {
    let before =
        [head(profile, style), slowed(profile, style), missing(profile, style), first(profile, style)];
    let sentences =
        swap::of_one(profile).into_iter().chain(profile.cost.iter().map(|cost| cost.sentence.clone()));
    let after: String = sentences.map(|text| wrap(&text, style.width, 2) + "\n").collect();

    let has_waited = profile.lock_wait() > 0;
    let main: Vec<Table> = match has_waited {
        true if profile.merged.is_some() => {
            vec![("steps", steps), ("locks", locks), ("processes", spread), ("processes", places)]
        }
        true => vec![("", waiting), ("steps", steps), ("locks", locks), ("blocking", blocking)],
        false => vec![("", waiting), ("others", other_waits), ("condvars", condvars)],
    };
    let others: [Table; 10] = [
        ("steps", steps),
        ("locks", locks),
        ("split", split),
        ("blocking", blocking),
        ("held-waits", held_waits),
        ("slow", slow),
        ("sites", sites),
        ("condvars", condvars),
        ("others", other_waits),
        ("outcomes", outcomes),
    ];
    let is_left = |name: &str| main.iter().all(|(shown, _)| *shown != name);
    let mut more: Vec<&str> = Vec::new();
    for (name, table) in others.iter().filter(|(name, _)| is_left(name)) {
        let one = Style { rows: 1, ..style };
        more.extend((!table(profile, one).is_empty()).then_some(*name));
    }
    let texts = before.iter().chain([&after]).filter(|text| !text.is_empty());
    // Each part has an empty line after it, and the last line may be broken once.
    let mut left =
        texts.map(|text| text.lines().count() + 1).fold(lines.saturating_sub(3), usize::saturating_sub);
    let mut tables = Vec::new();
    for (place, (name, table)) in main.iter().copied().enumerate() {
        let whole = table(profile, style);
        // The tables after it have their first rows.
        let later =
            main[place + 1..].iter().map(|(_, table)| table(profile, Style { rows: FEWEST_ROWS, ..style }));
        let reserved: usize =
            later.filter(|text| !text.is_empty()).map(|text| text.lines().count() + 1).sum();
        let height = |text: &str| text.lines().count() + 1;
        let fit = |space: usize| {
            let missing = (height(&whole) + usize::from(!is_cut(&whole))).saturating_sub(space);
            let rows = style.rows.min(rows_of(&whole)).saturating_sub(missing);
            match height(&whole) <= space {
                true => Some(whole.clone()),
                false => (rows >= FEWEST_ROWS).then(|| table(profile, Style { rows, ..style })),
            }
        };
        // The list of steps repeats what the tables show: it takes no room from them.
        let fitted = match name {
            "steps" => (1..=STEPS)
                .rev()
                .map(|rows| steps(profile, Style { rows: style.rows.min(rows), ..style }))
                .find(|text| height(text) <= left.saturating_sub(reserved)),
            _ => fit(left.saturating_sub(reserved)).or_else(|| fit(left)),
        };
        let Some(fitted) = fitted else {
            more.extend((!name.is_empty()).then_some(name));
            continue;
        };
        if !fitted.is_empty() {
            left = left.saturating_sub(height(&fitted));
            tables.push(fitted);
        }
    }
    more.dedup();
    let mut parts = before.to_vec();
    parts.extend(tables);
    parts.push(after + &rest(profile, style, &more));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Rows of a table: the lines below its header, but not the one that counts what is missing.
fn rows_of(table: &str) -> usize {
    let below = table.lines().skip_while(|line| !line.starts_with('═')).skip(1);
    below.filter(|line| !line.starts_with('─') && !line.starts_with(MORE)).count()
}

/// Whether a last line counts the rows that are missing.
fn is_cut(table: &str) -> bool {
    table.lines().last().is_some_and(|line| line.starts_with(MORE))
}

/// How that line begins.
const MORE: &str = " … and ";

/// The last line: which tables there are besides.
fn rest(profile: &Profile, style: Style, more: &[&str]) -> String {
    let notes = match notes(profile).len() {
        0 => String::new(),
        1 => String::from(", and a note on the figures"),
        number => format!(", and {number} notes on the figures"),
    };
    let tables = match more {
        [] => String::new(),
        more => format!("More tables: `--view {}`. ", more.join("`, `")),
    };
    if tables.is_empty() && notes.is_empty() {
        return String::new();
    }
    wrap(&format!("{tables}`--view all` has everything{notes}."), style.width, 2) + "\n"
}
