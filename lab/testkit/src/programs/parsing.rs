//! Reads what programs print.

use crate::ProgramResult;

/// The first word after `label` in `text`, as in `field("events: 8 (1/s)", "events:")`.
///
/// # Panics
/// If there is none.
#[track_caller]
pub fn field<'text>(text: &'text str, label: &str) -> &'text str {
    let word = text.split_once(label).and_then(|(_, rest)| rest.split_whitespace().next());
    word.unwrap_or_else(|| panic!("no word after \"{label}\" in\n{text}"))
}

/// The lines that start with one of `starts`.
pub fn lines_with(text: &str, starts: &[&str]) -> Vec<String> {
    let is_wanted = |line: &&str| starts.iter().any(|start| line.starts_with(start));
    text.lines().filter(is_wanted).map(str::to_owned).collect()
}

/// Whether the last thing that a program printed is `ok`, as with the test commands of the Cabinet databases.
pub fn ends_with_ok(outcome: &ProgramResult) -> bool {
    outcome.stdout_text().trim_end().lines().next_back() == Some("ok")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_lines_are_found() {
        let text = "count: 4\ntime: 0.5\n  count: 5\n";
        assert_eq!(field(text, "time:"), "0.5");
        assert_eq!(lines_with(text, &["count:"]), ["count: 4"]);
    }
}
