//! What there is to choose from, and a machine: every figure, and where it comes from.

use spinpark_lockbench::report::locks::list::ITERATION;
use spinpark_measure::report::{Style, table, text};
use spinpark_measure::text::units::counted;

use crate::formats::align_left;
use spinpark_sim::locks::locks;
use spinpark_sim::machine::describe::DescribedFigure;
use spinpark_sim::machine::{Description, Machine, machines};
use spinpark_sim::workload::workloads;

/// Everything; of the documents' `tables`, their names and what they are about.
#[must_use]
pub fn everything(tables: &[(&str, &str)], style: Style) -> String {
    let drawn = |header: &[&str], rows: Vec<Vec<String>>| {
        let mut drawn = table(style, header);
        // Numbers only are at the right.
        let left: Vec<usize> = (1..header.len()).filter(|&column| header[column] != "CPUs").collect();
        align_left(&mut drawn, &left);
        drawn.add_rows(rows);
        text(&drawn)
    };
    let machines = machines().into_iter().filter_map(|name| Machine::load(name).ok());
    let machines =
        machines.map(|machine| vec![machine.name.clone(), machine.cpus().to_string(), machine.about]);
    let locks =
        locks().iter().map(|lock| vec![lock.name.to_owned(), lock.kinds().join(", "), lock.about.to_owned()]);
    let workloads = workloads().iter().map(|workload| {
        [workload.name, workload.needs().unwrap_or("–"), workload.about].map(str::to_owned).to_vec()
    });
    let tables = tables.iter().map(|(name, about)| vec![(*name).to_owned(), (*about).to_owned()]);
    let others =
        "`plain-N` is a machine of N cores in round figures; NAME:N uses the first N CPUs of a machine.";
    let numbers =
        "plane-… and moves-… take any numbers of iterations: plane-150-700 has 150 inside and 700 outside.";
    format!(
        "{}{}\n\n{}\n{}{}\n{}\n\n{}",
        drawn(&["machine", "CPUs", "about"], machines.collect()),
        style.wrap(others, 0),
        drawn(&["lock", "is a", "about"], locks.collect()),
        drawn(&["workload", "needs a", "about"], workloads.collect()),
        style.wrap(numbers, 0),
        style.wrap(ITERATION, 0),
        drawn(&["table", "about"], tables.collect()),
    )
}

/// All that is known about a machine.
#[must_use]
pub fn machine(description: &Description, style: Style) -> String {
    let Description { name, about, notes, cpus, shape, shape_source, based_on, figures } = description;
    let mut out = style.wrap(&format!("{name}: {about}"), 2) + "\n";
    let cpus = counted(*cpus as usize, "CPU");
    out += &(style.wrap(&format!("{cpus}: {shape} ({shape_source})"), 2) + "\n");
    if !based_on.is_empty() {
        let bases = format!("Figures that are not its own come from {}.", based_on.join(", "));
        out += &(style.wrap(&bases, 2) + "\n");
    }
    if !notes.trim().is_empty() {
        let notes = notes.split_whitespace().collect::<Vec<_>>().join(" ");
        out += &(style.wrap(&notes, 0) + "\n");
    }
    if style.is_narrow() {
        return out + "\n" + &list(figures, style);
    }
    let mut rows = table(style, &["figure", "value", "meaning", "source"]);
    align_left(&mut rows, &[2, 3]);
    for figure in figures {
        rows.add_row([&figure.key, &figure.value, figure.meaning, &source(figure)]);
    }
    out + "\n" + &text(&rows)
}

/// On one line, wherever it was broken in the file.
fn source(figure: &DescribedFigure) -> String {
    figure.source.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where four columns have no room: a figure, and below it what it means and where it comes from.
fn list(figures: &[DescribedFigure], style: Style) -> String {
    let below = Style { width: style.width.saturating_sub(4), ..style };
    let shown = |figure: &DescribedFigure| {
        let DescribedFigure { key, value, meaning, .. } = figure;
        let first = style.wrap(&format!("{key}: {value}"), 4);
        let meaning = below.wrap(meaning, 4);
        let source = below.wrap(&format!("source: {}", source(figure)), 4);
        format!("{first}\n    {meaning}\n    {source}\n")
    };
    figures.iter().map(shown).collect()
}
