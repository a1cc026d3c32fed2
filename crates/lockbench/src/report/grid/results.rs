//! All figures of all cells, with their ratios: what the JSON and the CSV have besides runs.

use std::collections::BTreeMap;

use serde::Serialize;
use spinpark_measure::report::front::{self, Entry, Front};

use crate::grid::cells::{GridCell, Place};
use crate::grid::comparison::{Compared, Context, figure_of};
use crate::grid::figure::{Against, Figure};
use crate::grid::starvation::Starvation;
use crate::grid::summary::planes;
use crate::locks::result::SLEEPER;

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
    /// The number of threads.
    pub threads: usize,
    /// Medians of all figures, by implementation.
    pub figures: BTreeMap<String, BTreeMap<Figure, f64>>,
    /// Ratios of ours, by implementation and figure.
    pub ratios: BTreeMap<String, BTreeMap<Figure, Ratios>>,
    /// Read-write locks that starve writers here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starving: Vec<Starvation>,
}

/// One figure of ours against others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratios {
    /// Against the best peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<Compared>,
    /// Against glibc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glibc: Option<Compared>,
    /// As a share of the ideal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ideal: Option<Compared>,
}

/// Throughput beside CPU time in a plane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaneFront {
    /// The plane.
    pub plane: String,
    /// Implementations that ran in the same cells.
    #[serde(flatten)]
    pub front: Front,
}

/// The fronts of all planes.
#[must_use]
pub fn fronts(cells: &[GridCell]) -> Vec<PlaneFront> {
    let of_plane = |plane: &str| {
        let own = cells.iter().filter(|cell| cell.place.plane == plane);
        let fronts = front::fronts(&own.map(entries).collect::<Vec<_>>(), &[SLEEPER]);
        fronts.into_iter().map(|front| PlaneFront { plane: plane.to_owned(), front }).collect::<Vec<_>>()
    };
    planes(cells).into_iter().flat_map(of_plane).collect()
}

fn entries(cell: &GridCell) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for name in &cell.measured.cell.implementations {
        let [throughput, cpu_ns] =
            [Figure::Throughput, Figure::Cpu].map(|figure| figure_of(cell, name, figure));
        entries.extend(throughput.zip(cpu_ns).map(|(throughput, cpu_ns)| Entry { name, throughput, cpu_ns }));
    }
    entries
}

/// The results of all cells in which something was measured.
#[must_use]
pub fn of(context: &Context<'_>, cells: &[GridCell]) -> Vec<CellResult> {
    cells.iter().filter(|cell| !cell.measured.runs.is_empty()).map(|cell| of_cell(context, cell)).collect()
}

fn of_cell(context: &Context<'_>, cell: &GridCell) -> CellResult {
    let implementations = &cell.measured.cell.implementations;
    let of_implementation = |implementation: &String| {
        let of = |figure| Some((figure, figure_of(cell, implementation, figure)?));
        (
            implementation.clone(),
            Figure::ALL.into_iter().filter(|figure| *figure != Figure::Ideal).filter_map(of).collect(),
        )
    };
    let ratios = |ours: &str| {
        let of = |figure| {
            let against = |against| context.compare(cell, ours, figure, &against);
            let ratios = match figure {
                Figure::Ideal => Ratios { best: None, glibc: None, ideal: against(Against::Ideal) },
                _ => Ratios {
                    best: against(Against::Best),
                    glibc: against(Against::Implementation(String::from("glibc"))),
                    ideal: None,
                },
            };
            let is_empty = ratios.best.is_none() && ratios.glibc.is_none() && ratios.ideal.is_none();
            (!is_empty).then_some((figure, ratios))
        };
        (ours.to_owned(), Figure::ALL.into_iter().filter_map(of).collect())
    };
    CellResult {
        place: cell.place.clone(),
        threads: cell.threads(),
        figures: implementations.iter().map(of_implementation).collect(),
        ratios: context.ours_in(&[cell]).map(ratios).collect(),
        starving: implementations
            .iter()
            .filter_map(|implementation| Starvation::of(cell, implementation))
            .collect(),
    }
}
