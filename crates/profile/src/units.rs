//! Numbers with units: those of [`spinpark_measure::units`], and more for the tables of profiles.

use spinpark_measure::units;

/// A span of time, given in ns: `1.234 s`, `12.3 ms`, `45.6 µs`, `17 ns`.
#[must_use]
pub fn time(ns: f64) -> String {
    if ns == ns.trunc() && ns < 1_000.0 { format!("{ns:.0} ns") } else { units::seconds(ns / 1e9) }
}

/// The same for a whole number; a dash for 0.
#[must_use]
pub fn time_or_dash(ns: u64) -> String {
    if ns == 0 { String::from("–") } else { time(ns as f64) }
}

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

/// A count: `1,234,567`.
#[must_use]
pub fn count(number: u64) -> String {
    units::number(number as f64)
}

/// A count in six columns: `1,234`, `12.3 k`, `1.23 M`.
#[must_use]
pub fn short_count(number: u64) -> String {
    match number {
        number if number < 10_000 => count(number),
        number if number < 999_500 => format!("{} k", three_digits(number as f64 / 1e3)),
        number if number < 999_500_000 => format!("{} M", three_digits(number as f64 / 1e6)),
        number => format!("{} G", three_digits(number as f64 / 1e9)),
    }
}

/// A share as `12 %`, `1.2 %`, `0.03 %`, `< 0.01 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => String::from("0 %"),
        percent if percent < 0.01 => String::from("< 0.01 %"),
        percent if percent < 0.995 => format!("{percent:.2} %"),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        // 100 % is exact: no rounding up to it.
        percent if (99.5..100.0).contains(&percent) => String::from("> 99 %"),
        percent => format!("{percent:.0} %"),
    }
}

/// `256 MiB`, `1.50 GiB`.
#[must_use]
pub fn bytes(number: u64) -> String {
    let (unit, divisor) = match number {
        0..1024 => return format!("{number} bytes"),
        1024..1_048_576 => ("KiB", 1_u64 << 10),
        1_048_576..1_073_741_824 => ("MiB", 1 << 20),
        _ => ("GiB", 1 << 30),
    };
    match number % divisor {
        0 => format!("{} {unit}", count(number / divisor)),
        _ => format!("{} {unit}", three_digits(number as f64 / divisor as f64)),
    }
}

/// How many times as much: `×1.25`; `new` where there was nothing.
#[must_use]
pub fn ratio(before: u64, after: u64) -> String {
    match (before, after) {
        (0, 0) => String::from("–"),
        (0, _) => String::from("new"),
        (_, 0) => String::from("gone"),
        (before, after) => match after as f64 / before as f64 {
            ratio if ratio >= 999.5 => format!("×{ratio:.0}"),
            ratio if ratio < 0.001 => String::from("×<0.001"),
            ratio if ratio < 0.0995 => format!("×{ratio:.3}"),
            ratio => format!("×{}", three_digits(ratio)),
        },
    }
}

fn three_digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// `one thread`, `8 threads`.
pub(crate) fn of_threads(threads: u64) -> String {
    if threads == 1 { String::from("one thread") } else { format!("{} threads", count(threads)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let shown = [0.0, 7.25, 17.0, 12_345.0, 1e6, 12.3e9].map(time);
        assert_eq!(shown, ["0 ns", "7.25 ns", "17 ns", "12.3 µs", "1.00 ms", "12.300 s"]);
        assert_eq!(one_line("a\nb\t\u{1b}[31mµ"), r"a\nb\t\u{1b}[31mµ");
        assert_eq!([0, 999, 1_000, 2_000_000].map(count), ["0", "999", "1,000", "2,000,000"]);
        let shown = [9_999, 12_345, 999_499, 999_500, 1_234_567, 2_000_000_000].map(short_count);
        assert_eq!(shown, ["9,999", "12.3 k", "999 k", "1.00 M", "1.23 M", "2.00 G"]);
        let shown = [0.0, 0.000_01, 0.003, 0.012, 0.5, 0.999, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "< 0.01 %", "0.30 %", "1.2 %", "50 %", "> 99 %", "100 %"]);
        let shown = [12, 1536, 256 << 20, 3 << 29].map(bytes);
        assert_eq!(shown, ["12 bytes", "1.50 KiB", "256 MiB", "1.50 GiB"]);
        assert_eq!([ratio(0, 0), ratio(0, 5), ratio(5, 0), ratio(4, 5)], ["–", "new", "gone", "×1.25"]);
        assert_eq!([ratio(1_000, 12), ratio(1, 5_000), ratio(5_000_000, 1)], ["×0.012", "×5000", "×<0.001"]);
    }
}
