//! The rule that dependencies between our crates point down.

use std::collections::BTreeMap;

use cargo_metadata::DependencyKind;

/// Every crate of the workspace with its layer. A crate may depend on crates of lower layers only.
const LAYERS: &[(&str, u32)] = &[
    ("spinpark-platform", 0),
    ("spinpark-measure", 0),
    ("spinpark-locks", 1),
    ("spinpark-classics", 1),
    ("spinpark-linux", 2),
    ("spinpark-recorder", 3),
    ("spinpark", 4),
    ("spinpark-pthread", 4),
    ("spinpark-recorder-preload", 5),
    ("spinpark-profile", 5),
    ("spinpark-lockbench", 5),
    ("spinpark-sim", 6),
    ("spinpark-peers", 6),
    ("spinpark-documents", 7),
    ("spinpark-verify", 7),
    // It carries the two libraries to preload: its build script builds them, so cargo knows no edge.
    ("spinpark-cli", 8),
    ("spinpark-testkit", TESTKIT),
    ("spinpark-tree", TESTKIT),
];

/// The layer of what is only for tests: above everything, and no crate's dependency.
const TESTKIT: u32 = u32::MAX;

/// A dependency of one crate of the workspace on another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    /// The crate that depends.
    from: String,
    /// The crate that it depends on.
    to: String,
    /// Whether for tests, examples and benchmarks only.
    is_dev: bool,
}

/// One message per edge that does not point down, and per crate that has no layer.
fn violations(crates: &[String], edges: &[Edge]) -> Vec<String> {
    let layers: BTreeMap<&str, u32> = LAYERS.iter().copied().collect();
    let homeless = crates
        .iter()
        .filter(|name| !layers.contains_key(name.as_str()))
        .map(|name| format!("{name} has no layer: give it one in `ci/tree/src/layers.rs`"));
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

#[test]
fn every_dependency_points_down() {
    let metadata = crate::workspace();
    let crates: Vec<String> =
        metadata.workspace_packages().iter().map(|package| package.name.to_string()).collect();
    let edges: Vec<Edge> = metadata
        .workspace_packages()
        .iter()
        .flat_map(|package| {
            package.dependencies.iter().map(|dependency| Edge {
                from: package.name.to_string(),
                to: dependency.name.clone(),
                is_dev: dependency.kind == DependencyKind::Development,
            })
        })
        .filter(|edge| crates.contains(&edge.to))
        .collect();
    assert!(!edges.is_empty(), "the workspace was read");
    assert_eq!(violations(&crates, &edges), [""; 0]);
}

fn edge(from: &str, to: &str, is_dev: bool) -> Edge {
    Edge { from: from.into(), to: to.into(), is_dev }
}

#[test]
fn an_edge_that_does_not_point_down_is_found() {
    let crates: Vec<String> = LAYERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let bad = [
        edge("spinpark-locks", "spinpark-linux", false), // beside
        edge("spinpark-locks", "spinpark-linux", true),  // not even for tests
        edge("spinpark-linux", "spinpark-cli", false),   // above
        edge("spinpark-cli", "spinpark-testkit", false), // for tests only
    ];
    for edge in bad {
        assert_eq!(violations(&crates, std::slice::from_ref(&edge)).len(), 1, "{edge:?}");
    }
    let good = [
        edge("spinpark-cli", "spinpark-documents", false),
        edge("spinpark-lockbench", "spinpark", false),
        edge("spinpark-cli", "spinpark-testkit", true),
        edge("spinpark-testkit", "spinpark-cli", false),
        edge("spinpark-verify", "loom", false), // not ours
    ];
    assert_eq!(violations(&crates, &good), [""; 0]);
}

#[test]
fn a_crate_without_a_layer_is_found() {
    let found = violations(&["spinpark-new".to_owned()], &[]);
    assert!(found[0].contains("spinpark-new has no layer"), "{found:?}");
}
