//! What makes the result of a workload weak.

use spinpark_measure::stats::Ratio;
use spinpark_measure::stats::bootstrap::MIN_BLOCKS;
use spinpark_measure::stats::verdict::MAX_MARGIN;
use spinpark_measure::warnings::{FEW_OPERATIONS, SHORT_RUN_S, Warning, empty_runs};

use super::Workload;
use super::result::CellResult;

/// Everything that is weak about the cells of a workload. `is_timed`: runs count for a time, and do not do a
/// fixed amount of work.
pub fn of_workload(workload: &Workload, results: &[CellResult], is_timed: bool, cpus: usize) -> Vec<Warning> {
    let named = |result: &CellResult| format!("{} at {}", result.variant, result.tasks).trim().to_owned();
    let is_few = |result: &&CellResult| {
        result
            .configurations
            .iter()
            .any(|configuration| (1..FEW_OPERATIONS).contains(&configuration.fewest_operations))
    };
    let empty = results.iter().flat_map(|result| {
        let cell = format!("{} {}", workload.name, named(result)).replace("  ", " ");
        result.configurations.iter().filter_map(move |configuration| {
            empty_runs(&configuration.configuration, &cell, configuration.empty_runs, configuration.runs)
        })
    });
    let empty: Vec<String> = empty.collect();
    let nothing = |result: &&CellResult| {
        result.configurations.len() > 1
            && result
                .configurations
                .first()
                .is_some_and(|configuration| configuration.empty_runs == configuration.runs)
    };
    let idle: Vec<String> = results.iter().filter(nothing).map(named).collect();
    let baseline = results.iter().find(nothing).and_then(|result| result.configurations.first());
    let baseline = baseline.map(|configuration| configuration.configuration.clone()).unwrap_or_default();
    let few: Vec<String> = results.iter().filter(is_few).map(named).collect();
    let is_short = |result: &&CellResult| {
        result.configurations.iter().any(|configuration| configuration.elapsed_s < SHORT_RUN_S)
    };
    let short: Vec<String> = results.iter().filter(is_short).map(named).collect();
    let noisy = results.iter().filter(|r| r.again.is_some_and(|again| again.reach() > MAX_MARGIN)).count();
    let ratios: Vec<Ratio> = results
        .iter()
        .flat_map(|r| &r.configurations)
        .filter_map(|configuration| configuration.ratio)
        .collect();
    let is_wide = |ratio: &&Ratio| ratio.contains_one() && ratio.reach() > MAX_MARGIN;
    let wide = ratios.iter().filter(is_wide).count();
    let blocks = results.iter().map(|result| result.rounds).min().unwrap_or_default();
    let oversubscribed = results.iter().any(|result| result.tasks > cpus);
    let (cells, ratios) = (results.len(), ratios.len());
    let candidates = [
        (cells > 0 && blocks < MIN_BLOCKS, Warning::TooFewBlocks { blocks }),
        (oversubscribed, Warning::Oversubscribed { cpus }),
        // Where the amount of work is fixed, it is what was asked for.
        (is_timed && !few.is_empty(), Warning::FewOperations { cells: few }),
        (!empty.is_empty(), Warning::NoOperations { runs: empty }),
        (!idle.is_empty(), Warning::BaselineDidNothing { cells: idle, baseline }),
        (!is_timed && !short.is_empty(), Warning::LittleWork { cells: short }),
        (noisy > 0, Warning::NoisyCells { noisy, cells }),
        (wide > 0, Warning::WideCells { wide, ratios }),
    ];
    candidates.into_iter().filter_map(|(applies, warning)| applies.then_some(warning)).collect()
}
