//! `spinpark libraries`: which are preloaded, and from where.

use std::process::ExitCode;

use spinpark_measure::process::executable::{DropIn, Library};

use crate::cli::Libraries;
use crate::libraries::{copy_to, locate};
use crate::say::Say;

const SAY: Say = Say { on_stderr: false };

/// Shows where they are, or copies them.
pub(crate) fn run(libraries: &Libraries) -> anyhow::Result<ExitCode> {
    if let Some(directory) = &libraries.to {
        copy_to(directory)?.iter().for_each(|path| SAY.line(path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    for library in [Library::DropIn, Library::Profiler] {
        if let Some(named) = DropIn::named(library)? {
            SAY.line(format_args!("{} (named by {})", named.path.display(), library.variable()));
            continue;
        }
        let found = locate(library)?;
        SAY.line(format_args!("{} ({})", found.path.display(), found.origin));
        found.refusals.iter().for_each(|refusal| SAY.line(format_args!("  not used: {refusal:#}")));
    }
    Ok(ExitCode::SUCCESS)
}
