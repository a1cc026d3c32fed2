//! The report as one HTML file, which needs nothing else: no script, no font, no picture from elsewhere.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, HtmlEscape, Value};
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
    environment.add_filter("words", |text: &str| words(text));
    let quick = QUICK.into_iter().filter(|_| page.is_quick);
    let introduction = INTRODUCTION.into_iter().chain(quick).collect();
    let data = Data { page, machine: page.environment.line(), introduction };
    environment.get_template(TEMPLATE)?.render(Serde(data))
}

/// Text for people, escaped: what is in back quotes is code.
fn words(text: &str) -> Value {
    let part = |(place, part): (usize, &str)| match place % 2 {
        0 => HtmlEscape(part).to_string(),
        _ => format!("<code>{}</code>", HtmlEscape(part)),
    };
    Value::from_safe_string(text.split('`').enumerate().map(part).collect())
}

/// An SVG inside of HTML needs no name space, and a name for those who do not see it.
fn inline(svg: &str) -> String {
    svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", " role=\"img\"")
}
