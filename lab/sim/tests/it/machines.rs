//! Machine files: those of this repository, and what is said about bad ones.

use std::fs;

use spinpark_sim::machine::keys::KEYS;
use spinpark_sim::machine::sheet::Sheet;
use spinpark_sim::machine::{Distance, Machine, machines};

#[test]
fn every_machine_of_the_repository_loads() {
    for name in machines() {
        let machine = Machine::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.name, name);
        assert!(machine.about.chars().count() <= 100, "{name}: a line about it fits into a line");
        let memory = &machine.memory;
        let mut transfers = vec![memory.hit_ns, memory.near_ns, memory.socket_ns];
        transfers.extend(&memory.hop_ns);
        assert!(transfers.is_sorted(), "{name}: what is farther costs more: {transfers:?}");
        assert!(memory.hit_ns <= memory.rmw_ns && memory.hit_ns < memory.shared_ns, "{name}");
        assert_eq!(machine.cpus(), machine.shape.all_cpus());
    }
}

#[test]
fn names_count_the_cores() {
    for (name, cores, cpus) in [
        ("up", 1, 1),
        ("core2-4", 4, 4),
        ("westmere-12", 12, 24),
        ("nehalem-ex-64", 64, 128),
        ("westmere-ex-40", 40, 40),
        ("westmere-ex-80", 80, 80),
        ("e4500-12", 12, 12),
        ("sapphire-rapids-112", 112, 224),
        ("epyc-7r13-96", 96, 192),
        ("big-512", 512, 512),
        ("this-2", 2, 2),
    ] {
        let shape = Machine::load(name).unwrap().shape;
        assert_eq!((shape.all_cores(), shape.all_cpus()), (cores, cpus), "{name}");
    }
}

#[test]
fn fewer_cpus() {
    let machine = Machine::load("nehalem-ex-64").unwrap();
    assert_eq!(machine.clone().limited_to(64).cpus(), 64);
    assert_eq!(machine.clone().limited_to(0).cpus(), 1);
    assert_eq!(machine.limited_to(1000).cpus(), 128);
}

#[test]
fn figures_are_inherited_and_cycles_are_converted() {
    let machine = Machine::load("nehalem-ex-64").unwrap();
    // Its own clock, its base's cycles.
    assert!((machine.memory.hop_ns[0] - 289.0 / 2.27).abs() < 1e-9);
    assert!((machine.memory.shared_ns - 21.0).abs() < 1e-9);
    assert_eq!(machine.shape.distance(0, 64), Distance::Core);
    assert_eq!(machine.shape.distance(0, 48), Distance::Hops(2));
    assert_eq!(machine.scheduler.min_slice_ns, 4e6);
    assert_eq!(machine.kernel.deep_idle.map(|idle| idle.exit_ns), Some(20e3));
    let other = Machine::load("core2-4").unwrap();
    assert_eq!((other.kernel.deep_idle, other.memory.hop_ns.len()), (None, 0));
    assert_eq!(other.shape.distance(0, 2), Distance::Socket);
}

#[test]
fn every_figure_has_a_source() {
    for name in machines() {
        let description = Machine::describe(name).unwrap();
        assert_eq!(description.figures.len(), KEYS.len(), "{name}");
        assert!(description.figures.iter().all(|figure| !figure.source.is_empty()), "{name}");
        assert!(!description.notes.is_empty() && !description.shape_source.is_empty(), "{name}");
    }
}

#[test]
fn a_description() {
    let description = Machine::describe("westmere-12").unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&description).unwrap());
}

#[test]
fn a_sheet_survives_being_written() {
    let text = include_str!("../../machines/nehalem-ex-64.toml");
    let sheet = Sheet::parse("nehalem-ex-64.toml", text).unwrap();
    assert_eq!(Sheet::parse("nehalem-ex-64.toml", &sheet.to_string()).unwrap(), sheet);
}

/// A small file that is right but for `change`.
fn small(change: &str) -> String {
    format!("name = \"mine\"\nabout = \"mine\"\nbased_on = \"westmere-ex-40\"\n{change}")
}

#[test]
fn bad_files() {
    let four = "[[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]";
    let cases = [
        ("no TOML", "name = \n".to_owned()),
        ("no name", "about = \"x\"\n".to_owned()),
        ("nothing but a name", "name = \"x\"\nabout = \"y\"\n".to_owned()),
        (
            "nothing but a shape",
            format!(
                "name = \"x\"\nabout = \"y\"\n[clock]\nghz = {{ value = 2, source = \"s\" }}\n[shape]\nsockets = 4\ncaches = 1\n\
             cores = 1\nthreads = 1\ntopology = {four}\nsource = \"s\"\n"
            ),
        ),
        ("unknown base", small("").replace("westmere-ex-40", "westmere-ex-4")),
        ("unknown table", small("[memroy]\n")),
        ("table that is none", small("memory = 4\n")),
        ("unknown key", small("[memory]\nhitt = { ns = 1, source = \"s\" }\n")),
        ("unknown key like none", small("[memory]\nxyz = { ns = 1, source = \"s\" }\n")),
        ("unknown unit", small("[memory]\nhit = { cycels = 1, source = \"s\" }\n")),
        ("unit of a plain number", small("[memory]\nserial = { ns = 1, source = \"s\" }\n")),
        ("figure alone", small("[memory]\nhit = 4\n")),
        ("no source", small("[memory]\nhit = { ns = 4 }\n")),
        ("empty source", small("[memory]\nhit = { ns = 4, source = \" \" }\n")),
        ("two values", small("[memory]\nhit = { ns = 4, cycles = 9, source = \"s\" }\n")),
        ("negative", small("[memory]\nhit = { ns = -4, source = \"s\" }\n")),
        ("not finite", small("[memory]\nhit = { ns = inf, source = \"s\" }\n")),
        ("above one", small("[memory]\nserial = { value = 1.5, source = \"s\" }\n")),
        ("below one", small("[memory]\nnearness = { value = 0.5, source = \"s\" }\n")),
        ("no power of two", small("[kernel]\nfutex_buckets = { value = 100, source = \"s\" }\n")),
        ("clock that stands", small("[clock]\nghz = { value = 0, source = \"s\" }\n")),
        ("miss of seconds", small("[memory]\ndram = { ms = 1.5, source = \"s\" }\n")),
        ("miss of many cycles", small("[memory]\nnear = { cycles = 1e9, source = \"s\" }\n")),
        ("one of several links", small("[memory]\nhop = { us = [0.1, 1200], source = \"s\" }\n")),
        ("no number", small("[kernel]\nsyscall = { us = nan, source = \"s\" }\n")),
        ("fast clock", small("[clock]\nghz = { value = 2130, source = \"MHz\" }\n")),
        ("negative clock", small("[clock]\nghz = { value = -1, source = \"s\" }\n")),
        ("no slice", small("[scheduler]\nmin_slice = { ns = 0, source = \"s\" }\n")),
        ("sibling that stands", small("[cpu]\nsmt = { value = 0, source = \"s\" }\n")),
        ("half a deep sleep", small("[kernel]\ndeep_idle_exit = { never = true, source = \"s\" }\n")),
        ("shape without source", small("[shape]\nsockets = 2\n")),
        ("no sockets", small("[shape]\nsockets = 0\nsource = \"s\"\n")),
        ("a million cores", small("[shape]\ncores = 1000000\nsource = \"s\"\n")),
        ("negative cores", small("[shape]\ncores = -4\nsource = \"s\"\n")),
        ("too many", small("[shape]\ncores = 300\nsource = \"s\"\n")),
        ("unknown count", small("[shape]\nscokets = 2\nsource = \"s\"\n")),
        ("unknown topology", small("[shape]\ntopology = \"rign\"\nsource = \"s\"\n")),
        ("topology for others", small("[shape]\ntopology = \"twisted-hypercube-8\"\nsource = \"s\"\n")),
        ("matrix of another size", small("[shape]\ntopology = [[0, 1], [1, 0]]\nsource = \"s\"\n")),
        (
            "not symmetric",
            small(&format!(
                "[shape]\ntopology = {}\nsource = \"s\"\n",
                four.replacen("0, 1, 1, 1", "0, 2, 1, 1", 1)
            )),
        ),
        (
            "far from itself",
            small(&format!(
                "[shape]\ntopology = {}\nsource = \"s\"\n",
                four.replacen("0, 1, 1, 1", "1, 1, 1, 1", 1)
            )),
        ),
        ("linked by nothing", small("[shape]\nsockets = 2\ntopology = [[0, 0], [0, 0]]\nsource = \"s\"\n")),
        ("no time for a link", small("[memory]\nhop = { ns = [], source = \"s\" }\n")),
    ];
    let said: Vec<String> = cases
        .iter()
        .map(|(what, text)| {
            let error = Machine::parse("mine.toml", text).expect_err(what);
            format!("{what}:\n  {}", error.to_string().replace('\n', "\n  "))
        })
        .collect();
    insta::assert_snapshot!(said.join("\n\n"));
}

/// Whose figure it is, and not whose file was asked for, is named.
#[test]
fn a_figure_of_a_base_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("base.toml"), small("[scheduler]\nlatency = { ns = 10, source = \"s\" }\n")).unwrap();
    fs::write(path("mine.toml"), small("").replace("westmere-ex-40", "./base.toml")).unwrap();
    let error = Machine::load(&path("mine.toml")).unwrap_err().to_string();
    assert!(error.contains("base.toml: `scheduler.latency` is 10 ns, but can only be from 1 us"), "{error}");
    // What is not taken from there is not looked at.
    fs::write(
        path("mine.toml"),
        small("[scheduler]\nlatency = { us = 10, source = \"s\" }\n")
            .replace("westmere-ex-40", "./base.toml"),
    )
    .unwrap();
    assert_eq!(Machine::load(&path("mine.toml")).unwrap().scheduler.latency_ns, 1e4);
}

/// The ends of a range are in it.
#[test]
fn figures_that_just_can_be() {
    for figure in [
        "[clock]\nghz = { value = 0.01, source = \"s\" }\n",
        "[memory]\ndram = { ms = 1, source = \"s\" }\n",
        "[memory]\ninvalidate = { ns = 0, source = \"s\" }\n",
        "[scheduler]\nmin_slice = { us = 1, source = \"s\" }\n",
        "[scheduler]\ntick = { ns = 0, source = \"s\" }\n",
        "[scheduler]\nwakeup = { never = true, source = \"s\" }\n",
        "[shape]\nsockets = 1\ncores = 1024\nsource = \"s\"\n",
    ] {
        if let Err(error) = Machine::parse("mine.toml", &small(figure)) {
            panic!("{error}");
        }
    }
}

#[test]
fn names_and_paths() {
    let error = |name: &str| Machine::load(name).unwrap_err().to_string();
    assert!(error("nehalem-ex").contains("did you mean `nehalem-ex-64`?"), "{}", error("nehalem-ex"));
    assert!(error("zzz").contains("Known are this-2, up, core2-4"), "{}", error("zzz"));
    let none = error("./none.toml");
    assert!(none.starts_with("cannot read the machine file ./none.toml"), "{none}");
    assert!(none.contains("by its name: this-2, up, core2-4") && none.contains("plain-N"), "{none}");
}

#[test]
fn a_file_may_be_based_on_another_one_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("base.toml"), small("[memory]\nhit = { ns = 7, source = \"s\" }\n")).unwrap();
    fs::write(path("mine.toml"), small("").replace("westmere-ex-40", "./base.toml")).unwrap();
    let machine = Machine::load(&path("mine.toml")).unwrap();
    assert_eq!((machine.memory.hit_ns, machine.shape.all_cpus()), (7.0, 40));
    assert_eq!(
        Machine::describe(&path("mine.toml")).unwrap().based_on,
        ["mine", "westmere-ex-40", "westmere-ex-80"]
    );

    fs::write(path("base.toml"), small("").replace("westmere-ex-40", "./mine.toml")).unwrap();
    let error = Machine::load(&path("mine.toml")).unwrap_err().to_string();
    assert!(error.contains("`based_on` leads back to where it began"), "{error}");
}
