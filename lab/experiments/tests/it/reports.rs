//! What the simulator's commands print, of figures that no engine made: they stay as they are when it is
//! mended.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use spinpark_experiments::limit::{Causes, Limit, Mostly};
use spinpark_experiments::summary::Weak;
use spinpark_experiments::sweep::Cell;
use spinpark_experiments::{lists, page, run_report, sweep, tables};
use spinpark_measure::report::Style;
use spinpark_sim::machine::{Machine, machines};

use crate::sample::{cell, cells, documents, histogram, summary};

fn fits(text: &str, width: u16) {
    for line in text.lines() {
        assert!(line.chars().count() <= width.into(), "{line}\n{width}: {text}");
    }
}

/// Tables of documents as the command names them.
const DOCUMENTS: [(&str, &str); 1] = [("001-v", "V: creat in one directory, with the fix over 2.6.34")];

/// A terminal of 80 columns.
const NARROW: Style = Style { width: 80, ..Style::PLAIN };

/// The widest that there is: places with long names, and numbers of six digits and more.
#[test]
fn a_run_on_80_columns() {
    let mut summary = summary("classic-mtx-profiled-no-add", 4096, [3e6, 3.1e6, 3.2e6]);
    let mut widest = summary.places[0].clone();
    widest.name = String::from("mmap_sem (read)");
    widest.locks = 1024;
    widest.acquisitions = 123_456_789;
    widest.most_passed = 123_456_789;
    widest.waits = histogram(&[(700, 1), (900_000_000_000, 30_000)]);
    summary.places.push(widest);
    let text = run_report::render(&summary, NARROW);
    fits(&text, 80);
    assert!(text.contains("1024 × mmap_sem (read)") && text.contains("123,456,789"), "{text}");
    assert_snapshot!(text);
}

#[test]
fn a_sweep_on_80_columns() {
    let mut cells: Vec<Cell> =
        (0..12).map(|bit| cell(1 << bit, [[1e6, 2e6, 3e6], [4e6, 5e6, 6e6]])).collect();
    for cell in &mut cells {
        cell.machine = String::from("/a/long/path/of/a/machine/that/was/measured/here/and/now/mine.toml");
        cell.locks[0].summary.lock = String::from("classic-mtx-profiled-no-add");
        cell.locks[0].summary.places[0].longest_wait_ns = 9e9;
    }
    let text = sweep::render(&cells, true, NARROW);
    fits(&text, 80);
    // A table is in several parts, each with all names, of which none is broken.
    let rows = |name: &str| text.lines().filter(|line| line.starts_with(&format!(" {name} "))).count();
    assert_eq!(rows("classic-mtx-profiled-no-add"), rows("classic-mutex-2.6.34"));
    assert!(rows("classic-mutex-2.6.34") > 6, "{text}");
    assert!(text.contains(" 2.00 M▼!") && text.contains("2048*"), "{text}");
}

#[test]
fn tables_on_80_columns() {
    let mut documents = documents();
    let widest = &mut documents[0].1.figures[0];
    widest.name = String::from("40 threads: a mutex, with all of the series");
    widest.published = Some(0.31);
    let mut text: String =
        documents.iter().map(|(name, table)| tables::render(name, table, NARROW) + "\n").collect();
    text += &tables::verdict(&documents, NARROW).unwrap();
    fits(&text, 80);
    assert_snapshot!(text);
}

#[test]
fn machines_on_80_columns() {
    for name in machines().into_iter().chain(["plain-8", "big-512:64"]) {
        let description = Machine::describe(name).unwrap();
        let text = lists::machine(&description, NARROW);
        fits(&text, 80);
        for figure in &description.figures {
            assert!(text.contains(&format!("{}: {}\n", figure.key, figure.value)), "{name}, {}", figure.key);
        }
    }
    fits(&lists::everything(&DOCUMENTS, NARROW), 80);
    // One terminal is as good as another from 80 columns on.
    for width in 80..160 {
        let style = Style { width, ..Style::PLAIN };
        fits(&lists::everything(&DOCUMENTS, style), width);
        fits(&lists::machine(&Machine::describe("this-2").unwrap(), style), width);
    }
}

#[test]
fn a_run() {
    let text = run_report::render(&summary("spinpark", 40, [3e6, 3.1e6, 3.2e6]), Style::PLAIN);
    fits(&text, 100);
    assert_snapshot!(text);
}

#[test]
fn every_limit_is_a_sentence() {
    let place = || String::from("lock");
    let causes = Causes { wake_ups: 0.9, cpus: 0.04, lines: 0.03, pauses: 0.02, steps: 0.01 };
    let hand_over = |mostly| Limit::HandOver {
        place: place(),
        held: 0.31,
        contended: 0.98,
        gap_ns: 120.0,
        hold_ns: 53.0,
        wanted: 0.65,
        mostly,
        causes,
    };
    let held = |readers, wanted| Limit::Held {
        place: place(),
        held: 0.62,
        readers,
        contended: 0.98,
        wait_ns: 12_300.0,
        wanted,
        mostly: Mostly::WakeUps,
        causes,
    };
    let limits = [
        Limit::Failure { seed: 7, what: String::from("deadlock") },
        Limit::TooShort { for_ns: 1_000 },
        held(0.0, 0.02),
        held(0.58, 0.02),
        held(0.0, 0.38),
        Limit::OffCpu { place: place(), held: 0.97, off_cpu: 0.62 },
        hand_over(Mostly::WakeUps),
        hand_over(Mostly::Cpus),
        hand_over(Mostly::Lines),
        hand_over(Mostly::Pauses),
        hand_over(Mostly::Steps),
        hand_over(Mostly::Several),
        Limit::Barging { place: place(), held: 0.148, at_once: 0.985, asleep: 0.967 },
        Limit::Readers { place: String::from("lock (read)"), held: 0.71, contended: 0.6, wait_ns: 1_200.0 },
        Limit::Lines { place: place(), wait_ns: 900.0, moves: 3.17 },
        Limit::Cpus { busy: 0.99, runnable: 0.8, spinning: 0.03 },
        Limit::WakeUps { runnable: 0.326, asleep: 0.29, busy: 0.4 },
        Limit::Work { working: 0.97 },
        Limit::Sleep { asleep: 0.7 },
    ];
    assert_snapshot!(limits.map(|limit| limit.sentence()).join("\n"));
}

/// The manual explains each of the sentences.
#[test]
fn every_limit_is_in_the_manual() {
    let manual = include_str!("../../../../docs/sim.md");
    for words in [
        "| the run failed |",
        "| too short |",
        "| the sections under `lock` limit |",
        "| owners without a CPU limit |",
        "| wake-ups limit |",
        "| waiting for CPUs limits |",
        "| the lock's cache lines limit |",
        "| pauses between polls limit |",
        "| the lock's own steps limit |",
        "| the way from one owner to the next limits |",
        "| barging limits |",
        "| waiting for writers limits |",
        "| cache lines limit |",
        "| the CPUs limit |",
        "| nothing limits but the work |",
        "| no lock limits: threads sleep for other reasons |",
    ] {
        assert!(manual.contains(words), "{words}");
    }
}

#[test]
fn every_weakness_is_a_sentence() {
    let weak = [
        Weak::FewOperations { operations: 37.0, try_for_ns: 100_000_000 },
        Weak::FewOfEachThread { operations: 3.2, try_for_ns: 200_000_000 },
        Weak::WaitedAllAlong { try_for_ns: 1_000_000_000 },
    ];
    assert_snapshot!(weak.map(|weak| weak.sentence()).join("\n"));
}

#[test]
fn a_sweep() {
    let text = sweep::render(&cells(), true, Style::PLAIN);
    fits(&text, 100);
    assert_snapshot!(text);
}

/// The fastest may be the least fair: that is seen beside its throughput.
#[test]
fn a_sweep_marks_who_leaves_threads_behind() {
    let mut cells = cells();
    cells.truncate(2);
    let fair = sweep::render(&cells, false, Style::PLAIN);
    assert!(!fair.contains('!') && !fair.contains('*'), "{fair}");
    cells[0].locks[1].summary.fairness.jain = 0.79;
    let uneven = sweep::render(&cells, false, Style::PLAIN);
    assert!(uneven.contains("3.15 M!") && uneven.contains("! unfair"), "{uneven}");
    assert!(!uneven.contains("too short"), "{uneven}");
    cells[1].locks[0].summary.places[0].longest_wait_ns = 2e7;
    let short = sweep::render(&cells, false, Style::PLAIN);
    assert!(short.contains("9.10 M!") && short.contains("too short to judge fairness"), "{short}");
    assert!(short.contains("--duration 200ms."), "{short}");
}

#[test]
fn a_sweep_as_csv() {
    let text = sweep::csv(&cells());
    let widths: BTreeSet<_> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!((text.lines().count(), widths.len()), (7, 1), "{text}");
    assert_snapshot!(text);
}

#[test]
fn a_sweep_as_plots_and_html() {
    let plots = sweep::plots(&cells()).unwrap();
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["hot-lock-westmere-ex-40.svg", "front.svg"]);
    for (_, svg) in &plots {
        roxmltree::Document::parse(svg).unwrap();
    }
    let page = page::sweep("spinpark-lab sim sweep", "complete", &cells()).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).unwrap();
    let count = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!((count("svg"), count("table"), count("section")), (2, 10, 2));
    assert!(page.contains("class=\"below\"") && page.contains("class=\"best\""), "{page}");
    assert!(!page.contains("http://") && !page.contains("<script"), "it needs nothing else");
}

#[test]
fn tables_of_documents() {
    let documents = documents();
    let mut text: String =
        documents.iter().map(|(name, table)| tables::render(name, table, Style::PLAIN) + "\n").collect();
    text += &tables::verdict(&documents, Style::PLAIN).unwrap();
    fits(&text, 100);
    assert!(tables::is_missed(&documents) && !tables::is_missed(&documents[1..]));
    assert_snapshot!(text);
}

#[test]
fn tables_of_documents_as_html_and_json() {
    let documents = documents();
    let page = page::tables("spinpark-lab sim tables", "complete", &documents).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    roxmltree::Document::parse_with_options(&page, options).unwrap();
    assert!(page.contains("class=\"missed\"") && page.contains("class=\"holds\""), "{page}");
    let document =
        serde_json::to_value(tables::json("complete", "spinpark-lab sim tables", true, &documents)).unwrap();
    assert_eq!((&document["format"], &document["schema"]), (&"spinpark sim tables".into(), &2.into()));
    assert_eq!(document["tables"][0]["figures"][1]["simulated"], 1.4);
    assert_eq!(document["tables"][0]["judged"][1]["holds"], false);
    assert_eq!(document["tables"][0]["distributions"][0]["simulated"][2], 62.0);
}
