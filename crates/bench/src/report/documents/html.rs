//! The report as one HTML file, which needs nothing else: no script, no font, no picture from elsewhere.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error};
use serde::Serialize;

use super::markdown::{INTRODUCTION, QUICK};
use crate::documents::page::Page;

/// The name decides that everything is escaped but what the template calls safe: the SVG that we draw.
const TEMPLATE: &str = "page.html";

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
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template(TEMPLATE, include_str!("page.html"))?;
    environment.add_filter("inline", |svg: &str| inline(svg));
    let quick = QUICK.into_iter().filter(|_| page.is_quick);
    let introduction = INTRODUCTION.into_iter().chain(quick).collect();
    let data = Data { page, machine: page.environment.line(), introduction };
    environment.get_template(TEMPLATE)?.render(Serde(data))
}

/// An SVG inside of HTML needs no name space, and a name for those who do not see it.
fn inline(svg: &str) -> String {
    svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", " role=\"img\"")
}
