//! What all HTML pages share: each is one file that loads no script, font or picture.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, HtmlEscape, Value};

/// The name decides that everything is escaped but what the template calls safe: the SVG that we draw.
pub const PAGE: &str = "page.html";

/// The style of all pages. A page that writes its style itself has [`STYLE`] first.
pub const STYLE: &str = include_str!("style.css");

/// An environment with `template` as [`PAGE`], our style and our filters.
///
/// # Errors
///
/// If the template is wrong.
pub fn environment(template: &'static str) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template(PAGE, template)?;
    environment.add_filter("inline", |svg: &str| inline(svg));
    environment.add_filter("words", |text: &str| words(text));
    environment.add_global("style", Value::from_safe_string(STYLE.to_owned()));
    Ok(environment)
}

/// Text for people, escaped: what is in back quotes is code.
fn words(text: &str) -> Value {
    let part = |(place, part): (usize, &str)| match place % 2 {
        0 => HtmlEscape(part).to_string(),
        _ => format!("<code>{}</code>", HtmlEscape(part)),
    };
    Value::from_safe_string(text.split('`').enumerate().map(part).collect())
}

/// An SVG inside of HTML needs no name space, and a name for readers that do not see it.
fn inline(svg: &str) -> String {
    svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", " role=\"img\"")
}
