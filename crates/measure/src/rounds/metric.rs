//! The program's own number: found in its output by a regular expression.

use regex_lite::Regex;
use thiserror::Error;

/// A number that the program prints, and what it means.
#[derive(Debug, Clone)]
pub struct OutputMetric {
    regex: Regex,
    /// Whether a larger number is better: a throughput rather than a time.
    pub higher_is_better: bool,
    /// The unit, for reports.
    pub unit: String,
}

/// The expression itself is of no use.
#[derive(Debug, Error)]
pub enum BadExpression {
    /// The syntax is wrong.
    #[error(
        "--metric-from-output: the regular expression does not compile: {0}\nThe syntax is that of https://docs.rs/regex-lite; put the expression in single quotes"
    )]
    Syntax(regex_lite::Error),
    /// Nothing says which part of the match is the number.
    #[error(
        "--metric-from-output: `{0}` has no capture group, so it does not say which part of the match is the number\nPut the number in parentheses: 'transactions: *([0-9.]+)'"
    )]
    NoGroup(String),
}

/// The output has no such number.
#[derive(Debug, Error, PartialEq)]
pub enum NoNumber {
    /// No match at all.
    #[error(
        "the expression of --metric-from-output matches nothing in the program's output; run the program by hand, and \
         match one of its lines"
    )]
    NoMatch,
    /// The group matched something else.
    #[error(
        "--metric-from-output captured `{0}`, which is not a number; let group 1 capture digits only: '([0-9.]+)'"
    )]
    NotANumber(String),
    /// A ratio of it would mean nothing.
    #[error("--metric-from-output captured {0}, but only numbers above zero can be compared as a ratio")]
    NotPositive(f64),
}

impl OutputMetric {
    /// Compiles `expression`; its group 1 is the number. `^` and `$` match at line ends.
    ///
    /// # Errors
    ///
    /// If it does not compile or has no group.
    pub fn new(expression: &str, higher_is_better: bool, unit: &str) -> Result<Self, BadExpression> {
        let regex = regex_lite::RegexBuilder::new(expression)
            .multi_line(true)
            .build()
            .map_err(BadExpression::Syntax)?;
        if regex.captures_len() < 2 {
            return Err(BadExpression::NoGroup(expression.to_owned()));
        }
        Ok(Self { regex, higher_is_better, unit: unit.to_owned() })
    }

    /// The expression as it was given.
    #[must_use]
    pub fn expression(&self) -> &str {
        self.regex.as_str()
    }

    /// The number in `output`: group 1 of the *last* match, since programs print intermediate results first.
    ///
    /// # Errors
    ///
    /// If nothing matches, or what matches is not a positive number.
    pub fn find(&self, output: &str) -> Result<f64, NoNumber> {
        let last = self.regex.captures_iter(output).last().ok_or(NoNumber::NoMatch)?;
        let text = last.get(1).map_or("", |group| group.as_str());
        let number = parse(text).ok_or_else(|| NoNumber::NotANumber(text.to_owned()))?;
        if number > 0.0 { Ok(number) } else { Err(NoNumber::NotPositive(number)) }
    }
}

/// Reads a number as programs print it: surrounding blanks and groups of thousands (`1,234,567.8`) are
/// allowed.
fn parse(text: &str) -> Option<f64> {
    let text = text.trim();
    let (whole, rest) = text.split_at(text.find(['.', 'e', 'E']).unwrap_or(text.len()));
    let groups: Vec<&str> = whole.split(',').collect();
    let grouped = groups.len() > 1
        && (1..=3).contains(&groups[0].trim_start_matches(['+', '-']).len())
        && groups[1..].iter().all(|group| group.len() == 3);
    let joined = if grouped { groups.concat() + rest } else { text.to_owned() };
    joined.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(expression: &str, output: &str) -> Result<f64, NoNumber> {
        OutputMetric::new(expression, true, "").unwrap().find(output)
    }

    #[test]
    fn last_match_wins() {
        assert_eq!(find(r"tps: ([0-9.]+)", "tps: 10.5\ntps: 11\ntps: 12.25 end"), Ok(12.25));
    }

    #[test]
    fn lines_anchor() {
        assert_eq!(find(r"^total (\S+)$", "sub total 3\ntotal 4\n"), Ok(4.0));
    }

    #[test]
    fn numbers_as_programs_print_them() {
        for (text, number) in
            [("1,234,567.8", 1_234_567.8), ("1e3", 1000.0), (" 42 ", 42.0), ("0.5", 0.5), ("+7", 7.0)]
        {
            assert_eq!(parse(text), Some(number), "{text}");
        }
        for text in ["", "abc", "1,23", "1.2.3", "inf", "NaN", "12ms", "1,2345"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn each_way_to_have_no_number() {
        assert_eq!(find("x=([0-9]+)", "y=1"), Err(NoNumber::NoMatch));
        assert_eq!(find("x=(.*)", "x=fast"), Err(NoNumber::NotANumber("fast".into())));
        assert_eq!(find("x=(.*)", "x=0"), Err(NoNumber::NotPositive(0.0)));
        assert_eq!(find("x(y)?", "x"), Err(NoNumber::NotANumber(String::new())));
    }

    #[test]
    fn expressions_that_cannot_work() {
        assert!(matches!(OutputMetric::new("(", true, ""), Err(BadExpression::Syntax(_))));
        assert!(matches!(OutputMetric::new("tps: [0-9]+", true, ""), Err(BadExpression::NoGroup(_))));
    }
}
