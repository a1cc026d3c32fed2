//! The maps of delays in FreeBSD's mutex: simulated, from fixed runs, and as tables, heat maps, CSV and JSON.

use std::time::Duration;

use spinpark_documents::mtx_2006::delays::{Axes, Effect, GAIN, Maps, Place, cells, measured, simulate};
use spinpark_documents::published::PUBLISHED;
use spinpark_documents::report::delays::{Document, csv, plots, render, sentences};
use spinpark_lockbench::locks::workloads::Report;
use spinpark_measure::report::Style;
use spinpark_measure::rounds::cells::{Plan, measure};
use spinpark_sim::machine::Machine;

fn axes(places: &[Place], delays_ns: &[u32], between_ns: &[u32]) -> Axes {
    let (places, delays_ns, between_ns) = (places.to_vec(), delays_ns.to_vec(), between_ns.to_vec());
    Axes { places, delays_ns, between_ns }
}

fn simulated(axes: &Axes, seeds: usize, run: Duration) -> Maps {
    let machine = Machine::load("e4500-12").unwrap();
    simulate(axes, &machine, seeds, run.as_nanos() as u64, &|_, _| {}).unwrap()
}

/// The cell of a place, by delay and load.
fn cell(maps: &Maps, place: Place, delay: usize, load: usize) -> (f64, Effect) {
    let map = maps.maps.iter().find(|map| map.place == place.name()).unwrap();
    let cell = map.rows[delay].cells[load].as_ref().unwrap();
    assert!(cell.low <= cell.ratio && cell.ratio <= cell.high, "{cell:?}");
    (cell.ratio, cell.effect)
}

/// Fixed runs: a delay of 1 µs halves the throughput, and one of 2 µs doubles it.
fn fixed() -> Maps {
    let axes = axes(&[Place::Attempt, Place::After], &[1_000, 2_000], &[0, 100]);
    let (implementations, cells) = cells(&axes, 2).unwrap();
    assert_eq!(implementations.len(), 5 + 10);
    let (cells, _) = measure(cells, 6, 1, &mut |_, plan: &Plan| {
        let factor = match &plan.configuration {
            name if name.ends_with("=1000ns") => 0.5,
            name if name.ends_with("=2000ns") => 2.0,
            _ => 1.0,
        };
        let noise = 1.0 + 0.01 * ((plan.round * 7 + usize::from(plan.again)) as f64).sin();
        Ok(Report { operations: (1e6 * factor * noise) as u64, elapsed_s: 0.1, ..Report::default() })
    });
    measured(&axes, 2, 6, 100_000_000, &cells, 1)
}

#[test]
fn the_published_gain_is_the_tables() {
    let table = PUBLISHED.iter().find(|table| table.name == "freebsd_unp_mutex").unwrap().table();
    let (gain, deviation) = (100.0 * (GAIN.0 - 1.0), 100.0 * GAIN.1);
    let row = [format!("{gain:.0}"), format!("plus or minus {deviation:.0}")];
    assert_eq!(table.rows[1][1..], row);
}

#[test]
fn a_simulated_map_is_the_same_again() {
    let axes = axes(&[Place::Attempt, Place::Inside], &[1_000, 8_000], &[30_000]);
    let run = || simulated(&axes, 2, Duration::from_millis(3));
    let maps = run();
    assert_eq!(maps, run());
    assert_eq!((maps.threads, maps.machine.as_deref()), (12, Some("e4500-12")));
    let counters = maps.loads[0].counters.unwrap();
    assert!(counters.failed > 0.0 && counters.lines > 1.0 && counters.held_ns > 2_000.0, "{counters:?}");
    assert_eq!(cell(&maps, Place::Inside, 1, 0).1, Effect::Loss);
}

#[test]
fn what_was_measured_becomes_gains_and_losses() {
    let maps = fixed();
    for place in [Place::Attempt, Place::After] {
        for load in 0..2 {
            let ((half, loss), (double, gain)) = (cell(&maps, place, 0, load), cell(&maps, place, 1, load));
            assert!((0.49..0.51).contains(&half) && (1.98..2.02).contains(&double), "{half} {double}");
            assert_eq!([loss, gain], [Effect::Loss, Effect::Gain]);
        }
    }
    let attempt = &sentences(&maps)[0];
    assert!(attempt.starts_with("attempt: at most +100") && attempt.contains("with 2 µs"), "{attempt}");
}

/// What docs/riddle-2006.md says of document 004's machine.
#[test]
fn the_verdict_of_the_page_holds() {
    let axes = axes(&[Place::Attempt, Place::Inside, Place::Wake], &[500, 6_000], &[48_750]);
    let maps = simulated(&axes, 2, Duration::from_millis(20));
    // Back-off gains about what the document publishes, which is how the load was found.
    let ingredient = |name: &str| {
        let known = maps.ingredients.iter().find(|known| known.lock == format!("classic-mtx-{name}"));
        known.unwrap().cells[0].clone().unwrap()
    };
    let backoff = ingredient("backoff");
    assert!((1.05..1.40).contains(&backoff.ratio), "{backoff:?}");
    // A delay of 6 µs after each failed attempt gains what its profiler did; one of 0.5 µs does not.
    let (long, gain) = cell(&maps, Place::Attempt, 1, 0);
    assert!((GAIN.0 - 0.1..GAIN.0 + 0.1).contains(&long) && gain == Effect::Gain, "{long}");
    assert!(cell(&maps, Place::Attempt, 0, 0).0 < 1.15);
    // It does so by fewer failed attempts and fewer cache lines moved, not by shorter sections.
    let plain = maps.loads[0].counters.unwrap();
    let delayed = maps.maps[0].rows[1].cells[0].as_ref().unwrap().counters.unwrap();
    assert!(
        delayed.failed < 0.6 * plain.failed && delayed.lines < 0.6 * plain.lines,
        "{plain:?} {delayed:?}"
    );
    assert!(delayed.free_ns < 0.75 * plain.free_ns, "{plain:?} {delayed:?}");
    assert!((0.97..1.03).contains(&(delayed.held_ns / plain.held_ns)), "{plain:?} {delayed:?}");
    // The add of each attempt gains little; all else of the profiler lengthens the hand-over, and loses.
    assert!((0.97..1.15).contains(&ingredient("add").ratio));
    assert!((1.0..1.25).contains(&ingredient("add-apart").ratio));
    for name in ["accesses", "counter", "profiled", "profiled-apart"] {
        assert_eq!(ingredient(name).effect, Effect::Loss, "{name}");
    }
    assert_eq!(cell(&maps, Place::Inside, 0, 0).1, Effect::Loss);
    // No thread sleeps, so a delay before wake-ups changes nothing.
    assert_eq!((plain.parked, cell(&maps, Place::Wake, 1, 0).0), (0.0, 1.0));
}

#[test]
fn without_a_baseline_nothing_is_decided() {
    let axes = axes(&[Place::Attempt], &[1_000], &[0]);
    let (_, cells) = cells(&axes, 2).unwrap();
    let (cells, _) = measure(cells, 6, 1, &mut |_, plan: &Plan| {
        let operations = if plan.configuration == "classic-mtx-delayed" { 0 } else { 1_000 };
        Ok(Report { operations, elapsed_s: 0.1, ..Report::default() })
    });
    let maps = measured(&axes, 2, 6, 100_000_000, &cells, 1);
    assert_eq!(maps.loads[0].noise, None);
    assert!(maps.cells(&maps.maps[0]).all(|at| at.cell.effect == Effect::Undecided));
    assert!(render(&maps, false, Style::PLAIN).contains("unknown"));
    let document = Document::new("complete", String::new(), 1, None, maps.clone());
    assert_eq!(Document::parse(&serde_json::to_string(&document).unwrap()).unwrap().maps, maps);
}

#[test]
fn interrupted_before_the_first_round_there_is_nothing() {
    let axes = axes(&[Place::Attempt], &[1_000], &[0]);
    let (_, cells) = cells(&axes, 2).unwrap();
    assert!(measured(&axes, 2, 6, 1, &cells, 1).loads.is_empty());
}

#[test]
fn threads_that_cannot_be_are_refused() {
    let axes = axes(&[Place::Attempt], &[1_000], &[0]);
    assert!(cells(&axes, 0).unwrap_err().contains("threads"));
}

#[test]
fn tables_fit_and_name_each_place() {
    let places: Vec<Place> = Place::ALL.to_vec();
    let axes = axes(&places, &[250, 16_000], &[20_000, 48_750, 82_500]);
    let maps = simulated(&axes, 2, Duration::from_millis(1));
    for text in [render(&maps, true, Style::PLAIN), render(&fixed(), false, Style::PLAIN)] {
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("A delay after each failed attempt") && text.contains("noise"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let text = render(&maps, true, Style::PLAIN);
    assert!(text.contains("48.75 µs between sections, for each section") && text.contains("16 µs"), "{text}");
    assert!(text.contains("e4500-12, 12 threads, 2 seeds of 1.00 ms"), "{text}");
}

#[test]
fn heat_maps_are_xml_and_csv_has_a_line_for_each_cell() {
    let maps = fixed();
    let plots = plots(&maps);
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["delays-attempt.svg", "delays-after.svg"]);
    for (_, svg) in &plots {
        let page = roxmltree::Document::parse(svg).unwrap();
        assert_eq!(page.descendants().filter(|node| node.has_tag_name("rect")).count(), 4);
    }
    let csv = csv(&maps);
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().split(',').count();
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 2 + 2 * 4 + 2 * 10);
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{csv}");
    assert!(lines[2].starts_with("this,2,attempt,1000,0,0.5"), "{csv}");
}

#[test]
fn the_document_can_be_read_again() {
    let maps = fixed();
    let document = Document::new("complete", String::from("spinpark-lab"), 1, None, maps.clone());
    let text = serde_json::to_string(&document).unwrap();
    assert_eq!(Document::parse(&text).unwrap().maps, maps);
    assert!(Document::parse("{}").is_err());
}
