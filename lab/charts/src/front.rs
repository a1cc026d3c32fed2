//! Throughput and CPU time, over all cells of a plane: what each lock costs, and which ones no other beats in
//! both.
//!
//! Those are the Pareto front: a program that has CPUs to spare takes its fast end, one that shares them its
//! cheap end. For a lock that is not on it, another lock has more throughput at less CPU time.

use serde::{Deserialize, Serialize};

use crate::plot::{Place, Plane, Undrawable};
use spinpark_measure::report::{Style, distinct, table, text};
use spinpark_measure::stats::geometric_mean;

/// What one lock did in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Operations per second.
    pub throughput: f64,
    /// CPU time of all threads per operation, ns.
    pub cpu_ns: f64,
}

impl Entry<'_> {
    /// Something was done, and the time of doing it was counted.
    fn has_figures(&self) -> bool {
        [self.throughput, self.cpu_ns].iter().all(|figure| figure.is_finite() && *figure > 0.0)
    }
}

/// CPU time an operation, relative to others in the same cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// ÷ that of the lock with the highest throughput.
    pub of_fastest: f64,
    /// ÷ that of the lock that sleeps at once, if it is there.
    pub of_sleeper: Option<f64>,
}

/// What `name` did, if that has figures.
fn found<'a>(cell: &[Entry<'a>], name: &str) -> Option<Entry<'a>> {
    cell.iter().find(|entry| entry.name == name && entry.has_figures()).copied()
}

/// The price of `name` in a cell; none if it did nothing there.
#[must_use]
pub fn price(cell: &[Entry<'_>], name: &str, sleeper: Option<&str>) -> Option<Price> {
    let cpu = |name: &str| Some(found(cell, name)?.cpu_ns);
    let own = cpu(name)?;
    let fastest = cell
        .iter()
        .filter(|entry| entry.has_figures())
        .max_by(|a, b| a.throughput.total_cmp(&b.throughput))?;
    Some(Price {
        of_fastest: own / fastest.cpu_ns,
        of_sleeper: sleeper.and_then(cpu).map(|sleeper| own / sleeper),
    })
}

/// What one lock does over all cells: geometric means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Its name.
    pub name: String,
    /// Throughput ÷ that of the fastest lock of each cell.
    pub throughput: f64,
    /// CPU time an operation.
    pub cpu_time: Price,
    /// No other is as fast for less CPU time, or faster for as much.
    pub is_front: bool,
    /// Its number among all locks, which decides its colour.
    #[serde(skip)]
    number: usize,
}

/// Locks that ran in the same cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Front {
    /// How many cells.
    pub cells: usize,
    /// The lock that sleeps at once, if it is among them.
    pub sleeper: Option<String>,
    /// The locks, the fastest first.
    pub locks: Vec<Mean>,
}

/// The fronts of some cells: locks that have figures in the same cells are compared with each other, for a
/// mean over easier cells is a better one. `sleepers` are the names of locks that sleep at once; the first
/// one that is there is it. The largest group comes first; groups of one lock are left out.
#[must_use]
pub fn fronts(cells: &[Vec<Entry<'_>>], sleepers: &[&str]) -> Vec<Front> {
    let names = distinct(cells.iter().flatten().map(|entry| entry.name));
    let cells_of = |name: &str| -> Vec<usize> {
        (0..cells.len()).filter(|&cell| found(&cells[cell], name).is_some()).collect()
    };
    let mut groups: Vec<(Vec<usize>, Vec<&str>)> = Vec::new();
    for name in &names {
        let own = cells_of(name);
        match groups.iter_mut().find(|(cells, _)| *cells == own) {
            Some((_, locks)) => locks.push(name),
            None => groups.push((own, vec![name])),
        }
    }
    groups.retain(|(cells, locks)| !cells.is_empty() && locks.len() > 1);
    groups.sort_by_key(|(cells, locks)| std::cmp::Reverse(cells.len() * locks.len()));
    let front = |(own, locks): (Vec<usize>, Vec<&str>)| {
        let cells: Vec<Vec<Entry<'_>>> = own
            .iter()
            .map(|&cell| locks.iter().filter_map(|name| found(&cells[cell], name)).collect())
            .collect();
        let number = |name: &str| names.iter().position(|other| *other == name).unwrap_or_default();
        Front::of(&cells, &locks, sleepers, number)
    };
    groups.into_iter().map(front).collect()
}

impl Front {
    /// All of `locks` are in all of `cells`.
    fn of(
        cells: &[Vec<Entry<'_>>],
        locks: &[&str],
        sleepers: &[&str],
        number: impl Fn(&str) -> usize,
    ) -> Self {
        let sleeper = sleepers.iter().copied().find(|sleeper| locks.contains(sleeper));
        let mean = |values: Vec<f64>| geometric_mean(&values).unwrap_or(f64::NAN);
        let throughput = |cell: &Vec<Entry<'_>>, name: &str| {
            let best = cell.iter().map(|entry| entry.throughput).fold(0.0, f64::max);
            cell.iter().find(|entry| entry.name == name).map(|entry| entry.throughput / best)
        };
        let of = |name: &&str| {
            let prices: Vec<Price> = cells.iter().filter_map(|cell| price(cell, name, sleeper)).collect();
            let of_sleeper: Vec<f64> = prices.iter().filter_map(|price| price.of_sleeper).collect();
            Mean {
                name: (*name).to_owned(),
                throughput: mean(cells.iter().filter_map(|cell| throughput(cell, name)).collect()),
                cpu_time: Price {
                    of_fastest: mean(prices.iter().map(|price| price.of_fastest).collect()),
                    of_sleeper: geometric_mean(&of_sleeper),
                },
                is_front: false,
                number: number(name),
            }
        };
        let mut means: Vec<Mean> = locks.iter().map(of).collect();
        means.sort_by(|a, b| b.throughput.total_cmp(&a.throughput));
        let is_beaten = |own: &Mean| {
            means.iter().any(|other| {
                let at_least = other.throughput >= own.throughput
                    && other.cpu_time.of_fastest <= own.cpu_time.of_fastest;
                at_least && (other.throughput, other.cpu_time) != (own.throughput, own.cpu_time)
            })
        };
        let is_front: Vec<bool> = means.iter().map(|own| !is_beaten(own)).collect();
        means.iter_mut().zip(is_front).for_each(|(own, is_front)| own.is_front = is_front);
        Self { cells: cells.len(), sleeper: sleeper.map(str::to_owned), locks: means }
    }

    /// The headers of its table; `what` is that of the names.
    #[must_use]
    pub fn header(&self, what: &str) -> Vec<String> {
        let mut header = [what, "throughput", "CPU time"].map(str::to_owned).to_vec();
        header.extend(self.sleeper.as_ref().map(|sleeper| format!("÷ {sleeper}'s")));
        header.push(String::from("front"));
        header
    }

    /// A row for each lock.
    pub fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.locks.iter().map(|Mean { name, throughput, cpu_time, is_front, .. }| {
            let mut row = vec![name.clone(), format!("{throughput:.2}"), ratio(cpu_time.of_fastest)];
            if self.sleeper.is_some() {
                row.push(cpu_time.of_sleeper.map_or_else(|| String::from("–"), ratio));
            }
            row.push(String::from(if *is_front { "●" } else { "" }));
            row
        })
    }

    /// What its table shows.
    #[must_use]
    pub fn sentence(&self) -> String {
        let means = match self.cells {
            1 => String::new(),
            cells => format!("; geometric means over {cells} cells"),
        };
        format!(
            "Throughput and CPU time (of all threads, an operation) ÷ those of the fastest of each cell{means}. ● None here does \
             as much for less CPU time."
        )
    }

    /// Table and sentence.
    #[must_use]
    pub fn render(&self, what: &str, style: Style) -> String {
        let header = self.header(what);
        let mut rows = table(style, &header.iter().map(String::as_str).collect::<Vec<_>>());
        self.rows().for_each(|row| {
            rows.add_row(row);
        });
        text(&rows) + &style.wrap(&self.sentence(), 2) + "\n"
    }

    /// Throughput over CPU time, and a line along the front, as SVG.
    ///
    /// # Errors
    ///
    /// If a ratio is no number.
    pub fn plot(&self, title: &str) -> Result<String, Undrawable> {
        let place = |own: &Mean| Place {
            name: own.name.clone(),
            number: own.number,
            at: (own.cpu_time.of_fastest, own.throughput),
            is_front: own.is_front,
        };
        let caption = format!("{title}: throughput and CPU time (log): up and left is better");
        let axes = ["CPU time an operation ÷ the fastest's", "throughput ÷ the fastest's"];
        Plane { name: title, caption, axes, places: self.locks.iter().map(place).collect() }.render()
    }
}

/// The plots of `fronts`, each with what it is of: a file name and the SVG.
///
/// # Errors
///
/// As [`Front::plot`].
pub fn plots(fronts: &[(String, Front)]) -> Result<Vec<(String, String)>, Undrawable> {
    let plot = |(place, (title, front)): (usize, &(String, Front))| {
        let number = if place == 0 { String::new() } else { format!("-{}", place + 1) };
        Ok((format!("front{number}.svg"), front.plot(title)?))
    };
    fronts.iter().enumerate().map(plot).collect()
}

/// Two digits behind the point, or three in all.
fn ratio(ratio: f64) -> String {
    if ratio < 9.995 { format!("{ratio:.2}") } else { format!("{ratio:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, throughput: f64, cpu_ns: f64) -> Entry<'_> {
        Entry { name, throughput, cpu_ns }
    }

    #[test]
    fn prices_of_a_cell() {
        let cell =
            [entry("fast", 10.0, 300.0), entry("sleeps", 5.0, 100.0), entry("stuck", 0.0, f64::INFINITY)];
        let sleeper = Some("sleeps");
        assert_eq!(price(&cell, "fast", sleeper), Some(Price { of_fastest: 1.0, of_sleeper: Some(3.0) }));
        assert_eq!(price(&cell, "sleeps", None), Some(Price { of_fastest: 1.0 / 3.0, of_sleeper: None }));
        assert_eq!((price(&cell, "stuck", sleeper), price(&cell, "none", sleeper)), (None, None));
    }

    #[test]
    fn a_front_has_what_none_beats_in_both() {
        let cells = [
            vec![entry("beaten", 4.0, 400.0), entry("fast", 10.0, 400.0), entry("sleeps", 5.0, 100.0)],
            vec![entry("beaten", 10.0, 400.0), entry("fast", 10.0, 100.0), entry("sleeps", 2.5, 100.0)],
        ];
        let all = fronts(&cells, &["no such lock", "sleeps"]);
        let [front] = &all[..] else { panic!("{all:?}") };
        let shown: Vec<_> =
            front.locks.iter().map(|own| (&*own.name, own.throughput, own.is_front)).collect();
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        let shown: Vec<_> =
            shown.into_iter().map(|(name, value, front)| (name, rounded(value), front)).collect();
        assert_eq!(shown, [("fast", 1.0, true), ("beaten", 0.632, false), ("sleeps", 0.354, true)]);
        assert_eq!(rounded(front.locks[0].cpu_time.of_sleeper.unwrap()), 2.0);
        assert_eq!((front.cells, front.sleeper.as_deref()), (2, Some("sleeps")));
        let text = front.render("lock", Style::PLAIN);
        assert!(text.contains("÷ sleeps's") && text.contains("over 2 cells"), "{text}");
        let svg = front.plot("a plane").unwrap();
        assert!(svg.contains("beaten") && svg.contains("a plane: throughput and CPU time"), "{svg}");
    }

    #[test]
    fn locks_of_other_cells_have_a_front_of_their_own() {
        let cells = [
            vec![entry("mutex", 1.0, 1.0), entry("other mutex", 2.0, 2.0), entry("stuck", 0.0, 1.0)],
            vec![entry("rwlock", 1.0, 1.0), entry("other rwlock", 2.0, 2.0)],
            vec![entry("rwlock", 1.0, 1.0), entry("other rwlock", 2.0, 2.0)],
            vec![entry("alone", 1.0, 1.0)],
        ];
        let all = fronts(&cells, &[]);
        let names: Vec<Vec<&str>> =
            all.iter().map(|front| front.locks.iter().map(|own| &*own.name).collect()).collect();
        assert_eq!(names, [["other rwlock", "rwlock"], ["other mutex", "mutex"]]);
        assert!(all.iter().all(|front| front.locks.iter().all(|own| own.is_front)));
    }
}
