//! Text for people.
//!
//! | module       | what it has                                   |
//! |--------------|-----------------------------------------------|
//! | this one     | sentences, and lines of them                  |
//! | [`units`]    | numbers                                       |
//! | [`date`]     | points in time                                |
//! | [`nearest`]  | what a misspelt name may have meant           |
//! | [`terminal`] | how wide lines are, and whether they are coloured |

pub mod date;
pub mod nearest;
pub mod terminal;
pub mod units;

/// In one line, and harmless for a terminal: what is no character to be seen is escaped, `\\n`.
#[must_use]
pub fn one_line(text: &str) -> String {
    let is_bad = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(is_bad) {
        return text.to_owned();
    }
    let shown = |c: char| if is_bad(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// A clause as the beginning of a sentence: with a capital letter.
#[must_use]
pub fn capital(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Breaks `text` at blanks into lines of at most `width`; the first line keeps its indentation, further lines
/// have `indent`. A number keeps its unit: `48 %`.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let begun = text.trim_start_matches(' ');
    let mut lines = vec![" ".repeat(text.len() - begun.len())];
    for (index, word) in words(begun).into_iter().enumerate() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if index > 0 && last + 1 + word.chars().count() > width {
            lines.push(" ".repeat(indent) + word);
        } else if let Some(line) = lines.last_mut() {
            if index > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// What stands together, between blanks.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut start = 0;
    for part in text.split(' ') {
        let end = start + part.len();
        let unit = part.trim_end_matches(['.', ',', ';', ':', ')', ']']);
        match words.last_mut() {
            Some(number) if number.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit) => {
                *number = &text[start - 1 - number.len()..end];
            }
            _ => words.push(part),
        }
        start = end + 1;
    }
    words
}

const UNITS: [&str; 6] = ["%", "s", "ms", "µs", "ns", "×"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped() {
        assert_eq!(one_line("a\nb\t\u{1b}[31mµ"), r"a\nb\t\u{1b}[31mµ");
    }

    #[test]
    fn a_sentence_begins_with_a_capital_letter() {
        assert_eq!(capital("no thread waited"), "No thread waited");
        assert_eq!((capital("48 % of it"), capital("")), (String::from("48 % of it"), String::new()));
    }

    #[test]
    fn wrapping() {
        let wrapped = wrap(&"word ".repeat(50), 100, 2);
        assert!(wrapped.lines().all(|line| line.chars().count() <= 100));
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(wrap("one two three", 8, 2), "one two\n  three");
        assert_eq!(wrap("short", 100, 2), "short");
        assert_eq!(wrap("  name  one two", 12, 8), "  name  one\n        two");
        assert_eq!(wrap("waited 48 %.", 10, 0), "waited\n48 %.");
        assert_eq!(wrap("took 1.2 ms, 3 s in all", 10, 0), "took\n1.2 ms,\n3 s in all");
    }
}
