//! Definition files: the built-in ones, and what is said about bad ones.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use spinpark_classics::designs;
use spinpark_lockbench::locks::adapters::ADAPTERS;
use spinpark_lockbench::locks::bounds;
use spinpark_lockbench::locks::definitions::{Definitions, Role, Selection};
use spinpark_lockbench::locks::peers::{Peers, WORKER};
use spinpark_lockbench::locks::recording::Detail;
use spinpark_lockbench::locks::selection::{Request, select};

#[test]
fn the_built_in_ones_make_sense() {
    let definitions = Definitions::built_in().unwrap();
    for (name, baseline) in
        [("locks", "glibc"), ("pthread", "glibc"), ("mtx", "classic-mtx"), ("profiler", "glibc")]
    {
        let preset = definitions.preset(name).unwrap();
        let selected = select(&definitions, preset, &Request::default(), &Peers::default(), 2).unwrap();
        assert!(
            selected
                .cells
                .iter()
                .all(|cell| cell.implementations.first().is_some_and(|name| name == baseline))
        );
    }
    for (preset, baseline) in [("mtx", "classic-mtx"), ("profiler", "glibc")] {
        let varies = |name: &String| definitions.implementation(name).unwrap().varies.as_deref();
        assert!(
            definitions.preset(preset).unwrap().implementations[1..]
                .iter()
                .all(|it| varies(it) == Some(baseline))
        );
    }
    let names: Vec<_> = definitions.workloads.iter().map(|workload| &workload.name).collect();
    assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)));
}

/// An adapter without a row could not be named, and a row without an adapter could not run.
#[test]
fn every_adapter_has_a_row_and_every_peer_is_in_the_manual() {
    let definitions = Definitions::built_in().unwrap();
    let here = definitions.implementations.iter().filter(|it| it.install.is_none());
    let rows: BTreeSet<&str> = here.map(|it| it.adapter.as_str()).collect();
    let adapters: BTreeSet<&str> = ADAPTERS.iter().map(|adapter| adapter.name).collect();
    assert_eq!(rows, adapters, "rows of implementations.toml without `install`, and adapters");
    assert!(adapters.iter().any(|name| designs::by_name(name).is_none()));
    let manual = include_str!("../../../../docs/bench.md");
    let peers = manual.lines().find(|line| line.starts_with("| peers |")).unwrap();
    for peer in definitions.implementations.iter().filter(|it| it.role == Role::Peer) {
        assert!(
            peers.contains(&format!("`{}`", peer.name)),
            "docs/bench.md, row *peers*, lacks `{}`",
            peer.name
        );
    }
}

/// A library that the loader does not find stops the worker with all its peers.
#[test]
fn a_worker_that_does_not_start_is_no_missing_package() {
    let here = tempfile::tempdir().unwrap();
    let worker = here.path().join(WORKER);
    std::fs::write(&worker, "#!/bin/sh\necho 'libx.so: cannot open shared object file' >&2\nexit 127\n")
        .unwrap();
    std::fs::set_permissions(&worker, Permissions::from_mode(0o755)).unwrap();
    let peers = Peers::find(&here.path().join("spinpark"));
    let why = peers.why_missing("nsync", Some("libnsync-dev"));
    assert!(why.ends_with("does not start: libx.so: cannot open shared object file"), "{why}");
    assert!(Peers::default().why_missing("nsync", Some("libnsync-dev")).contains("apt install libnsync-dev"));
}

/// Every bound can be judged in what `--bounds` measures, and nothing else is measured.
#[test]
fn bounds_select_what_they_need() {
    let selections = needed("locks");
    let cell = |workload: &str, threads: usize| implementations(&selections, workload, threads);
    assert_eq!(cell("pair-single", 1).unwrap(), ["glibc", "drop-in"]);
    let saturated = cell("saturated", 256).unwrap();
    for name in ["glibc", "parking_lot", "abseil", "spinpark", "drop-in"] {
        assert!(saturated.iter().any(|implementation| implementation == name), "{saturated:?}");
    }
    assert!(!saturated.iter().any(|implementation| implementation == "drop-in-disabled" || implementation.contains("recorded")));
    assert_eq!(cell("saturated", 3), None);
}

/// What recording may cost is judged by itself.
#[test]
fn bounds_belong_to_a_preset() {
    let selections = needed("profiler");
    let cell = |workload: &str, threads: usize| implementations(&selections, workload, threads);
    let all = ["off", "contended", "sampled", "full"].map(|detail| format!("glibc-recorded-{detail}"));
    let pair = cell("pair-threaded", 1).unwrap();
    assert_eq!((pair[0].as_str(), &pair[1..]), ("glibc", &all[..]));
    for (workload, threads) in [("medium", 2), ("medium", 16), ("saturated", 2), ("saturated", 16)] {
        assert_eq!(cell(workload, threads).unwrap(), ["glibc", "glibc-recorded-contended"]);
    }
    assert_eq!(selections.len(), 5);
    let none = Definitions::built_in().unwrap().bounds_of("mtx").unwrap_err();
    assert!(none.contains("the preset `mtx` has no bounds; there are some for: locks, profiler"), "{none}");
}

/// Each detail of the recorder, in front of each of the two kinds of pthread locks, and nothing else that
/// differs.
#[test]
fn recorded_implementations() {
    let definitions = Definitions::built_in().unwrap();
    for locks in ["glibc", "drop-in"] {
        for detail in [Detail::Off, Detail::Contended, Detail::Sampled, Detail::Full] {
            let name = format!("{locks}-recorded-{}", detail.word());
            let recorded = definitions.implementation(&name).unwrap();
            assert_eq!(recorded.profile, Some(detail), "{name}");
            assert_eq!(recorded.varies.as_deref(), Some(locks), "{name}");
            let plain = definitions.implementation(locks).unwrap();
            assert_eq!((&recorded.adapter, recorded.preload), (&plain.adapter, plain.preload), "{name}");
        }
    }
    let count =
        definitions.implementations.iter().filter(|implementation| implementation.profile.is_some()).count();
    assert_eq!(count, 8);
}

/// What `--bounds` of a command measures.
fn needed(preset: &str) -> Vec<(Selection, Vec<String>)> {
    let definitions = Definitions::built_in().unwrap();
    bounds::selections(&definitions, &definitions.bounds_of(preset).unwrap()).unwrap()
}

/// The implementations of a cell in it.
fn implementations(
    selections: &[(Selection, Vec<String>)],
    workload: &str,
    threads: usize,
) -> Option<Vec<String>> {
    let is_it = |(selection, _): &&(Selection, Vec<String>)| {
        selection.workload == workload && selection.threads == [threads]
    };
    selections.iter().find(is_it).map(|(_, implementations)| implementations.clone())
}

fn error(text: &str) -> String {
    match Definitions::parse("my.toml", text) {
        Err(error) => error.to_string(),
        Ok(more) => {
            let mut definitions = Definitions::built_in().unwrap();
            definitions.add(more);
            definitions.check("my.toml").unwrap_err().to_string()
        }
    }
}

#[test]
fn bad_files_are_refused_with_the_line() {
    let workload = "[[workload]]\nname = \"x\"\nabout = \"y\"\nthreads = [2]\n";
    for (text, words) in [
        ("[[workloads]]\n", &["my.toml", "line 1", "unknown field `workloads`"][..]),
        (&format!("{workload}load.section = {{ outsid = 1 }}\n"), &["line 5", "outsid", "`outside`"]),
        (&format!("{workload}load.sektion = {{}}\n"), &["line 5", "sektion", "`section`"]),
        (workload, &["line 1", "missing field `load`"]),
        ("[[implementation]]\nside = \"ours\"\n", &["line 2", "unknown field `side`", "docs/bench.md"]),
        ("[[workload\n", &["line 1"]),
        (
            &format!("{workload}load.section = {{ lines = 100 }}\n"),
            &["my.toml: workload `x`: `lines` is 100"],
        ),
        (
            "[[implementation]]\nname = \"x\"\nabout = \"y\"\nrole = \"classic\"\nadapter = \"std\"\nvaries = \"none\"\n",
            &["implementation `x`: there is no implementation `none`"],
        ),
        (
            "[[implementation]]\nname = \"x\"\nabout = \"y\"\nrole = \"control\"\nadapter = \"std\"\nprofile = \"full\"\n",
            &[
                "implementation `x`: `profile` records pthread locks only",
                "pthread or pthread-adaptive, not std",
            ],
        ),
        (
            "[[implementation]]\nname = \"x\"\nabout = \"y\"\nrole = \"control\"\nadapter = \"pthread\"\nprofile = \"all\"\n",
            &["line 6", "unknown variant `all`", "`sampled`"],
        ),
        (
            "[[preset]]\nname = \"x\"\nimplementations = [\"none\"]\ncells = []\n",
            &["preset `x`: there is no implementation `none`"],
        ),
    ] {
        let error = error(text);
        for word in words {
            assert!(error.contains(word), "no `{word}` in: {error}");
        }
    }
}

#[test]
fn bad_bounds_are_refused() {
    let bound = |more: &str| {
        error(&format!(
            "[[bound]]\nwhat = \"b\"\nworkload = \"pair-single\"\nours = [\"spinpark\"]\nagainst = \"best\"\n{more}"
        ))
    };
    assert!(bound("figure = \"time\"").contains("neither `at_most` nor `at_least`"));
    assert!(bound("figure = \"time\"\nat_most = 1.0\nat_least = 1.0").contains("both"));
    assert!(bound("figure = \"time\"\nat_most = -1.0").contains("above zero"));
    assert!(bound("figure = \"speed\"\nat_most = 1.0").contains("line 6"));
    assert!(bound("figure = \"time\"\nat_most = 1.0\npreset = \"lock\"").contains("no preset `lock`"));
    assert!(bound("figure = \"longest-wait\"\nat_most = 1.0").contains("no thread waits"));
}

#[test]
fn a_users_workload_replaces_one_of_ours() {
    let text = "[[workload]]\nname = \"saturated\"\nabout = \"mine\"\nthreads = [7]\nload.section = {}\n";
    let mut definitions = Definitions::built_in().unwrap();
    let count = definitions.workloads.len();
    definitions.add(Definitions::parse("my.toml", text).unwrap());
    assert_eq!(definitions.workloads.len(), count);
    assert_eq!(definitions.workload("saturated").unwrap().threads, [7]);
}

#[test]
fn a_wish_narrows_the_preset_down() {
    let definitions = Definitions::built_in().unwrap();
    let preset = definitions.preset("locks").unwrap();
    let request = Request {
        workloads: vec!["pair-single".into(), "saturated".into()],
        implementations: vec!["std".into(), "onetbb".into(), "drop-in+A=1".into()],
        threads: vec![2, 16],
        baseline: Some("glibc".into()),
        bounds: Vec::new(),
    };
    let selected = select(&definitions, preset, &request, &Peers::default(), 2).unwrap();
    let cells: Vec<_> = selected.cells.iter().map(|cell| (cell.workload.as_str(), cell.threads)).collect();
    assert_eq!(cells, [("pair-single", 1), ("saturated", 2), ("saturated", 16)]);
    for cell in &selected.cells {
        assert_eq!(cell.implementations, ["glibc", "std", "drop-in+A=1"]);
        assert_eq!(cell.skipped[0].implementation, "onetbb");
        assert!(cell.skipped[0].why.contains("apt install g++ pkg-config libtbb-dev"), "{:?}", cell.skipped);
    }
    let request = Request { workloads: vec!["ping-pong-two-cpus".into()], ..Request::default() };
    let nothing = select(&definitions, preset, &request, &Peers::default(), 1).unwrap_err();
    assert!(nothing.contains("std: needs two CPUs"), "{nothing}");
}

/// Numbers of threads that a workload cannot have are left out of it, unless none is left.
#[test]
fn a_queue_needs_two_threads() {
    let definitions = Definitions::built_in().unwrap();
    let preset = definitions.preset("locks").unwrap();
    let threads = |wanted: &[usize]| {
        let request =
            Request { workloads: vec!["queue".into()], threads: wanted.to_vec(), ..Request::default() };
        let selected = select(&definitions, preset, &request, &Peers::default(), 2)?;
        Ok::<_, String>(selected.cells.iter().map(|cell| cell.threads).collect::<Vec<_>>())
    };
    assert_eq!(threads(&[1, 2, 10]).unwrap(), [2, 10]);
    assert!(threads(&[1]).unwrap_err().contains("the number of threads of a queue is 1"));
    let quick = Request { threads: vec![1, 2, 10, 64], ..Request::default() };
    assert!(select(&definitions, preset, &quick, &Peers::default(), 2).is_ok());
}
