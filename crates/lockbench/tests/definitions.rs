//! Definition files: the built-in ones, and what is said about bad ones.

use spinpark_lockbench::locks::bounds;
use spinpark_lockbench::locks::definitions::{Definitions, Selection};
use spinpark_lockbench::locks::peers::Peers;
use spinpark_lockbench::locks::recording::Detail;
use spinpark_lockbench::locks::selection::{Wish, select};

#[test]
fn the_built_in_ones_make_sense() {
    let definitions = Definitions::built_in().unwrap();
    for (name, baseline) in
        [("locks", "glibc"), ("pthread", "glibc"), ("mtx", "classic-mtx"), ("profiler", "glibc")]
    {
        let preset = definitions.preset(name).unwrap();
        let selected = select(&definitions, preset, &Wish::default(), &Peers::default(), 2).unwrap();
        assert!(selected.cells.iter().all(|cell| cell.targets.first().is_some_and(|name| name == baseline)));
    }
    for (preset, baseline) in [("mtx", "classic-mtx"), ("profiler", "glibc")] {
        let varies = |name: &String| definitions.target(name).unwrap().varies.as_deref();
        assert!(
            definitions.preset(preset).unwrap().targets[1..].iter().all(|it| varies(it) == Some(baseline))
        );
    }
    let names: Vec<_> = definitions.shapes.iter().map(|shape| &shape.name).collect();
    assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)));
}

/// Every bound can be judged in what `--bounds` measures, and nothing else is measured.
#[test]
fn bounds_select_what_they_need() {
    let selections = needed("locks");
    let cell = |shape: &str, threads: usize| targets(&selections, shape, threads);
    assert_eq!(cell("pair-single", 1).unwrap(), ["glibc", "drop-in"]);
    let saturated = cell("saturated", 256).unwrap();
    for name in ["glibc", "parking_lot", "abseil", "spinpark", "drop-in"] {
        assert!(saturated.iter().any(|target| target == name), "{saturated:?}");
    }
    assert!(!saturated.iter().any(|target| target == "drop-in-disabled" || target.contains("recorded")));
    assert_eq!(cell("saturated", 3), None);
}

/// What recording may cost is judged by itself.
#[test]
fn bounds_belong_to_a_preset() {
    let selections = needed("profiler");
    let cell = |shape: &str, threads: usize| targets(&selections, shape, threads);
    let all = ["off", "contended", "sampled", "full"].map(|detail| format!("glibc-recorded-{detail}"));
    let pair = cell("pair-threaded", 1).unwrap();
    assert_eq!((pair[0].as_str(), &pair[1..]), ("glibc", &all[..]));
    for (shape, threads) in [("medium", 2), ("medium", 16), ("saturated", 2), ("saturated", 16)] {
        assert_eq!(cell(shape, threads).unwrap(), ["glibc", "glibc-recorded-contended"]);
    }
    assert_eq!(selections.len(), 5);
    let none = Definitions::built_in().unwrap().keep_bounds_of("mtx").unwrap_err();
    assert!(none.contains("the preset `mtx` has no bounds; there are some for: locks, profiler"), "{none}");
}

/// Each detail of the recorder, in front of each of the two kinds of pthread locks, and nothing else that differs.
#[test]
fn recorded_targets() {
    let definitions = Definitions::built_in().unwrap();
    for locks in ["glibc", "drop-in"] {
        for detail in [Detail::Off, Detail::Contended, Detail::Sampled, Detail::Full] {
            let name = format!("{locks}-recorded-{}", detail.word());
            let recorded = definitions.target(&name).unwrap();
            assert_eq!(recorded.profile, Some(detail), "{name}");
            assert_eq!(recorded.varies.as_deref(), Some(locks), "{name}");
            let plain = definitions.target(locks).unwrap();
            assert_eq!((&recorded.family, recorded.preload), (&plain.family, plain.preload), "{name}");
        }
    }
    let count = definitions.targets.iter().filter(|target| target.profile.is_some()).count();
    assert_eq!(count, 8);
}

/// What `--bounds` of a command measures.
fn needed(preset: &str) -> Vec<(Selection, Vec<String>)> {
    let mut definitions = Definitions::built_in().unwrap();
    definitions.keep_bounds_of(preset).unwrap();
    bounds::selections(&definitions).unwrap()
}

/// The targets of a cell in it.
fn targets(selections: &[(Selection, Vec<String>)], shape: &str, threads: usize) -> Option<Vec<String>> {
    let is_it = |(selection, _): &&(Selection, Vec<String>)| {
        selection.shape == shape && selection.threads == [threads]
    };
    selections.iter().find(is_it).map(|(_, targets)| targets.clone())
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
            &["target `x`: there is no implementation `none`"],
        ),
        (
            "[[target]]\nname = \"x\"\nabout = \"y\"\nside = \"control\"\nfamily = \"std\"\nprofile = \"full\"\n",
            &["target `x`: `profile` records pthread locks only", "pthread or pthread-adaptive, not std"],
        ),
        (
            "[[target]]\nname = \"x\"\nabout = \"y\"\nside = \"control\"\nfamily = \"pthread\"\nprofile = \"all\"\n",
            &["line 6", "unknown variant `all`", "`sampled`"],
        ),
        (
            "[[preset]]\nname = \"x\"\ntargets = [\"none\"]\ncells = []\n",
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
            "[[bound]]\nwhat = \"b\"\nshape = \"pair-single\"\nours = [\"spinpark\"]\nagainst = \"best\"\n{more}"
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
