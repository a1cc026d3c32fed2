//! `--format` and `--json`, applied to the options of each command.

use std::path::PathBuf;

use super::format::Format;
use super::{Bench, Command, Sim, Swept};

/// Makes `--format json` the same as `--json` without a file.
fn to_json(format: Option<Format>, json: &mut Option<PathBuf>) -> Result<(), String> {
    if format == Some(Format::Json) { to_stdout("json", json) } else { Ok(()) }
}

/// Makes `--format csv` the same as `--csv -`.
fn to_csv(format: Option<Format>, csv: &mut Option<PathBuf>) -> Result<(), String> {
    if format == Some(Format::Csv) { to_stdout("csv", csv) } else { Ok(()) }
}

impl Swept {
    fn apply_format(&mut self) -> Result<(), String> {
        to_csv(self.format, &mut self.csv).and_then(|()| to_json(self.format, &mut self.json))
    }
}

impl Command {
    /// Carries out `--format` where it means an output that has an option of its own.
    pub(super) fn apply_formats(&mut self) -> Result<(), String> {
        match self {
            Self::Compare(it) => to_json(it.out.format, &mut it.out.json),
            Self::Profile(it) => to_json(it.show.format, &mut it.show.json),
            Self::Report(it) => to_json(it.show.format, &mut it.show.json),
            Self::Diff(it) => to_json(it.format, &mut it.json),
            Self::Bench(bench) => match bench {
                Bench::Locks(it) => to_json(it.locks.format, &mut it.locks.json),
                Bench::Grid(it) => {
                    to_csv(it.format, &mut it.shown.csv).and_then(|()| to_json(it.format, &mut it.json))
                }
                Bench::Show(it) => to_csv(it.format, &mut it.grid.csv),
                Bench::List(_) => Ok(()),
            },
            Self::Sim(sim) => match sim {
                Sim::Machine(it) => to_json(it.format, &mut it.json),
                Sim::Run(it) => to_json(it.out.format, &mut it.out.json),
                Sim::Sweep(it) => it.shown.apply_format(),
                Sim::Merge(it) => it.shown.apply_format(),
                Sim::Replay(it) => to_json(it.out.format, &mut it.out.json),
                Sim::Tables(it) => to_json(it.out.format, &mut it.out.json),
                Sim::Native(it) => to_json(it.out.format, &mut it.out.json),
                Sim::List | Sim::Calibrate(_) => Ok(()),
            },
            Self::Documents(documents) => match documents.output() {
                Some((format, json)) => to_json(format, json),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn to_stdout(name: &str, file: &mut Option<PathBuf>) -> Result<(), String> {
    if file.is_some() {
        return Err(format!(
            "--format {name} prints to standard output, and --{name} writes a file: leave one of them out"
        ));
    }
    *file = Some(PathBuf::from("-"));
    Ok(())
}
