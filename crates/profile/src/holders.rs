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
pub(crate) fn how_sure(profile: &Profile) -> Option<String> {
    let sampling = profile.sampling.as_ref()?;
    let error = DEVIATIONS * (0.25 / sampling.snapshots.max(1) as f64).sqrt();
    Some(format!(
        "From {} snapshots, {} apart: a share of 50 % is known to ± {}. How often threads waited is not known.",
        count(sampling.snapshots),
        time(sampling.interval as f64),
        percent(error)
    ))
}
