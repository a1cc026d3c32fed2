//! The columns of FreeBSD's `debug.lock.prof.stats` (LOCK_PROFILING(9)).
//!
//! Times are µs. As there, `wait_avg` is the time waited ÷ *all* acquisitions, and a row is a lock at a place. `cnt_lock` is
//! how often somebody had to wait there; `cnt_hold` is how often somebody else had to wait while it was held from there,
//! which FreeBSD documents and prints as 0.

use super::sites;
use crate::model::Profile;

const HEADER: [&str; 10] =
    ["max", "wait_max", "total", "wait_total", "count", "avg", "wait_avg", "cnt_hold", "cnt_lock", "name"];

/// All rows, the longest wait in all first: for `sort -n -k 4 -r` and the like. As wide as the names are.
#[must_use]
pub fn freebsd(profile: &Profile) -> String {
    let mut sites = sites::all(profile);
    sites.sort_by_key(|(_, _, site)| std::cmp::Reverse(site.wait_total));
    let rows: Vec<[String; 10]> = sites
        .into_iter()
        .map(|(lock, role, site)| {
            let us = |ns: u64| (ns as f64 / 1e3).round() as u64;
            // Who gave up was there, too.
            let count = site.acquisitions.max(site.contended);
            let mean = |ns: u64, count: u64| us(ns.checked_div(count).unwrap_or(0));
            let frame = profile.places.get(site.place).and_then(|place| place.frames.first());
            let place = frame.map_or_else(|| String::from("?"), crate::model::Frame::position);
            let kind = match role {
                crate::model::Role::Read => "rwlock read",
                crate::model::Role::Back => "condvar back",
                _ => lock.kind.noun(),
            };
            [
                us(site.hold.measured.longest).to_string(),
                us(site.wait_longest).to_string(),
                us(site.hold.total).to_string(),
                us(site.wait_total).to_string(),
                count.to_string(),
                mean(site.hold.measured.total, site.hold.measured.count).to_string(),
                mean(site.wait_total, count).to_string(),
                site.blocked.to_string(),
                site.contended.to_string(),
                format!("{place} ({kind}:{})", lock.label),
            ]
        })
        .collect();
    let widths: Vec<usize> = (0..9)
        .map(|column| {
            let widest = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
            widest.max(HEADER[column].len())
        })
        .collect();
    let line = |cells: &[String]| {
        let numbers = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$} "));
        numbers.collect::<String>() + &cells[9] + "\n"
    };
    let header = line(&HEADER.map(String::from));
    rows.iter().fold(header, |text, row| text + &line(row))
}
