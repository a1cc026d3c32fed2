//! The worker runs all that it lists.

use std::env;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::locks::load::{Load, Placement};
use spinpark_lockbench::locks::peers::Listing;
use spinpark_lockbench::locks::planes::points;
use spinpark_lockbench::locks::worker::Request;
use spinpark_lockbench::locks::workloads::Report;

fn worker(argument: &str) -> Result<String, String> {
    let output = Command::new(cargo_bin!("spinpark-peers-worker")).arg(argument).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn listing() -> Listing {
    serde_json::from_str(&worker("--list").unwrap()).unwrap()
}

/// Each peer that has to be installed is there, or the worker says how to install it; each shim is such a
/// peer.
#[test]
fn every_peer_is_accounted_for() {
    let listing = listing();
    let definitions = Definitions::built_in().unwrap();
    let installed = definitions.implementations.iter().filter(|it| it.install.is_some());
    let mut names: Vec<&str> = installed.map(|it| it.adapter.as_str()).collect();
    names.sort_unstable();
    let mut listed: Vec<&str> =
        listing.adapters.keys().chain(listing.missing.keys()).map(String::as_str).collect();
    listed.sort_unstable();
    assert_eq!(listed, names, "shims, and rows of implementations.toml with `install`");
    for name in names {
        match listing.missing.get(name) {
            Some(why) => {
                println!("not tested: {name}: {why}");
                assert!(env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none(), "{name} has to be there: {why}");
            }
            None => assert!(listing.adapters.contains_key(name) && !listing.primitives[name].is_empty()),
        }
    }
}

/// Whether a run does an operation: a longer run follows only where a busy machine does none in a short one.
fn does_something(adapter: &str, load: &Load, threads: usize) -> bool {
    [5, 50, 500, 5_000].into_iter().any(|millis| {
        let request = Request {
            adapter: adapter.to_owned(),
            load: load.clone(),
            threads,
            millis,
            cpus: Placement::Any,
            count_futex_calls: false,
            untimed: true,
        };
        Report::parse(&worker(&serde_json::to_string(&request).unwrap()).unwrap()).unwrap().operations > 0
    })
}

/// Every workload that a peer can run does something, and finds its own result right.
#[test]
fn every_peer_runs_every_workload() {
    let definitions = Definitions::built_in().unwrap();
    for (adapter, primitives) in listing().primitives {
        for workload in &definitions.workloads {
            if !primitives.iter().any(|name| name == workload.load.needs().name()) {
                continue;
            }
            let threads = workload.threads[workload.threads.len() / 3];
            assert!(
                does_something(&adapter, &workload.load, threads),
                "{adapter} does nothing in {}",
                workload.name
            );
        }
    }
}

/// The same for a thinned grid: the last cell of each plane.
#[test]
fn every_peer_runs_every_plane() {
    let definitions = Definitions::built_in().unwrap();
    for (adapter, primitives) in listing().primitives {
        for plane in &definitions.planes {
            let point = points(plane, &plane.axes.replaced_by(&plane.quick)).unwrap().pop().unwrap();
            if !primitives.iter().any(|name| name == point.load.needs().name()) {
                continue;
            }
            assert!(
                does_something(&adapter, &point.load, point.threads),
                "{adapter} does nothing in {}",
                plane.name
            );
        }
    }
}

#[test]
fn what_it_refuses() {
    assert!(worker("nonsense").unwrap_err().contains("request cannot be read"));
    let request = r#"{"adapter":"glibc","load":{"broadcast":{}},"threads":2,"millis":1}"#;
    assert!(worker(request).unwrap_err().contains("no locks called `glibc`"));
}
