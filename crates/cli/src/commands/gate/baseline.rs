//! The bound of a gate: as it was named, or from an earlier result that is checked in.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use spinpark_measure::report::baseline::{Baseline, NoBaseline};
use spinpark_measure::text::units::exact_percent;

use crate::cli::Kept;

/// A bound, and a sentence on where it is from unless it was named.
pub(super) struct Bound {
    pub(super) is: f64,
    pub(super) note: Option<String>,
}

/// `named`, or that of the baseline: the end of its interval that `end` takes, made wider by `wider`. `figure` is what
/// this gate measures.
///
/// # Errors
///
/// If the file cannot be read, is no baseline, or is one for another figure or without a bound.
pub(super) fn bound(
    named: Option<f64>,
    kept: &Kept,
    figure: &str,
    end: fn(&Baseline) -> Option<f64>,
    wider: impl Fn(f64, f64) -> f64,
) -> anyhow::Result<Bound> {
    let Some(path) = &kept.baseline else {
        if kept.worse_by.is_some() {
            bail!("--worse-by is for a baseline\nName one, or leave it out: --baseline FILE");
        }
        // clap asks for one of them.
        return Ok(Bound { is: named.unwrap_or_default(), note: None });
    };
    let baseline = read(path)?;
    let shown = path.display();
    if baseline.figure != figure {
        bail!(
            "{shown} is a baseline for another figure: {}; this gate measures: {figure}\n\
             Give this gate the same options, or write a baseline for it: --json FILE",
            baseline.figure
        );
    }
    let Some(from) = end(&baseline) else {
        bail!("{shown} has no bound: what it measured is not known\nWrite another baseline: --json FILE");
    };
    let note = match kept.worse_by {
        None => format!("The bound is what {shown} has."),
        Some(worse) => format!("The bound is what {shown} has, and {} worse.", exact_percent(worse)),
    };
    Ok(Bound { is: wider(from, kept.worse_by.unwrap_or(0.0)), note: Some(note) })
}

fn read(path: &Path) -> anyhow::Result<Baseline> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| {
        format!("cannot read the baseline {shown}; a first run writes it: --json {shown}")
    })?;
    Baseline::read(&text)
        .map_err(|NoBaseline(why)| anyhow::anyhow!("{shown} {why}\nWrite another baseline: --json FILE"))
}
