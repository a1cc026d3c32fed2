//! `spinpark-lab sim merge`: the shards of a sweep as one.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use spinpark_experiments::shards::{Input, Merged};
use spinpark_experiments::sweep::cells;
use spinpark_measure::report::json::Output;

use super::sweep::failed;
use super::swept::Out;
use crate::cli::Merge;
use spinpark_cli::exit::BatchEnd;

/// Reads all files, then reports as `sim sweep` does.
pub(super) fn run(wanted: &Merge) -> anyhow::Result<ExitCode> {
    let out = Out::open(&wanted.shown)?;
    let inputs = wanted.files.iter().map(|path| read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let Merged { header, reports, text } = Merged::of(&inputs)?;
    let style = out.say.style();
    let cells = cells(&header.sweep, &reports);
    out.table(&cells, style);
    out.write(BatchEnd::Complete, &cells, || Ok(text))?;
    let failed = failed(&cells, style);
    failed.iter().for_each(|line| note!("{line}"));
    Ok(BatchEnd::Complete.code(!failed.is_empty()))
}

fn read(path: &Path) -> anyhow::Result<Input> {
    let (name, text) = if Output::is_stdout(path) {
        let mut text = String::new();
        (String::from("standard input"), std::io::stdin().read_to_string(&mut text).map(|_| text))
    } else {
        (path.display().to_string(), fs::read_to_string(path))
    };
    let text = text.map_err(|error| {
        anyhow!(
            "cannot read {name}: {error}\nMerge files that `spinpark-lab sim sweep --json-lines FILE` has written"
        )
    })?;
    Ok(Input { name, text })
}
