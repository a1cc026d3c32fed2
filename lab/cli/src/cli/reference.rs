//! The book's pages of commands and options, one a command, of `spinpark` and of `spinpark-lab`: rendered from
//! the definitions of the command lines, and for `bench` of the implementations. They are not in the
//! repository: ci/book.sh writes them (`SPINPARK_WRITE_REFERENCE=1 cargo test -p spinpark-lab reference`).

use std::fs;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};

use spinpark_lockbench::locks::definitions::{Definitions, Implementation, Role};

/// Pages of more than one command: their name, their title, and the commands that they have.
const SHARED: [(&str, &str, &[&str]); 1] =
    [("more", "`spinpark libraries`, `completions`, `man`", &["libraries", "completions", "man"])];
const HEAD: &str = "<!-- Generated from the definitions of `--help` by ci/book.sh. Change those. -->\n";

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The page that explains a command: the generated ones only list.
fn explained_in(name: &str) -> &str {
    match name {
        "report" | "diff" | "top" => "profile",
        "record" => "guides/slow-in-production",
        "export" => "guides/a-fleet",
        "libraries" | "completions" | "man" => "run",
        name => name,
    }
}

/// Every page: its file and its text.
fn pages() -> Vec<(String, String)> {
    let built = |command: Command| {
        let mut command = command.term_width(100);
        command.build();
        command
    };
    let [product, laboratory] = [spinpark_cli::command_line(), super::public()].map(built);
    let is_page = |sub: &&Command| sub.get_name() != "help" && shared_page(sub.get_name()).is_none();
    let all = [&product, &laboratory]
        .into_iter()
        .flat_map(|root| root.get_subcommands().filter(is_page).map(|sub| (root.get_name().to_owned(), sub)));
    let mut pages: Vec<(String, String)> = all
        .map(|(root, sub)| {
            let mut page = String::from(HEAD);
            let explained = explained_in(sub.get_name());
            command(sub, &format!("{root} {}", sub.get_name()), 1, &mut page);
            if sub.get_name() == "bench" {
                implementations(&mut page);
            }
            page += &format!("\n[How to use it and read its output](../{explained}.md)\n");
            (format!("{}.md", sub.get_name()), page)
        })
        .collect();
    for (file, title, names) in SHARED {
        let mut page = format!("{HEAD}\n# {title}\n");
        for name in names {
            let sub = product.find_subcommand(name).expect("a page's commands exist");
            command(sub, &format!("spinpark {name}"), 2, &mut page);
        }
        pages.push((format!("{file}.md"), page));
    }
    pages
}

fn shared_page(name: &str) -> Option<&'static str> {
    SHARED.iter().find(|(_, _, names)| names.contains(&name)).map(|(file, ..)| *file)
}

/// A command's heading, text, usage, options and examples, then its subcommands.
fn command(command: &Command, path: &str, level: usize, page: &mut String) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    *page += &format!("\n{} `{path}`\n\n{}\n\n```text\n{usage}\n```\n", "#".repeat(level), escape(&about));
    table(command.get_arguments().filter(|arg| arg.is_positional()), "argument", page);
    table(command.get_arguments().filter(|arg| is_option(arg)), "option", page);
    let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    for part in help.split("\n\n").filter(|part| !part.is_empty()) {
        // Examples and tables are laid out by their spaces; the rest is prose.
        match part.lines().any(|line| line.starts_with("  ")) {
            true => *page += &format!("\n```text\n{}\n```\n", part.trim_end()),
            false => *page += &format!("\n{}\n", escape(part.trim_end())),
        }
    }
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        self::command(sub, &format!("{path} {}", sub.get_name()), 2, page);
    }
}

/// What `bench` can measure, but for the classics.
fn implementations(page: &mut String) {
    let definitions = Definitions::built_in().expect("the built-in definitions make sense");
    *page += "\n## Implementations\n\n\
              The [classics](../bench.md#implementations) are not in this table.\n\n\
              | name | role | whose locks | Debian packages |\n|---|---|---|---|\n";
    for Implementation { name, about, role, install, .. } in &definitions.implementations {
        let role = match role {
            Role::Peer => "peer",
            Role::Ours => "ours",
            Role::Control => "control",
            Role::Classic => continue,
        };
        let install = install.as_ref().map(|packages| format!("`{packages}`")).unwrap_or_default();
        *page += &format!("| `{name}` | {role} | {} | {install} |\n", cell(about));
    }
}

fn is_option(arg: &Arg) -> bool {
    let is_help = matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong);
    !arg.is_positional() && !arg.is_hide_set() && !is_help
}

fn table<'a>(args: impl Iterator<Item = &'a Arg>, what: &str, page: &mut String) {
    let rows: String = args.map(row).collect();
    if !rows.is_empty() {
        *page += &format!("\n| {what} | meaning | default |\n|---|---|---|\n{rows}");
    }
}

fn row(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let (help, told) = without_default(&help);
    let mut meaning = cell(&help);
    let values: Vec<PossibleValue> = match arg.get_action().takes_values() {
        true => arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect(),
        false => Vec::new(),
    };
    if values.iter().any(|value| value.get_help().is_some()) {
        for value in &values {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            meaning += &format!("<br>`{}`: {}", value.get_name(), cell(&help));
        }
    } else if !values.is_empty() {
        let names: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        meaning += &format!(". One of {}", names.join(", "));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let defaults = match arg.get_action().takes_values() {
        true if !defaults.is_empty() => defaults.join(", "),
        _ => cell(&told),
    };
    let name = arg.to_string().replace('|', "\\|");
    format!("| {short}`{name}` | {meaning} | {defaults} |\n")
}

/// A help text, and the default that it names in words.
fn without_default(help: &str) -> (String, String) {
    let parts = help.split_once(" [default: ").and_then(|(before, rest)| {
        let (told, after) = rest.split_once(']')?;
        Some((format!("{before}{after}"), told.to_owned()))
    });
    parts.unwrap_or_else(|| (help.to_owned(), String::new()))
}

/// Text for a cell of a table: one line.
fn cell(text: &str) -> String {
    escape(&text.split("\n\n").map(|part| part.trim().replace('\n', " ")).collect::<Vec<_>>().join("<br>"))
        .replace('|', "\\|")
        .replace("&lt;br>", "<br>")
}

/// Text outside code, without what Markdown would take for its own.
fn escape(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(
            |(at, part)| {
                if at % 2 == 0 { part.replace('*', "\\*").replace('<', "&lt;") } else { format!("`{part}`") }
            },
        )
        .collect()
}

/// The commands of a page.
fn commands_of(file: &str) -> Vec<&str> {
    let name = file.trim_end_matches(".md");
    SHARED.iter().find(|(shared, ..)| *shared == name).map_or(vec![name], |(.., names)| names.to_vec())
}

/// The command that has a subcommand.
fn command_of(name: &str) -> &'static str {
    if ["bench", "sim", "documents"].contains(&name) { "spinpark-lab" } else { "spinpark" }
}

#[test]
fn every_page_has_its_commands() {
    for (file, page) in pages() {
        for name in commands_of(&file) {
            assert!(
                page.contains(&format!("# `{} {name}`\n", command_of(name))),
                "{file}: no heading for {name}\n{page}"
            );
            assert!(
                page.contains(&format!("```text\n{} {name}", command_of(name))),
                "{file}: no usage of {name}\n{page}"
            );
        }
    }
}

/// ci/links.sh does not see these pages: they are not in the repository.
#[test]
fn links_lead_to_pages_of_the_book() {
    for (file, page) in pages() {
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (target, anchor) =
                link.split_once('#').map_or((link, None), |(target, anchor)| (target, Some(anchor)));
            let target = target.strip_prefix("../").map(|target| docs().join(target));
            let text = target.and_then(|target| fs::read_to_string(target).ok());
            let text = text.unwrap_or_else(|| panic!("{file}: broken link {link}"));
            let is_heading = |line: &str, anchor: &str| {
                let heading = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                line.starts_with('#') && heading == anchor
            };
            let has = |anchor: &str| text.lines().any(|line| is_heading(line, anchor));
            assert!(anchor.is_none_or(has), "{file}: {link} leads to no heading");
        }
    }
}

#[test]
fn the_summary_has_a_line_for_each_page() {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).expect("the book has a summary");
    // They have no links, which would be dead in a checkout.
    let names = summary.lines().filter_map(|line| line.strip_prefix("- [")?.strip_suffix("]()"));
    let page = |name: &str| format!("{}.md", if name.contains(',') { "more" } else { name });
    let mut listed: Vec<String> = names.map(page).collect();
    let pages = pages();
    let mut rendered: Vec<&str> = pages.iter().map(|(file, _)| file.as_str()).collect();
    listed.sort_unstable();
    rendered.sort_unstable();
    assert_eq!(listed, rendered, "lines of docs/SUMMARY.md (left), and pages of commands (right)");
}

/// For ci/book.sh.
#[test]
fn pages_are_written_on_request() {
    if std::env::var_os("SPINPARK_WRITE_REFERENCE").is_none() {
        return;
    }
    let directory = docs().join("reference");
    // A page of a command that no longer exists goes, too.
    if directory.exists() {
        fs::remove_dir_all(&directory).expect("earlier pages can be removed");
    }
    fs::create_dir_all(&directory).expect("the pages' directory can be made");
    for (file, page) in pages() {
        fs::write(directory.join(file), page).expect("the page can be written");
    }
}
