//! Tables and plots.

use spinpark_lockbench::locks::definitions::Definitions;
use spinpark_lockbench::report::bounds as bounds_table;
use spinpark_lockbench::report::locks::{details, effects, markdown, matrix, pairwise, plot};
use spinpark_measure::report::Style;

use super::bounds::of_preset;
use super::{IMPLEMENTATIONS, Mock, cell, environment, many, results, run};

#[test]
fn tables() {
    let results = results(&many());
    let mut text = matrix::render(&results, 2, Style::PLAIN);
    text += &details::render(&results[2], 2, Style::PLAIN);
    insta::assert_snapshot!(text);
}

#[test]
fn two_implementations_are_a_row_per_cell() {
    let two = ["glibc", "drop-in"];
    let cells = vec![cell("pair-threaded", 1, &two), cell("saturated", 16, &two)];
    let results = results(&run(cells, Mock::new(&[("glibc", 100.0), ("drop-in", 65.0)], 0.01), 8));
    let names = pairwise::names(&results).unwrap();
    assert_eq!(names, two);
    let waits = pairwise::render_waits(&results, Style::PLAIN).unwrap();
    insta::assert_snapshot!(pairwise::render(&results, names, 2, Style::PLAIN) + &waits);
    let markdown = markdown::render(
        &results,
        &[],
        None,
        &environment(),
        "spinpark-lab bench locks --preset pthread --workload saturated",
    );
    insta::assert_snapshot!("two_implementations_in_markdown", markdown);
}

#[test]
fn many_implementations_in_markdown() {
    let results = results(&many());
    insta::assert_snapshot!(markdown::render(
        &results,
        &[],
        None,
        &environment(),
        "spinpark-lab bench locks"
    ));
}

#[test]
fn tables_fit_their_width() {
    let names = ["glibc", "drop-in+SPINPARK_SOME_LONG_NAME=1", "std", "spinpark"];
    let cells = [1, 2, 3, 4, 5, 10, 20, 40, 64, 256].into_iter().map(|n| cell("saturated", n, &names));
    let times = [("glibc", 123_456.0), (names[1], 9e9), ("std", 12_345_678.0), ("spinpark", 0.001)];
    let cells = run(cells.collect(), Mock::new(&times, 0.3), 6);
    let results = results(&cells);
    for width in [100, 160] {
        let style = Style { width, ..Style::PLAIN };
        let mut text = matrix::render(&results, 2, style) + &details::render(&results[3], 2, style);
        let definitions = Definitions::built_in().unwrap();
        text += &bounds_table::render(&of_preset(&definitions, &cells), 2, style);
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(width), "{longest} of {width}:\n{text}");
    }
}

/// A long name stays whole as long as there is room for it, and then is broken at a hyphen, never inside of a
/// word.
#[test]
fn long_names_are_not_broken_in_a_word() {
    let recorded = ["glibc", "glibc-recorded-contended", "drop-in-recorded-contended"];
    let longer = ["glibc", "drop-in-recorded-contended-by-others", "drop-in+SPINPARK_SOME_LONG_NAME=1"];
    let parts =
        ["glibc", "drop-in-recorded-contended-by-", "others", "drop-in+SPINPARK_SOME_LONG_", "NAME=1"];
    for (names, expected) in [(recorded, &recorded[..]), (longer, &parts)] {
        let times = [(names[0], 17.4), (names[1], 23_456.0), (names[2], 65.0)];
        let results = results(&run(vec![cell("saturated", 2, &names)], Mock::new(&times, 0.3), 8));
        let text = details::render(&results[0], 2, Style::PLAIN);
        let rows = text.lines().skip_while(|line| !line.starts_with('═')).skip(1);
        let rows = rows.take_while(|line| !line.starts_with('─'));
        let firsts: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(firsts, expected, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

/// Variants of one lock: is there an effect?
#[test]
fn variants_have_an_effect_or_none() {
    let names = ["classic-mtx", "classic-mtx-backoff", "classic-mtx-counter", "classic-mtx-larger"];
    let cells = [1, 2, 4, 16].map(|threads| cell("hot-lock", threads, &names)).to_vec();
    let times = [(names[0], 100.0), (names[1], 83.0), (names[2], 140.0), (names[3], 100.0)];
    let results = results(&run(cells, Mock::new(&times, 0.005), 12));
    let definitions = Definitions::built_in().unwrap();
    let implementations = names.map(|name| definitions.implementation(name).unwrap().clone());
    assert_eq!(effects::baseline(&implementations), Some(names[0]));
    assert_eq!(effects::baseline(&implementations[..1]), None);
    assert_eq!(effects::baseline([&implementations[1], &implementations[0]]), None);
    let text = effects::render(&results, names[0], 2, Style::PLAIN);
    let width = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(width <= 100, "{text}");
    insta::assert_snapshot!("variants", text);
    let markdown =
        markdown::render(&results[..1], &[], Some(names[0]), &environment(), "spinpark-lab documents mtx");
    insta::assert_snapshot!("variants_in_markdown", markdown);
}

#[test]
fn plots_are_well_formed() {
    let results = results(&many());
    let implementations: Vec<String> = IMPLEMENTATIONS.iter().map(|name| String::from(*name)).collect();
    let plots = plot::render_all(&results, &implementations).unwrap();
    let names: Vec<_> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["saturated.svg", "pair-threaded.svg", "write-pair.svg"]);
    for (name, svg) in &plots {
        let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(document.root_element().tag_name().name(), "svg");
        let texts: String = document.descendants().filter_map(|node| node.text()).collect();
        for implementation in IMPLEMENTATIONS {
            assert!(texts.contains(implementation), "no `{implementation}` in {name}");
        }
    }
    assert!(plot::render("empty", &[], &implementations).is_err());
}
