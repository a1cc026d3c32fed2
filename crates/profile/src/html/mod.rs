//! The report as one self-contained page: tables, histograms, a matrix of waiters and holders, flame graphs
//! of waiting.
//!
//! The page loads nothing: its policy forbids every request, and allows exactly one script and one style, by
//! their hashes. So a name in the profile that looks like a script would not run, even if it were not
//! escaped.
//!
//! | what | where |
//! |---|---|
//! | a row of the table of locks, and what it opens to | [`locks`] |
//! | histograms and strips as SVG | [`draw`] |
//! | the blocking matrix | [`matrix`] |
//! | the flame graph's trees; the script draws them | [`flame`] |
//! | FreeBSD's columns, condition variables, threads, facts of the run | [`small_tables`], [`process`] |
//!
//! Without scripts every table can be read; sorting, filtering and the flame graph need them. The page is
//! well-formed XML.

mod draw;
mod flame;
mod locks;
mod matrix;
mod process;
mod small_tables;

use std::cmp::Reverse;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::value::Serde;
use minijinja::{Error, Value};
use serde::Serialize;
use sha2::{Digest, Sha256};
use spinpark_measure::report::page::{PAGE, STYLE, environment};
use spinpark_measure::text::units;

use crate::fit::fit;
use crate::model::{CallSiteId, Frame, Kind, Profile, Role};
use crate::names::{Names, UNKNOWN};

/// A process to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// What was recorded.
    pub profile: &'a Profile,
    /// What the page shows first: sentences; back quotes enclose code.
    pub summary: &'a [String],
}

#[derive(Serialize)]
struct Page {
    title: String,
    policy: String,
    style: String,
    script: String,
    processes: Vec<process::Process>,
}

/// The report, as HTML. With several processes there is a choice at the top; the one that waited most comes
/// first.
///
/// # Errors
///
/// If a template is wrong.
pub fn html(shown: &[Shown<'_>]) -> Result<String, Error> {
    let mut environment = environment(include_str!("page.html"))?;
    for (name, template) in TEMPLATES {
        environment.add_template(name, template)?;
    }
    environment.add_filter("span", span);
    environment.add_filter("exact", exact);
    environment.add_filter("number", |count: u64| units::number(count as f64));
    environment.add_filter("micro", |ns: u64| format!("{:.1}", ns as f64 / 1e3));
    let style = format!("\n{STYLE}{}", include_str!("style.css"));
    let script = format!("//<![CDATA[\n{}{}{}//]]>", SCRIPTS[0], SCRIPTS[1], SCRIPTS[2]);
    // The process that waited most comes first: a shell that started the program did not wait.
    let mut shown = shown.to_vec();
    shown.sort_by_key(|shown| Reverse(shown.profile.waited()));
    let shown = shown.as_slice();
    // A process that became another program, or has two kinds of locks, has several recordings.
    let ordinal = |shown: &Shown<'_>, all: &[Shown<'_>]| {
        let of_it =
            || all.iter().map(|other| other.profile).filter(|other| other.is_of_process(shown.profile));
        let key = |profile: &Profile| (profile.started, profile.locks_of as u32);
        let before = of_it().filter(|other| key(other) < key(shown.profile)).count();
        (of_it().count() > 1).then_some(before + 1)
    };
    let page = Page {
        title: title(shown),
        policy: policy(&style, &script),
        style,
        script,
        processes: shown
            .iter()
            .enumerate()
            .map(|(number, one)| process::Process::new(number, *one, ordinal(one, shown)))
            .collect(),
    };
    let rendered = environment.get_template(PAGE)?.render(Serde(page))?;
    Ok(without_control_characters(rendered))
}

/// Names of templates' functions can fill a screen. The stacks have all of them.
const LONGEST_CAPTION: usize = 80;

/// The file name of a path.
fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A frame's function; where there is no symbol, where the code is.
fn function(frame: &Frame) -> String {
    frame.function.clone().unwrap_or_else(|| frame.short())
}

/// The name of a call site, and its tooltip.
#[derive(Clone, Serialize)]
struct Caption {
    text: String,
    full: String,
}

impl Caption {
    /// Where there can be no call site.
    fn of_none(text: &str) -> Self {
        Self { text: text.to_owned(), full: String::new() }
    }
}

/// The caption of a call site; not known, if there is none.
fn caption(names: &Names<'_>, call_site: Option<CallSiteId>) -> Caption {
    match call_site.filter(|call_site| names.call_site(*call_site).is_some()) {
        None => Caption { text: String::from(UNKNOWN), full: String::new() },
        Some(call_site) => {
            let full =
                names.call_site(call_site).and_then(|call_site| call_site.frames.first()).map(function);
            Caption { text: fit(&names.label(call_site), LONGEST_CAPTION), full: full.unwrap_or_default() }
        }
    }
}

/// A role in words; none where a lock has only one.
fn role(kind: Kind, role: Role) -> Option<&'static str> {
    matches!(kind, Kind::RwLock | Kind::Condvar).then(|| role.word())
}

const TEMPLATES: [(&str, &str); 4] = [
    ("process.html", include_str!("process.html")),
    ("locks.html", include_str!("locks.html")),
    ("matrix.html", include_str!("matrix.html")),
    ("cells.html", include_str!("cells.html")),
];

const SCRIPTS: [&str; 3] = [include_str!("page.js"), include_str!("table.js"), include_str!("flame.js")];

/// What the page may do: run our script, use our style.
fn policy(style: &str, script: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(style),
        hash(script)
    )
}

fn title(shown: &[Shown<'_>]) -> String {
    let mut names: Vec<&str> = shown.iter().map(|shown| file(&shown.profile.program)).collect();
    names.dedup();
    match names.as_slice() {
        [] => String::from("No profile"),
        [name] => format!("Locks of {name}"),
        [name, ..] => format!("Locks of {name} and others"),
    }
}

/// ns as people read them.
fn span(ns: u64) -> String {
    if ns == 0 { String::from("0") } else { units::seconds(ns as f64 / 1e9) }
}

/// ns, all digits.
fn exact(ns: u64) -> Value {
    let digits = ns.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    Value::from_safe_string(text + " ns")
}

/// Names of threads can have any bytes in them; XML and people can do without some.
fn without_control_characters(text: String) -> String {
    let is_bad =
        |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    if text.contains(is_bad) { text.replace(is_bad, "\u{fffd}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_can_stand_in_a_page() {
        for text in SCRIPTS {
            assert!(!text.contains("]]>") && !text.contains("</") && !text.contains("<!--"));
            assert!(text.lines().count() < 400);
        }
    }

    #[test]
    fn times() {
        assert_eq!([span(0), span(1_234_567)], ["0", "1.23 ms"]);
        assert_eq!(exact(1_234_567).to_string(), "1,234,567 ns");
        assert_eq!(without_control_characters(String::from("a\u{1}b\n")), "a\u{fffd}b\n");
    }
}
