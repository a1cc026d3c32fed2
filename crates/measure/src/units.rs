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

fn three_digits(value: f64) -> String {
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
    }

    #[test]
    fn amounts() {
        assert_eq!(bytes(831_488.0), "812 KiB");
        assert_eq!(bytes(12.3 * 1024.0 * 1024.0), "12.3 MiB");
        assert_eq!([0, 1, 2].map(|cells| counted(cells, "cell")), ["0 cells", "1 cell", "2 cells"]);
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
    }
}
