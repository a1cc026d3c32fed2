//! `spinpark libraries`: which are preloaded, and from where.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use spinpark_libraries::{Origin, copy_to, find, version};
use spinpark_measure::executable::{DropIn, Library};

use crate::cli::Libraries;
use crate::libraries::way_out;
use crate::say::Say;

const SAY: Say = Say { on_stderr: false };

/// Shows where they are, or copies them.
pub(crate) fn run(libraries: &Libraries) -> anyhow::Result<ExitCode> {
    if let Some(directory) = &libraries.to {
        if version().is_none() {
            bail!("this command carries no libraries: it was built with SPINPARK_LIBRARIES=none");
        }
        let copies = copy_to(directory).map_err(|error| {
            anyhow!(
                "cannot copy to {}: {error}\nGive --to a directory in which you may write",
                directory.display()
            )
        })?;
        copies.iter().for_each(|path| SAY.line(path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    for library in [Library::DropIn, Library::Profiler] {
        if let Some(named) = DropIn::named(library)? {
            SAY.line(format_args!("{} (named by {})", named.path.display(), library.variable()));
            continue;
        }
        let found = find(library.file()).map_err(|error| way_out(library, &error))?;
        let origin = match found.origin {
            Origin::Installed => "installed with this command",
            Origin::Carried => "carried by this command",
        };
        SAY.line(format_args!("{} ({origin})", found.path.display()));
        found.refusals.iter().for_each(|refusal| SAY.line(format_args!("  not used: {refusal}")));
    }
    Ok(ExitCode::SUCCESS)
}
