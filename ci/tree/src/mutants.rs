//! Each mutant names the invariant that it breaks: `breaks("core.W1")`, in the sources of the checkers. The label is
//! defined, as [`labels`] has it. Each invariant of the locks has a mutant, or a row in `notes/verification.md` that
//! says why it has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::labels::{self, Definitions, Source};

/// Where an invariant is defined, and its label.
type Invariant = (PathBuf, String);

/// What the page says of invariants without a mutant.
const HEADING: &str = "## Invariants without a mutant";

/// The labels that mutants of this file break.
fn broken(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| {
        line.match_indices("breaks(\"").filter_map(|(at, call)| {
            let is_word = line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            line[at + call.len()..].split('"').next().filter(|_| !is_word)
        })
    })
}

/// The invariant of this label, which stands in `file`; else what is wrong with it.
fn invariant(definitions: &Definitions, file: &Path, cited: &str) -> Result<Invariant, String> {
    let all = labels::labels(cited);
    let [(module, label)] = all[..] else { return Err(format!("{cited:?} is no label")) };
    if module.map_or(label.len(), |module| module.len() + 1 + label.len()) != cited.len() {
        return Err(format!("{cited:?} is more than a label"));
    }
    match labels::meant(definitions, file, module, label)[..] {
        [path] => Ok((path.to_owned(), label.to_owned())),
        [] => Err(format!("{cited} is defined nowhere")),
        _ => Err(format!("{cited} is defined more than once")),
    }
}

/// The invariants that have mutants, with how many there are; and what is wrong.
fn with_mutants(sources: &[Source]) -> (BTreeMap<Invariant, u32>, Vec<String>) {
    let definitions = labels::definitions(sources);
    let (mut found, mut wrong) = (BTreeMap::new(), Vec::new());
    for (path, text) in sources {
        for cited in broken(text) {
            match invariant(&definitions, path, cited) {
                Ok(invariant) => *found.entry(invariant).or_default() += 1,
                Err(error) => wrong.push(format!("{}: {error}", path.display())),
            }
        }
    }
    (found, wrong)
}

/// The first cells of the table below [`HEADING`].
fn rows(page: &str) -> impl Iterator<Item = &str> {
    let (_, table) = page.split_once(HEADING).expect("the page has that heading");
    let rows =
        table.lines().skip_while(|line| !line.starts_with("| `")).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('`').nth(1))
}

#[test]
fn each_mutant_breaks_an_invariant_that_there_is() {
    let (found, wrong) = with_mutants(&labels::sources());
    assert!(found.values().sum::<u32>() > 80, "the mutants were read: {found:?}");
    assert!(wrong.is_empty(), "{}\nWrite breaks(\"MODULE.LABEL\")", wrong.join("\n"));
}

#[test]
fn each_invariant_of_the_locks_has_a_mutant_or_a_reason() {
    let sources = labels::sources();
    let definitions = labels::definitions(&sources);
    let (found, _) = with_mutants(&sources);
    let page =
        fs::read_to_string(crate::repository().join("notes/verification.md")).expect("the page is text");
    let excused: BTreeSet<Invariant> = rows(&page)
        .map(|cited| invariant(&definitions, Path::new(""), cited).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    let name = |(path, label): &Invariant| format!("{}.{label}", labels::module(path));
    let mut wrong = Vec::new();
    let mut all = BTreeSet::new();
    for (path, text) in sources.iter().filter(|(path, _)| path.starts_with("locks")) {
        all.extend(labels::defined(text).0.into_iter().map(|label| (path.clone(), label)));
    }
    assert!(all.len() > 40, "the invariants were read: {all:?}");
    for invariant in &all {
        match (found.contains_key(invariant), excused.contains(invariant)) {
            (true, true) => wrong.push(format!("{} has a mutant: take its row away", name(invariant))),
            (false, false) => wrong.push(format!("{} has no mutant: add one, or a row", name(invariant))),
            _ => {}
        }
    }
    let strange = excused.difference(&all);
    wrong.extend(strange.map(|invariant| format!("{} is no invariant of the locks", name(invariant))));
    assert!(wrong.is_empty(), "under {HEADING:?} of notes/verification.md:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_wrong_is_found() {
    let source = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let lock = source("locks/src/core/mod.rs", "//! - **A1** x.\n//! - **B1** y.");
    let check = |cited: &str| {
        with_mutants(&[lock.clone(), source("verify/x.rs", &format!("f(breaks(\"{cited}\"), g);"))]).1
    };
    assert_eq!(check("core.A1"), [""; 0]);
    assert_eq!(check("core.A2"), ["verify/x.rs: core.A2 is defined nowhere"]);
    assert_eq!(check("mcs.A1"), ["verify/x.rs: mcs.A1 is defined nowhere"]);
    assert_eq!(check("core.A1, B1"), ["verify/x.rs: \"core.A1, B1\" is no label"]);
    assert_eq!(check("of A1"), ["verify/x.rs: \"of A1\" is more than a label"]);
    assert_eq!(broken("// breaks(\"A1\")\nbreaks_rule(\"A1\"), outbreaks(\"A1\")").count(), 0);
    assert_eq!(
        rows(&format!("{HEADING}\n\n| a | b |\n|--|--|\n| `A1` | no |\n\n| `B1` |")).collect::<Vec<_>>(),
        ["A1"]
    );
}
