//! Waiters and holders: sites that waited × sites that held the lock, by time waited.
//!
//! Stacks with the same innermost function and line are one site here. Waiting for signals is left out: it
//! has no holder.

use std::collections::HashMap;

use serde::Serialize;

use super::{caption, exact, span};
use crate::model::Profile;
use crate::names::{FREE, Names, UNKNOWN};

/// The most waiting sites, and the most holding ones, that have a row or column of their own.
const SITES: usize = 20;
/// Shades of cells.
const SHADES: f64 = 9.0;

const OTHERS: &str = "others";

/// The matrix.
#[derive(Serialize)]
pub(super) struct Matrix {
    columns: Vec<String>,
    rows: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    waiter: String,
    total: u64,
    cells: Vec<Cell>,
}

#[derive(Serialize, Clone)]
struct Cell {
    total: u64,
    shade: u32,
    title: String,
}

#[derive(Default, Clone, Copy)]
struct Sum {
    count: u64,
    total: u64,
    longest: u64,
}

/// The matrix, if anything waited.
pub(super) fn matrix(profile: &Profile) -> Option<Matrix> {
    let names = Names::of(&profile.call_sites);
    let name = |call_site: usize| caption(&names, Some(call_site)).text;
    let pairs: Vec<(String, String, Sum)> = profile
        .pairs
        .iter()
        .filter(|pair| pair.role.has_holder())
        .flat_map(|pair| {
            let sum = Sum { count: pair.count, total: pair.held(), longest: pair.wait_longest };
            let at = if pair.is_release { " (release)" } else { "" };
            let holder = pair.holder.map_or_else(|| String::from(UNKNOWN), |holder| name(holder) + at);
            let free = Sum { count: 0, total: pair.free, longest: pair.free };
            let free = (pair.free > 0).then(|| (name(pair.waiter), FREE.to_owned(), free));
            [Some((name(pair.waiter), holder, sum)), free].into_iter().flatten()
        })
        .collect();
    let waiters = largest(pairs.iter().map(|(waiter, _, sum)| (waiter.as_str(), sum.total)));
    let holders = largest(pairs.iter().map(|(_, holder, sum)| (holder.as_str(), sum.total)));
    let mut sums = vec![vec![Sum::default(); holders.len()]; waiters.len()];
    let place =
        |names: &[&str], name: &str| names.iter().position(|known| *known == name).unwrap_or(names.len() - 1);
    for (waiter, holder, sum) in &pairs {
        let cell = &mut sums[place(&waiters, waiter)][place(&holders, holder)];
        cell.count += sum.count;
        cell.total += sum.total;
        cell.longest = cell.longest.max(sum.longest);
    }
    let highest = sums.iter().flatten().map(|sum| sum.total).max().filter(|total| *total > 0)?;
    let cell = |waiter: &str, holder: &str, sum: &Sum| Cell {
        total: sum.total,
        // The square root: half of the largest should differ from it, and a hundredth should still be
        // visible.
        shade: ((sum.total as f64 / highest as f64).sqrt() * SHADES).ceil() as u32,
        title: format!(
            "{waiter} waited for {holder}: {} waits, total {}, longest {}",
            sum.count,
            exact(sum.total),
            span(sum.longest)
        ),
    };
    let rows = waiters.iter().zip(&sums).map(|(waiter, sums)| Line {
        waiter: (*waiter).to_owned(),
        total: sums.iter().map(|sum| sum.total).sum(),
        cells: holders.iter().zip(sums).map(|(holder, sum)| cell(waiter, holder, sum)).collect(),
    });
    Some(Matrix {
        rows: rows.collect(),
        columns: holders.iter().map(|holder| (*holder).to_owned()).collect(),
    })
}

/// The names with the largest sums, those first; the others together are one more.
fn largest<'a>(named: impl Iterator<Item = (&'a str, u64)>) -> Vec<&'a str> {
    let mut sums: HashMap<&str, u64> = HashMap::new();
    for (name, total) in named {
        *sums.entry(name).or_default() += total;
    }
    let mut sorted: Vec<(&str, u64)> = sums.into_iter().collect();
    sorted.sort_by_key(|(name, total)| (std::cmp::Reverse(*total), *name));
    let mut names: Vec<&str> = sorted.iter().take(SITES).map(|(name, _)| *name).collect();
    if sorted.len() > SITES {
        names.push(OTHERS);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_is_others() {
        let names: Vec<String> = (0..30).map(|number| format!("site {number:02}")).collect();
        let chosen = largest(names.iter().zip(0..).map(|(name, total)| (name.as_str(), total)));
        assert_eq!((chosen.len(), chosen[0], chosen[19], chosen[20]), (21, "site 29", "site 10", OTHERS));
    }
}
