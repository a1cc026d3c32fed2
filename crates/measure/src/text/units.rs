//! Numbers as people read them.

/// A span of time: `1.234 s`, `12.3 ms`, `45.6 µs`, `17.7 ns`.
#[must_use]
pub fn seconds(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.1} s"),
        v if v >= 1.0 => format!("{value:.3} s"),
        v if v >= 1e-3 => format!("{} ms", three_digits(value * 1e3)),
        v if v >= 1e-6 => format!("{} µs", three_digits(value * 1e6)),
        _ => format!("{} ns", three_digits(value * 1e9)),
    }
}

/// A span of time, given in ns: as [`seconds`], but whole below 1 µs: `17 ns`.
#[must_use]
pub fn time(ns: f64) -> String {
    if ns == ns.trunc() && ns < 1_000.0 { format!("{ns:.0} ns") } else { seconds(ns / 1e9) }
}

/// The same for a whole number; a dash for 0.
#[must_use]
pub fn time_or_dash(ns: u64) -> String {
    if ns == 0 { String::from("–") } else { time(ns as f64) }
}

/// A CPU time per operation. The kernel counts in ticks: where it counted none, the time is not zero, but
/// less than one.
#[must_use]
pub fn per_operation(value: f64) -> String {
    if value == 0.0 { String::from("< tick") } else { seconds(value) }
}

/// An amount of memory: `812 KiB`, `12.3 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    const STEP: f64 = 1024.0;
    match value {
        v if v >= STEP * STEP * STEP => format!("{} GiB", three_digits(v / STEP / STEP / STEP)),
        v if v >= STEP * STEP => format!("{} MiB", three_digits(v / STEP / STEP)),
        v => format!("{:.0} KiB", v / STEP),
    }
}

/// A length of memory or files that was asked for, with as few digits as it has: `12 bytes`, `64 MiB`,
/// `1.50 GiB`.
#[must_use]
pub fn size(number: u64) -> String {
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

/// A count: `12,345`; with decimals below 100.
#[must_use]
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude > 0.0 && !(1e-4..1e15).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    match magnitude {
        v if v >= 100.0 => thousands(value.round()),
        v if v == v.trunc() => format!("{value:.0}"),
        v if v >= 0.01 => three_digits(value),
        _ => format!("{value:.6}"),
    }
}

/// A whole count: `1,234,567`.
#[must_use]
pub fn count(number: u64) -> String {
    self::number(number as f64)
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

/// How many of something: `1 cell`, `2 cells`.
#[must_use]
pub fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A ratio as a change: `-20.5 %`, `+3.1 %`; `×12.3` where a percentage is hard to read.
#[must_use]
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() {
        _ if ratio >= 10.0 => format!("×{}", three_digits(ratio)),
        p if p < 0.05 => String::from("0.0 %"),
        p if p >= 99.95 => format!("{percent:+.0} %"),
        _ => format!("{percent:+.1} %"),
    }
}

/// Two ratios as an interval of changes: `[-2.0 %, +3.1 %]`.
#[must_use]
pub fn interval(low: f64, high: f64) -> String {
    format!("[{}, {}]", change(low), change(high))
}

/// A fraction as `1.2 %`.
#[must_use]
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent >= 100.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// A fraction with as many decimals as it has, and one at least, such as a bound that a user has written: `5.0 %`, `0.01 %`.
#[must_use]
pub fn exact_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    format!("{percent:.0$} %", decimals(percent))
}

/// A figure that is compared with the bound `with`, with as many decimals: `0.034 %`, where that is `0.005 %`.
#[must_use]
pub fn percent_beside(fraction: f64, with: f64) -> String {
    let percent = fraction * 100.0;
    if percent >= 100.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.0$} %", decimals(with * 100.0))
    }
}

/// How many decimals a number of percent has that was written in decimals: 1 to 12, and none is needed from 100 on.
fn decimals(number: f64) -> usize {
    const MOST: usize = 12;
    let least = usize::from(number < 100.0);
    let is_exact = |decimals: &usize| {
        let shown: f64 = format!("{number:.decimals$}").parse().unwrap_or(f64::NAN);
        // It was a hundredth of it, which is not exact.
        (shown - number).abs() <= number.abs() * 1e-12
    };
    (least..MOST).find(is_exact).unwrap_or(MOST)
}

/// A share of a whole as `12 %`, `1.2 %`, `0.03 %`, `< 0.01 %`. 100 % is exact: what is less is `> 99 %`.
#[must_use]
pub fn short_percent(part: f64) -> String {
    let (bound, percent) = bounded_percent(part);
    let sign = bound.map_or("", |bound| if bound == Bound::Above { "> " } else { "< " });
    format!("{sign}{percent}")
}

/// The same within a sentence: `12 %`, `less than 0.01 %`, `more than 99 %`.
#[must_use]
pub fn percent_in_words(part: f64) -> String {
    let (bound, percent) = bounded_percent(part);
    let words = bound.map_or("", |bound| if bound == Bound::Above { "more than " } else { "less than " });
    format!("{words}{percent}")
}

/// On which side of a number that is shown the exact one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Above,
    Below,
}

fn bounded_percent(part: f64) -> (Option<Bound>, String) {
    match part * 100.0 {
        0.0 => (None, String::from("0 %")),
        percent if percent < 0.01 => (Some(Bound::Below), String::from("0.01 %")),
        percent if percent < 0.995 => (None, format!("{percent:.2} %")),
        percent if percent < 9.95 => (None, format!("{percent:.1} %")),
        percent if (99.5..100.0).contains(&percent) => (Some(Bound::Above), String::from("99 %")),
        percent => (None, format!("{percent:.0} %")),
    }
}

/// A number with at least three digits: `0.12`, `12.3`, `1234`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::from(if value < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        let shown = [123.4, 1.2345, 0.0123, 0.000_045_6, 17.7e-9].map(seconds);
        assert_eq!([per_operation(0.0), per_operation(1e-6)], ["< tick", "1.00 µs"]);
        assert_eq!(shown, ["123.4 s", "1.234 s", "12.3 ms", "45.6 µs", "17.7 ns"]);
        let shown = [0.0, 7.25, 17.0, 12_345.0, 1e6, 12.3e9].map(time);
        assert_eq!(shown, ["0 ns", "7.25 ns", "17 ns", "12.3 µs", "1.00 ms", "12.300 s"]);
    }

    #[test]
    fn amounts() {
        assert_eq!(bytes(831_488.0), "812 KiB");
        assert_eq!(bytes(12.3 * 1024.0 * 1024.0), "12.3 MiB");
        assert_eq!([0, 1, 2].map(|cells| counted(cells, "cell")), ["0 cells", "1 cell", "2 cells"]);
        let shown = [12, 1536, 256 << 20, 3 << 29].map(size);
        assert_eq!(shown, ["12 bytes", "1.50 KiB", "256 MiB", "1.50 GiB"]);
        assert_eq!([0, 999, 1_000, 2_000_000].map(count), ["0", "999", "1,000", "2,000,000"]);
        let shown = [9_999, 12_345, 999_499, 999_500, 1_234_567, 2_000_000_000].map(short_count);
        assert_eq!(shown, ["9,999", "12.3 k", "999 k", "1.00 M", "1.23 M", "2.00 G"]);
        assert_eq!(number(1_234_567.4), "1,234,567");
        assert_eq!(number(123_456.0), "123,456");
        assert_eq!(number(12.345), "12.3");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(99.0), "99");
        assert_eq!(number(1.5e18), "1.500e18");
    }

    #[test]
    fn changes() {
        assert_eq!(change(0.795), "-20.5 %");
        assert_eq!(change(1.031), "+3.1 %");
        assert_eq!(change(2.487), "+149 %");
        assert_eq!(change(12.34), "×12.3");
        assert_eq!([change(0.9999), change(1.0), change(1.0001)], ["0.0 %"; 3]);
        assert_eq!(interval(0.98, 1.031), "[-2.0 %, +3.1 %]");
        assert_eq!(percent(0.012), "1.2 %");
        let bounds = ["5", "0.01", "0.5", "12.345", "0.0003", "0", "100", "2.3", "0.07"];
        let as_read = |bound: &str| bound.parse::<f64>().unwrap() / 100.0;
        assert_eq!(
            bounds.map(|bound| exact_percent(as_read(bound))),
            ["5.0 %", "0.01 %", "0.5 %", "12.345 %", "0.0003 %", "0.0 %", "100 %", "2.3 %", "0.07 %"]
        );
        let beside = [0.000_12, 0.5, 1.0, 1.5].map(|share| percent_beside(share, as_read("0.01")));
        assert_eq!(beside, ["0.01 %", "50.00 %", "100 %", "150 %"]);
        let shown = [0.0, 0.000_01, 0.003, 0.012, 0.5, 0.999, 1.0].map(short_percent);
        assert_eq!(shown, ["0 %", "< 0.01 %", "0.30 %", "1.2 %", "50 %", "> 99 %", "100 %"]);
        assert_eq!(
            [0.000_01, 0.5, 0.999].map(percent_in_words),
            ["less than 0.01 %", "50 %", "more than 99 %"]
        );
    }
}
