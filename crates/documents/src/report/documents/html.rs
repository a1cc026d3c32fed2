//! The report as one HTML file.

use minijinja::Error;
use minijinja::value::Serde;
use serde::Serialize;
use spinpark_measure::page::{PAGE, environment};

use super::markdown::{INTRODUCTION, QUICK};
use super::page::Page;

#[derive(Serialize)]
struct Data<'a> {
    page: &'a Page,
    machine: String,
    introduction: Vec<&'a str>,
}

/// All of it.
///
/// # Errors
///
/// If the template is wrong.
pub fn render(page: &Page) -> Result<String, Error> {
    let environment = environment(include_str!("page.html"))?;
    let quick = QUICK.into_iter().filter(|_| page.is_quick);
    let introduction = INTRODUCTION.into_iter().chain(quick).collect();
    let data = Data { page, machine: page.environment.line(), introduction };
    environment.get_template(PAGE)?.render(Serde(data))
}
