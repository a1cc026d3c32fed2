//! What can be measured: workloads and implementations, a line each.

use spinpark_measure::report::{Style, table, text};

use crate::locks::definitions::Definitions;
use crate::locks::implementations::package_version;
use crate::locks::peers::Peers;
use crate::locks::selection::primitives;

/// What the workloads count in, on this machine and on simulated ones.
pub const ITERATION: &str = "An iteration is a step of a random number generator, about 2 ns on a CPU of 2023; it is done in the critical or the non-critical section.";

/// The version of what an implementation tests, as far as it is known.
#[must_use]
pub fn version(implementation: &crate::locks::definitions::Implementation, peers: &Peers) -> Option<String> {
    let package = implementation.package.as_deref().and_then(package_version).map(str::to_owned);
    package.or_else(|| peers.listing.adapters.get(&implementation.adapter).cloned())
}

/// Workloads and implementations, and the bounds' number.
#[must_use]
pub fn render(definitions: &Definitions, peers: &Peers, style: Style) -> String {
    let left = |table: &mut comfy_table::Table| {
        for column in table.column_iter_mut() {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    };
    let mut workloads = table(style, &["workload", "threads", "what threads do"]);
    left(&mut workloads);
    for workload in &definitions.workloads {
        let threads: Vec<String> = workload.threads.iter().map(usize::to_string).collect();
        workloads.add_row([&workload.name, &threads.join(" "), &workload.about]);
    }
    let mut implementations = table(style, &["implementation", "version", "whose locks"]);
    left(&mut implementations);
    for implementation in &definitions.implementations {
        let missing = primitives(&implementation.adapter, peers).is_none();
        let version = match version(implementation, peers) {
            _ if missing => String::from("–"),
            version => version.unwrap_or_default(),
        };
        let why = match missing {
            true => format!(
                " ({})",
                peers.why_missing(&implementation.adapter, implementation.install.as_deref())
            ),
            false => String::new(),
        };
        implementations.add_row([&implementation.name, &version, &format!("{}{why}", implementation.about)]);
    }
    let iteration = style.wrap(ITERATION, 0);
    format!("{}{iteration}\n\n{}", text(&workloads), text(&implementations))
}
