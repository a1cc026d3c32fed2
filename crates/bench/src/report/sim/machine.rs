//! A machine: every figure, and where it comes from.

use spinpark_sim::machine::Description;

use crate::report::{Style, table, text, wrap};

/// All that is known about it.
#[must_use]
pub fn render(description: &Description, style: Style) -> String {
    let Description { name, about, notes, cpus, shape, shape_source, based_on, figures } = description;
    let mut out = wrap(&format!("{name}: {about}"), 2) + "\n";
    out += &(wrap(&format!("{cpus} CPUs: {shape} ({shape_source})"), 2) + "\n");
    if !based_on.is_empty() {
        out += &(wrap(&format!("Figures that are not its own come from {}.", based_on.join(", ")), 2) + "\n");
    }
    if !notes.trim().is_empty() {
        let notes = notes.split_whitespace().collect::<Vec<_>>().join(" ");
        out += &(wrap(&notes, 0) + "\n");
    }
    let mut rows = table(style, &["figure", "value", "meaning", "source"]);
    for column in [2, 3] {
        if let Some(column) = rows.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    for figure in figures {
        let source = figure.source.split_whitespace().collect::<Vec<_>>().join(" ");
        rows.add_row([&figure.key, &figure.value, figure.meaning, &source]);
    }
    out + "\n" + &text(&rows)
}
