//! Of a process that was sampled: what the holder of a lock did while threads waited, and how sure that is. In
//! sentences.

use spinpark_measure::text::units::{count, percent_in_words as percent, short_percent, time};

use crate::model::{HolderTime, Lock, Profile, Sampling};

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

/// Of fewer snapshots that found threads waiting, how waiting is divided among locks is not told.
const FEW: u64 = 10;

/// As many snapshots that found threads waiting tell of shares, as those do that did: such that find the same wait again
/// tell nothing new.
fn number(sampling: &Sampling) -> u64 {
    let found = if sampling.found == 0 { sampling.snapshots } else { sampling.found };
    if sampling.independent == 0 { found } else { found.min(sampling.independent) }
}

/// The upper end of a 95 % interval of a number of events that have a small chance each, of which so many were seen
/// (Wilson's).
fn at_most(seen: u64) -> f64 {
    let (seen, half) = (seen as f64, DEVIATIONS * DEVIATIONS / 2.0);
    seen + half + DEVIATIONS * (seen + half / 2.0).sqrt()
}

/// For which part of the time threads may have waited, if no snapshot found one.
fn unseen(sampling: &Sampling) -> f64 {
    (at_most(0) / sampling.snapshots.max(1) as f64).min(1.0)
}

/// How long threads may have waited for locks, ns: the upper end of a 95 % interval, where that was sampled.
pub(crate) fn most_waiting(profile: &Profile) -> u64 {
    let waited = profile.lock_wait();
    match &profile.sampling {
        // By one thread at a time.
        Some(sampling) if waited == 0 => (unseen(sampling) * profile.duration as f64) as u64,
        Some(sampling) if sampling.found > 0 => {
            let number = number(sampling);
            (waited as f64 * at_most(number) / number.max(1) as f64) as u64
        }
        _ => waited,
    }
}

/// Whether waiting is so seldom that too few snapshots found it to tell how it is divided among locks.
pub(crate) fn is_seldom(profile: &Profile) -> bool {
    let is_seldom = |of: &Sampling| of.found > 0 && of.found < of.snapshots / 2 && number(of) < FEW;
    profile.sampling.as_ref().is_some_and(is_seldom)
}

/// `13 snapshots are`.
pub(crate) fn snapshots_are(sampling: &Sampling) -> String {
    match sampling.snapshots {
        1 => String::from("One snapshot is"),
        number => format!("{} snapshots are", count(number)),
    }
}

/// `From 500 snapshots, 20 ms apart: a share of 50 % is known to ± 4.4 %. How often threads waited is not known.`
///
/// Only snapshots that found threads waiting tell of shares of the waiting; and those that find the same wait again tell
/// nothing new.
pub(crate) fn how_sure(profile: &Profile) -> Option<String> {
    const MOST: f64 = 0.5;
    let sampling = profile.sampling.as_ref()?;
    let found = match sampling.found {
        0 if profile.lock_wait() == 0 => String::from(", none of which found a thread that waits for a lock"),
        1 => String::from(", 1 of which found threads that wait for locks"),
        found if found > 0 && found < sampling.snapshots => {
            format!(", {} of which found threads that wait for locks", count(found))
        }
        _ => String::new(),
    };
    let how = if profile.lock_wait() == 0 {
        format!("threads may have waited in {} of the time at most", short_percent(unseen(sampling)))
    } else if is_seldom(profile) {
        String::from("too few to tell how waiting is divided among locks")
    } else {
        let error = (DEVIATIONS * (0.25 / number(sampling).max(1) as f64).sqrt()).min(MOST);
        format!("a share of 50 % is known to ± {}", percent(error))
    };
    let from = match sampling.snapshots {
        1 => String::from("1 snapshot"),
        number => format!("{} snapshots, {} apart", count(number), time(sampling.interval as f64)),
    };
    Some(format!("From {from}{found}: {how}. How often threads waited is not known."))
}

#[cfg(test)]
mod tests {
    use super::{how_sure, is_seldom, most_waiting};
    use crate::model::{Lock, Profile, Role, RoleStats, Sampling, Times};

    fn sampled(found: u64, independent: u64) -> Profile {
        let sampling =
            Sampling { interval: 20_000_000, snapshots: 400, found, independent, ..Sampling::default() };
        let wait = Times { total: 1_000, ..Times::default() };
        let roles = vec![RoleStats { role: Role::Write, wait, ..RoleStats::default() }];
        let locks = vec![Lock { id: 1, roles, ..Lock::default() }];
        Profile { duration: 8_000_000_000, sampling: Some(sampling), locks, ..Profile::default() }
    }

    #[test]
    fn shares_of_what_was_found() {
        let of = |found: u64| {
            let text = how_sure(&sampled(found, 0)).expect("it is sampled");
            text.split(". ").next().expect("a sentence").to_owned()
        };
        assert_eq!(of(400), "From 400 snapshots, 20.0 ms apart: a share of 50 % is known to ± 4.9 %");
        let some = ", 25 of which found threads that wait for locks: a share of 50 % is known to ± 20 %";
        assert_eq!(of(25), format!("From 400 snapshots, 20.0 ms apart{some}"));
        assert!(how_sure(&sampled(400, 25)).is_some_and(|text| text.contains("± 20 %")));
        // Older files do not have it.
        assert_eq!(of(0), of(400));
    }

    #[test]
    fn few_snapshots_do_not_tell() {
        for found in [1, 9] {
            assert!(is_seldom(&sampled(found, 0)));
            let text = how_sure(&sampled(found, 0)).expect("it is sampled");
            assert!(text.contains(": too few to tell how waiting is divided among locks."), "{text}");
        }
        assert!(!is_seldom(&sampled(10, 0)) && is_seldom(&sampled(100, 9)));
        // A thread that waits all the time does so in every snapshot, be they few.
        assert!(!is_seldom(&sampled(400, 1)));
    }

    #[test]
    fn what_no_snapshot_found_may_have_been() {
        let none = Profile { locks: Vec::new(), ..sampled(0, 0) };
        let text = how_sure(&none).expect("it is sampled");
        let said = "none of which found a thread that waits for a lock: threads may have waited in 0.96 % of the time at most";
        assert!(text.contains(said), "{text}");
        // 3.84 of 400 snapshots.
        assert!((76_000_000..78_000_000).contains(&most_waiting(&none)), "{}", most_waiting(&none));
        // Of 100, 122; of 1, 5.7; of what was recorded, as much.
        assert!((1_200..1_230).contains(&most_waiting(&sampled(100, 0))));
        assert!((5_600..5_700).contains(&most_waiting(&sampled(1, 0))));
        let recorded = Profile { sampling: None, ..sampled(1, 0) };
        assert_eq!(most_waiting(&recorded), 1_000);
    }
}
