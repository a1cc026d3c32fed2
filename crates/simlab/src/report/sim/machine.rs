//! A machine: every figure, and where it comes from.

use spinpark_measure::report::{Style, table, text};
use spinpark_measure::units::counted;
use spinpark_sim::machine::Description;
use spinpark_sim::machine::describe::DescribedFigure;

/// All that is known about it.
#[must_use]
pub fn render(description: &Description, style: Style) -> String {
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
    for column in [2, 3] {
        if let Some(column) = rows.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
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
