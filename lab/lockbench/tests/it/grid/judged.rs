//! Which peer ours is compared with, what is a loss, and which bounds hold.

use spinpark_lockbench::locks::bounds::{Judgement, judge_all};
use spinpark_lockbench::locks::comparison::Starvation;
use spinpark_lockbench::locks::definitions::{Bound, Over};
use spinpark_lockbench::locks::figure::{Against, Figure};
use spinpark_lockbench::locks::summary::{Loss, summaries};

use super::*;

fn record(noise: f64, rounds: usize) -> Record {
    record_of(small_planes(), Mock::new(usual, noise), rounds)
}

#[test]
fn the_best_peer_is_the_one_with_the_highest_throughput() {
    let record = record(0.01, ROUNDS);
    let context = context(&record);
    let cell = find(&record, "mutex", "0/0, 2 threads");
    assert_eq!(context.best_peer(cell, Figure::Throughput), Some("parking_lot"));
    assert_eq!(context.best_peer(cell, Figure::Cpu), Some("parking_lot"));
    // parking_lot waits longest; std is within 20 % of its throughput, glibc is not.
    assert_eq!(context.best_peer(cell, Figure::WaitP999), Some("std"));
    let compared = context.compare(cell, "spinpark", Figure::Throughput, &Against::Best).unwrap();
    assert!((compared.ratio - 150.0 / 120.0).abs() < 0.03, "{compared:?}");
    let glibc = Against::Implementation(String::from("glibc"));
    let compared = context.compare(cell, "spinpark", Figure::Throughput, &glibc).unwrap();
    assert!((compared.ratio - 200.0 / 120.0).abs() < 0.05 && compared.with == "glibc");
    let [low, high] = compared.interval.unwrap();
    assert!(low <= compared.ratio && compared.ratio <= high);
}

#[test]
fn a_share_of_the_ideal_needs_a_calibration() {
    let record = record(0.0, ROUNDS);
    let mut context = context(&record);
    let cell = find(&record, "mutex", "300/300, 2 threads");
    let share = context.compare(cell, "spinpark", Figure::Ideal, &Against::Best).unwrap();
    // 601 ns inside, 600 ns outside, two CPUs.
    let ideal = 601.0_f64.max(1201.0 / 2.0);
    assert!((share.ratio - ideal / 120.0).abs() < 1e-3, "{share:?}");
    assert!(context.compare(cell, "spinpark", Figure::Cpu, &Against::Ideal).is_none());
    context.calibration = None;
    assert!(context.compare(cell, "spinpark", Figure::Ideal, &Against::Best).is_none());
}

#[test]
fn a_lock_that_starves_writers_is_no_peer() {
    fn fast_and_starving(cell: &Cell, implementation: &str) -> Does {
        let does = usual(cell, implementation);
        if implementation == "glibc" { Does { ns: 50.0, ..does } } else { does }
    }
    let record = record_of(small_planes(), Mock::new(fast_and_starving, 0.0), ROUNDS);
    let context = context(&record);
    let (written, read) =
        (find(&record, "rwlock", "10 ‰, 0/0, 2 threads"), find(&record, "rwlock", "0 ‰, 0/0, 2 threads"));
    assert_eq!(context.best_peer(written, Figure::Throughput), Some("parking_lot"));
    assert_eq!(context.best_peer(read, Figure::Throughput), Some("glibc"));
    let starvation = Starvation::of(written, "glibc").unwrap();
    assert!((starvation.longest_wait - 0.6).abs() < 1e-9 && starvation.share == Some(1.0));
    assert_eq!(Starvation::of(written, "std"), None);
    assert_eq!(Starvation::of(find(&record, "mutex", "0/0, 2 threads"), "glibc"), None);
}

#[test]
fn writers_that_get_little_of_their_share_starve() {
    let mut record = record(0.0, ROUNDS);
    let cell = record.cells.iter_mut().find(|cell| cell.writes() == Some(10)).unwrap();
    for run in &mut cell.runs {
        run.report.writes = Some(if run.implementation == "std" { 0.0005 } else { 0.01 });
    }
    let starvation = Starvation::of(cell, "std").unwrap();
    assert!((starvation.share.unwrap() - 0.05).abs() < 1e-9 && starvation.longest_wait < 0.25);
    for run in &mut cell.runs {
        run.report.operations = 100;
    }
    assert_eq!(Starvation::of(cell, "std"), None, "one write is expected");
}

#[test]
fn a_loss_is_clear_if_its_interval_is() {
    let loss = |record: &Record, ours: &str| {
        let cell = find(record, "mutex", "300/0, 16 threads");
        let compared = context(record).compare(cell, ours, Figure::Throughput, &Against::Best).unwrap();
        Loss::of(Figure::Throughput, &compared)
    };
    let quiet = record(0.01, ROUNDS);
    assert_eq!(loss(&quiet, "drop-in"), Loss::Clear);
    assert_eq!(loss(&quiet, "spinpark"), Loss::No);
    assert_eq!(loss(&record(0.01, 3), "drop-in"), Loss::Perhaps, "too few rounds");
    let context = context(&quiet);
    let cell = find(&quiet, "mutex", "300/0, 16 threads");
    let cpu = context.compare(cell, "drop-in", Figure::Cpu, &Against::Best).unwrap();
    assert!((cpu.ratio - 2.0).abs() < 0.1, "as many CPU seconds, half of the operations");
    assert_eq!(Loss::of(Figure::Cpu, &cpu), Loss::Clear);
}

#[test]
fn a_plane_in_one_line() {
    let record = record(0.01, ROUNDS);
    let all = summaries(&context(&record), &record.cells, Figure::Throughput, &Against::Best);
    let whole = all
        .iter()
        .find(|line| line.plane == "mutex" && line.ours == "drop-in" && line.threads.is_none())
        .unwrap();
    assert_eq!((whole.summary.cells, whole.summary.losses, whole.summary.clear_losses), (8, 2, 2));
    assert!((whole.summary.worst - 0.5).abs() < 0.02 && whole.summary.worst_cell.ends_with("16 threads"));
    let mean = (0.5_f64.powi(2) * (150.0_f64 / 140.0).powi(6)).powf(1.0 / 8.0);
    assert!((whole.summary.geometric_mean - mean).abs() < 0.02);
    let parts = all.iter().filter(|line| line.plane == "mutex" && line.ours == "drop-in");
    assert_eq!(parts.filter_map(|line| line.threads).collect::<Vec<_>>(), [2, 16]);
}

fn bound(over: Over, ours: &str, at_least: f64) -> Bound {
    Bound {
        what: String::from("throughput"),
        preset: String::from("grid"),
        workload: None,
        planes: vec![String::from("mutex")],
        figure: Figure::Throughput,
        over,
        threads: Vec::new(),
        writes: Vec::new(),
        ours: vec![ours.to_owned()],
        against: Against::Best,
        at_most: None,
        at_least: Some(at_least),
    }
}

#[test]
fn bounds_over_cells_and_means() {
    let record = record(0.01, ROUNDS);
    let judged = |bound| judge_all(&context(&record), &[bound], &record.cells);
    let [cells] = &judged(bound(Over::EachCell, "drop-in", 0.9))[..] else { panic!() };
    assert_eq!((cells.judgement, cells.missed, cells.undecided, cells.cells), (Judgement::Missed, 2, 0, 8));
    assert!(cells.worst_cell.as_ref().unwrap().starts_with("300/"));
    let [cells] = &judged(bound(Over::EachCell, "spinpark", 0.9))[..] else { panic!() };
    assert_eq!(cells.judgement, Judgement::Holds);
    let [mean] = &judged(bound(Over::GeometricMean, "spinpark", 1.1))[..] else { panic!() };
    assert_eq!((mean.judgement, &mean.threads[..]), (Judgement::Holds, &[][..]));
    assert!((mean.ratio.unwrap() - 1.25).abs() < 0.03, "{mean:?}");
    let [two, sixteen] = &judged(bound(Over::EachThreads, "drop-in", 1.0))[..] else { panic!() };
    assert_eq!((&two.threads[..], two.judgement), (&[2][..], Judgement::Holds));
    assert_eq!((&sixteen.threads[..], sixteen.judgement), (&[16][..], Judgement::Missed));
    let only = Bound { threads: vec![2], ..bound(Over::EachCell, "drop-in", 0.9) };
    assert_eq!(judged(only)[0].judgement, Judgement::Holds);
    assert!(
        judged(Bound { planes: vec![String::from("handoff")], ..bound(Over::EachCell, "drop-in", 0.9) })
            .is_empty()
    );
}

#[test]
fn without_intervals_nothing_is_decided() {
    let record = record(0.01, 3);
    let results = judge_all(&context(&record), &record.bound_definitions, &record.cells);
    assert!(!results.is_empty());
    assert!(results.iter().all(|result| result.judgement == Judgement::Undecided));
}
