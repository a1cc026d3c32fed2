//! The rules that dependencies between our crates point down, and from the laboratory (`lab/`) to the product
//! (`crates/`), never back: also those that only tests have.

use std::collections::BTreeMap;

use cargo_metadata::DependencyKind;

/// Every crate of the workspace with its layer. A crate may depend on crates of lower layers only.
const LAYERS: &[(&str, u32)] = &[
    // The product.
    ("spinpark-platform", 0),
    ("spinpark-measure", 0),
    ("spinpark-demo", 0),
    ("spinpark-locks", 1),
    ("spinpark-linux", 2),
    ("spinpark-recorder", 3),
    ("spinpark", 4),
    ("spinpark-pthread", 4),
    ("spinpark-c", 4),
    ("spinpark-recorder-preload", 5),
    ("spinpark-profile", 5),
    // It carries the two libraries to preload: its build script builds them, so cargo knows no edge.
    ("spinpark-cli", 6),
    ("spinpark-fixtures", FIXTURES),
    // The laboratory.
    ("spinpark-charts", 7),
    ("spinpark-classics", 7),
    ("spinpark-lockbench", 8),
    ("spinpark-sim", 8),
    ("spinpark-peers", 9),
    ("spinpark-experiments", 9),
    ("spinpark-documents", 9),
    ("spinpark-verify", 9),
    ("spinpark-lab", 10),
    ("spinpark-testkit", TESTS),
    ("spinpark-tree", TESTS),
];

/// What tests of any layer may use.
const FIXTURES: u32 = u32::MAX - 1;

/// The layer of what is only for tests: above everything.
const TESTS: u32 = u32::MAX;

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

/// One message per edge that does not point down or leads from the product to the laboratory, and per crate
/// that has no layer. `crates` are names, each with whether it is the laboratory's.
fn violations(crates: &BTreeMap<String, bool>, edges: &[Edge]) -> Vec<String> {
    let layers: BTreeMap<&str, u32> = LAYERS.iter().copied().collect();
    let homeless = crates
        .keys()
        .filter(|name| !layers.contains_key(name.as_str()))
        .map(|name| format!("{name} has no layer: give it one in `ci/tree/src/layers.rs`"));
    let upward = edges.iter().filter_map(|edge| {
        let (from, to) = (*layers.get(edge.from.as_str())?, *layers.get(edge.to.as_str())?);
        let Edge { from: above, to: below, is_dev } = edge;
        let is_for_tests = *is_dev && to >= FIXTURES;
        let is_allowed = to < from || is_for_tests;
        let layer = |layer| if layer >= FIXTURES { "tests".to_owned() } else { format!("layer {layer}") };
        (!is_allowed).then(|| {
            format!("{above} ({}) depends on {below} ({}), which is not below it", layer(from), layer(to))
        })
    });
    let is_lab = |name: &str| crates.get(name).copied().unwrap_or_default();
    let back = edges.iter().filter(|edge| !is_lab(&edge.from) && is_lab(&edge.to)).map(
        |Edge { from, to, .. }| {
            format!("{from} is the product's and depends on {to}, which is the laboratory's")
        },
    );
    homeless.chain(upward).chain(back).collect()
}

/// Whether a crate is in the laboratory. The tests of the tree look at both floors.
fn is_of_lab(package: &cargo_metadata::Package) -> bool {
    let folder = package.manifest_path.parent().and_then(|folder| folder.parent());
    !folder.is_some_and(|floor| floor.ends_with("crates"))
}

#[test]
fn every_dependency_points_down() {
    let metadata = crate::workspace();
    let crates: BTreeMap<String, bool> = metadata
        .workspace_packages()
        .iter()
        .map(|package| (package.name.to_string(), is_of_lab(package)))
        .collect();
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
        .filter(|edge| crates.contains_key(&edge.to))
        .collect();
    assert!(!edges.is_empty(), "the workspace was read");
    assert_eq!(violations(&crates, &edges), [""; 0]);
}

fn edge(from: &str, to: &str, is_dev: bool) -> Edge {
    Edge { from: from.into(), to: to.into(), is_dev }
}

/// The names of all crates; those from layer 7 on are the laboratory's.
fn all() -> BTreeMap<String, bool> {
    let is_lab = |layer: u32| layer >= 7 && layer != FIXTURES;
    LAYERS.iter().map(|(name, layer)| ((*name).to_owned(), is_lab(*layer))).collect()
}

#[test]
fn an_edge_that_does_not_point_down_is_found() {
    let bad = [
        edge("spinpark-locks", "spinpark-linux", false),  // beside
        edge("spinpark-locks", "spinpark-linux", true),   // not even for tests
        edge("spinpark-linux", "spinpark-cli", false),    // above
        edge("spinpark-cli", "spinpark-fixtures", false), // for tests only
        edge("spinpark-cli", "spinpark-testkit", true),   // to the laboratory
    ];
    for edge in bad {
        assert_eq!(violations(&all(), std::slice::from_ref(&edge)).len(), 1, "{edge:?}");
    }
    // Up, and to the laboratory.
    assert_eq!(violations(&all(), &[edge("spinpark-profile", "spinpark-sim", true)]).len(), 2);
    let good = [
        edge("spinpark-cli", "spinpark-profile", false),
        edge("spinpark-lockbench", "spinpark", false),
        edge("spinpark-cli", "spinpark-fixtures", true),
        edge("spinpark-lab", "spinpark-testkit", true),
        edge("spinpark-testkit", "spinpark-fixtures", false),
        edge("spinpark-verify", "loom", false), // not ours
    ];
    assert_eq!(violations(&all(), &good), [""; 0]);
}

#[test]
fn a_crate_without_a_layer_is_found() {
    let found = violations(&BTreeMap::from([("spinpark-new".to_owned(), true)]), &[]);
    assert!(found[0].contains("spinpark-new has no layer"), "{found:?}");
}
