//! Labels of invariants and transitions: each one that a comment cites is defined, once, where a reader finds
//! it.
//!
//! A *definition* is in a file's header (`//!`): a list item that begins with the label (`- **A1** …`, `-
//! **A1, …**`, `- P1: …`); for transitions also a drawing (a block of text), a table cell or a paragraph that
//! begins with it.
//!
//! A *citation* is any label in any comment. `module.A1` is defined in the module of that name: a file, or a
//! directory's `mod.rs`; `crate::module.A1`, in that crate. `A1` alone is looked for in the file itself, then
//! in the file's directory with all below it, then in the directory above, up to the crate, and then in all
//! crates: the first of these that has a definition must have one only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Words that look like labels.
const OTHERS: [&str; 1] = ["C11"];

/// A source file: its path below `crates`, its text.
pub(crate) type Source = (PathBuf, String);

/// Label → files that define it.
pub(crate) type Definitions = BTreeMap<String, BTreeSet<PathBuf>>;

/// A label at the start of `text`, and what follows it.
fn label_at(text: &str) -> Option<(&str, &str)> {
    let digits = text.get(1..)?.bytes().take_while(u8::is_ascii_digit).count();
    let (label, rest) = text.split_at_checked(1 + digits)?;
    let is_one = label.starts_with(|first: char| first.is_ascii_uppercase()) && (1..=2).contains(&digits);
    let ends = !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    (is_one && ends && !OTHERS.contains(&label)).then_some((label, rest))
}

/// All labels in `text`, each with the module that qualifies it.
pub(crate) fn labels(text: &str) -> Vec<(Option<&str>, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(|letter: char| letter.is_ascii_uppercase()) {
        let before = &text[..at];
        // `x-A1` is a word; an arrow may lead to a label.
        let stem = before.strip_suffix('-').unwrap_or(before);
        let is_word = before.ends_with(['_', '#', '`', '/']) || stem.ends_with(char::is_alphanumeric);
        if let Some((label, rest)) = label_at(&text[at..]).filter(|_| !is_word) {
            let name = before.strip_suffix('.').map(|name| {
                let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c);
                let start = name.rfind(|c: char| !is_part(c));
                &name[start.map_or(0, |start| start + 1)..]
            });
            let module = name.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()));
            // `x.R1` is a module's; `1.R1` or `R1.x` is something else.
            let is_path = rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
            if !is_path && (module.is_some() || !before.ends_with('.')) {
                found.push((module, label));
            }
        }
    }
    found
}

/// The invariants, and the transitions, that a file's header defines. Invariants in order: twice is an error.
pub(crate) fn defined(text: &str) -> (Vec<String>, BTreeSet<String>) {
    let (mut invariants, mut transitions) = (Vec::new(), BTreeSet::new());
    let (mut is_drawing, mut before) = (false, "");
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("//!")) {
        let line = line.trim_start();
        // A label may also come to stand at the start of a line within a paragraph.
        let is_start = before.is_empty() || before.ends_with(['.', '|', ':', '`']);
        before = line;
        if let Some(info) = line.strip_prefix("```") {
            is_drawing = !is_drawing && info == "text";
        } else if is_drawing {
            // `(T1)` cites.
            let is_there = |label: &&str| !line.contains(&format!("({label})"));
            let drawn = labels(line).into_iter().map(|(_, label)| label).filter(is_there);
            transitions.extend(drawn.map(str::to_owned));
        } else if let Some(item) = line.strip_prefix("- ") {
            let bold = item.strip_prefix("**").and_then(label_at);
            let plain = label_at(item).filter(|(_, rest)| rest.starts_with(':'));
            invariants.extend(bold.or(plain).map(|(label, _)| label.to_owned()));
        } else if is_start {
            // `T5 is …`, `| T3, T4: swap |`
            let start = line.strip_prefix("| ").unwrap_or(line);
            let subject = start.split_once(':').map_or(start, |(subject, _)| subject);
            let first = label_at(start).filter(|(_, rest)| rest.starts_with([':', ' ', ',']));
            if let Some((label, rest)) = first {
                transitions.insert(label.to_owned());
                if rest.starts_with(',') && subject.len() < start.len() {
                    transitions.extend(labels(subject).into_iter().map(|(_, label)| label.to_owned()));
                }
            }
        }
    }
    (invariants, transitions)
}

/// The name of a file's module.
pub(crate) fn module(path: &Path) -> &str {
    let name = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod") => path.parent().and_then(Path::file_name),
        Some("lib") => path.iter().next(),
        _ => path.file_stem(),
    };
    name.and_then(|name| name.to_str()).unwrap_or_default()
}

/// The files of which one must be meant by `label`, cited in `file`.
pub(crate) fn meant<'a>(
    definitions: &'a Definitions,
    file: &Path,
    module_named: Option<&str>,
    label: &str,
) -> Vec<&'a Path> {
    let Some(all) = definitions.get(label) else { return Vec::new() };
    if let Some(name) = module_named {
        let (of_crate, name) =
            name.split_once("::").map_or((None, name), |(crate_, name)| (Some(crate_), name));
        let is_named =
            |path: &&Path| module(path) == name && of_crate.is_none_or(|of_crate| path.starts_with(of_crate));
        let named: Vec<&Path> = all.iter().map(PathBuf::as_path).filter(is_named).collect();
        let same_crate = |path: &&&Path| path.iter().next() == file.iter().next();
        let here: Vec<&Path> = named.iter().filter(same_crate).copied().collect();
        return if here.is_empty() { named } else { here };
    }
    for scope in file.ancestors() {
        let within: Vec<&Path> =
            all.iter().map(PathBuf::as_path).filter(|path| path.starts_with(scope)).collect();
        if !within.is_empty() {
            return within;
        }
    }
    Vec::new()
}

/// The labels that these files define.
pub(crate) fn definitions(sources: &[Source]) -> Definitions {
    let mut definitions = Definitions::new();
    for (path, text) in sources {
        let (invariants, transitions) = defined(text);
        for label in invariants.into_iter().chain(transitions) {
            definitions.entry(label).or_default().insert(path.clone());
        }
    }
    definitions
}

/// The errors in the labels of these files: a sentence each.
fn wrong(sources: &[Source]) -> Vec<String> {
    let definitions = definitions(sources);
    let mut wrong = Vec::new();
    for (path, text) in sources {
        let mut seen = BTreeSet::new();
        for label in defined(text).0 {
            if seen.contains(&label) {
                wrong.push(format!("{}: defines {label} twice", path.display()));
            }
            seen.insert(label);
        }
    }
    for (path, text) in sources {
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = line.find("//").map(|start| &line[start..]) else { continue };
            for (named, label) in labels(comment) {
                let at = format!("{}:{}", path.display(), number + 1);
                let label_as_cited = named.map_or(label.to_owned(), |named| format!("{named}.{label}"));
                match &meant(&definitions, path, named, label)[..] {
                    [_] => {}
                    [] => wrong.push(format!("{at}: {label_as_cited} is defined nowhere")),
                    several => {
                        let crate_of =
                            |path: &Path| path.iter().next().unwrap_or_default().display().to_string();
                        let full = |path: &&Path| format!("{}::{}.{label}", crate_of(path), module(path));
                        let names: Vec<String> = several.iter().map(full).collect();
                        wrong.push(format!("{at}: {label_as_cited} may be {}", names.join(" or ")));
                    }
                }
            }
        }
    }
    wrong
}

/// All Rust files of `crates`.
pub(crate) fn sources() -> Vec<Source> {
    fn walk(directory: &Path, root: &Path, all: &mut Vec<Source>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            // Links are those of the command's package to other crates.
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() && !path.ends_with("target") {
                walk(&path, root, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                all.push((path.strip_prefix(root).expect("below").to_owned(), text));
            }
        }
    }
    let mut all = Vec::new();
    for floor in ["crates", "lab"].map(|floor| crate::repository().join(floor)) {
        walk(&floor, &floor, &mut all);
    }
    all.sort();
    all
}

#[test]
fn each_cited_label_is_defined_once() {
    let sources = sources();
    let core = Path::new("locks/src/core/mod.rs");
    let (_, text) = sources.iter().find(|(path, _)| path == core).expect("the core of the locks");
    let (invariants, transitions) = defined(text);
    assert!(invariants.contains(&String::from("W1")) && transitions.contains("T1"), "headers are read");
    let wrong = wrong(&sources);
    assert!(wrong.is_empty(), "{}\nWrite MODULE.LABEL, or define the label", wrong.join("\n"));
}

#[test]
fn what_is_wrong_is_found() {
    let check = |files: &[(&str, &str)]| {
        wrong(&files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect::<Vec<_>>())
    };
    let core = ("a/src/core/mod.rs", "//! - **A1** x.\n//! ```text\n//! ── T1 ──►\n//! ```\n//! T2: y.");
    let mcs = ("a/src/mcs.rs", "//! - **A1, z.** By A1.\n//! | T3, T4: w |\n// T4");
    let other = ("b/src/lib.rs", "//! - **A1** w.\n//! - **B1** v.\n//! - P1: u.");
    let all = |cited| check(&[core, mcs, other, ("a/src/core/deep/x.rs", cited), ("a/src/mcs/y.rs", "")]);
    for fine in
        ["/// A1, T1–T2.", "x(); // (core.A1, a::mcs.A1)", "/// b.B1, B1, P1; C11; 1.A1; A12x", "\"A9\""]
    {
        assert_eq!(all(fine), [""; 0], "{fine}");
    }
    assert_eq!(all("\n// T9"), ["a/src/core/deep/x.rs:2: T9 is defined nowhere"]);
    assert_eq!(all("// mcs.T1"), ["a/src/core/deep/x.rs:1: mcs.T1 is defined nowhere"]);
    assert_eq!(all("// b::mcs.A1"), ["a/src/core/deep/x.rs:1: b::mcs.A1 is defined nowhere"]);
    let above = check(&[core, mcs, ("a/src/lib.rs", "//! A1.")]);
    assert_eq!(above, ["a/src/lib.rs:1: A1 may be a::core.A1 or a::mcs.A1"]);
    let twice = check(&[("a/src/lib.rs", "//! - **A1** x.\n//! - **A1** y.")]);
    assert_eq!(twice, ["a/src/lib.rs: defines A1 twice"]);
}
