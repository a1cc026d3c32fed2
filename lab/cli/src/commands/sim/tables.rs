//! `spinpark-lab sim tables`: the four documents' tables.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use spinpark_documents::registry::choose;
use spinpark_documents::simulated::{Effort, TableSpec};
use spinpark_experiments::{page, tables};
use spinpark_measure::text::units::counted;
use spinpark_sim::table::Table;
use spinpark_sim::workload::SettingError;

use super::{distinct, stop_on_ctrl_c};
use crate::cli::Tables;
use spinpark_cli::exit::BatchEnd;
use spinpark_cli::files::open;
use spinpark_cli::own;
use spinpark_cli::progress::{Progress, about};
use spinpark_cli::say::Say;

/// Simulates one table after the other; the runs of each go side by side.
pub(super) fn run(wanted: &Tables) -> anyhow::Result<ExitCode> {
    let specs = choose(&wanted.names)?;
    distinct(&[("--json", &wanted.out.json), ("--html", &wanted.html)])?;
    let json = open(&wanted.out.json)?;
    let html = open(&wanted.html)?;
    let say = Say::apart_from(&[&wanted.out.json, &wanted.html]);
    if specs.is_empty() {
        say.line("There are no tables of documents yet.");
    }
    stop_on_ctrl_c()?;
    let style = say.style();
    let effort = if wanted.quick { Effort::Quick } else { Effort::Full };
    let mut course = Course::new(&specs, effort);
    let (mut made, mut end, mut has_failed) = (Vec::new(), BatchEnd::Complete, false);
    for (number, spec) in specs.iter().enumerate() {
        let place = format!("{} of {}", number + 1, specs.len());
        match simulate(*spec, effort, &place, &mut course) {
            Ok(table) => {
                say.line(tables::render(spec.name, &table, style));
                made.push((spec.name.to_owned(), table));
            }
            Err(SettingError::Stopped) => {
                end = BatchEnd::Interrupted;
                break;
            }
            Err(error) => {
                has_failed = true;
                note!("{}", style.wrap(&format!("{} could not be simulated: {error}", spec.name), 2));
            }
        }
    }
    if let Some(verdict) = tables::verdict(&made, style) {
        say.line(verdict.trim_end());
    }
    let command = own::command_line();
    // Without data, an earlier run's files stay.
    let has_data = !made.is_empty() || end == BatchEnd::Complete;
    if let Some(file) = json.filter(|_| has_data) {
        file.write(&tables::json(end.name(), &command, wanted.quick, &made))?;
    }
    if let Some(file) = html.filter(|_| has_data) {
        let page = page::tables(&command, end.name(), &made);
        file.write_plain(&page.context("cannot write the tables as HTML")?)?;
    }
    if end == BatchEnd::Interrupted {
        note!("Interrupted after {} of {}.", counted(made.len(), "table"), specs.len());
    }
    Ok(end.code(has_failed || tables::is_missed(&made)))
}

/// How far all tables are, in CPU time that they are known to take.
struct Course {
    start: Instant,
    done: f64,
    all: f64,
}

impl Course {
    /// Below this share, no remaining time is shown.
    const LITTLE: f64 = 0.02;

    fn new(specs: &[TableSpec], effort: Effort) -> Self {
        Self { start: Instant::now(), done: 0.0, all: specs.iter().map(|spec| cost(spec, effort)).sum() }
    }

    /// How much is done, if the table with this cost is done to this part; and what is said of the time left.
    fn at(&self, part: f64, cost: f64, elapsed: f64) -> (f64, String) {
        let done = ((self.done + part * cost) / self.all.max(1e-9)).min(1.0);
        let left = if done < Self::LITTLE {
            String::from("time not known yet")
        } else {
            format!("{} left", about(elapsed * (1.0 - done) / done))
        };
        (done, left)
    }
}

/// With `--quick`, tables take about the same time.
fn cost(spec: &TableSpec, effort: Effort) -> f64 {
    match effort {
        Effort::Quick => 1.0,
        Effort::Full => f64::from(spec.seconds),
    }
}

fn simulate(
    spec: TableSpec,
    effort: Effort,
    place: &str,
    course: &mut Course,
) -> Result<Table, SettingError> {
    let progress = Progress::free();
    let cost = cost(&spec, effort);
    let now = |done: u64, all: u64| {
        let part = done as f64 / all.max(1) as f64;
        let (of_all, left) = course.at(part, cost, course.start.elapsed().as_secs_f64());
        progress.at(of_all, format!("{} (table {place}): {:.0} %; {left}", spec.name, part * 100.0));
    };
    now(0, 1);
    let made = (spec.run)(effort, &now);
    course.done += cost;
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_cost_of_tables() {
        let specs = choose(&[]).unwrap();
        let mut course = Course::new(&specs, Effort::Full);
        assert_eq!(course.at(0.0, 10.0, 1.0), (0.0, String::from("time not known yet")));
        course.all = 1000.0;
        course.done = 200.0;
        let (done, left) = course.at(0.5, 100.0, 100.0);
        assert_eq!((done, left.as_str()), (0.25, "5 min left"));
        assert!(specs.iter().all(|spec| spec.seconds > 0));
        // 15 minutes on two CPUs.
        assert!(specs.iter().map(|spec| spec.seconds).sum::<u32>() <= 1800);
    }
}
