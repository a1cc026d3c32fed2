//! The rule that dependencies between our crates point down.

use std::collections::BTreeMap;

/// Every crate of the workspace with its layer. A crate may depend on crates of lower layers only.
pub const LAYERS: &[(&str, u32)] = &[
    ("spinpark-platform", 0),
    ("spinpark-measure", 0),
    ("spinpark-locks", 1),
    ("spinpark-classics", 1),
    ("spinpark-linux", 1),
    ("spinpark-recorder", 2),
    ("spinpark", 3),
    ("spinpark-pthread", 4),
    ("spinpark-profiler", 4),
    ("spinpark-profile", 4),
    ("spinpark-lockbench", 4),
    ("spinpark-sim", 5),
    ("spinpark-peers", 5),
    ("spinpark-documents", 6),
    ("spinpark-verify", 6),
    // It carries preload and profiler: its build script builds them, so cargo knows no edge.
    ("spinpark-cli", 7),
    ("spinpark-testkit", TESTKIT),
];

/// The layer of what is only for tests: above everything, and no crate's dependency.
const TESTKIT: u32 = u32::MAX;

/// A dependency of one crate of ours on another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The crate that depends.
    pub from: String,
    /// On whom.
    pub to: String,
    /// Whether for tests, examples and benchmarks only.
    pub is_dev: bool,
}

/// One message per edge that does not point down, and per crate that has no layer.
pub fn violations(crates: &[String], edges: &[Edge]) -> Vec<String> {
    let layers: BTreeMap<&str, u32> = LAYERS.iter().copied().collect();
    let homeless = crates
        .iter()
        .filter(|name| !layers.contains_key(name.as_str()))
        .map(|name| format!("{name} has no layer: give it one in `spinpark_verify::layers`"));
    let upward = edges.iter().filter_map(|edge| {
        let (from, to) = (*layers.get(edge.from.as_str())?, *layers.get(edge.to.as_str())?);
        let Edge { from: above, to: below, is_dev } = edge;
        // Tests may use the test kit, whatever layer they test.
        let is_allowed = to < from || (*is_dev && to == TESTKIT);
        let layer = |layer| if layer == TESTKIT { "tests".to_owned() } else { format!("layer {layer}") };
        (!is_allowed).then(|| {
            format!("{above} ({}) depends on {below} ({}), which is not below it", layer(from), layer(to))
        })
    });
    homeless.chain(upward).collect()
}
