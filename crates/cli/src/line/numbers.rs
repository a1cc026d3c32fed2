//! Numbers on the command line. An error is a sentence with an example.

use std::ops::RangeInclusive;

/// Numbers of threads, clients or tasks: more is taken for a typing error.
pub const THREADS: RangeInclusive<u64> = 1..=4096;
/// How often something is repeated. That an interval needs 6 rounds has its own message.
pub const ROUNDS: RangeInclusive<u64> = 0..=100_000;
/// How many seeds there are.
pub const SEEDS: RangeInclusive<u64> = 1..=100_000;

/// A number of threads of the simulator.
pub fn threads(text: &str) -> Result<u32, String> {
    whole(1..=u32::MAX.into(), 64)(text)
}

/// A factor above 0: `1.7`.
pub fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| String::from("write a number above 0, as in 1.7"))
}

/// A parser of whole numbers in `range`, of which `example` is one.
pub fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
    example: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    const UNBOUNDED: u64 = u32::MAX as u64;
    move |text| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(format!("write a whole number, as in {example}"));
        }
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number: u64| T::try_from(number).ok()).ok_or_else(|| {
            match (*range.start(), *range.end()) {
                // No other bound than that of the type.
                (0, UNBOUNDED..) => format!("the number is too large; use a smaller one, as in {example}"),
                (least, UNBOUNDED..) => format!("the number must be at least {least}, as in {example}"),
                (least, most) => format!("the number must be from {least} to {most}, as in {example}"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors() {
        assert_eq!([factor("1.7"), factor("3")], [Ok(1.7), Ok(3.0)]);
        for bad in ["", "0", "-1", "NaN", "inf", "1,7", "twice"] {
            assert!(factor(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_and_what_is_wrong_with_others() {
        let rounds = whole::<usize>(1..=1000, 10);
        assert_eq!([rounds("1"), rounds("007"), rounds("1000")], [Ok(1), Ok(7), Ok(1000)]);
        for bad in ["", "abc", "1.5", "-1", "+1", "1e3", " 1"] {
            assert_eq!(rounds(bad).unwrap_err(), "write a whole number, as in 10", "{bad}");
        }
        for bad in ["0", "1001", "99999999999999999999999"] {
            assert_eq!(rounds(bad).unwrap_err(), "the number must be from 1 to 1000, as in 10", "{bad}");
        }
        assert_eq!(
            whole::<usize>(1..=u64::MAX, 20)("0").unwrap_err(),
            "the number must be at least 1, as in 20"
        );
        assert!(whole::<u64>(0..=u64::MAX, 1)("99999999999999999999999").unwrap_err().contains("too large"));
        assert!(whole::<u16>(0..=1000, 100)("70000").unwrap_err().contains("from 0 to 1000"));
    }
}
