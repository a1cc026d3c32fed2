//! Sentences.

/// Breaks `text` at blanks into lines of at most `width`; further lines are indented.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > width {
            lines.push(" ".repeat(indent) + word);
        } else if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping() {
        let wrapped = wrap(&"word ".repeat(50), 100, 2);
        assert!(wrapped.lines().all(|line| line.chars().count() <= 100));
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(wrap("one two three", 8, 2), "one two\n  three");
        assert_eq!(wrap("short", 100, 2), "short");
    }
}
