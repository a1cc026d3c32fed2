//! The report as Markdown, and as one HTML file.

use std::fmt::Write;

use minijinja::Error;
use minijinja::value::Serde;
use serde::Serialize;
use spinpark_measure::report::page::{PAGE, environment as template};

use super::page::{Comparison, Counterpart, Page, Plain, Ran, Section};

pub fn markdown(page: &Page) -> String {
    let mut text = String::from("# The four documents, on this machine\n\n");
    let _ = writeln!(text, "{}.\n", escape(&page.environment.line()));
    let _ = writeln!(text, "`{}`, {}.\n", page.command, page.end);
    for sentence in INTRODUCTION.iter().chain(QUICK.iter().filter(|_| page.is_quick)) {
        let _ = writeln!(text, "- {}", escape(sentence));
    }
    for section in &page.documents {
        write_section(&mut text, section);
    }
    text
}

/// What holds for all tables.
const INTRODUCTION: [&str; 4] = [
    "Published numbers were measured on other machines and other kernels: compare shapes, not values.",
    "Ours are means of runs, each a fresh process, with the standard deviation in %; in brackets the 95 % interval of the \
     change within rounds, with its verdict.",
    "✓: this machine has the CPUs for this row. *: it has not.",
    "–: not published, or not measured.",
];

/// What holds for a quick report.
const QUICK: [&str; 1] = ["This is a quick report: short runs, wide intervals."];

fn write_section(text: &mut String, section: &Section) {
    let _ = writeln!(text, "\n## Document {}: {}\n", section.number, escape(&section.title));
    let _ = writeln!(text, "{}", escape(&section.claim));
    let _ = writeln!(text, "Measured there: {}.", escape(&section.machine));
    if let Some(link) = &section.link {
        let _ = writeln!(text, "<{link}>");
    }
    if !section.notes.is_empty() {
        text.push('\n');
    }
    for note in &section.notes {
        let _ = writeln!(text, "- {}", escape(note));
    }
    section.tables.iter().for_each(|table| write_comparison(text, table));
    section.runs.iter().for_each(|run| write_run(text, run));
}

fn write_comparison(text: &mut String, table: &Comparison) {
    let _ = writeln!(text, "\n### {}\n", escape(&table.title));
    let header = table.columns.iter().map(|column| match column.is_ours {
        true => format!("*{}*", escape(&column.header)),
        false => escape(&column.header),
    });
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().zip(&table.columns).map(|(cell, column)| own(cell, column.is_ours));
        std::iter::once(escape(row.mark.sign())).chain(cells).collect()
    });
    write_table(text, std::iter::once(String::new()).chain(header).collect(), 1, rows);
    for sentence in &table.sentences {
        let _ = writeln!(text, "\n{}", escape(sentence));
    }
}

fn own(cell: &Counterpart, is_ours: bool) -> String {
    let detail = if cell.detail.is_empty() { String::new() } else { format!(" {}", escape(&cell.detail)) };
    match is_ours && cell.text != "–" {
        true => format!("**{}**{detail}", escape(&cell.text)),
        false => escape(&cell.text) + &detail,
    }
}

fn write_run(text: &mut String, run: &Ran) {
    let _ = writeln!(text, "\n### Run here: {}\n\n`{}`", escape(&run.title), run.command);
    if let Some(obstacle) = &run.obstacle {
        let _ = writeln!(text, "\n**{}**", escape(&obstacle.replace('\n', ". ")));
    }
    for Plain { title, header, rows, explanation } in &run.tables {
        let blank = if title.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{blank}{}\n", escape(title));
        let rows = rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect());
        write_table(text, header.iter().map(|name| escape(name)).collect(), 2, rows);
        let _ = writeln!(text, "\n{}", escape(explanation));
    }
    for warning in &run.warnings {
        let _ = writeln!(text, "\n> {}", escape(&warning.replace('\n', " ")));
    }
}

/// A table whose first `left` columns are aligned to the left.
fn write_table(text: &mut String, header: Vec<String>, left: usize, rows: impl Iterator<Item = Vec<String>>) {
    let _ = writeln!(text, "| {} |", header.join(" | "));
    let align = (0..header.len()).map(|column| if column < left { "---" } else { "--:" });
    let _ = writeln!(text, "|{}|", align.collect::<Vec<_>>().join("|"));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
}

/// What Markdown would understand, but for words in back quotes, which are meant so.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '|' | '<' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[derive(Serialize)]
struct Data<'a> {
    page: &'a Page,
    machine: String,
    introduction: Vec<&'a str>,
}

/// The HTML.
pub fn html(page: &Page) -> Result<String, Error> {
    let environment = template(include_str!("page.html"))?;
    let quick = QUICK.into_iter().filter(|_| page.is_quick);
    let introduction = INTRODUCTION.into_iter().chain(quick).collect();
    let data = Data { page, machine: page.environment.line(), introduction };
    environment.get_template(PAGE)?.render(Serde(data))
}
