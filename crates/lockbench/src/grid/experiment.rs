//! The runs: those of `bench locks`, over cells of planes, with a calibration at the beginning of each round.

use spinpark_measure::measure::End;
use spinpark_measure::rounds;

use super::calibration::Calibration;
use super::cells::GridCell;
use crate::locks::experiment::{CellExecutor, CellObserver};

/// Runs `rounds` rounds over `cells`; `calibrate` is called at the beginning of each.
pub fn measure(
    cells: Vec<GridCell>,
    rounds: usize,
    seed: u64,
    executor: &mut dyn CellExecutor,
    calibrate: &mut dyn FnMut() -> Calibration,
    observer: &mut dyn CellObserver,
) -> (Vec<GridCell>, Vec<Calibration>, End) {
    let mut calibrations: Vec<Calibration> = Vec::new();
    let (cells, end) = rounds::measure(cells, rounds, seed, &mut |cell: &GridCell, plan| {
        if calibrations.len() <= plan.round {
            calibrations.push(calibrate());
        }
        observer.starting(&cell.measured.cell, &plan.configuration);
        let report = executor.execute(&cell.measured.cell, plan)?;
        observer.finished();
        Ok(report)
    });
    (cells, calibrations, end)
}
