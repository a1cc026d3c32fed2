//! Definition files: the built-in ones, and what is said about bad ones.

use spinpark_bench::locks::bounds;
use spinpark_bench::locks::definitions::Definitions;
use spinpark_bench::locks::peers::Peers;
use spinpark_bench::locks::selection::{Wish, select};

#[test]
fn the_built_in_ones_make_sense() {
    let definitions = Definitions::built_in().unwrap();
    for (name, baseline) in [("locks", "glibc"), ("pthread", "glibc"), ("mtx", "classic-mtx")] {
        let preset = definitions.preset(name).unwrap();
        let selected = select(&definitions, preset, &Wish::default(), &Peers::default(), 2).unwrap();
        assert!(selected.cells.iter().all(|cell| cell.targets.first().is_some_and(|name| name == baseline)));
    }
    let mtx = definitions.preset("mtx").unwrap();
    assert!(
        mtx.targets[1..]
            .iter()
            .all(|name| { definitions.target(name).unwrap().varies.as_deref() == Some("classic-mtx") })
    );
    let names: Vec<_> = definitions.shapes.iter().map(|shape| &shape.name).collect();
    assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)));
}

/// Every bound can be judged in what `--bounds` measures, and nothing else is measured.
#[test]
fn bounds_select_what_they_need() {
    let definitions = Definitions::built_in().unwrap();
    let selections = bounds::selections(&definitions).unwrap();
    let cell = |shape: &str, threads: usize| {
        let is_it = |(selection, _): &&(spinpark_bench::locks::definitions::Selection, Vec<String>)| {
            selection.shape == shape && selection.threads == [threads]
        };
        selections.iter().find(is_it).map(|(_, targets)| targets.clone())
    };
    assert_eq!(cell("pair-single", 1).unwrap(), ["glibc", "drop-in"]);
    let saturated = cell("saturated", 256).unwrap();
    for name in ["glibc", "parking_lot", "abseil", "spinpark", "drop-in"] {
        assert!(saturated.iter().any(|target| target == name), "{saturated:?}");
    }
    assert!(!saturated.iter().any(|target| target == "drop-in-disabled"));
    assert_eq!(cell("saturated", 3), None);
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
    let shape = "[[shape]]\nname = \"x\"\nabout = \"y\"\nthreads = [2]\n";
    for (text, words) in [
        ("[[shapes]]\n", &["my.toml", "line 1", "unknown field `shapes`"][..]),
        (&format!("{shape}load.section = {{ outsid = 1 }}\n"), &["line 5", "outsid", "`outside`"]),
        (&format!("{shape}load.sektion = {{}}\n"), &["line 5", "sektion", "`section`"]),
        (shape, &["line 1", "missing field `load`"]),
        ("[[shape\n", &["line 1"]),
        (&format!("{shape}load.section = {{ lines = 100 }}\n"), &["my.toml: shape `x`: `lines` is 100"]),
        (
            "[[target]]\nname = \"x\"\nabout = \"y\"\nside = \"classic\"\nfamily = \"std\"\nvaries = \"none\"\n",
            &["target `x`: there is no target `none`"],
        ),
        (
            "[[preset]]\nname = \"x\"\ntargets = [\"none\"]\ncells = []\n",
            &["preset `x`: there is no target `none`"],
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
            "[[bound]]\nwhat = \"b\"\nshape = \"pair-single\"\nours = [\"spinpark\"]\nagainst = \"best\"\n{more}"
        ))
    };
    assert!(bound("figure = \"time\"").contains("neither `at_most` nor `at_least`"));
    assert!(bound("figure = \"time\"\nat_most = 1.0\nat_least = 1.0").contains("both"));
    assert!(bound("figure = \"time\"\nat_most = -1.0").contains("above zero"));
    assert!(bound("figure = \"speed\"\nat_most = 1.0").contains("line 6"));
    assert!(bound("figure = \"longest-wait\"\nat_most = 1.0").contains("nobody waits"));
}

#[test]
fn a_users_shape_replaces_one_of_ours() {
    let text = "[[shape]]\nname = \"saturated\"\nabout = \"mine\"\nthreads = [7]\nload.section = {}\n";
    let mut definitions = Definitions::built_in().unwrap();
    let count = definitions.shapes.len();
    definitions.add(Definitions::parse("my.toml", text).unwrap());
    assert_eq!(definitions.shapes.len(), count);
    assert_eq!(definitions.shape("saturated").unwrap().threads, [7]);
}

#[test]
fn a_wish_narrows_the_preset_down() {
    let definitions = Definitions::built_in().unwrap();
    let preset = definitions.preset("locks").unwrap();
    let wish = Wish {
        shapes: vec!["pair-single".into(), "saturated".into()],
        targets: vec!["std".into(), "onetbb".into(), "drop-in+A=1".into()],
        threads: vec![2, 16],
        baseline: Some("glibc".into()),
        bounds: false,
    };
    let selected = select(&definitions, preset, &wish, &Peers::default(), 2).unwrap();
    let cells: Vec<_> = selected.cells.iter().map(|cell| (cell.shape.as_str(), cell.threads)).collect();
    assert_eq!(cells, [("pair-single", 1), ("saturated", 2), ("saturated", 16)]);
    for cell in &selected.cells {
        assert_eq!(cell.targets, ["glibc", "std", "drop-in+A=1"]);
        assert_eq!(cell.skipped[0].target, "onetbb");
        assert!(cell.skipped[0].why.contains("apt install libtbb-dev"), "{:?}", cell.skipped);
    }
    let wish = Wish { shapes: vec!["ping-pong-two-cpus".into()], ..Wish::default() };
    let nothing = select(&definitions, preset, &wish, &Peers::default(), 1).unwrap_err();
    assert!(nothing.contains("std: needs two CPUs"), "{nothing}");
}

/// Numbers of threads that a shape cannot have are left out of it, unless none is left.
#[test]
fn a_queue_needs_two_threads() {
    let definitions = Definitions::built_in().unwrap();
    let preset = definitions.preset("locks").unwrap();
    let threads = |wanted: &[usize]| {
        let wish = Wish { shapes: vec!["queue".into()], threads: wanted.to_vec(), ..Wish::default() };
        let selected = select(&definitions, preset, &wish, &Peers::default(), 2)?;
        Ok::<_, String>(selected.cells.iter().map(|cell| cell.threads).collect::<Vec<_>>())
    };
    assert_eq!(threads(&[1, 2, 10]).unwrap(), [2, 10]);
    assert!(threads(&[1]).unwrap_err().contains("the number of threads of a queue is 1"));
    let quick = Wish { threads: vec![1, 2, 10, 64], ..Wish::default() };
    assert!(select(&definitions, preset, &quick, &Peers::default(), 2).is_ok());
}
