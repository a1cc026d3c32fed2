//! What is policy stands in `crates/locks/src/policy`: the protocol reads no constant of the machine, asks for
//! no number of CPUs, and names no constant of a policy.

use std::fs;
use std::path::{Path, PathBuf};

use syn::Item;

/// What the protocol itself needs: polls of the queue lock, which is held for tens of nanoseconds.
const ALLOWED: [&str; 1] = ["TUNING.queue_polls"];

fn sources(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            let source = fs::read_to_string(&path).expect("a source is text");
            found.push((path, source));
        }
    }
}

/// Whether `word` is in `code`, and not a part of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(is_part) && !code[at + word.len()..].starts_with(is_part))
}

/// The lines of `source` that decide something which is a policy's.
fn decisions<'a>(source: &'a str, constants: &[String]) -> Vec<&'a str> {
    let decides = |line: &&str| {
        let mut code = line.split("//").next().unwrap_or_default().to_owned();
        for allowed in ALLOWED {
            code = code.replace(allowed, "");
        }
        let named = constants.iter().map(String::as_str).chain(["TUNING", "cpus"]);
        named.into_iter().any(|name| has_word(&code, name))
    };
    source.lines().filter(decides).collect()
}

/// The constants of the policies. (Those of what threads learn, in a directory of its own, are private to its
/// files.)
fn constants(policies: &[(PathBuf, String)]) -> Vec<String> {
    let is_one = |path: &Path| path.parent().is_some_and(|parent| parent.ends_with("policy"));
    let policies = policies.iter().filter(|(path, _)| is_one(path));
    let items = policies.flat_map(|(_, source)| syn::parse_file(source).expect("a source is Rust").items);
    let constants = items.filter_map(|item| match item {
        Item::Const(constant) if constant.ident != "_" => Some(constant.ident.to_string()),
        _ => None,
    });
    constants.collect()
}

#[test]
fn the_protocol_decides_nothing_that_is_a_policys() {
    let mut found = Vec::new();
    sources(&crate::repository().join("crates/locks/src"), &mut found);
    let is_policy =
        |(path, _): &(PathBuf, String)| path.components().any(|part| part.as_os_str() == "policy");
    let (policies, protocol): (Vec<_>, Vec<_>) = found.into_iter().partition(is_policy);
    let constants = constants(&policies);
    assert!(constants.len() > 5 && protocol.len() > 10, "the sources were read: {constants:?}");
    let wrong: Vec<_> = protocol
        .iter()
        .flat_map(|(path, source)| {
            decisions(source, &constants).into_iter().map(|line| format!("{}: {line}", path.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "to be asked of `Policy`: {wrong:#?}");
}

#[test]
fn a_decision_outside_of_a_policy_is_found() {
    let constants = ["FIRST_WAIT_NS".to_owned()];
    for line in ["let end = P::TUNING.spin_ns;", "if P::cpus() > 2 {", "start + FIRST_WAIT_NS"] {
        assert_eq!(decisions(line, &constants), [line]);
    }
    for line in [
        "let polls = P::TUNING.queue_polls;",
        "P::only_cpu()",
        "// `FIRST_WAIT_NS`: see there",
        "NOT_FIRST_WAIT_NS",
    ] {
        assert_eq!(decisions(line, &constants), [""; 0]);
    }
}
