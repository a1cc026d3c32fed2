//! Of a process that was sampled: what the holder of a lock did while threads waited, and how sure that is. In
//! sentences.

use spinpark_measure::text::units::{count, percent_in_words as percent, short_percent, time};

use crate::model::{HolderTime, Lock, Profile};

/// What it did for less of the time than this is not said,
const LITTLE: f64 = 0.05;
/// nor more than this many things.
const NAMED: usize = 4;
/// Of the normal distribution: 95 % lie within so many standard deviations.
const DEVIATIONS: f64 = 1.96;

/// What the holder of a lock did most while threads waited for it, and for which share of that time.
pub(crate) fn most<'a>(profile: &'a Profile, lock: &Lock) -> Option<(&'a HolderTime, f64)> {
    let of_it =
        || profile.sampling.iter().flat_map(|sampling| &sampling.holders).filter(|it| it.lock == lock.id);
    let all = of_it().map(|holder| holder.time).sum::<u64>().max(1) as f64;
    let first = of_it().max_by_key(|holder| holder.time)?;
    Some((first, first.time as f64 / all))
}

/// `While threads waited for it, its holder was in `fsync` in `flush` (82 %), ran, or was ready to (18 %).`
pub(crate) fn meanwhile(profile: &Profile, top: &Lock) -> Option<String> {
    let sampling = profile.sampling.as_ref()?;
    let of_it = || sampling.holders.iter().filter(|holder| holder.lock == top.id);
    let all = of_it().map(|holder| holder.time).sum::<u64>().max(1) as f64;
    let part = |holder: &HolderTime| holder.time as f64 / all;
    let parts: Vec<String> = of_it()
        .filter(|holder| part(holder) >= LITTLE)
        .take(NAMED)
        .map(|holder| format!("{} ({})", holder.doing, short_percent(part(holder))))
        .collect();
    (!parts.is_empty()).then(|| format!("While threads waited for it, its holder {}.", parts.join(", ")))
}

/// `From 500 snapshots, 20 ms apart: a share of 50 % is known to ± 4.4 %. How often threads waited is not known.`
///
/// Only snapshots that found threads waiting tell of shares of the waiting; and those that find the same wait again tell
/// nothing new.
pub(crate) fn how_sure(profile: &Profile) -> Option<String> {
    const MOST: f64 = 0.5;
    let sampling = profile.sampling.as_ref()?;
    let (number, found) = match sampling.found {
        0 => (sampling.snapshots, String::new()),
        1 => (1, String::from(", 1 of which found threads that wait for locks")),
        found if found < sampling.snapshots => {
            (found, format!(", {} of which found threads that wait for locks", count(found)))
        }
        found => (found, String::new()),
    };
    let number = match sampling.independent {
        0 => number,
        independent => number.min(independent),
    };
    let error = (DEVIATIONS * (0.25 / number.max(1) as f64).sqrt()).min(MOST);
    Some(format!(
        "From {} snapshots, {} apart{found}: a share of 50 % is known to ± {}. How often threads waited is not known.",
        count(sampling.snapshots),
        time(sampling.interval as f64),
        percent(error)
    ))
}

#[cfg(test)]
mod tests {
    use super::how_sure;
    use crate::model::{Profile, Sampling};

    #[test]
    fn shares_of_what_was_found() {
        let of = |found: u64| {
            let sampling = Sampling { interval: 20_000_000, snapshots: 400, found, ..Sampling::default() };
            let profile = Profile { sampling: Some(sampling), ..Profile::default() };
            let text = how_sure(&profile).expect("it is sampled");
            text.split(". ").next().expect("a sentence").to_owned()
        };
        assert_eq!(of(400), "From 400 snapshots, 20.0 ms apart: a share of 50 % is known to ± 4.9 %");
        let some = ", 25 of which found threads that wait for locks: a share of 50 % is known to ± 20 %";
        assert_eq!(of(25), format!("From 400 snapshots, 20.0 ms apart{some}"));
        // Nothing.
        assert!(of(1).ends_with("± 50 %"));
        let alike = Sampling { snapshots: 400, found: 400, independent: 25, ..Sampling::default() };
        let profile = Profile { sampling: Some(alike), ..Profile::default() };
        assert!(how_sure(&profile).is_some_and(|text| text.contains("± 20 %")));
        // Older files do not have it.
        assert_eq!(of(0), of(400));
    }
}
