//! docs/bench.md and docs/grid.md name every key of a definition file, and every field of the JSON.

use std::collections::BTreeSet;

use serde_json::Value;
use spinpark_lockbench::locks::bounds::Judgement;
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_measure::stats::verdict::Verdict;

use crate::{grid, locks};

const BENCH: &str = include_str!("../../../../docs/bench.md");
const GRID: &str = include_str!("../../../../docs/grid.md");

/// Fails if the code in a manual lacks one of `words`.
fn explained(manual: &str, words: impl IntoIterator<Item = String>) {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
    let code = manual.split('`').skip(1).step_by(2);
    let there: BTreeSet<&str> = code.flat_map(|code| code.split(|letter| !is_of_name(letter))).collect();
    let missing: Vec<String> = words.into_iter().filter(|word| !there.contains(word.as_str())).collect();
    assert!(missing.is_empty(), "not in the manual: {}", missing.join(", "));
}

/// What the error about an unknown key or value says to be known.
fn known(text: &str) -> Vec<String> {
    let error = Definitions::parse("x.toml", text).unwrap_err().to_string();
    let (_, known) = error.split_once("expected ").unwrap_or_else(|| panic!("{text}: {error}"));
    known
        .split('`')
        .skip(1)
        .step_by(2)
        .take_while(|word| *word != "docs/bench.md")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_key_of_a_definition_file_is_in_the_manual() {
    let kinds = ["workload", "implementation", "bound"];
    let keys = |kind: &&str| known(&format!("[[{kind}]]\nno-such-key = 1\n"));
    explained(BENCH, kinds.iter().flat_map(keys));
    let loads = known("[[workload]]\nload.no-such-load = {}\n");
    assert!(loads.len() > 8, "{loads:?}");
    let parameters = |load: &String| match load.as_str() {
        "broadcast" => Vec::new(),
        load => known(&format!("[[workload]]\nload.{load} = {{ no-such-key = 1 }}\n")),
    };
    explained(BENCH, loads.iter().flat_map(parameters));
    explained(BENCH, loads);
    for value in [
        "implementation]]\nrole",
        "implementation]]\nprofile",
        "bound]]\nfigure",
        "bound]]\nover",
        "workload]]\nload.pair.lock",
        "workload]]\nload.ping-pong.signal",
        "workload]]\nload.ping-pong.cpus",
        "workload]]\nload.queue.wake",
    ] {
        explained(BENCH, known(&format!("[[{value} = \"no-such-value\"\n")));
    }
}

/// The names of all fields in `value`, without those of maps by implementation.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| fields(one, found)),
        Value::Object(all) => all.iter().for_each(|(name, one)| {
            found.extend(Some(name.clone()).filter(|name| !locks::IMPLEMENTATIONS.contains(&name.as_str())));
            fields(one, found);
        }),
        _ => {}
    }
}

#[test]
fn every_field_of_the_json_is_in_the_manual() {
    let mut found = BTreeSet::new();
    fields(&locks::document(), &mut found);
    let mut grid = grid::document();
    grid["planes"].take(); // The head of planes.toml has their keys.
    fields(&grid, &mut found);
    assert!(found.contains("worst_cell") && found.contains("longest_gap_ns"), "{found:?}");
    explained(&format!("{BENCH}{GRID}"), found);
    let verdicts = [Verdict::Lower, Verdict::Higher, Verdict::Equivalent, Verdict::Undecided];
    let judgements = [Judgement::Holds, Judgement::Missed, Judgement::Undecided, Judgement::NotMeasured];
    let values = verdicts.map(serde_json::to_value).into_iter().chain(judgements.map(serde_json::to_value));
    explained(BENCH, values.map(|value| value.unwrap().as_str().unwrap().to_owned()));
}
