//! What makes the result of locks side by side weak.

use spinpark_measure::rounds::warnings::{FEW_OPERATIONS, Warning, empty_runs};
use spinpark_measure::stats::Ratio;
use spinpark_measure::stats::verdict::MAX_MARGIN;

use super::result::{CellResult, ImplementationResult};

/// Everything that is weak about cells.
#[must_use]
pub fn of_cells(results: &[CellResult], cpus: usize) -> Vec<Warning> {
    let names = |is_it: &dyn Fn(&ImplementationResult) -> bool| -> Vec<String> {
        let cells = results.iter().filter(|result| result.implementations.iter().any(is_it));
        cells.map(|result| format!("{} at {}", result.workload, result.threads)).collect()
    };
    let few = names(&|implementation| (1..FEW_OPERATIONS).contains(&implementation.fewest_operations));
    let empty = results.iter().flat_map(|result| {
        let cell = format!("{} at {}", result.workload, result.threads);
        let implementations = result.implementations.iter();
        implementations
            .filter_map(move |own| empty_runs(&own.implementation, &cell, own.empty_runs, own.runs))
    });
    let empty: Vec<String> = empty.collect();
    let nothing =
        |result: &&CellResult| result.implementations.first().is_some_and(|t| t.empty_runs == t.runs);
    let idle: Vec<&CellResult> =
        results.iter().filter(nothing).filter(|result| result.implementations.len() > 1).collect();
    let baseline =
        idle.first().and_then(|result| result.implementations.first()).map(|t| t.implementation.clone());
    let idle: Vec<String> =
        idle.iter().map(|result| format!("{} at {}", result.workload, result.threads)).collect();
    let long = names(&|implementation| {
        let half_of_run_ns = implementation.elapsed_s * 1e9 / 2.0;
        implementation.waits.is_some_and(|waits| waits.longest > half_of_run_ns)
    });
    let noisy = results.iter().filter(|r| r.again.is_some_and(|again| again.reach() > MAX_MARGIN)).count();
    let ratios: Vec<Ratio> =
        results.iter().flat_map(|r| &r.implementations).filter_map(|t| t.ratio).collect();
    let is_wide = |ratio: &&Ratio| ratio.contains_one() && ratio.reach() > MAX_MARGIN;
    let wide = ratios.iter().filter(is_wide).count();
    let oversubscribed = results.iter().any(|result| result.threads > cpus);
    let (cells, ratios) = (results.len(), ratios.len());
    let candidates = [
        (oversubscribed, Warning::Oversubscribed { cpus }),
        (!few.is_empty(), Warning::FewOperations { cells: few }),
        (!empty.is_empty(), Warning::NoOperations { runs: empty }),
        (
            !idle.is_empty(),
            Warning::BaselineDidNothing { cells: idle, baseline: baseline.unwrap_or_default() },
        ),
        (!long.is_empty(), Warning::WaitsAsLongAsRuns { cells: long }),
        (noisy > 0, Warning::NoisyCells { noisy, cells }),
        (wide > 0, Warning::WideCells { wide, ratios }),
    ];
    candidates.into_iter().filter_map(|(applies, warning)| applies.then_some(warning)).collect()
}
