//! What can be measured: shapes and targets, a line each.

use spinpark_measure::report::{Style, table, text};

use crate::locks::definitions::Definitions;
use crate::locks::peers::Peers;
use crate::locks::selection::primitives;
use crate::locks::targets::package_version;

/// The version of what a target tests, as far as it is known.
#[must_use]
pub fn version(target: &crate::locks::definitions::Target, peers: &Peers) -> Option<String> {
    let package = target.package.as_deref().and_then(package_version).map(str::to_owned);
    package.or_else(|| peers.listing.families.get(&target.family).cloned())
}

/// Shapes and targets, and the bounds' number.
#[must_use]
pub fn render(definitions: &Definitions, peers: &Peers, style: Style) -> String {
    let left = |table: &mut comfy_table::Table| {
        for column in table.column_iter_mut() {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    };
    let mut shapes = table(style, &["shape", "threads", "what threads do"]);
    left(&mut shapes);
    for shape in &definitions.shapes {
        let threads: Vec<String> = shape.threads.iter().map(usize::to_string).collect();
        shapes.add_row([&shape.name, &threads.join(" "), &shape.about]);
    }
    let mut targets = table(style, &["target", "version", "whose locks"]);
    left(&mut targets);
    for target in &definitions.targets {
        let missing = primitives(&target.family, peers).is_none();
        let version = match version(target, peers) {
            _ if missing => String::from("–"),
            version => version.unwrap_or_default(),
        };
        let why = match missing {
            true => format!(" ({})", peers.why_missing(&target.family, target.install.as_deref())),
            false => String::new(),
        };
        targets.add_row([&target.name, &version, &format!("{}{why}", target.about)]);
    }
    format!("{}\n{}", text(&shapes), text(&targets))
}
