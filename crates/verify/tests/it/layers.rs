//! Dependencies between our crates point down.

use cargo_metadata::{DependencyKind, MetadataCommand};
use spinpark_verify::layers::{Edge, LAYERS, violations};

#[test]
fn every_dependency_points_down() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let metadata =
        MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata runs");
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
