//! `spinpark why`: what a process that runs waits for, now.

use std::process::ExitCode;

use spinpark_profile::attach::{self, Picture, Target};
use spinpark_profile::text::Style;

use crate::cli::Why;
use crate::files::open;
use crate::say::Say;

/// Shows it.
pub(crate) fn run(why: &Why) -> anyhow::Result<ExitCode> {
    let json = open(&why.out.json)?;
    let mut target = Target::open(why.pid, "spinpark why")?;
    let picture = Picture::take(&mut target)?;
    let say = Say::apart_from(&[&why.out.json]);
    let style = Style {
        rows: why.rows,
        ..if say.on_stderr { Style::of(&std::io::stderr()) } else { Style::of_stdout() }
    };
    say.line(attach::page(&picture, style));
    if let Some(json) = json {
        json.write(&attach::json(&picture))?;
    }
    Ok(ExitCode::SUCCESS)
}
