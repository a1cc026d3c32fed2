//! Where the report goes.

use anyhow::Context;
use spinpark_documents::documents::RunReport;
use spinpark_documents::report::documents::forms::{html, markdown};
use spinpark_documents::report::documents::json::Document;
use spinpark_documents::report::documents::page::Page;
use spinpark_measure::report::json::Output;

use crate::cli::{DocumentsRun, Format};
use spinpark_cli::files::create;
use spinpark_cli::say::Say;

/// Files that are known to be writable.
pub(super) struct Files {
    markdown: Vec<Output>,
    html: Vec<Output>,
    json: Vec<Output>,
    /// The message at the end.
    names: Vec<String>,
}

impl Files {
    /// Opens them all.
    pub(super) fn open(wanted: &DocumentsRun) -> anyhow::Result<Self> {
        if let Some(directory) = &wanted.output {
            create("--output", directory)?;
        }
        let mut names = Vec::new();
        let mut open = |name: &str, file: &Option<std::path::PathBuf>| {
            let in_directory = wanted.output.as_ref().map(|directory| directory.join(name));
            let all = in_directory.iter().chain(file);
            all.map(|path| {
                if !Output::is_stdout(path) {
                    names.push(path.display().to_string());
                }
                Output::open(path)
            })
            .collect::<Result<Vec<Output>, _>>()
        };
        let stdout = (wanted.format == Some(Format::Markdown)).then(|| "-".into());
        let markdown = open("documents.md", &stdout)?;
        let html = open("documents.html", &wanted.html)?;
        let json = open("documents.json", &wanted.json)?;
        Ok(Self { markdown, html, json, names })
    }

    /// Writes them all; Markdown on standard output if there is none.
    pub(super) fn write(self, page: &Page, outcomes: &[Vec<RunReport>], say: Say) -> anyhow::Result<()> {
        let Self { markdown: texts, html: pages, json, names } = self;
        let text = markdown(page);
        if texts.is_empty() && pages.is_empty() && json.is_empty() {
            say.line(format!("\n{text}"));
        }
        texts.into_iter().try_for_each(|file| file.write_plain(&text))?;
        if !pages.is_empty() {
            let text = html(page).context("cannot write the report as HTML")?;
            pages.into_iter().try_for_each(|file| file.write_plain(&text))?;
        }
        json.into_iter().try_for_each(|file| file.write_compact(&Document::new(page, outcomes)))?;
        for name in names {
            say.line(format!("Report: {name}"));
        }
        Ok(())
    }
}
