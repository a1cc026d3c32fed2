//! Quantities on the command line: durations and sizes, with their units.

use std::time::Duration;

/// A number and its unit.
fn split(text: &str) -> (&str, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim())
}

/// `500ms`, `10s`, `2min`: longer than 0.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        "" => return Err(String::from("the unit is missing: write ns, us, ms, s, min or h, as in 20ms")),
        _ => {
            return Err(format!("`{unit}` is not a unit of time; use ns, us, ms, s, min or h, as in 20ms"));
        }
    };
    let number: f64 =
        number.parse().map_err(|_| String::from("a number and a unit are needed, as in 20ms"))?;
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| String::from("the time must be longer than 0"))
}

/// A point in time after a start: as [`duration`], and 0 is one, too.
pub fn from_start(text: &str) -> Result<Duration, String> {
    match text.trim_end_matches(char::is_alphabetic).parse::<f64>() {
        Ok(0.0) => Ok(Duration::ZERO),
        _ => duration(text),
    }
}

/// A parser of durations from `low` to `high`.
pub fn between(
    low: &'static str,
    high: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    move |text| {
        let time = duration(text)?;
        match (duration(low)?..=duration(high)?).contains(&time) {
            true => Ok(time),
            false => Err(format!("the time must be from {low} to {high}")),
        }
    }
}

/// A parser of durations from 1 ms to `high`, in whole milliseconds, which is what benchmark runs count in.
pub fn whole_ms(high: &'static str) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    let parse = between("1ms", high);
    move |text| {
        let time = parse(text)?;
        match time.subsec_nanos() % 1_000_000 {
            0 => Ok(time),
            _ => Err(String::from("the time must be a whole number of milliseconds")),
        }
    }
}

/// A duration that [`whole_ms`] has read, in milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A duration in nanoseconds.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// `5%`, `0.5 %`, as a fraction.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    match number {
        Some(number) if (0.0..=100.0).contains(&number) => Ok(number / 100.0),
        Some(_) => Err(String::from("the percentage must be from 0% to 100%")),
        None => Err(String::from("write a percentage, as in 5%")),
    }
}

/// The smallest bound: one process needs this much.
const LEAST_SIZE: u64 = 1 << 20;

/// `64MiB`, `1GiB`; a number alone is bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        other => return Err(format!("`{other}` is not a unit of size; use KiB, MiB or GiB, as in 64MiB")),
    };
    let number: f64 = number.parse().map_err(|_| "a number and a unit are needed, as in 64MiB".to_owned())?;
    let size = number * unit;
    if size < LEAST_SIZE as f64 {
        return Err("one process needs at least 1MiB".to_owned());
    }
    Ok(size.min(u64::MAX as f64 / 4.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        let known = ["200ms", "1s", "1.5us", "3 ns", "2µs"].map(|text| duration(text).unwrap().as_nanos());
        assert_eq!(known, [200_000_000, 1_000_000_000, 1_500, 3, 2_000]);
        for bad in ["", "s", "ms", "20", "1.5", "10 parsecs", "0s", "0ms", "-1s", "-1ms", "1e400s", "1.2.3ms"]
        {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_within_bounds() {
        let virtual_time = between("1ns", "1000s");
        assert_eq!(virtual_time("1000s"), Ok(Duration::from_secs(1000)));
        for bad in ["1h", "5000s", "0.1ns", "20"] {
            assert!(virtual_time(bad).is_err(), "{bad}");
        }
        let run = whole_ms("60s");
        assert_eq!(run("1.5s").map(millis), Ok(1500));
        for (bad, why) in [("1.5ms", "whole"), ("999us", "from 1ms"), ("61s", "to 60s"), ("200", "20ms")] {
            assert!(run(bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(["5%", "0.5 %", "0%", "100%"].map(percent), [Ok(0.05), Ok(0.005), Ok(0.0), Ok(1.0)]);
        for bad in ["5", "", "%", "five%", "-1%", "101%", "NaN%", "inf%"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("1.5g"), Ok(3 << 29));
        assert_eq!(size("2048 kb"), Ok(2 << 20));
        assert_eq!(size("1048576"), Ok(1 << 20));
        for bad in ["", "MiB", "10 sacks", "0", "-1MiB", "1KiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
