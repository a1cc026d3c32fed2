//! Progress of cells of locks.

use spinpark_cli::progress::Progress;
use spinpark_lockbench::locks::experiment::{Cell, CellObserver};

/// Moves a bar with the runs of cells.
pub(crate) struct Cells<'a>(pub(crate) &'a Progress);

impl CellObserver for Cells<'_> {
    fn starting(&mut self, cell: &Cell, implementation: &str) {
        self.0.now(format!("{} × {}, {implementation}", cell.workload, cell.threads));
    }

    fn finished(&mut self) {
        self.0.advance();
    }
}
