//! Numbers as people read them.

/// A span of time, given in ns: `1.23 s`, `12.3 ms`, `45.6 µs`, `17 ns`.
#[must_use]
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 99.95e9 => format!("{:.0} s", ns / 1e9),
        ns if ns >= 0.9995e9 => format!("{} s", three_digits(ns / 1e9)),
        ns if ns >= 0.9995e6 => format!("{} ms", three_digits(ns / 1e6)),
        ns if ns >= 999.5 => format!("{} µs", three_digits(ns / 1e3)),
        ns if ns >= 9.95 || ns == ns.trunc() => format!("{ns:.0} ns"),
        ns => format!("{ns:.1} ns"),
    }
}

/// The same of a whole number; a dash of 0, since what did not happen took no time.
#[must_use]
pub fn time_or_dash(ns: u64) -> String {
    if ns == 0 { String::from("–") } else { time(ns as f64) }
}

/// A count: `1,234`; `1.23 M` from a million on.
#[must_use]
pub fn count(number: u64) -> String {
    match number {
        number if number >= 999_500_000 => format!("{} G", three_digits(number as f64 / 1e9)),
        number if number >= 1_000_000 => format!("{} M", three_digits(number as f64 / 1e6)),
        number => {
            let digits = number.to_string();
            let (first, rest) = digits.split_at(digits.len().saturating_sub(3));
            if first.is_empty() { rest.to_owned() } else { format!("{first},{rest}") }
        }
    }
}

/// A count in six columns: `1,234`, `12.3 k`, `1.23 M`.
#[must_use]
pub fn short_count(number: u64) -> String {
    if (10_000..1_000_000).contains(&number) {
        return format!("{} k", three_digits(number.min(999_499) as f64 / 1e3));
    }
    count(number)
}

/// A share as `12 %`, `1.2 %`, `0.03 %`, `< 0.01 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => String::from("0 %"),
        percent if percent < 0.01 => String::from("< 0.01 %"),
        percent if percent < 0.995 => format!("{percent:.2} %"),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        // All is said only of all.
        percent if (99.5..100.0).contains(&percent) => String::from("> 99 %"),
        percent => format!("{percent:.0} %"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let shown = [0.0, 7.25, 17.0, 999.6, 12_345.0, 1e6, 999_900_000.0, 12.3e9, 1e12].map(time);
        assert_eq!(
            shown,
            ["0 ns", "7.2 ns", "17 ns", "1.00 µs", "12.3 µs", "1.00 ms", "1.00 s", "12.3 s", "1000 s"]
        );
        let shown = [0, 999, 1_000, 999_999, 1_000_000, 2_000_000_000].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "999,999", "1.00 M", "2.00 G"]);
        assert_eq!([9_999, 12_345, 999_999].map(short_count), ["9,999", "12.3 k", "999 k"]);
        let shown = [0.0, 0.000_01, 0.003, 0.012, 0.5, 0.999, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "< 0.01 %", "0.30 %", "1.2 %", "50 %", "> 99 %", "100 %"]);
        assert_eq!([ratio(0, 0), ratio(0, 5), ratio(5, 0), ratio(4, 5)], ["–", "new", "gone", "×1.25"]);
        assert_eq!([ratio(1_000, 12), ratio(1, 5_000), ratio(5_000_000, 1)], ["×0.012", "×5000", "×<0.001"]);
    }
}
