//! The columns of FreeBSD's `debug.lock.prof.stats` (LOCK_PROFILING(9)).
//!
//! Times are µs. As there, `wait_avg` is the time waited ÷ *all* acquisitions, and a row is a lock at a call
//! site. `cnt_lock` counts the waits at the site; `cnt_hold` counts the waits of other threads while the lock
//! was held from the site, which FreeBSD documents and prints as 0.

use super::{Style, sites};
use crate::fit::{fit, fit_all};
use crate::model::Profile;
use crate::names::Names;

const HEADER: [&str; 10] =
    ["max", "wait_max", "total", "wait_total", "count", "avg", "wait_avg", "cnt_hold", "cnt_lock", "name"];

/// All rows, the longest total wait first: for `sort -n -k 4 -r` and the like.
#[must_use]
pub fn freebsd(profile: &Profile, style: Style) -> String {
    let names = Names::of(&profile.call_sites);
    let mut sites = sites::all(profile);
    sites.sort_by_key(|(_, _, site)| std::cmp::Reverse(site.wait_total));
    let rows: Vec<([String; 9], String, String)> = sites
        .into_iter()
        .map(|(lock, role, site)| {
            let us = |ns: u64| (ns as f64 / 1e3).round() as u64;
            // Waits that timed out are no acquisitions, but count here.
            let count = site.acquisitions.max(site.contended);
            let mean = |ns: u64, count: u64| us(ns.checked_div(count).unwrap_or(0));
            let call_site = names.position(site.call_site);
            let kind = match role {
                crate::model::Role::Read => "read",
                crate::model::Role::Back => "back",
                _ => lock.kind.noun(),
            };
            // The row has the kind already.
            let label = ["of ", "in "].iter().find_map(|word| {
                lock.label.strip_prefix(lock.kind.noun())?.strip_prefix(' ')?.strip_prefix(word)
            });
            let numbers = [
                us(site.hold.measured.longest).to_string(),
                us(site.wait_longest).to_string(),
                us(site.hold.total).to_string(),
                us(site.wait_total).to_string(),
                count.to_string(),
                mean(site.hold.measured.total, site.hold.measured.count).to_string(),
                mean(site.wait_total, count).to_string(),
                site.blocked.to_string(),
                site.contended.to_string(),
            ];
            (numbers, format!("{call_site} ({kind}:"), label.unwrap_or(&lock.label).to_owned())
        })
        .collect();
    let widths: Vec<usize> = (0..9)
        .map(|column| {
            let widest = rows.iter().map(|(numbers, ..)| numbers[column].len()).max().unwrap_or(0);
            widest.max(HEADER[column].len())
        })
        .collect();
    let numbers = |cells: &[String]| -> String {
        cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$} ")).collect()
    };
    let header = HEADER.map(String::from);
    let header = numbers(&header[..9]) + &header[9] + "\n";
    let room = style.width.saturating_sub(widths.iter().sum::<usize>() + 9).max(24);
    let left = |call_site: &str| room.saturating_sub(call_site.chars().count() + 1);
    let labels = fit_all(rows.iter().map(|(_, call_site, label)| (label.as_str(), left(call_site))));
    rows.iter().zip(labels).fold(header, |text, ((cells, call_site, label), fitted)| {
        let name = match left(call_site) {
            8.. => format!("{call_site}{fitted})"),
            _ => fit(&format!("{call_site}{label})"), room),
        };
        text + &numbers(cells) + &name + "\n"
    })
}
